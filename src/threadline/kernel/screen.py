"""A screen of the console: an address, a template, and a function that asks the operations for what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from threadline.kernel.chart import Chart


class Asking(Protocol):
    """One request of somebody who is signed in, as the screens of other capabilities see it."""

    @property
    def now(self) -> int:
        """The instant to read at."""
        ...

    @property
    def path(self) -> Mapping[str, str]:
        """The path parameters of the address."""
        ...

    @property
    def query(self) -> Mapping[str, str]:
        """The query of the address; the last value of a name that is given more than once."""
        ...

    def ask(self, name: str, /, **values: Any) -> Any:
        """The answer of an operation as plain data, exactly as HTTP gives it. Parameters that are None are left out.

        Raises the errors of the operation, and `Forbidden` where the role does not allow it.
        """
        ...

    def ask_or(self, default: Any, name: str, /, **values: Any) -> Any:
        """The same, or a default where there is no such thing or it is not allowed: for what a page can do without."""
        ...

    def picture(self, name: str, /, **values: Any) -> tuple[Any, Chart | None]:
        """The answer as plain data, and its picture, where the operation has one."""
        ...

    def may(self, name: str) -> bool:
        """Whether whoever is signed in may ask an operation, and it is in force."""
        ...


Load = Callable[[Any], Mapping[str, Any]]
"""(`Asking`) -> what the template shows, by name. It blocks, asks operations only, and decides nothing that they could
decide. The console's own are handed more than an `Asking` promises."""
Area = Literal["", "Messages", "Rules and features", "Operations", "Administration"]
"""A group of the navigation that unfolds; empty: the screen stands above them all."""


class Part(NamedTuple):
    """A piece of a screen with a template of its own: loaded after the page, or again without the rest of it."""

    template: str
    load: Load
    is_document: bool = False
    """Whether `load` gives a page of its own as ``document``, such as a mail: shown in a frame, where nothing of it
    can run, load or reach the console. It has no template."""
    download: str = ""
    """The operation with a media type whose result it is, as a file; `load` gives its parameters. It has no
    template."""
    file: str = ""
    """The name of the file as which ``document`` is sent, where it is not shown: a table as CSV."""


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
    load: Callable[[Any, str], Fresh]
    """(asking, cursor) -> what is new after the cursor. The cursor "" means: from now on."""


@dataclass(frozen=True, slots=True)
class Screen:
    """Declared by a capability and found by discovery; those of what ships stand in `surfaces/console/screens/`. Served
    at its path. Whoever is signed in may look at it if they may ask `operation`; it is there while that is in force."""

    name: str
    """What addresses and templates know it by, e.g. ``people``."""
    path: str
    """Path parameters in braces; it begins with a slash."""
    title: str
    """In plain words; the heading and the entry of the navigation."""
    template: str
    """A file of the console's templates; of another capability ``package:file``, where ``file`` stands in the folder
    `templates` of the package."""
    load: Load
    operation: str
    """The operation that it is mainly made of; who may not ask it does not see the screen."""
    needs: tuple[str, ...] = ()
    """Further operations without which there is nothing to show; where one is not in force, there is no screen."""
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
