"""What is read in events, and as what: a value that its reader cannot read is ignored, and its event is marked.

A capability declares what its folds and policies read in a type of events. When such an event is recorded, each of
these values is looked at once, for all readers: without that a total of ``29 EUR`` is 0 wherever it counts, and nothing
says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from threadline.kernel.calendar import day_of, zone_named
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Event
from threadline.kernel.fixed import read_currency, to_fixed
from threadline.kernel.time import parse_time

Meaning = Literal[
    "number",
    "whole",
    "plain",
    "label",
    "text",
    "currency",
    "list",
    "mapping",
    "many",
    "day",
    "instant",
    "zone",
]
"""As what a value is read: an amount, a whole number, anything that is no list and no mapping, a text or a whole
number, a text, the code of a currency, a list, a mapping, either of these, a day, a time with a zone, the name of a
zone."""

ENTRY = "[]"
"""A step into each entry of a list; of what is no list into the value itself. An entry that is no mapping is its own
``value``."""
ANY = "*"
"""Stands for every type of events."""
UNREAD_MAX = 20
"""Paths of one event that are named in it."""


class Reading(NamedTuple):
    """A value of an event that somebody reads."""

    path: tuple[str, ...]
    """Into the properties; a first step ``context`` leads into the context instead."""
    meaning: Meaning
    most: int = 0
    """The longest text, or the largest whole number; 0: any."""
    among: frozenset[str] = frozenset()
    """The texts that are known; empty: any."""

    @property
    def name(self) -> str:
        """The path as it is written."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Readings:
    """What a capability reads in events: declared by it, and found by discovery."""

    name: str
    """Of the capability, and of a part of it where it declares several."""
    by_type: Mapping[str, Iterable[Reading]] = field(default_factory=dict)


class ReadValues:
    """Everything that is read in events. It can be sent to another process."""

    def __init__(self, declared: Iterable[Readings] = ()) -> None:
        self._declared = tuple(declared)
        by_type: dict[str, dict[Reading, None]] = {}
        for readings in self._declared:
            for type, read in readings.by_type.items():
                by_type.setdefault(type, {}).update(dict.fromkeys(read))
        of_any = by_type.pop(ANY, {})
        self._by_type = {type: tuple({**read, **of_any}) for type, read in by_type.items() if read}
        self._any = _tree(of_any)
        self._trees = {type: _tree(read) for type, read in self._by_type.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return ReadValues, (self._declared,)

    @property
    def types(self) -> frozenset[str]:
        """The types in which something is read."""
        return frozenset(self._by_type)

    def of(self, type: str) -> tuple[Reading, ...]:
        """What is read in events of a type."""
        return self._by_type.get(type, self._any.every)

    def unread(self, event: Event) -> list[Reading]:
        """What is read in an event and cannot be: null, blank text and what is missing are no values at all."""
        tree = self._trees.get(event.type, self._any)
        unread: list[Reading] = []
        for step, branch in tree.below:
            value = event.context if step == _CONTEXT else event.properties.get(step)
            if value is not None:
                _note_unread(branch, value, unread)
        return unread


Check = Callable[[Any], bool]
_CONTEXT, _VALUE = "context", "value"


class _Tree(NamedTuple):
    """What is read at a place, and below it: each place of an event is looked at once, for all readers."""

    here: tuple[tuple[Check, Reading], ...]
    below: tuple[tuple[str, _Tree], ...]
    entries: _Tree | None
    """What is read in each entry of a list."""
    is_leaf: bool
    every: tuple[Reading, ...]
    """All that is read, here and below."""


def _tree(read: Iterable[Reading], depth: int = 0) -> _Tree:
    every = tuple(read)
    below: dict[str, list[Reading]] = {}
    for reading in every:
        if len(reading.path) > depth:
            below.setdefault(reading.path[depth], []).append(reading)
    is_leaf, entries = not below, below.pop(ENTRY, None)
    return _Tree(
        tuple((_CHECKS[reading.meaning](reading), reading) for reading in every if len(reading.path) == depth),
        tuple((step, _tree(readings, depth + 1)) for step, readings in below.items()),
        None if entries is None else _tree(entries, depth + 1),
        is_leaf,
        every,
    )


def _note_unread(tree: _Tree, value: Any, unread: list[Reading]) -> None:
    """Add what is read in a value and cannot be."""
    for check, reading in tree.here:
        if not check(value) and not _is_blank(value):
            unread.append(reading)
    if tree.is_leaf:
        return
    if tree.entries is not None:
        for entry in value if type(value) is list else (value,):
            if entry is not None:
                _note_unread(tree.entries, _as_entry(tree.entries, entry), unread)
    for step, branch in tree.below:
        if type(value) is dict:
            inner = value.get(step)
        elif type(value) is list and step.isdecimal() and len(step) <= 4:
            inner = value[int(step)] if int(step) < len(value) else None
        else:
            # Such as the price of a product that is a text.
            unread += () if _is_blank(value) else branch.every
            continue
        if inner is not None:
            _note_unread(branch, inner, unread)


def _as_entry(tree: _Tree, entry: Any) -> Any:
    if type(entry) is dict or not tree.below or any(step != _VALUE for step, _ in tree.below):
        return entry
    return {_VALUE: entry}


def _is_blank(value: Any) -> bool:
    return value is None or (type(value) is str and not value.strip())


def _number(reading: Reading) -> Check:
    # Nearly every amount is a small number, and is known as one without making it exact.
    return lambda value: (
        ((type(value) is float or type(value) is int) and -1e12 < value < 1e12) or to_fixed(value) is not None
    )


def _whole(reading: Reading) -> Check:
    most = reading.most
    return lambda value: type(value) is int and (not most or 0 < value <= most)


def _plain(reading: Reading) -> Check:
    most = reading.most
    return lambda value: not most or len(value) <= most if type(value) is str else type(value) not in (dict, list)


def _text(reading: Reading) -> Check:
    most, among = reading.most or sys.maxsize, reading.among
    if not among:
        return lambda value: type(value) is str and len(value) <= most
    return lambda value: type(value) is str and value in among


def _label(reading: Reading) -> Check:
    is_text = _text(reading)
    return lambda value: is_text(value) or (type(value) is int and is_text(str(value)))


def _of(*types: type) -> Callable[[Reading], Check]:
    return lambda reading: lambda value: type(value) in types


def _is_instant(value: Any) -> bool:
    try:
        return type(value) is str and parse_time(value) is not None
    except InvalidValue:
        return False


_CHECKS: Mapping[Meaning, Callable[[Reading], Check]] = {
    "number": _number,
    "whole": _whole,
    "plain": _plain,
    "label": _label,
    "text": _text,
    "currency": lambda reading: lambda value: bool(read_currency(value)),
    "list": _of(list),
    "mapping": _of(dict),
    "many": _of(list, dict),
    "day": lambda reading: lambda value: day_of(value) is not None,
    "instant": lambda reading: _is_instant,
    "zone": lambda reading: lambda value: zone_named(value) is not None,
}
"""What tells whether a value can be read so."""
