"""Plain values as JSON has them, each with the place at which it is written: what forms read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import yaml

from threadline.capabilities.foundation.definitions.document import PROBLEMS_MAX, Document
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.names import Mention, Reference

Place = tuple[str | int, ...]
"""The keys and positions that lead to a part of what was written."""

NODES_MAX = 100_000
"""Values of one definition: an alias of YAML can make much of little."""
DEPTH_MAX = 60


def shown_place(at: Place) -> str:
    """A place as it is written behind the name of the whole, e.g. ``.all[0].field``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in at)


def called(what: str, at: Place) -> str:
    """What problems call a part: the whole and the path in it, e.g. ``streak 'daily': `freezes.max` ``."""
    path = f"`{shown_place(at).removeprefix('.')[:160]}`" if at else ""
    return ": ".join(item for item in (what, path) if item)


class Noted(Exception):
    """There is no value; what is wrong is noted already."""


class Whole(Protocol):
    """A definition as it was written, in YAML or in JSON."""

    name: str
    what: str
    """What problems call it, e.g. ``streak 'daily'``; empty where the place says it."""

    def place(self, at: Place) -> str:
        """File and line of a part; empty where there are none."""
        ...

    def fail(self, at: Place, text: str) -> None:
        """Note a problem at a place."""
        ...

    def warn(self, at: Place, text: str) -> None:
        """Note what is no mistake and hardly meant."""
        ...

    def note_free(self, at: Place, kind: str, name: str) -> None:
        """Note that a part is a name of a free `NameKind`, which nothing has to declare."""
        ...

    def note_name(self, at: Place, kind: str, name: str) -> None:
        """Note that a part is the name of something that is declared elsewhere, of a `NameKind`."""
        ...

    def note_path(self, at: Place, projection: str, path: tuple[str, ...]) -> None:
        """Note that a part is a path into the view of a projection."""
        ...

    def written(self, at: Place) -> str:
        """A scalar as it is written; empty where that is not known."""
        ...

    def misread(self, at: Place) -> str:
        """What YAML makes of a scalar that looks like another value, see `Document.misread`."""
        ...


class Part:
    """A value inside a definition, with its place."""

    __slots__ = ("at", "value", "whole")

    def __init__(self, whole: Whole, value: Any, at: Place = ()) -> None:
        self.whole = whole
        self.value = value
        self.at = at

    @property
    def name(self) -> str:
        """The last key that leads here; at the top the name of the whole."""
        return str(self.at[-1]) if self.at else self.whole.name

    @property
    def written(self) -> str:
        """A scalar as it is written: a float would not be the number, nor 04:30 the time."""
        return self.whole.written(self.at) or str(self.value)

    def place(self, key: str = "") -> str:
        """File and line of it, or of what a key in it leads to; empty where there is none."""
        if key and key not in self.value:
            return ""
        return self.whole.place((*self.at, key) if key else self.at)

    def inner(self, step: str | int) -> Part:
        """The value under a key or at a position of this one."""
        return Part(self.whole, self.value[step], (*self.at, step))

    def fail(self, text: str, *inside: str | int) -> None:
        """Note a problem, at a place inside this value."""
        self.whole.fail((*self.at, *inside), ": ".join(item for item in (self._called, text) if item))

    def noting(self) -> Noting:
        """What notes problems at places inside this value, for readers of plain values."""
        return Noting(self)

    def wrong(self, text: str, *inside: str | int) -> None:
        """Note what is wrong with this value itself, e.g. ``must be text``."""
        self.whole.fail((*self.at, *inside), f"{self._called} {text}".lstrip())

    @property
    def _called(self) -> str:
        # In JSON the place itself names the path.
        return called(self.whole.what, self.at) if self.whole.what else ""

    def leaves(self) -> Iterator[Part]:
        """The scalars in it, in order."""
        # Without recursion: JSON may be nested more deeply than Python calls.
        waiting = [self]
        while waiting:
            part = waiting.pop()
            if isinstance(part.value, (dict, list)):
                steps = range(len(part.value)) if isinstance(part.value, list) else part.value
                waiting += [part.inner(step) for step in reversed(steps)]
            else:
                yield part


