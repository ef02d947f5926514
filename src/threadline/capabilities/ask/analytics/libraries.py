"""Libraries that compute, which only the extra for analytics installs."""

from __future__ import annotations

from typing import Any

from threadline.kernel.extra import library


def numbers(name: str) -> Any:
    """A library of numbers. Raises `InvalidSetting` where it is missing."""
    return library(name, "this analysis needs", "analytics")
