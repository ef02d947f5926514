"""Reactions: policies are asked about an event, and what they wish for becomes events, effects and timers beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import replace
from typing import Any, Protocol

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person import Person
from threadline.engine.folding.person_view import ReactingPersonView
from threadline.engine.recording.attempt import Attempt, OwnEvent
from threadline.engine.recording.validation import UnrecordableEvents
from threadline.engine.recording.working_set import ConcurrencyConflict
from threadline.engine.scheduled import (
    effect_id,
    outbox_key,
    outbox_partition,
    pack_new,
    shard_of,
    timer_key,
    timer_put,
)
from threadline.engine.tracing import CallTrace, Reacted
from threadline.kernel.errors import StoreDamaged, Unavailable
from threadline.kernel.event import CLAIMED_HISTORY, Event, Recorded, marks_of
from threadline.kernel.event_limits import check_type
from threadline.kernel.limits import CASCADE_EVENTS_MAX
from threadline.kernel.operation import BEFORE, PARTS, Refresh, first_due
from threadline.kernel.policy import (
    CASCADE_CUT,
    FIRED_HISTORY,
    POLICY_FAILED,
    TIMER_FIRED,
    CancelTimer,
    Effect,
    Emit,
    Policy,
    PolicyView,
    Timer,
    Wish,
    source_of,
    why_after,
)
from threadline.kernel.projection import Look
from threadline.kernel.store import Delete, Put
from threadline.kernel.time import EARLIEST, LATEST, MILLISECOND, time_key
from threadline.kernel.why import DEFINITIONS, Why

NOT_THE_POLICYS = (Unavailable, StoreDamaged, ConcurrencyConflict, UnrecordableEvents, MemoryError)
"""What may be raised while a policy reads and has another cause: the call fails or is tried again."""
AT_ONCE = MILLISECOND
"""A timer that is due no later than this after its cause goes on with it: what does not fit into a commit, or must not
happen at the same instant, comes a microsecond or two later."""
FAILURE_LENGTH_MAX = 500
"""Length of an error in the event about it, characters."""
LOOKS_MAX = 64
"""Of one cause may come so much and no more: whoever enters many segments is looked at several times."""

_QUEUE = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")

Prepared = OwnEvent | Put | Timer | CancelTimer
"""A wish that can be applied without fail: an event, an effect, a timer."""


class Reactions(Protocol):
    """Where policies are asked and their wishes applied: an attempt before its commit, or a sandbox."""

    def reacting(self, recorded: Recorded) -> Sequence[tuple[Policy, bool]]:
        """The policies that may be asked about an event, each with whether it has touched what the policy reads."""
        ...

    def known(self, person: Person, recorded: Recorded) -> ReactingPersonView:
        """The person right after an event."""
        ...

    def writes_of(self, person: Person, policy: str, wish: Wish, prepared: Any) -> int:
        """How many writes a wish may take, as a store counts them; 0 for a timer that stays as it is."""
        ...

    def free(self, person: Person) -> int:
        """How many more writes fit into the batch that the event is in."""
        ...

    def prepare(
        self, person: Person, cause: Recorded, policy: Policy, wishes: Sequence[Wish]
    ) -> Sequence[tuple[Wish, Any]]:
        """Each wish with its form for `apply_wish`. Raises for a wish that the policy may not have."""
        ...

    def apply_wish(self, person: Person, cause: Recorded, policy: str, prepared: Any) -> Recorded | None:
        """Apply a wish; returns the event if it emits one that policies may react to."""
        ...

    def fail(self, person: Person, cause: Recorded, policy: Policy, error: Exception) -> Wish | None:
        """What says that a policy has raised about an event; re-raises what is no fault of the policy."""
        ...

    def cut(self, person: Person, cause: Recorded, policy: str) -> None:
        """Emit the event that says that a policy wished for more than one cause may have."""
        ...


def cascade(reactions: Reactions, person: Person, first: Recorded) -> None:
    """Let policies react to an event and to what they add.

    One cause leads to at most `CASCADE_EVENTS_MAX` wishes, in the writes reserved for them; an event says where more
    were wished for. A policy that raises loses its wishes for the event at hand and nothing else.
    """
    queue = [first]
    added, writes = 0, 2  # of the event that says so

    def room() -> int:
        return _room(added, writes, reactions.free(person))

    for recorded in queue:
        policies = reactions.reacting(recorded)
        if not policies:
            continue
        known = reactions.known(person, recorded)
        known.room_left = room
        for policy, touched in policies:
            # All wishes of a policy are prepared before one is applied: a policy that fails half-way has none applied.
            try:
                if not policy.is_asked(recorded, known, touched) or not (wishes := policy.react(recorded, known)):
                    continue
                ready = reactions.prepare(person, recorded, policy, wishes)
            except Exception as error:  # noqa: BLE001 — these re-raise what is not the policy's
                failure = reactions.fail(person, recorded, policy, error)
                if failure is None:
                    continue
                ready = reactions.prepare(person, recorded, policy, (failure,))
            for wish, prepared in ready:
                taken = reactions.writes_of(person, policy.name, wish, prepared)
                if not taken:
                    continue
                writes += taken
                if added == CASCADE_EVENTS_MAX - 1 or writes > 2 * CASCADE_EVENTS_MAX:
                    reactions.cut(person, recorded, policy.name)
                    return
                added += 1
                emitted = reactions.apply_wish(person, recorded, policy.name, prepared)
                if emitted is not None:
                    queue.append(emitted)


def _room(added: int, writes: int, free: int) -> int:
    """How many more wishes of a cause are allowed, and fit in its batch.

    Each takes two writes, and may change rows: a policy that uses half of the room leaves as much for these.
    """
    return max(0, min(CASCADE_EVENTS_MAX - 1 - added, CASCADE_EVENTS_MAX - (writes + 1) // 2, free // 2 - 2))


# --- in an attempt --------------------------------------------------------------------------------


def react(attempt: Attempt, person: Person, recorded: Recorded) -> None:
    """Let the policies react to an event and to what they add because of it."""
    if attempt.folded[recorded.id][0].policies:
        cascade(AttemptReactions(attempt), person, recorded)


class AttemptReactions:
    """`Reactions` in an attempt. Views of people are read in it, so it is their scene as well."""

    __slots__ = ("_attempt", "_effects", "catalogue", "handled", "history", "index", "shared")

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._effects = 0
        """How many were requested in this cascade: mails of one instant leave in the order of their requests."""
        self.catalogue = attempt.catalogue
        self.index = attempt.catalogue.index
        self.history, self.handled, self.shared = attempt.history, attempt.plans.handled, attempt.plans.shared

    def reacting(self, recorded: Recorded) -> list[tuple[Policy, bool]]:
        """The policies that may be asked about an event, each with whether it has touched what the policy reads."""
        plan, touched = self._attempt.folded[recorded.id]
        return [
            (policy, bool(reads & touched))
            for policy, reads in zip(plan.policies, plan.reads, strict=True)
            if not reads or reads & touched or policy.unsettled is not None
        ]

    def known(self, person: Person, recorded: Recorded) -> ReactingPersonView:
        """A person right after an event, as policies see them."""
        # An event from a clock that runs ahead is no later for what is decided because of it.
        at = max(recorded.recorded_at, recorded.event.occurred_at) + 1
        return ReactingPersonView(self, person, recorded.event.type, at)

    def writes_of(self, person: Person, policy: str, wish: Wish, prepared: Prepared) -> int:
        """How many writes a wish may take; 0 for a timer that stays as it is."""
        if isinstance(prepared, OwnEvent):
            return writes_of_event(prepared.plan.marks)
        if isinstance(wish, Timer) and stays(wish, _pending(person, policy, wish.key)):
            return 0
        return writes_beside_events(wish)

    def free(self, person: Person) -> int:
        """How many more writes fit into the batch that the person's events are in."""
        return self._attempt.changes.of(person).free

    def prepare(
        self, person: Person, cause: Recorded, policy: Policy, wishes: Sequence[Wish]
    ) -> list[tuple[Wish, Prepared]]:
        """Each wish with its form for `apply_wish`. Raises for a wish that is undeclared, or that no store can hold."""
        checked = checked_wishes(policy, wishes)
        return [(wish, self._prepared(person, cause, policy.name, wish)) for wish in checked]

    def _prepared(self, person: Person, cause: Recorded, policy: str, wish: Wish) -> Prepared:
        if isinstance(wish, Emit):
            history, source, why = history_of(cause), source_of(policy), why_after(cause, wish.occurred_at)
            event = event_of(person, cause.thread, source, cause.id, wish, self._attempt.now, why, history)
            return self._attempt.own(event, cause.id)
        if isinstance(wish, Effect):
            self._effects += 1
            return effect_put(self.catalogue, person, cause, policy, wish, self._effects)
        if isinstance(wish, Timer) and wish.data:
            timer_put(person.workspace, cause.thread, policy, wish)
        return wish

    def apply_wish(self, person: Person, cause: Recorded, policy: str, prepared: Prepared) -> Recorded | None:
        """Add a wish to the person's change; returns the event if it emits one."""
        if isinstance(prepared, OwnEvent):
            added = self._attempt.append_own(person, cause.thread, prepared)
            plan, touched = self._attempt.folded[added.id]
            return added if plan.awaits == -1 or plan.awaits & touched else None
        writes: Iterable[Put | Delete] = (
            (prepared,) if isinstance(prepared, Put) else timer_writes(person, cause, policy, prepared)
        )
        for write in writes:
            self._attempt.changes.of(person, 1).writes[write.key] = write
        return None

    def fail(self, person: Person, cause: Recorded, policy: Policy, error: Exception) -> Wish | None:
        """The wish for the event that says that a policy raised; re-raises what is no fault of the policy."""
        if isinstance(error, NOT_THE_POLICYS):
            raise error
        failure = failure_wish(policy.name, cause, error, self._attempt.now)
        if cause.event.type == TIMER_FIRED:
            # The timer belongs to this policy. Recorded, it would be lost; refused, it stays, and fires again.
            raise UnrecordableEvents([], "policy_failed", failure_message(failure)) from error
        self._attempt.changes.of(person).failures.append((cause.id, failure, error))
        # A policy that fails about failures would go on for ever; a log line is enough.
        return None if cause.event.type == POLICY_FAILED else failure

    def cut(self, person: Person, cause: Recorded, policy: str) -> None:
        """Emit the event that says that a cascade was cut at its limit."""
        cut = cut_wish(policy, self._attempt.now)
        self.apply_wish(person, cause, policy, self._prepared(person, cause, policy, cut))

    def look(self, index: int) -> Look:
        """The view function of a projection."""
        return self.catalogue.looks[index]


