"""What a declaration needs that is installed with an extra: asked for where it is read, not where it is first used."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from threadline.kernel.errors import InvalidSetting


def from_source(extra: str) -> str:
    """How an extra is installed, as a hint.

    No index has Threadline: a command with its name alone would find nothing, or what somebody else calls so.
    """
    return f"in the folder of Threadline's source: pip install '.[{extra}]'"


def missing(module: str, named: str, extra: str) -> str:
    """What to install where a module is not there, as the end of a sentence; empty where it is.

    ``named`` is what its distribution is called.
    """
    if find_spec(module) is not None:
        return ""
    return f"needs {named}; install its extra {from_source(extra)}"


def library(name: str, asked: str, extra: str) -> Any:
    """A library that an extra installs. Raises `InvalidSetting` where it is missing; ``asked`` begins the sentence."""
    try:
        return import_module(name)
    except ImportError:
        raise InvalidSetting(f"{asked} {name}, which is not installed", hint=from_source(extra)) from None
