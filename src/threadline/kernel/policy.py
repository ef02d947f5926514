"""A policy: a pure function of one new event and its person that answers with wishes.

An automation, trigger or saga step: when this happens to a customer who looks like this, emit a further event, set a
timer (a delay, a reminder, a time-out), or send an effect (a mail, a webhook, a message). Wishes are committed with
the event that caused them, and carried out exactly once per cause; retries and crashes change nothing.

    >>> from threadline.kernel.policy import Effect, Policy, Timer
    >>> from threadline.kernel.time import DAY
    >>> def react(recorded, known):
    ...     if not recorded.event.is_news:
    ...         return []
    ...     later = recorded.event.occurred_at + 2 * DAY
    ...     return [Effect(kind="webhook", key="thanks"), Timer(key="ask", due_at=later)]
    >>> thanks = Policy(
    ...     name="thanks", handles=frozenset({"purchase_completed"}), react=react, emits=frozenset(),
    ...     sends=frozenset({"webhook"}),
    ... )
    >>> thanks.names_types
    True

Wishes are `Emit`, `Effect`, `Timer` and `CancelTimer`. Options: ``reads`` (the parts of views it depends on; with
``handles=None`` it is asked when one of them changes), ``emits`` and ``sends`` (what it may wish for), ``shared``
(what it reads besides the person), ``withdrawn`` (asked again right before an effect leaves). The laws to try it by
are `threadline.testing.policy_laws`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

import msgspec

from threadline.kernel.effect import Effect as Effect  # noqa: PLC0414 — wishes are imported from one place
from threadline.kernel.event import Recorded
from threadline.kernel.outbox import PendingEffect
from threadline.kernel.person_view import PersonView
from threadline.kernel.why import HISTORY, REASONS, TIME, Why


class Emit(msgspec.Struct, frozen=True, kw_only=True):
    """Wish: a further event in the same person's thread, committed with the one that caused it.

    ``key`` must be unique within (policy, cause); the event's id derives from both, so a retry is the same wish.
    """

    type: str
    key: str
    occurred_at: int
    properties: dict[str, Any] = {}


class Timer(msgspec.Struct, frozen=True, kw_only=True):
    """Wish: wake this policy about this person at an instant. Setting a key again moves it."""

    key: str
    due_at: int
    data: dict[str, Any] = {}
    unless_earlier: bool = False
    """True: a pending timer of this key that is due no later stays as it is, which costs no write."""
    unless_pending: bool = False
    """True: a pending timer of this key stays as it is, whenever it is due."""


class CancelTimer(msgspec.Struct, frozen=True, kw_only=True):
    """Wish: forget the timer with this key; nothing happens if there is none."""

    key: str


Wish = Emit | Effect | Timer | CancelTimer

TIMER_FIRED = "threadline.timer_fired"
"""Type of the event a due timer puts in the thread; properties: policy, key, data."""

FIRED_HISTORY = "history"
"""Property of the event of a timer that was set for history: when that was recorded, microseconds."""
FIRED_WHY = "why"
"""Property of the event of a timer that was due at once: the reason of its cause, with which it goes on."""

POLICY_FAILED = "threadline.policy_failed"
"""Type of the event that says a policy raised about the event that is its cause; properties: policy, event_type,
error."""

CASCADE_CUT = "threadline.cascade_cut"
"""Type of the event that says that a policy wished for more than one cause may have."""

_BY_POLICY = "policy:"


def source_of(policy: str) -> str:
    """The source of the events that the policy of this name adds."""
    return f"{_BY_POLICY}{policy}"


def policy_of(source: str) -> str:
    """The name of the policy that adds the events of a source; "" if none does."""
    return source.removeprefix(_BY_POLICY) if source.startswith(_BY_POLICY) else ""


def why_after(cause: Recorded, at: int) -> Why:
    """Why something happens at an instant because of an event: the one place where this is decided.

    What follows from an event happens for the event's own reason, however long the chain. What a timer finds happens
    because its time has come, but for two: what occurred before the history was recorded for which the timer was set is
    history, and a timer that was due at once goes on with what did not fit into the commit of its cause.
    """
    event = cause.event
    if event.type != TIMER_FIRED:
        return event.why
    begun, history = event.properties.get(FIRED_WHY), event.properties.get(FIRED_HISTORY)
    # Fired late, it may find what time has changed between its instant and the present.
    if begun in REASONS and not event.occurred_at < at < cause.recorded_at:
        return cast(Why, begun)
    return HISTORY if type(history) is int and at < history else TIME


class PolicyView(PersonView, Protocol):
    """What a policy sees: the person right after the event that it reacts to, and what may come of that event.

    States are the engine's own: look at them, never change them.
    """

    def __getitem__(self, name: str) -> Any:
        """The state of a projection; `KeyError` if there is none of that name."""
        ...

    def get(self, name: str, default: Any = None) -> Any:
        """The state of a projection, or ``default`` if there is none of that name."""
        ...

    @property
    def room(self) -> int:
        """How many more wishes may come of the cause of all this before the cascade is cut. A policy that can go on
        later, by a timer, leaves some of it to the others."""
        ...

    def of_nobody(self, name: str) -> Any:
        """A projection's view of somebody about whom nothing is known; None if there is no such projection."""
        ...

    def touches(self, name: str, path: tuple[str, ...] = ()) -> bool:
        """Whether an event of this type can change the value at a path of a projection's view.

        The answer is the same for every event of a type.
        """
        ...

    def handled(self, type: str) -> bool:
        """Whether a policy names events of this type, so that each may lead to more in the same commit.

        Policies that see events of every type do not count: for most they do nothing.
        """
        ...

    def shared(self, name: str) -> Any:
        """The current value of the `Shared` of this name: the same for all events of a commit."""
        ...