class TracedReactions(AttemptReactions):
    """The same as `AttemptReactions`, with a note of every policy that wishes for something or raises."""

    __slots__ = ("_reacted", "_trace")

    def __init__(self, attempt: Attempt, trace: CallTrace, event: str) -> None:
        super().__init__(attempt)
        self._trace = trace
        self._reacted: list[Reacted] = []
        trace.reacted[event] = self._reacted

    def reacting(self, recorded: Recorded) -> list[tuple[Policy, bool]]:
        """See `AttemptReactions`."""
        return [(self._timed(policy), touched) for policy, touched in super().reacting(recorded)]

    def _timed(self, policy: Policy) -> Policy:
        clock = self._trace.clock

        def react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
            began = clock()
            wishes = policy.react(recorded, known)
            if wishes:
                self._reacted.append(Reacted(policy.name, recorded.id, began, clock(), len(wishes)))
            return wishes

        return replace(policy, react=react)

    def fail(self, person: Person, cause: Recorded, policy: Policy, error: Exception) -> Wish | None:
        """See `AttemptReactions`."""
        now = self._trace.clock()
        self._reacted.append(Reacted(policy.name, cause.id, now, now, 0, type(error).__name__))
        return super().fail(person, cause, policy, error)


# --- before an event ------------------------------------------------------------------------------


