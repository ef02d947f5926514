"""Which values of events conditions compare with numbers, for the mark of an event whose value is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from threadline.capabilities.foundation.conditions.operators import ORDERING
from threadline.capabilities.foundation.conditions.tree import All, Node, Path, tests_of
from threadline.kernel.reading import Reading

TRAITS_OF = "identify"
"""The type of events whose properties are traits."""


def values_compared(nodes: Iterable[Node], types: Iterable[str]) -> dict[str, list[Reading]]:
    """What conditions that are asked about events of these types read as numbers: by type, traits included."""
    compared = [
        test.path for test in tests_of(All(tuple(nodes))) if test.operator in ORDERING and _is_number(test.operand)
    ]
    of_events = [Reading(path[2:], "number") for path in compared if path[:2] == ("event", "properties") and path[2:]]
    return merged(dict.fromkeys(types, of_events), traits_read(compared))


def traits_read(paths: Iterable[Path]) -> dict[str, list[Reading]]:
    """The traits among paths into views whose values are read as numbers."""
    traits = [Reading(path[2:], "number") for path in paths if path[:2] == ("profile", "traits") and path[2:]]
    return {TRAITS_OF: traits} if traits else {}


def merged(*several: Mapping[str, Iterable[Reading]]) -> dict[str, list[Reading]]:
    """What all of these read, by type."""
    by_type: dict[str, list[Reading]] = {}
    for part in several:
        for type, readings in part.items():
            by_type.setdefault(type, []).extend(readings)
    return by_type


def _is_number(operand: object) -> bool:
    return isinstance(operand, (int, float, Decimal)) and not isinstance(operand, bool)
