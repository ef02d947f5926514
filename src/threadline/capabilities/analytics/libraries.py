"""Libraries that compute, which only the extra for analytics installs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from threadline.kernel.errors import InvalidSetting
from threadline.kernel.extra import from_source


def numbers(name: str) -> Any:
    """A library of numbers. Raises `InvalidSetting` where it is missing."""
    try:
        return import_module(name)
    except ImportError:
        hint = from_source("analytics")
        raise InvalidSetting(f"this analysis needs {name}, which is not installed", hint=hint) from None