def look_first(attempt: Attempt, person: Person, event_type: str, cause: str) -> None:
    """Note what was so before an event by the definitions in force. Otherwise the event would seem to be the reason of
    all that these say of the person, and people would be sent mail for what they did a year ago.

    ``cause`` is the id of the event that is about to be recorded.
    """
    if not person.position or any(event_type == refresh.event for refresh, _ in attempt.unfilled):
        return
    for refresh, parts in attempt.unfilled:
        if refresh.event:
            _look_until_noted(attempt, person, refresh, parts, cause)


def _look_until_noted(attempt: Attempt, person: Person, refresh: Refresh, parts: frozenset[str], cause: str) -> None:
    due = first_due(person.timers, refresh.name, attempt.now)
    properties: dict[str, Any] = {PARTS: sorted(parts)} if due is None else {PARTS: sorted(parts), BEFORE: due}
    for _ in range(LOOKS_MAX):
        at = attempt.now + 1 if due is None else due - 1
        known = ReactingPersonView(AttemptReactions(attempt), person, refresh.event, at)
        noted = person.position + 1
        if not refresh.lacks(known, parts):
            break
        _look(attempt, person, refresh.event, f"threadline.{refresh.name}", properties, cause)
        if person.position == noted:
            break  # the rest comes an instant later, by a timer


