"""What policies wish for, granted: further events, effects in the outbox, timers set and cancelled."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from threadline.engine.catalogue import Catalogue
from threadline.engine.packing import pack, time_key, unpack, unpack_event
from threadline.engine.person import Person
from threadline.kernel.event import Event, Recorded, event_id
from threadline.kernel.ids import short_hash
from threadline.kernel.policy import TIMER_FIRED, CancelTimer, Effect, Emit, Policy, Timer, Wish, source_of
from threadline.kernel.sender import EFFECT_PARKED, EFFECT_REDRIVEN, EFFECT_RETRIED
from threadline.kernel.store import Delete, Key, Put, Store, query_pages

if TYPE_CHECKING:
    from threadline.engine.group import Group

OUTBOX = "outbox"
TIMER = "timer"
PARKED = "parked"
"""Table: effects that were given up on, under their workspace, by lane and time; and `untold_key`."""
SHARDS = 16
"""Partitions of the outbox and of the timers, so that no single one takes every write."""
_LANE = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")

CASCADE_CUT = "threadline.cascade_cut"
"""Type of the event that says a policy wished for more events than one cause may have."""


def concerns(policy: Policy, recorded: Recorded) -> bool:
    """Whether a policy is to see this event: a fired timer is only for the policy that set it."""
    event = recorded.event
    return event.type != TIMER_FIRED or event.properties.get("policy") == policy.name


def note_fired(person: Person, thread: str, fired: Event) -> None:
    """Take a timer that has fired off the person's list; the dispatcher takes its item away in the same batch."""
    name = f"{thread}/{fired.properties['policy']}/{fired.properties['key']}"
    if person.timers.get(name) == fired.occurred_at:
        del person.timers[name]


def grant(group: Group, person: Person, cause: Recorded, policy: str, wish: Wish) -> Recorded | None:
    """Carry a wish into the person's draft; the recorded event if it was for one."""
    if isinstance(wish, Emit):
        return _emit(group, person, cause, policy, wish)
    if isinstance(wish, Effect):
        _put_effect(group, person, cause, policy, wish)
    elif isinstance(wish, Timer):
        _cancel(group, person, policy, wish.key)
        _set(group, person, cause.thread, policy, wish)
    else:
        assert isinstance(wish, CancelTimer)
        _cancel(group, person, policy, wish.key)
    return None


def writes_of(catalogue: Catalogue, wish: Wish) -> int:
    """How many writes a wish may take, as a store counts them; index rows of states apart, which are few."""
    # A timer that is set anew is two: the one that was there goes.
    return 2 + len(catalogue.plan(wish.type).marks) if isinstance(wish, Emit) else 1 + isinstance(wish, Timer)


def _emit(group: Group, person: Person, cause: Recorded, policy: str, wish: Emit) -> Recorded:
    event = event_of(person, cause.thread, source_of(policy), cause.id, wish, group.now)
    return group.emit(person, cause.thread, event, cause.id)


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


def shard_of(id: str) -> str:
    """The partition that something with this (hashed) id lies in."""
    return f"{int(id[:8], 16) % SHARDS:02d}"


def lane_partition(lane: str) -> str:
    """The partition of a lane, which no shard of the others is named like."""
    return f"lane.{lane}"


def outbox_partition(catalogue: Catalogue, lane: str, id: str) -> str:
    """Where an effect waits: in its lane, if there is one of this name, or among all others."""
    return lane_partition(lane) if lane in catalogue.lanes else shard_of(id)


def effect_fields(effect: Effect, lane: str) -> tuple[Any, ...]:
    """An effect as it waits; with ``lane`` where that is not the lane in which it does."""
    fields = (effect.kind, effect.key, effect.due_at, effect.data)
    return (*fields, lane) if lane else fields


