"""The version of the package that runs."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def package_version() -> str:
    """The version of the package that runs; from a checkout that was never installed, ``0+source``."""
    try:
        return version("threadline")
    except PackageNotFoundError:
        return "0+source"
