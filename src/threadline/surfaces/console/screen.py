"""A screen of the console: an address, a template, and a function that asks the operations for what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from threadline.surfaces.console.asking import Asking

Load = Callable[[Asking], Mapping[str, Any]]
"""What the template shows, by name. It blocks, asks operations only, and decides nothing that they could decide."""
Area = Literal["", "Messages", "Rules and features", "Operations", "Administration"]
"""A group of the navigation that unfolds; empty: the screen stands above them all."""


class Part(NamedTuple):
    """A piece of a screen with a template of its own: loaded after the page, or again without the rest of it."""

    template: str
    load: Load
    is_document: bool = False
    """Whether `load` gives a page of its own as ``document``, such as a mail: shown in a frame, where nothing of it
    can run, load or reach the console. It has no template."""


class Fresh(NamedTuple):
    """What is new since a cursor."""

    items: list[Any]
    """What is shown of it, the newest last."""
    cursor: str
    """Where to go on; of a call without a cursor: from now on, and there are no items."""
    seen: int
    """How much is new, shown or not."""


class Live(NamedTuple):
    """What is added to a list while somebody looks: rows of new things, the newest last."""

    template: str
    """Renders one list of new items, as ``items``."""
    load: Callable[[Asking, str], Fresh]
    """(asking, cursor) -> what is new after the cursor. The cursor "" means: from now on."""


@dataclass(frozen=True, slots=True)
class Screen:
    """Declared in `screens/`, served at its path. Whoever is signed in may look at it if they may ask `operation`."""

    name: str
    """What addresses and templates know it by, e.g. ``people``."""
    path: str
    """Path parameters in braces; it begins with a slash."""
    title: str
    """In plain words; the heading and the entry of the navigation."""
    template: str
    load: Load
    operation: str
    """The operation that it is mainly made of; who may not ask it does not see the screen."""
    summary: str = ""
    """What it is for, in a line, for the palette and the page."""
    area: Area = ""
    in_navigation: bool = True
    """False: it is reached from another screen, such as one person from the list of people."""
    order: int = 100
    """Its place in the navigation: the lower, the earlier."""
    within: str = ""
    """The name of the screen in the navigation that is marked as current here; empty: its own."""
    parts: Mapping[str, Part] = field(default_factory=dict)
    """By the name with which ``?part=`` asks for one."""
    live: Live | None = None
    is_form: bool = False
    """Whether the page may be asked for with a form as well (POST), whose fields then stand in the query: a text may be
    too long for an address, and has no place in the log of accesses. Nothing changes by it."""