def _look(attempt: Attempt, person: Person, type: str, source: str, properties: dict[str, Any], cause: str) -> None:
    thread = next(iter(person.heads))
    event = Event(
        type=type,
        identifiers=(person.identifiers[thread],),
        occurred_at=attempt.now,
        # Tried again after a part was committed, it is another look.
        key=f"{cause}/{person.id}/{person.position}",
        source=source,
        source_type="internal",
        workspace=person.workspace,
        properties=properties,
        received_at=attempt.now,
        marks=marks_of(DEFINITIONS),
    )
    own = attempt.own(event, "")
    attempt.changes.of(person, 3 + own.plan.room)
    react(attempt, person, attempt.append_own(person, thread, own))


# --- what is wished for ---------------------------------------------------------------------------


def writes_of_event(marks: Sized) -> int:
    """How many writes an event that is emitted may take, which has rows of its own by these functions; index rows of
    states apart, which are few."""
    return 2 + len(marks)


def writes_beside_events(wish: Wish) -> int:
    """How many writes an effect or a timer may take."""
    # Setting a timer again takes two: the earlier item is deleted.
    return 1 + isinstance(wish, Timer)


def checked_wishes(policy: Policy, wishes: Iterable[Wish]) -> list[Wish]:
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


def cut_wish(policy: str, now: int) -> Emit:
    """The wish for the event that says that a cascade was cut at its limit, and at which policy."""
    return Emit(type=CASCADE_CUT, key="cut", occurred_at=now, properties={"policy": policy})


def failure_wish(policy: str, cause: Recorded, error: Exception, now: int) -> Emit:
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


def effect_put(catalogue: Catalogue, person: Person, cause: Recorded, policy: str, wish: Effect, place: int) -> Put:
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


def stays(wish: Timer, pending: Iterable[int]) -> bool:
    """Whether a pending timer of this key, due at one of these instants, stays as it is."""
    if wish.unless_pending:
        return any(True for _ in pending)
    return wish.unless_earlier and any(due_at <= wish.due_at for due_at in pending)


def _pending(person: Person, policy: str, key: str) -> Iterator[int]:
    """When the policy's timers of this key are due."""
    due = (person.timers.get(f"{thread}/{policy}/{key}") for thread in person.heads)
    return (due_at for due_at in due if due_at is not None)
