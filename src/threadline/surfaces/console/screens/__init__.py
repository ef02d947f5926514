"""Every screen of the console, found by discovery: each module of this folder has `SCREENS`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from threadline.surfaces.console.screen import Screen


@cache
def screens() -> tuple[Screen, ...]:
    """All screens, in the order of the navigation."""
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    return tuple(sorted((screen for module in modules for screen in module.SCREENS), key=lambda item: item.order))
