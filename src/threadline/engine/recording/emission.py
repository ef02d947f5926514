"""What policies wish for: the event that is emitted, and what effects and timers write beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.packing import time_key
from threadline.engine.folding.person import Person
from threadline.engine.scheduled import OUTBOX, outbox_partition, pack_new, shard_of, timer_key, timer_put
from threadline.kernel.event import Event, Recorded
from threadline.kernel.policy import CancelTimer, Effect, Emit, Timer, Wish
from threadline.kernel.store import Delete, Key, Put

_LANE = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")

CASCADE_CUT = "threadline.cascade_cut"
"""Type of the event that says a policy wished for more events than one cause may have."""


def writes_of(catalogue: Catalogue, wish: Wish) -> int:
    """How many writes a wish may take, as a store counts them; index rows of states apart, which are few."""
    # A timer that is set anew is two: the one that was there goes.
    return 2 + len(catalogue.plan(wish.type).marks) if isinstance(wish, Emit) else 1 + isinstance(wish, Timer)


# --- events -----------------------------------------------------------------------------------


def event_of(person: Person, thread: str, source: str, cause: str, wish: Emit, now: int) -> Event:
    """The event that is wished for, in a thread of the person."""
    return Event(
        type=wish.type,
        identifiers=(person.identifiers[thread],),
        occurred_at=wish.occurred_at,
        key=f"{cause}/{wish.key}",
        source=source,
        source_type="internal",
        workspace=person.workspace,
        properties=wish.properties,
        received_at=now,
    )


def cut(policy: str, now: int) -> Emit:
    """What says that a cascade was cut at its limit, and by whom."""
    return Emit(type=CASCADE_CUT, key="cut", occurred_at=now, properties={"policy": policy})


# --- effects ----------------------------------------------------------------------------------


def effect_put(catalogue: Catalogue, person: Person, cause: Recorded, policy: str, wish: Effect, id: str) -> Put:
    """The write that puts an effect in the outbox, under the id that it keeps."""
    partition = outbox_partition(catalogue.lanes, wish.lane, id)
    key = Key(OUTBOX, partition, f"{time_key(wish.due_at or cause.recorded_at)}.{id}")
    # A lane that nobody has declared yet is kept with the effect: what is given up on is looked for under its name.
    lane = wish.lane if partition == shard_of(id) and _LANE.fullmatch(wish.lane) else ""
    return Put(key, pack_new(person.workspace, cause.thread, policy, cause.id, wish, lane))


# --- timers -----------------------------------------------------------------------------------


def timer_writes(person: Person, thread: str, policy: str, wish: Timer | CancelTimer) -> Iterator[Put | Delete]:
    """The writes that set or cancel a timer; each changes the person's timers just before it is handed out."""
    for known in person.heads:  # whichever of the person's threads it was set in, before or after a merge
        due_at = person.drop_timer(f"{known}/{policy}/{wish.key}")
        if due_at is not None:
            yield Delete(timer_key(known, policy, wish.key, due_at))
    if isinstance(wish, Timer):
        person.set_timer(f"{thread}/{policy}/{wish.key}", wish.due_at)
        yield timer_put(person.workspace, thread, policy, wish)


def note_fired(person: Person, thread: str, fired: Event) -> None:
    """Take a timer that has fired off the person's list; the dispatcher takes its item away in the same batch."""
    name = f"{thread}/{fired.properties['policy']}/{fired.properties['key']}"
    if person.timers.get(name) == fired.occurred_at:
        person.drop_timer(name)


def is_idle(person: Person, policy: str, wish: Wish) -> bool:
    """Whether a wish is for a timer that stays as it is."""
    return isinstance(wish, Timer) and stays(wish, _pending(person, policy, wish.key))


def stays(wish: Timer, pending: Iterable[int]) -> bool:
    """Whether timers of this key that are due at these instants are to stay as they are."""
    if wish.unless_pending:
        return any(True for _ in pending)
    return wish.unless_earlier and any(due_at <= wish.due_at for due_at in pending)


def _pending(person: Person, policy: str, key: str) -> Iterator[int]:
    """When the policy's timers of this key are due."""
    found = (person.timers.get(f"{thread}/{policy}/{key}") for thread in person.heads)
    return (due_at for due_at in found if due_at is not None)