class Noting:
    """Notes problems inside a part, and whether there were any."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self.noted = False

    def __call__(self, at: Place, text: str) -> None:
        """Note a problem at a place inside the part."""
        self.noted = True
        self._part.fail(text, *at)


class Plain:
    """A definition in YAML: its plain values, and the node behind each of them."""

    def __init__(
        self,
        document: Document,
        what: str,
        name: str = "",
        key: yaml.Node | None = None,
        nodes_max: int = NODES_MAX,
        depth_max: int = DEPTH_MAX,
    ) -> None:
        self._document = document
        self._key = key
        self._nodes_max = nodes_max
        self._depth_max = depth_max
        self._nodes: dict[Place, yaml.Node] = {}
        self._keys: dict[Place, yaml.Node] = {}
        self._around: list[yaml.Node] = []
        self.what = what
        self.name = name

    def part(self, node: yaml.Node) -> Part:
        """The whole as a part. Raises `Noted` where it is no plain value."""
        before = len(self._document.problems)
        value = self.value(node)
        if len(self._document.problems) > before:
            raise Noted
        return Part(self, value)

    def value(self, node: yaml.Node, at: Place = ()) -> Any:
        """The value of a node. An alias can make much of little, so values are counted; too many are a problem."""
        self._nodes[at] = node
        if len(self._nodes) > self._nodes_max or len(at) > self._depth_max:
            if not self._document.problems:
                self._document.fail(node, f"{self.what} is larger or more deeply nested than any may be")
            return None
        if isinstance(node, yaml.ScalarNode):
            return self._document.literal(node)
        if any(node is item for item in self._around):
            self._document.fail(
                self._keys.get(at, node), f"{called(self.what, at)} is an alias of what it stands in; write it out"
            )
            return None
        self._around.append(node)
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item, (*at, index)) for index, item in enumerate(node.value)]
            values = {}
            for name, (key, value) in self._document.mapping(node, called(self.what, at)).items():
                self._keys[*at, name] = key
                values[name] = self.value(value, (*at, name))
            return values
        finally:
            self._around.pop()

    def nearest(self, at: Place) -> yaml.Node:
        """The key of what stands at a place, or of what stands around it; of an item of a list the item."""
        while at not in self._nodes:
            at = at[:-1]
        return self._keys.get(at, self._nodes[at]) if at else self._key or self._nodes[at]

    def place(self, at: Place) -> str:
        """See `Whole`."""
        return self._document.place(self.nearest(at))

    def fail(self, at: Place, text: str) -> None:
        """See `Whole`."""
        self._document.fail(self.nearest(at), text)

    def warn(self, at: Place, text: str) -> None:
        """See `Whole`."""
        self._document.warn(self.nearest(at), f"{self.what or called('', at)}: {text}")

    def note_free(self, at: Place, kind: str, name: str) -> None:
        """See `Whole`."""
        node, what = self.nearest(at), self.what or called("", at)
        self._document.mentions[Mention(kind, name, self.place(at), node.start_mark.column + 1, what)] = None

    def note_name(self, at: Place, kind: str, name: str) -> None:
        """See `Whole`."""
        self._document.names.setdefault(Reference(kind, name, self.what), self.nearest(at))

    def note_path(self, at: Place, projection: str, path: tuple[str, ...]) -> None:
        """See `Whole`."""
        self._document.paths.setdefault((projection, path, self.what), self.nearest(at))

    def written(self, at: Place) -> str:
        """See `Whole`."""
        node = self._nodes[at]
        return node.value if isinstance(node, yaml.ScalarNode) else ""

    def misread(self, at: Place) -> str:
        """See `Whole`."""
        return self._document.misread(self._nodes[at])


class Json:
    """A definition that came as plain values, as JSON gives them."""

    what = ""

    def __init__(self, name: str, where: str) -> None:
        """``where``: what the places of problems begin with."""
        self.name = name
        self._where = where
        self._problems: list[str] = []
        self.names: list[tuple[Place, str, str]] = []
        """What names something that is declared elsewhere: place, kind and name."""

    def place(self, at: Place) -> str:
        """JSON has none."""
        return ""

    def fail(self, at: Place, text: str) -> None:
        """See `Whole`."""
        self._problems.append(f"{self._where}{shown_place(at)}: {text}")

    def warn(self, at: Place, text: str) -> None:
        """Nobody is warned here."""

    def note_free(self, at: Place, kind: str, name: str) -> None:
        """Nobody is warned here."""

    def note_name(self, at: Place, kind: str, name: str) -> None:
        """See `Whole`."""
        self.names.append((at, kind, name))

    def note_path(self, at: Place, projection: str, path: tuple[str, ...]) -> None:
        """What comes in by JSON knows its paths by itself."""

    def written(self, at: Place) -> str:
        """JSON is read before it gets here."""
        return ""

    def misread(self, at: Place) -> str:
        """JSON looks like what it is."""
        return ""

    @property
    def is_wrong(self) -> bool:
        """Whether anything was noted."""
        return bool(self._problems)

    def refusal(self) -> InvalidDefinition:
        """Every problem, one a line."""
        return InvalidDefinition("\n".join(self._problems[:PROBLEMS_MAX]))
