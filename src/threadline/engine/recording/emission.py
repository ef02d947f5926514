"""What policies wish for: the event that is emitted, and what effects and timers write beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person import Person
from threadline.engine.scheduled import (
    effect_id,
    outbox_key,
    outbox_partition,
    pack_new,
    shard_of,
    timer_key,
    timer_put,
)
from threadline.kernel.event import CLAIMED_HISTORY, Event, Recorded, marks_of
from threadline.kernel.event_limits import check_type
from threadline.kernel.policy import (
    FIRED_HISTORY,
    POLICY_FAILED,
    TIMER_FIRED,
    CancelTimer,
    Effect,
    Emit,
    Policy,
    Timer,
    Wish,
    why_after,
)
from threadline.kernel.store import Delete, Put
from threadline.kernel.time import EARLIEST, LATEST, MILLISECOND, time_key
from threadline.kernel.why import Why

_QUEUE = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")

AT_ONCE = MILLISECOND
"""A timer that is due no later than this after its cause goes on with it: what does not fit into a commit, or must not
happen at the same instant, comes a microsecond or two later."""

CASCADE_CUT = "threadline.cascade_cut"
"""Type of the event that says that a policy wished for more than one cause may have."""

FAILURE_LENGTH_MAX = 500
"""Length of an error in the event about it, characters."""


def writes_of(catalogue: Catalogue, wish: Wish) -> int:
    """How many writes a wish may take, as a store counts them; index rows of states apart, which are few."""
    # Setting a timer again takes two: the earlier item is deleted.
    return 2 + len(catalogue.plan(wish.type).marks) if isinstance(wish, Emit) else 1 + isinstance(wish, Timer)


def checked(policy: Policy, wishes: Iterable[Wish]) -> list[Wish]:
    """The wishes of a policy for one cause. Raises for what it may not wish for: another type than it declares, a key
    twice, a time that no log takes."""
    listed = list(wishes)
    keys: set[tuple[type, str]] = set()
    for wish in listed:
        if isinstance(wish, Emit):
            check_type(wish.type, internal=True)
            if policy.emits is not None and wish.type != POLICY_FAILED and wish.type not in policy.emits:
                raise ValueError(f"emits {wish.type!r}, which is not declared in its `emits`")
            if not EARLIEST <= wish.occurred_at <= LATEST:
                raise ValueError(f"emits {wish.type!r} at a time outside the years 1 to 9999")
        elif isinstance(wish, Effect):
            if policy.sends is not None and wish.kind not in policy.sends:
                raise ValueError(f"wishes for the effect {wish.kind!r}, which is not declared in its `sends`")
        elif isinstance(wish, CancelTimer):
            continue
        elif not isinstance(wish, Timer):
            raise TypeError(f"wishes for a {type(wish).__name__}")
        if not isinstance(wish, Emit) and type(wish.due_at) is not int:
            raise TypeError(f"{wish.key!r} is due at {wish.due_at!r}, which is no number of microseconds")
        if not isinstance(wish, Timer):
            if (type(wish), wish.key) in keys:
                raise ValueError(f"wishes twice under the key {wish.key!r}")
            keys.add((type(wish), wish.key))
    return listed


# --- events -----------------------------------------------------------------------------------


def history_of(cause: Recorded) -> int | None:
    """When the history was recorded that an event is part of, or that its timer was set for; None: it is no history.

    History that only a write key claims is left out: what follows from it would be believed as if somebody vouched.
    """
    event = cause.event
    if event.type == TIMER_FIRED:
        return event.properties.get(FIRED_HISTORY)
    return cause.recorded_at if event.historical and CLAIMED_HISTORY not in event.marks else None


def goes_on(cause: Recorded, due_at: int) -> Why | None:
    """The reason with which a timer goes on that a cause sets; None: it waits for an instant."""
    occurred_at, recorded_at = cause.event.occurred_at, cause.recorded_at
    if due_at <= occurred_at + AT_ONCE:
        return why_after(cause, occurred_at)
    return why_after(cause, min(due_at, recorded_at)) if due_at <= recorded_at + AT_ONCE else None


def event_of(
    person: Person, thread: str, source: str, cause: str, wish: Emit, now: int, why: Why, history: int | None = None
) -> Event:
    """The event of a wish, in a thread of the person.

    What follows from history and occurred before that was recorded is history as well. Otherwise a read of the past
    would lack it until the import, although a live run would have shown it.
    """
    historical = history is not None and wish.occurred_at < history
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
        marks=() if historical else marks_of(why),
        historical=historical,
    )


def cut(policy: str, now: int) -> Emit:
    """The wish for the event that says that a cascade was cut at its limit, and at which policy."""
    return Emit(type=CASCADE_CUT, key="cut", occurred_at=now, properties={"policy": policy})


def failure(policy: str, cause: Recorded, error: Exception, now: int) -> Emit:
    """The wish for the event that says that a policy raised. Its other wishes for this cause were dropped."""
    properties = {"policy": policy, "event_type": cause.event.type, "error": _text_of(error)}
    return Emit(type=POLICY_FAILED, key="failed", occurred_at=now, properties=properties)


def failure_message(failed: Emit) -> str:
    """A failure in one line."""
    policy, type, error = (failed.properties[name] for name in ("policy", "event_type", "error"))
    return f"policy {policy!r} raised {error} on {type}"


def _text_of(error: Exception) -> str:
    try:
        text = repr(error)
    except Exception:  # noqa: BLE001 — an error that cannot be shown must not refuse the event after all
        text = type(error).__name__
    # An address in memory differs between processes; a lone surrogate cannot be encoded.
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", text).encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= FAILURE_LENGTH_MAX else text[: FAILURE_LENGTH_MAX - 1] + "…"


# --- effects ----------------------------------------------------------------------------------


def effect_put(
    catalogue: Catalogue, person: Person, cause: Recorded, policy: str, wish: Effect, place: int
) -> Put:  # fmt: skip
    """The write that puts an effect in the outbox; ``place``: its number among those of its cascade."""
    id = effect_id(policy, cause.id, wish.key)
    partition = outbox_partition(catalogue.queues, wish.queue, id)
    order = f"{time_key(cause.recorded_at)}{person.position:08x}{place:02x}"
    key = outbox_key(partition, wish.due_at or cause.recorded_at, order, id)
    # An undeclared queue is stored with the effect: dead letters are listed under its name.
    queue = wish.queue if partition == shard_of(id) and _QUEUE.fullmatch(wish.queue) else ""
    return Put(key, pack_new(person.workspace, cause.thread, policy, cause.id, wish, queue))


# --- timers -----------------------------------------------------------------------------------


def timer_writes(person: Person, cause: Recorded, policy: str, wish: Timer | CancelTimer) -> Iterator[Put | Delete]:
    """The writes that set or cancel a timer; each changes the person's timers right before it is yielded."""
    thread = cause.thread
    for known in person.heads:  # whichever of the person's threads it was set in, before or after a merge
        due_at = person.drop_timer(f"{known}/{policy}/{wish.key}")
        if due_at is not None:
            yield Delete(timer_key(known, policy, wish.key, due_at))
    if isinstance(wish, Timer):
        person.set_timer(f"{thread}/{policy}/{wish.key}", wish.due_at)
        why = goes_on(cause, wish.due_at)
        yield timer_put(person.workspace, thread, policy, wish, history_of(cause), why or "")


def note_fired(person: Person, thread: str, fired: Event) -> None:
    """Remove a timer that has fired from the person; the dispatcher deletes its item in the same batch."""
    name = f"{thread}/{fired.properties['policy']}/{fired.properties['key']}"
    if person.timers.get(name) == fired.occurred_at:
        person.drop_timer(name)


def is_idle(person: Person, policy: str, wish: Wish) -> bool:
    """Whether a wish is for a timer that stays as it is."""
    return isinstance(wish, Timer) and stays(wish, _pending(person, policy, wish.key))


def stays(wish: Timer, pending: Iterable[int]) -> bool:
    """Whether a pending timer of this key, due at one of these instants, stays as it is."""
    if wish.unless_pending:
        return any(True for _ in pending)
    return wish.unless_earlier and any(due_at <= wish.due_at for due_at in pending)


def _pending(person: Person, policy: str, key: str) -> Iterator[int]:
    """When the policy's timers of this key are due."""
    due = (person.timers.get(f"{thread}/{policy}/{key}") for thread in person.heads)
    return (due_at for due_at in due if due_at is not None)
