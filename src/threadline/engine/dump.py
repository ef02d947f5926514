"""The canonical dump: all that is known, as text that is equal wherever the same events were told."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from threadline.engine.catalogue import Catalogue
from threadline.engine.packing import unpack
from threadline.engine.person import PERSON, Person, unpack_person
from threadline.engine.refold import in_occurred_order, refold_person
from threadline.engine.wishes import OUTBOX, TIMER
from threadline.kernel.canonical import canonical_json
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.store import Item, Store, scan_pages


def dump(store: Store, catalogue: Catalogue, *, arrival: bool = True) -> list[str]:
    """One canonical JSON line per person, sorted, and with ``arrival`` one per timer and outbox item.

    ``arrival=False`` leaves out what depends on the order of arrival by intent: ids of people, sequences,
    times of recording, and the events that Threadline itself appended.
    """
    lines = [_person_line(store, catalogue, p, arrival) for p in _people(store, catalogue)]
    if arrival:
        for table in (OUTBOX, TIMER):
            lines += [
                _line({"table": table, "key": i.key[1:], "value": unpack(i.value)}) for i in scan_pages(store, table)
            ]
    return sorted(lines)


def dump_hash(lines: list[str]) -> str:
    """SHA-256 of a dump, hex."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _people(store: Store, catalogue: Catalogue) -> Iterator[Person]:
    item: Item
    for item in scan_pages(store, PERSON):
        person = unpack_person(item, catalogue)
        if isinstance(person, Person):
            if person.stale:
                refold_person(store, catalogue, person, only=person.stale)
            yield person


def _person_line(store: Store, catalogue: Catalogue, person: Person, arrival: bool) -> str:
    events = [
        recorded
        for recorded in in_occurred_order(store, person.heads)
        if arrival or not recorded.event.type.startswith(SYSTEM_PREFIX)
    ]
    content: dict[str, Any] = {
        "workspace": person.workspace,
        "identifiers": sorted(str(i) for i in person.identifiers.values()),
        "states": {
            p.name: (state if arrival or p.timeless is None else p.timeless(state))
            for p, state in zip(catalogue.projections, person.states, strict=True)
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