def emission_budget(view: PolicyView, *types: str) -> int:
    """How many events of these types a policy may emit for this cause; a timer emits the rest.

    Half of the room; a quarter where each may lead to more events, such as a decision and an action.
    """
    share = 4 if any(map(view.handled, types)) else 2
    return (view.room + 1) // share if view.room > 1 else 0


class TimerSentence(NamedTuple):
    """What a timer is for, for people."""

    sentence: str
    """With the named groups of `form` in braces: ``Goes on in the journey {journey}``. A group ``month`` is a number of
    months since the year 0."""
    form: str = ""
    """A regular expression that the timer's key begins with; empty: any."""


class Read(NamedTuple):
    """A part of a view that a policy depends on. The catalogue refuses one that can never have a value."""

    projection: str
    path: tuple[str, ...] = ()
    place: str = ""
    """Where in the definitions it is asked for, for messages."""


@dataclass(frozen=True, slots=True)
class Reliance:
    """What operations read of views because definitions say so, such as the conditions of a flag. Found by discovery;
    the catalogue refuses a part that can never have a value, as it does for a policy."""

    name: str
    """Of the capability."""
    reads: tuple[Read, ...]


class Declared(NamedTuple):
    """One version of something that the definitions declare. Its content must never change under the same version."""

    name: str
    version: int
    content: bytes
    place: str
    """File and line, for messages."""


