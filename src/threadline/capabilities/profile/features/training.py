"""Training sets: feature vectors of people at label times, each exactly as it was served at that instant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.time import format_time, parse_time

Vector = dict[str, dict[str, Any]]
"""Feature name -> what the projection shows of it."""

ReadVector = Callable[[int], tuple[str, Vector]]
"""Instant -> (person id, vector) of somebody. Raises `NotFound` where nobody is meant."""

OK, NOT_FOUND = "ok", "not_found"


class Label(NamedTuple):
    """What is to be learned: of whom, at which instant, and the answer if it is known."""

    person: str
    at: int
    value: Any = None


class Row(NamedTuple):
    """One label with the values and their statuses at its instant. ``person`` is empty where nobody is meant."""

    label: Label
    person: str
    values: dict[str, Any]
    statuses: dict[str, str]

    @property
    def status(self) -> str:
        """Whether somebody was meant."""
        return OK if self.person else NOT_FOUND


def read_labels(labels: Sequence[tuple[str, str, Any]], now: int) -> list[Label]:
    """Labels from (person, time as text, value). Raises `InvalidValue` with the label's place for a time that is none.

    An instant that lies ahead is refused: what will be known by then is not known, so nothing could equal it.
    """
    parsed = []
    for index, (person, at, value) in enumerate(labels):
        try:
            instant = parse_time(at)
        except InvalidValue as error:
            raise InvalidValue(f"labels[{index}].at: {error}", param="labels") from None
        if instant > now:
            raise InvalidValue(
                f"labels[{index}].at: {at} is in the future; it is now {format_time(now)}", param="labels"
            )
        parsed.append(Label(person, instant, value))
    return parsed


def training_rows(labels: Sequence[Label], columns: Sequence[str], whom: Callable[[str], ReadVector]) -> list[Row]:
    """One row per label, in their order. A label of nobody keeps its place, so that rows and labels always match.

    The labels of one person are read one after the other, whatever their order, and of each vector only the columns
    are kept: memory holds one person and the answer, however many labels there are.
    """
    nulls, missing = dict.fromkeys(columns), dict.fromkeys(columns, "NOT_FOUND")
    rows = [Row(label, "", nulls, missing) for label in labels]
    positions: dict[str, list[int]] = {}
    for index, label in enumerate(labels):
        positions.setdefault(label.person, []).append(index)
    for ref, where in positions.items():
        with suppress(NotFound):
            read = cache(_columns_of(columns, whom(ref)))
            for index in where:
                with suppress(NotFound):
                    rows[index] = Row(labels[index], *read(labels[index].at))
    return rows


def _columns_of(
    columns: Sequence[str], read: ReadVector
) -> Callable[[int], tuple[str, dict[str, Any], dict[str, str]]]:
    def chosen(at: int) -> tuple[str, dict[str, Any], dict[str, str]]:
        person, vector = read(at)
        values = {name: vector[name]["value"] for name in columns}
        return person, values, {name: vector[name]["status"] for name in columns}

    return chosen
