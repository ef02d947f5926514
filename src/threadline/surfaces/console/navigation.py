"""The entries of the navigation that whoever is signed in may open."""

from __future__ import annotations

from typing import Any, get_args

from threadline.kernel.screen import Area
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.screens import screens_of


def navigation(asking: Asking, current: str) -> list[dict[str, Any]]:
    """The screens by area, in order; the area of the current one is open."""
    allowed = [
        screen
        for screen in screens_of(asking.engine.catalogue)
        if screen.in_navigation and asking.may(screen.operation)
    ]
    by_area = [(area, [screen for screen in allowed if screen.area == area]) for area in get_args(Area)]
    return [
        {
            "area": area,
            "is_open": current in {screen.name for screen in entries},
            "screens": [{"name": e.name, "path": e.path, "title": e.title} for e in entries],
        }
        for area, entries in by_area
        if entries
    ]
