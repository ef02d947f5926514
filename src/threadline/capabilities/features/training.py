"""Training sets: feature vectors of people at label times, each exactly as it was served at that instant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.time import format_time, parse_time

Vector = dict[str, dict[str, Any]]
"""Feature name -> what the projection shows of it."""

ReadVector = Callable[[str, int], tuple[str, Vector]]
"""(person or kind:value, instant) -> (person id, vector). Raises `NotFound` where nobody is meant."""

OK, NOT_FOUND = "ok", "not_found"


class Label(NamedTuple):
    """What is to be learned: of whom, at which instant, and the answer if it is known."""

    person: str
    at: int
    value: Any = None


class Row(NamedTuple):
    """One label with the vector at its instant. ``vector`` is empty where nobody is meant."""

    label: Label
    person: str
    vector: Vector

    @property
    def status(self) -> str:
        """Whether somebody was meant."""
        return OK if self.person else NOT_FOUND


def read_labels(labels: Sequence[tuple[str, str, Any]], now: int) -> list[Label]:
    """Labels from (person, time as text, value). Raises `InvalidValue` with the label's place for a time that is none.

    An instant that lies ahead is refused: what will be known by then is not known, so nothing could equal it.
    """
    found = []
    for place, (person, at, value) in enumerate(labels):
        try:
            instant = parse_time(at)
        except InvalidValue as error:
            raise InvalidValue(f"labels[{place}].at: {error}") from None
        if instant > now:
            raise InvalidValue(f"labels[{place}].at: {at} lies ahead; the present is {format_time(now)}")
        found.append(Label(person, instant, value))
    return found


def training_rows(labels: Iterable[Label], read: ReadVector) -> list[Row]:
    """One row per label, in their order. A label of nobody keeps its place, so that rows and labels always match."""
    known: dict[tuple[str, int], tuple[str, Vector]] = {}
    rows = []
    for label in labels:
        key = (label.person, label.at)
        if key not in known:
            try:
                known[key] = read(label.person, label.at)
            except NotFound:
                known[key] = ("", {})
        person, vector = known[key]
        rows.append(Row(label, person, vector))
    return rows