def _put_effect(group: Group, person: Person, cause: Recorded, policy: str, wish: Effect) -> None:
    id = short_hash("effect", policy, cause.id, wish.key)
    if id in group.ids:
        raise ValueError(f"policy {policy} wishes for two effects under the key {wish.key!r}")
    group.ids.add(id)
    partition = outbox_partition(group.catalogue, wish.lane, id)
    key = Key(OUTBOX, partition, f"{time_key(wish.due_at or group.now)}.{id}")
    # A lane that nobody has declared yet is kept with the effect: what is given up on is looked for under its name.
    lane = wish.lane if partition == shard_of(id) and _LANE.fullmatch(wish.lane) else ""
    value = pack((person.workspace, cause.thread, policy, cause.id, 0, effect_fields(wish, lane)))
    group.draft(person, 1).writes[key] = Put(key, value)


DISPATCH = "threadline.dispatch"
"""The source of what comes of timers and effects."""
_WAITING = (EFFECT_RETRIED, EFFECT_REDRIVEN)


def untold_key(workspace: str, id: str) -> Key:
    """Where it is noted that an effect is parked and no event of its thread says so: its outcome could not be told."""
    return Key(PARKED, f"{workspace}/{id}", "-")


class EffectStatus(NamedTuple):
    """An effect that was wished for, and what became of it."""

    id: str
    waits: bool
    """Whether it will be sent, for the first time or again."""
    parked: bool
    """Whether it was given up on, until somebody drives it again."""
    outcomes: list[Recorded]
    """What came of sending it, attempt by attempt. One that neither waits nor is parked nor has any was never put in
    the outbox."""


def effect_of(
    store: Store, catalogue: Catalogue, workspace: str, policy: str, cause: str, key: str, at: int
) -> EffectStatus:
    """An effect that was wished for at an instant, to be sent at once."""
    id = short_hash("effect", policy, cause, key)
    outcomes: list[Recorded] = []
    while entry := store.find([tried := event_id(workspace, DISPATCH, f"{id}/{len(outcomes)}")]).get(tried):
        outcomes.append(unpack_event(entry))
    last = outcomes[-1].event.type if outcomes else ""
    if store.get([untold_key(workspace, id)])[0] is not None or last == EFFECT_PARKED:
        return EffectStatus(id, False, True, outcomes)
    if outcomes:
        return EffectStatus(id, last in _WAITING, False, outcomes)
    partitions = [shard_of(id), *map(lane_partition, catalogue.lanes)]
    items = store.get([Key(OUTBOX, partition, f"{time_key(at)}.{id}") for partition in partitions])
    return EffectStatus(id, any(item is not None for item in items), False, [])


def timer_item(thread: str, policy: str, key: str, due_at: int) -> Key:
    """Where the timer of a thread lies: by due time within its shard."""
    id = short_hash("timer", thread, policy, key)
    return Key(TIMER, shard_of(id), f"{time_key(due_at)}.{id}")


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


def _set(group: Group, person: Person, thread: str, policy: str, wish: Timer) -> None:
    person.timers[f"{thread}/{policy}/{wish.key}"] = wish.due_at
    key = timer_item(thread, policy, wish.key, wish.due_at)
    group.draft(person, 1).writes[key] = Put(key, pack((person.workspace, thread, policy, wish.key, wish.data)))


def _cancel(group: Group, person: Person, policy: str, name: str) -> None:
    for thread in person.heads:  # whichever of the person's threads it was set in, before or after a merge
        due_at = person.timers.pop(f"{thread}/{policy}/{name}", None)
        if due_at is not None:
            key = timer_item(thread, policy, name, due_at)
            group.draft(person, 1).writes[key] = Delete(key)


class Pending(NamedTuple):
    """A timer that has not fired yet."""

    cursor: str
    """Where to go on after it."""
    workspace: str
    thread: str
    policy: str
    key: str


def pending_timers(store: Store, stop: int, after: str = "") -> Iterator[Pending]:
    """All timers that are due before ``stop``, by when they are due, from a cursor on."""
    shards = (query_pages(store, TIMER, f"{shard:02d}", after, time_key(stop)) for shard in range(SHARDS))
    for item in heapq.merge(*shards, key=lambda item: item.key.sort):
        workspace, thread, policy, key, _ = unpack(item.value)
        yield Pending(item.key.sort, workspace, thread, policy, key)
