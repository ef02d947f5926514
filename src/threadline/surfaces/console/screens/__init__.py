"""Every screen of the console, found by discovery: each module of this folder has `SCREENS`, capabilities their own."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.screen import Screen


@cache
def screens() -> tuple[Screen, ...]:
    """All screens that ship, in the order of the navigation."""
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    return tuple(sorted((screen for module in modules for screen in module.SCREENS), key=lambda item: item.order))


def screens_of(catalogue: Catalogue) -> tuple[Screen, ...]:
    """The screens whose operations are in force, in the order of the navigation."""
    operations = {operation.name for operation in catalogue.operations}
    declared = (*screens(), *catalogue.screens)
    there = (screen for screen in declared if operations.issuperset((screen.operation, *screen.needs)))
    return tuple(sorted(there, key=lambda item: item.order))
