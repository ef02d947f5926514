"""From a person's events, of all threads, to the row of that person: the engine's folds and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import msgspec

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.history import occurred_order
from threadline.engine.folding.person_packing import pages_of_people
from threadline.engine.folding.refold import NOTHING, catch_up, fold_events
from threadline.kernel.event import Recorded
from threadline.kernel.projection import State
from threadline.kernel.store import Store

_sorted = msgspec.json.Encoder(order="sorted")


class PersonRow(NamedTuple):
    """What the table `states` holds of a person."""

    workspace: str
    person: str
    events: int
    latest_at: int | None
    """When the newest event that is folded occurred, microseconds; None if none is folded."""
    latest_id: str
    states: str
    """The state of every projection by name, as JSON with sorted names: equal states are equal text."""


def fold_person(catalogue: Catalogue, workspace: str, person: str, events: Iterable[Recorded]) -> PersonRow:
    """The row of a person. The events are all that the person has, in occurred order; they are read once."""
    count = 0

    def counted() -> Iterator[Recorded]:
        nonlocal count
        for recorded in events:
            count += 1
            yield recorded

    states = catalogue.empty()
    latest = fold_events(catalogue, counted(), states)
    return _row(catalogue, workspace, person, count, latest, states)


def fold_people(catalogue: Catalogue, workspace: str, events: Iterable[tuple[str, Recorded]]) -> Iterator[PersonRow]:
    """The rows of many people of a workspace, from (person, event) by person and in occurred order."""
    for person, own in groupby(events, key=itemgetter(0)):
        yield fold_person(catalogue, workspace, person, (recorded for _, recorded in own))


def fold_group(catalogue: Catalogue, workspace: str, events: Iterable[tuple[str, Recorded]]) -> Iterator[PersonRow]:
    """As `fold_people`, of events in any order. They are all in memory at once."""
    ordered = sorted(events, key=lambda event: (event[0], *occurred_order(event[1])))
    return fold_people(catalogue, workspace, ordered)


def stored_rows(store: Store, catalogue: Catalogue) -> Iterator[PersonRow]:
    """The rows of everybody with an event, from the states as the store has them: what a refold is compared with."""
    for _, person in pages_of_people(store, catalogue):
        if person.position:
            catch_up(store, catalogue, person)
            yield _row(catalogue, person.workspace, person.id, person.position, person.latest, person.states.plain())


def _row(
    catalogue: Catalogue, workspace: str, person: str, events: int, latest: tuple[int, str], states: Iterable[State]
) -> PersonRow:
    at, id = latest
    by_name = {p.name: state for p, state in zip(catalogue.projections, states, strict=True)}
    text = _sorted.encode(by_name).decode()
    return PersonRow(workspace, person, events, None if latest == NOTHING else at, id, text)
