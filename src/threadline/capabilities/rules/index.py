"""The index of a set: by what a field is, the rules that can match at all. Whatever it leaves out does not match."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from threadline.capabilities.conditions import All, AnyOf, Node, Path, Subject, Test
from threadline.capabilities.conditions.fields import EVENT, Read, reader
from threadline.capabilities.conditions.operators import decimal_of, is_plain_text

Key = str | Decimal | tuple[bool]
"""A plain text, a number, or a flag, which is no number."""


class Index:
    """Positions of rules by the values that they need."""

    __slots__ = ("_fields", "rest")

    def __init__(self, trees: Sequence[Node | None]) -> None:
        needs = [[] if tree is None else list(_needs(tree)) for tree in trees]
        spread: dict[Path, set[Key]] = {}
        for needed in needs:
            for path, keys in needed:
                spread.setdefault(path, set()).update(keys)
        found: dict[Path, dict[Key, list[int]]] = {}
        rest: list[int] = []
        for position, needed in enumerate(needs):
            if not needed:
                rest.append(position)
                continue
            # The field with the most different values; one of the event first, because it costs nothing to read.
            path, keys = max(needed, key=lambda need: (need[0][0] == EVENT, len(spread[need[0]])))
            for key in keys:
                found.setdefault(path, {}).setdefault(key, []).append(position)
        self.rest = tuple(rest)
        """The rules of which nothing is known beforehand."""
        self._fields: list[tuple[Read, dict[Key, list[int]], bool]] = [
            (reader(path), keys, any(isinstance(key, Decimal) for key in keys)) for path, keys in found.items()
        ]

    def found(self, subject: Subject) -> list[int]:
        """The positions of the others that can match, in order."""
        positions: list[int] = []
        for read, keys, numbers in self._fields:
            value = read(subject)
            kind = type(value)
            if kind is str:
                positions += keys.get(value, ())
                number = decimal_of(value) if numbers else None
            elif kind is bool:
                positions += keys.get((value,), ())
                continue
            else:
                number = None if value is None else decimal_of(value)
            if number is not None:
                positions += keys.get(number, ())
        return sorted(positions)


def _needs(node: Node) -> Iterator[tuple[Path, list[Key]]]:
    """The tests without which a tree is never true, as fields and the values of which they have to hold one."""
    if isinstance(node, Test):
        operands = node.operand if node.operator == "in" else (node.operand,) if node.operator == "equals" else ()
        keys = [_key(operand) for operand in operands]
        if keys and None not in keys:
            yield node.path, [key for key in dict.fromkeys(keys) if key is not None]
    elif isinstance(node, All) or (isinstance(node, AnyOf) and len(node.parts) == 1):
        for part in node.parts:
            yield from _needs(part)


def _key(operand: Any) -> Key | None:
    """What a value must be, to be equal to this; None where it may be one of several."""
    if type(operand) is bool:
        return (operand,)
    if type(operand) is str:
        # A text that is a number or an instant is equal to more than itself.
        return operand if is_plain_text(operand) else None
    return decimal_of(operand)
