"""`where`: the conditions by which features, streaks and memory choose events, in short form or as trees."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from threadline.capabilities.foundation.conditions.compiling import compiled, leaves_of
from threadline.capabilities.foundation.conditions.fields import EVENT, RECORDED_FIELDS, event_reader
from threadline.capabilities.foundation.conditions.operators import MEANING
from threadline.capabilities.foundation.conditions.reading import GROUPS, misread, names_in, read_plain
from threadline.capabilities.foundation.conditions.tree import All, Node, plain, tests_of
from threadline.capabilities.foundation.definitions import Noted, Part, Place
from threadline.kernel.canonical import canonical_json
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Event


class Where:
    """Conditions on an event, all of which must hold; false without any. Equal to another with the same conditions."""

    __slots__ = ("_written", "parts", "test")

    def __init__(self, parts: Iterable[Node] = ()) -> None:
        written = {canonical_json(plain(part)): part for part in parts}
        # Sorted, so that the order in which conditions are declared changes no fingerprint; as text, because to Python
        # a condition on 1 equals one on true.
        self._written = tuple(sorted(written))
        self.parts = tuple(written[text] for text in self._written)
        tree = All(self.parts)
        self.test: Callable[[Event], bool] = compiled(tree, leaves_of(tree, event_reader))
        """Whether an event passes."""

    @property
    def content(self) -> list[Any]:
        """What decides the answers, for fingerprints of states."""
        return [MEANING, *map(plain, self.parts)] if self.parts else []

    def __bool__(self) -> bool:
        return bool(self.parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Where) and self._written == other._written

    def __hash__(self) -> int:
        return hash(self._written)


EVERY_EVENT = Where()
"""No condition."""


def read_where(part: Part, stands_for: re.Pattern[str] | None = None) -> Where:
    """The conditions of a `where`. Raises `Noted` where something is wrong with them.

    ``stands_for``: placeholders that whoever reads them replaces.
    """
    if misread(part, lambda key: key != "exists"):
        raise Noted
    value, failed = part.value, list[str]()
    if not value:
        raise InvalidValue("must be a mapping such as {category: shoes}, or a list of conditions")
    trees = [((index,), tree) for index, tree in enumerate(value)] if isinstance(value, list) else short_form(value)

    def fail(at: Place, text: str) -> None:
        failed.append(text)
        path = (*trees[at[1]][0], *at[2:]) if len(at) > 1 and isinstance(at[1], int) else ()
        if path and isinstance(path[0], str):
            text = f"write a tree as an item of a list, `- {path[0]}: …`" if path[0] in GROUPS else text
            part.wrong(f"on {path[0]!r}: {text}", *path)
        else:
            part.fail(text, *path)

    tree = read_plain({"all": [tree for _, tree in trees]}, fail)
    if not isinstance(tree, All) or failed:
        raise Noted
    for (path, _), branch in zip(trees, tree.parts, strict=True):
        for test in tests_of(branch):
            for _, kind, named in names_in(test):
                part.whole.note_free((*part.at, *path), kind, named)
            if test.path[0] != EVENT or test.path[1] in RECORDED_FIELDS:
                fields = "a field of the event other than event.id and event.recorded_at"
                failed.append(f"cannot read {test.field}; name {fields}")
                part.wrong(failed[-1], *path)
            for operand in test.operand if isinstance(test.operand, tuple) else (test.operand,):
                if type(operand) is not str or (stands_for is not None and stands_for.fullmatch(operand)):
                    continue
                if operand.startswith("${") and operand.endswith("}"):
                    # Taken literally it would never be true of any event.
                    failed.append(f"compares with the very text {operand}; a condition takes no placeholder")
                    part.wrong(failed[-1], *path)
    if failed:
        raise Noted
    return Where(tree.parts)


def short_form(value: dict[str, Any]) -> list[tuple[Place, Any]]:
    """Each condition of ``{total: {gt: 5}, action: [open, click]}`` as a tree, with its place."""
    conditions: list[tuple[Place, Any]] = []
    for name, wanted in value.items():
        steps = name.split(".")
        field = [EVENT, *steps] if steps[0] == "context" else [EVENT, "properties", *steps]
        tests = wanted if isinstance(wanted, dict) else {"in" if isinstance(wanted, list) else "equals": wanted}
        # `field` comes last: an operator of that name is none, and must not stand for the path.
        trees = [{operator: operand, "field": field} for operator, operand in tests.items()] or [{"field": field}]
        conditions += [((name,), tree) for tree in trees]
    return conditions
