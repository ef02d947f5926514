"""The tables that are folded person by person, by the same folds as everywhere: streaks, vectors, content."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.features.definition import read_features
from threadline.capabilities.profile.interests.definition import Interests, read_interests
from threadline.capabilities.profile.interests.summary import totals
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person_view import view_at
from threadline.engine.folding.refold import fold_events, with_openings_in_place
from threadline.exports.curated.schema import CONTENT_TOTALS, STREAK_SNAPSHOTS, Kind, Table, feature_vectors
from threadline.kernel.event import Recorded
from threadline.kernel.projection import Edge
from threadline.kernel.time import DAY

Row = tuple[Any, ...]
Rows = Mapping[str, Sequence[Row]]
"""By table, the rows of a person, with values in the order of its columns."""

STEPS_MAX = 1_000
"""Changes by time alone after one event that are followed; a person who does nothing loses every streak long before."""
_INTEGER_MAX = 1 << 63


class Folds(NamedTuple):
    """What rows are folded with."""

    catalogue: Catalogue
    interests: Interests
    vectors: Table

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that `rows_of` fills."""
        return (STREAK_SNAPSHOTS, CONTENT_TOTALS, self.vectors)

    @property
    def fingerprint(self) -> str:
        """Changes with every definition that the rows depend on."""
        return " ".join((self.catalogue.layout, self.interests.fingerprint, *map(str, self.vectors.columns)))


def folds_of(catalogue: Catalogue) -> Folds:
    """What the definitions of a catalogue make of people."""
    definitions = catalogue.definitions
    assert isinstance(definitions, Definitions), "curated tables are made under the definitions in force"
    features = read_features(definitions)
    shown = [features.by_name[name] for name in features.names]
    table = feature_vectors((feature.name, feature.aggregate, feature.description) for feature in shown)
    return Folds(catalogue, read_interests(definitions), table)


def rows_of(folds: Folds, person: str, events: Sequence[Recorded]) -> Rows:
    """Everything that the folded tables say of a person, from all their events in occurred order; those that count for
    nothing make no day either."""
    events = [recorded for recorded in events if folds.catalogue.event_types.counts(recorded.event)]
    events = with_openings_in_place(events)
    vectors: list[Row] = []
    streaks = _Streaks(person)
    for instant, following, states in _day_ends(folds.catalogue, events):
        day = _DayEnd(folds.catalogue, events, instant, states)
        shown = day.view("features")
        values = (plain(shown[column.name[2:]]["value"], column.kind) for column in folds.vectors.columns[2:])
        vectors.append((instant // DAY - 1, person, *values))
        for at in day.changes("streaks", following):
            streaks.note(at // DAY - 1, day._replace(instant=at).view("streaks"))
    interesting = (event for event in events if event.event.type in folds.interests.sources)
    content = [
        (person, *total.cell, total.period_start, total.total, total.first_at, total.last_at)
        for total in totals(folds.interests, interesting, {})
    ]
    return {STREAK_SNAPSHOTS.name: streaks.rows(), CONTENT_TOTALS.name: content, folds.vectors.name: vectors}


def plain(value: Any, kind: Kind) -> Any:
    """A value as a column of this kind takes it; null for what it cannot take."""
    if kind == "text":
        text = value if value is None or type(value) is str else msgspec.json.encode(value).decode()
        # Half a surrogate pair is no UTF-8; JSON writes it as an escape, and so does this.
        return None if text is None else text.encode("utf-8", "backslashreplace").decode()
    if kind == "flag":
        return value if type(value) is bool else None
    if type(value) is int:
        return float(value) if kind == "number" else value if -_INTEGER_MAX <= value < _INTEGER_MAX else None
    return value if type(value) is float and kind == "number" else None


def _day_ends(catalogue: Catalogue, events: Sequence[Recorded]) -> Iterator[tuple[int, int | None, list[Any]]]:
    """The end of each UTC day with events, the end of the next one (None: it is the last), and the states at it."""
    only = tuple(catalogue.index[name] for name in ("features", "streaks"))
    states = catalogue.empty()
    days = [event.event.occurred_at // DAY for event in events]
    start = 0
    while start < len(events):
        stop = bisect_left(days, days[start] + 1, start)
        fold_events(catalogue, events[start:stop], states, only)
        following = (days[stop] + 1) * DAY if stop < len(events) else None
        yield (days[start] + 1) * DAY, following, states
        start = stop


class _DayEnd(NamedTuple):
    """A person at the end of a day."""

    catalogue: Catalogue
    events: Sequence[Recorded]
    instant: int
    states: Sequence[Any]

    def view(self, name: str) -> Any:
        """The view of a projection."""
        index = self.catalogue.index[name]
        return view_at(self.catalogue.looks[index], self.states[index], self.instant, self._at_edges)

    def changes(self, name: str, following: int | None) -> Iterator[int]:
        """This day's end and later ones, before a following one, at which time alone may have changed a view."""
        index = self.catalogue.index[name]
        due = self.catalogue.projections[index].depends.due
        at: int | None = self.instant
        for _ in range(STEPS_MAX):
            if at is None or (following is not None and at >= following):
                return
            yield at
            changed = None if due is None else due(self.states[index], at)
            # What changes at an instant is seen right after it: a day that ends there shows it.
            at = None if changed is None else max(-(-changed // DAY) * DAY, at + DAY)

    def _at_edges(self, edges: Iterable[Edge]) -> list[Recorded]:
        by_id: dict[str, Recorded] = {}
        for edge in edges:
            start = bisect_left(self.events, edge.start, key=_occurred_at)
            stop = bisect_left(self.events, edge.stop, key=_occurred_at)
            by_id.update((event.id, event) for event in self.events[start:stop] if edge.holds(event))
        return sorted(by_id.values(), key=lambda event: (event.event.occurred_at, event.id))


def _occurred_at(recorded: Recorded) -> int:
    return recorded.event.occurred_at


class _Streaks:
    """The rows of a person's streaks, one for each change."""

    def __init__(self, person: str) -> None:
        self.person = person
        self.open: dict[str, tuple[int, Row]] = {}
        self.closed: list[Row] = []

    def note(self, day: int, shown: Mapping[str, Any]) -> None:
        """How streaks stand at the end of a day."""
        for name, streak in shown.items():
            standing = (streak["current"], streak["longest"], streak["freezes"], streak["cadence"])
            since, before = self.open.get(name, (day, None))
            if before == standing or (before is None and not streak["longest"]):
                continue
            if before is not None:
                self.closed.append((self.person, name, since, day, *before))
            self.open[name] = day, standing

    def rows(self) -> list[Row]:
        """All of them, by streak and day."""
        last = [(self.person, name, since, None, *standing) for name, (since, standing) in self.open.items()]
        return sorted(self.closed + last, key=lambda row: row[1:3])