REMEMBERED = "declared/"
"""Begins the sort keys of the contents that `Shared.make` gets with `Shared.remembers`; name and version follow, with /
between them."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What a policy reads besides the person: items of a whole workspace, which operations write at any time.

    One that only operations read belongs to no policy, and is found by discovery. The items are in the table ``name``,
    under the workspace, and are made into one value that nobody changes. A process makes it once, and again when the
    items have changed; see `engine/shared.py`.
    """

    name: str
    make: Callable[[Mapping[str, bytes], Any], Any]
    """Makes the value from the items, by their sort keys, and the previous value, from which it may take parts; None at
    first."""
    handles: Callable[[Any, str], bool] = lambda value, event_type: False
    """Whether the policy, given the value, wants to see events of a type. A no costs nothing."""
    declared: tuple[Declared, ...] = ()
    """What the definitions declare for every workspace; `engine/definition_history.py` remembers each version."""
    remembers: bool = False
    """Whether `make` gets the content of every version that was ever declared as well, beside the items; and nothing,
    as version 0, for a name that is not declared any more."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What must happen because of an event. Runs once, when the event arrives, never in a refold.

    `react` sees the event, and its person as `PolicyView` after the event was folded. It is pure: the ids of its wishes
    derive from the cause.

    If it raises, or wishes for what it may not, all its wishes for this event are dropped and an event of the type
    `POLICY_FAILED` says so; the event itself and what other policies wish for stand. If it raises about its own timer,
    the timer stays and fires again later.

    A policy that names its types, by `handles` or by a `Shared` that handles them, is asked about each of their events.
    One that names none is asked about events of the types in `also`, and about others only if they have touched a
    projection that it `reads`: the fold did not return None, or is done again from the log. (While events lie ahead of
    the clock, there are states with and without these; either may be touched.) It is not asked about what it has added
    itself. So `react` need not look whether there is anything to do, and asking it all the same must lead to nothing,
    timers that find nothing apart. What time alone changes is for timers.
    """

    name: str
    handles: frozenset[str] | None
    """Event types reacted to; None for every type that is not Threadline's own and touches what it `reads`.

    `TIMER_FIRED` events, where named, reach only the policy that set the timer.
    """
    react: Callable[[Recorded, PolicyView], Sequence[Wish]]
    also: frozenset[str] = frozenset()
    """If `handles` is None: types about whose events it is asked whatever they touch, Threadline's own among them."""
    emits: frozenset[str] | None = None
    """The types of the events that it may emit; None if they cannot be listed, because users write them into rules. To
    emit another type is a failure of the policy."""
    sends: frozenset[str] | None = None
    """The kinds of the effects that it may wish for; None if they cannot be listed."""
    reads: tuple[Read, ...] = ()
    """The parts of views and states that it depends on. If it names no types these must be all of them; with none it is
    asked about every event."""
    unsettled: Callable[[Recorded, PolicyView], bool] | None = None
    """If `handles` is None: whether it must be asked about an event that has touched nothing that it reads, such as a
    person's first. Called for nearly every event, so it must cost next to nothing."""
    shared: Shared | None = None
    """What it reads besides the person; `PolicyView.shared` gives it by its name."""
    timers: tuple[TimerSentence, ...] = ()
    """What its timers are for, by the form of their keys; the first that fits counts."""
    existing: Callable[[Any], bool] = lambda value: False
    """Whether, by the value that it shares, it may send something because of what is no news (`Event.is_news`)."""
    withdrawn: Callable[[PendingEffect, PersonView], str] | None = None
    """Asked about each of its effects right before it is prepared and sent, with its person as of now: why it is not to
    be sent any more, such as "the journey was left"; empty: it is. Its event is then `EFFECT_WITHDRAWN`. Pure; if it
    raises, the effect is retried later."""

    @property
    def names_types(self) -> bool:
        """Whether it sees only events of types that somebody has named, and not every type."""
        return self.handles is not None or self.shared is not None

    def goes_by_touch(self, event_type: str) -> bool:
        """Whether what an event of this type touches decides if it is asked."""
        names_types = self.handles is not None or self.shared is not None
        return not names_types and bool(self.reads) and event_type not in self.also

    def is_asked(self, recorded: Recorded, known: PolicyView, touched: bool) -> bool:
        """Whether it is asked about an event of a type that it reacts to; ``touched``: something that it reads was."""
        event = recorded.event
        if event.type == TIMER_FIRED:
            return bool(event.properties.get("policy") == self.name)
        if not self.goes_by_touch(event.type):
            return True
        if event.source == source_of(self.name):
            return False
        return touched or (self.unsettled is not None and self.unsettled(recorded, known))
