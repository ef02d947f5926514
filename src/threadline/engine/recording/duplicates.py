"""Which events the log has already: the same payload again is a duplicate, another under its key a conflict.

A retry may have come through another encoder of JSON: where digests differ, the payloads decide. Of an erased event
only the id is left, so whatever is sent under its key is a duplicate of it, with the code `erased`.
"""

from __future__ import annotations

from collections.abc import Sequence

from threadline.engine.folding.packing import same_payload, unpack_event
from threadline.engine.recording import rejected_log
from threadline.engine.recording.attempt import Attempt
from threadline.engine.recording.validation import Checked, ValidatedEvent, former_digest, unmet
from threadline.kernel.errors import EventDamaged, EventRejected
from threadline.kernel.event import Receipt, event_id
from threadline.kernel.identity import IdentityRules
from threadline.kernel.store import ERASED_DIGEST, Store

ERASED = "erased"
"""The code of a duplicate of an erased event."""


def distinct(checked: Sequence[Checked]) -> dict[tuple[str, int | None], list[int]]:
    """(id, digest) of each payload -> the positions of the events that carry it."""
    positions: dict[tuple[str, int | None], list[int]] = {}
    for position, item in enumerate(checked):
        if isinstance(item, ValidatedEvent):
            positions.setdefault((item.id, item.digest), []).append(position)
        else:
            event = item.request.event
            positions.setdefault((event_id(event.workspace, event.source, event.key), None), []).append(position)
    return positions


def fresh_among(store: Store, rules: IdentityRules, checked: Sequence[Checked]) -> list[list[int]]:
    """The positions of the events of each new payload.

    An exact duplicate of a recorded event is not new; a different payload under its key is, and so is an event that
    cannot be recorded, because each is rejected.
    """
    payloads = distinct(checked)
    known = store.seen(list({id: None for id, _ in payloads}))
    return [
        positions
        for (id, digest), positions in payloads.items()
        if id not in known or not _is_same(checked[positions[0]], known[id], store, rules)
    ]


def _is_same(item: Checked, digest: int, store: Store, rules: IdentityRules) -> bool:
    """Whether an event is the recorded one of this digest, or what is left of one that was erased."""
    if digest == ERASED_DIGEST:
        return True
    if not isinstance(item, ValidatedEvent):
        return False
    return digest in (item.digest, former_digest(item, rules)) or _says_the_recorded(item, store)


def _says_the_recorded(item: ValidatedEvent, store: Store) -> bool:
    entry = store.find([item.id]).get(item.id)
    try:
        return entry is not None and same_payload(unpack_event(entry).event, item.event)
    except EventDamaged:
        return False


def sort_out(
    attempt: Attempt, events: Sequence[ValidatedEvent], refused: dict[int, EventRejected], *, certain: bool
) -> list[ValidatedEvent]:
    """The events that are not in the log yet. Duplicates and conflicts get their receipts here, and ``refused`` what
    does not meet the requirements of its type. Until it is ``certain`` which events are new, none is refused for good.
    """
    known = attempt.store.seen([event.id for event in events], certain=certain)
    unfit = _unfit(attempt, events, known, certain=certain) if attempt.catalogue.requirements else {}
    first: dict[str, int] = dict(known)
    firsts: dict[str, ValidatedEvent] = {}
    fresh = []
    for event in events:
        if event.position in unfit and event.id not in first:
            refused[event.position] = unfit[event.position]
            continue
        digest = first.setdefault(event.id, event.digest)
        if event.id in known and digest == ERASED_DIGEST:
            attempt.receipts[event.position] = Receipt(status="duplicate", id=event.id, code=ERASED)
            continue
        if digest == event.digest and event.id not in known and event.id not in attempt.ids:
            attempt.ids.add(event.id)
            firsts[event.id] = event
            fresh.append(event)
        else:
            same = digest == event.digest
            if not same and event.id in known:
                same = _is_same(event, digest, attempt.store, attempt.catalogue.rules)
            elif not same and event.id in firsts:
                same = same_payload(firsts[event.id].event, event.event)
            attempt.receipts[event.position] = Receipt(status="duplicate" if same else "conflict", id=event.id)
            if not same:
                writes = rejected_log.conflict_writes(attempt.store, event.event, event.id, event.digest, attempt.now)
                attempt.changes.commit_apart(writes)
    return fresh


def _unfit(
    attempt: Attempt, events: Sequence[ValidatedEvent], known: dict[str, int], *, certain: bool
) -> dict[int, EventRejected]:
    """By position, why new events do not meet the requirements of their type. Adds to ``known`` what is known after
    all."""
    new = [event for event in events if event.id not in known]
    unfit = unmet(new, attempt.catalogue.requirements)
    if unfit and not certain:
        known.update(attempt.store.seen([event.id for event in new if event.position in unfit]))
    return unfit
