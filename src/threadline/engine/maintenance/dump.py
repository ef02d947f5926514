"""The canonical dump: all that is known, as text that is equal wherever the same events were told."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.history import in_occurred_order
from threadline.engine.folding.packing import unpack
from threadline.engine.folding.person import Person
from threadline.engine.folding.person_packing import pages_of_people
from threadline.engine.folding.refold import catch_up, fold_events
from threadline.engine.scheduled import OUTBOX, TIMER
from threadline.kernel.canonical import canonical_json
from threadline.kernel.event import Recorded
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.projection import State
from threadline.kernel.store import Store, scan_pages


class Fingerprint(NamedTuple):
    """Tells whether two sets of things are equal, whatever their order."""

    number: int
    total: int
    """Of their hashes."""

    def __str__(self) -> str:
        return f"{self.total:032x}"


def dump(store: Store, catalogue: Catalogue, *, arrival: bool = True) -> list[str]:
    """One canonical JSON line per person, sorted, and with ``arrival`` one per timer and outbox item.

    ``arrival=False`` leaves out what depends on the order of arrival by intent: ids of people, sequences,
    times of recording, the events that Threadline itself appended, and what is folded from these.
    """
    return sorted(dump_lines(store, catalogue, arrival=arrival))


def dump_lines(store: Store, catalogue: Catalogue, *, arrival: bool = True) -> Iterator[str]:
    """The lines of a dump in the store's own order, one by one: flat in memory, however large the store is."""
    for person in _people(store, catalogue):
        yield _person_line(store, catalogue, person, arrival)
    for table in (OUTBOX, TIMER) if arrival else ():
        for item in scan_pages(store, table):
            yield _line({"table": table, "key": item.key[1:], "value": unpack(item.value)})


def _people(store: Store, catalogue: Catalogue) -> Iterator[Person]:
    for _, person in pages_of_people(store, catalogue):
        catch_up(store, catalogue, person)
        yield person


def _person_line(store: Store, catalogue: Catalogue, person: Person, arrival: bool) -> str:
    events = [r for r in in_occurred_order(store, person.heads) if arrival or was_known(r)]
    states: Sequence[State] = person.states.plain()
    if not arrival:
        known_states = catalogue.empty()
        fold_events(catalogue, events, known_states)
        states = known_states
    content: dict[str, Any] = {
        "workspace": person.workspace,
        "identifiers": sorted(str(i) for i in person.identifiers.values()),
        "states": {
            p.name: (state if arrival or p.timeless is None else p.timeless(state))
            for p, state in zip(catalogue.projections, states, strict=True)
        },
        "events": [[r.id, r.thread, r.event.type, r.event.occurred_at] for r in events],
    }
    if arrival:
        content["person"] = person.id
        content["heads"] = person.heads
        content["timers"] = person.timers
        content["created_at"] = person.created_at
        content["recorded"] = [[r.sequence, r.recorded_at, r.cause] for r in events]
    return _line(content)


def fingerprint(contents: Iterable[bytes]) -> Fingerprint:
    """The fingerprint of these contents: how many, and the sum of their 128-bit hashes. Flat in memory."""
    number = total = 0
    for content in contents:
        number += 1
        total += int.from_bytes(hashlib.blake2b(content, digest_size=16).digest(), "big")
    return Fingerprint(number, total % (1 << 128))


def was_known(recorded: Recorded) -> bool:
    """Whether an event came from outside: what policies and timers append depends on what had arrived by then."""
    return not recorded.cause and not recorded.event.type.startswith(SYSTEM_PREFIX)


def _line(content: Any) -> str:
    return canonical_json(_text_integers(content)).decode()


def _text_integers(value: Any) -> Any:
    # Canonical JSON knows doubles only; integers beyond 2**53 (hashes, sums) are written as text.
    if isinstance(value, bool) or value is None or isinstance(value, str | float):
        return value
    if isinstance(value, int):
        return value if -(1 << 53) < value < 1 << 53 else str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(k): _text_integers(v) for k, v in value.items()}
    return [_text_integers(v) for v in value]
