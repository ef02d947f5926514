"""`where`: the conditions by which features, streaks and memory choose events, in short form or as trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import yaml

from threadline.capabilities.conditions.compiling import compiled, leaves_of
from threadline.capabilities.conditions.fields import EVENT, RECORDED_FIELDS, event_reader
from threadline.capabilities.conditions.operators import MEANING
from threadline.capabilities.conditions.reading import GROUPS, NESTING_MAX, NODES_MAX, read_plain
from threadline.capabilities.conditions.tree import All, Node, plain, tests_of
from threadline.capabilities.definitions import Document, Place, Plain
from threadline.kernel.canonical import canonical_json
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


def read_where(document: Document, node: yaml.Node, what: str) -> Where:
    """The conditions of a `where`. What is wrong with them is noted in the document; they are then left out."""
    written = Plain(document, "condition", NODES_MAX, 2 * NESTING_MAX, lambda key: key != "exists")
    before = len(document.problems)
    value = written.value(node)
    if len(document.problems) > before:
        return EVERY_EVENT
    if not isinstance(value, dict | list) or not value:
        document.fail(node, f"{what}: `where` is a mapping such as {{category: shoes}}, or a list of conditions")
        return EVERY_EVENT
    trees = [((index,), tree) for index, tree in enumerate(value)] if isinstance(value, list) else _short_form(value)

    def fail(at: Place, text: str) -> None:
        place = (*trees[at[1]][0], *at[2:]) if len(at) > 1 and isinstance(at[1], int) else ()
        on = ""
        if place and isinstance(place[0], str):
            on = f" on {place[0]!r}"
            text = f"write a tree as an item of a list, `- {place[0]}: …`" if place[0] in GROUPS else text
        document.fail(written.nearest(place), f"{what}: `where`{on}: {text}")

    tree = read_plain({"all": [tree for _, tree in trees]}, fail)
    for test in tests_of(tree) if tree is not None else ():
        if test.path[0] != EVENT or test.path[1] in RECORDED_FIELDS:
            text = (
                f"`where` cannot read {test.field}; name a field of the event other than event.id and event.recorded_at"
            )
            document.fail(node, f"{what}: {text}")
    return Where(tree.parts) if isinstance(tree, All) and len(document.problems) == before else EVERY_EVENT


def _short_form(value: dict[str, Any]) -> list[tuple[Place, Any]]:
    """Each condition of ``{total: {gt: 5}, action: [open, click]}`` as a tree, with its place."""
    found: list[tuple[Place, Any]] = []
    for name, wanted in value.items():
        steps = name.split(".")
        field = [EVENT, *steps] if steps[0] == "context" else [EVENT, "properties", *steps]
        tests = wanted if isinstance(wanted, dict) else {"in" if isinstance(wanted, list) else "equals": wanted}
        # `field` comes last: an operator of that name is none, and must not stand for the path.
        trees = [{operator: operand, "field": field} for operator, operand in tests.items()] or [{"field": field}]
        found += [((name,), tree) for tree in trees]
    return found
