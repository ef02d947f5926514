"""Sections of which a part stands in one text and a part in another: put together, so that each is read as one.

A section by name is read text by text. One that is declared once, such as ``mail``, may have its templates in one file,
its senders in another, and some templates in the store: the members of all count, and of a member that two have, such
as ``templates``, the names of both. What two declare is a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import yaml

from threadline.capabilities.foundation.definitions.document import BY_HAND, Document, twice

Pair = tuple[yaml.Node, yaml.Node]
"""A key and its value."""


class Found(NamedTuple):
    """A section as one file has it: the document, for messages, and the nodes of its name and of what it holds."""

    document: Document
    key: yaml.Node
    value: yaml.Node


def joined(section: Found, other: Found) -> Found:
    """A section with what another text has of it."""
    document, key, value = section
    return Found(document, key, _joined(document, (key, value), (other.key, other.value), (key.value,)))


def _joined(document: Document, pair: Pair, other: Pair, at: tuple[str, ...]) -> yaml.Node:
    (key, node), (other_key, more) = pair, other
    if len(at) > 2 or not (isinstance(node, yaml.MappingNode) and isinstance(more, yaml.MappingNode)):
        document.fail(other_key, _in_both(document.place(key), other_key, at))
        return node
    what = f"`{'.'.join(at)}`"
    members = dict(document.mapping(node, what))
    for name, added in document.mapping(more, what).items():
        before = members.get(name)
        members[name] = added if before is None else (before[0], _joined(document, before, added, (*at, name)))
    return yaml.MappingNode(node.tag, [*members.values()], node.start_mark, node.end_mark)


def _in_both(place: str, other: yaml.Node, at: tuple[str, ...]) -> str:
    what = f"`{'.'.join(at)}`" if at[1:] else f"section {at[0]!r}"
    if other.start_mark.name == BY_HAND:
        return twice(what, place, ".".join(at[:-1]) or at[0], at[-1])
    return f"{what} is already declared at {place}; keep one"


def merged(values: Any, others: Any, depth: int = 2) -> Any:
    """The plain values of a section likewise."""
    if not (depth and isinstance(values, dict) and isinstance(others, Mapping)):
        return others
    return {**values, **{name: merged(values.get(name), other, depth - 1) for name, other in others.items()}}


def without(node: yaml.Node, keys: tuple[str, ...]) -> yaml.Node:
    """A mapping without what stands under these keys, each inside the one before."""
    if not isinstance(node, yaml.MappingNode):
        return node
    rest = [
        (key, value if not keys[1:] or key.value != keys[0] else without(value, keys[1:]))
        for key, value in node.value
        if keys[1:] or key.value != keys[0]
    ]
    return yaml.MappingNode(node.tag, rest, node.start_mark, node.end_mark, node.flow_style)


def at(node: yaml.Node | None, keys: tuple[str, ...]) -> Pair | None:
    """The key and the value under these keys; None: nothing stands there."""
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if key.value == keys[0]:
            return at(value, keys[1:]) if keys[1:] else (key, value)
    return None
