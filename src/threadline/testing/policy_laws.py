"""The laws of every policy: what it answers, and when it is asked.

Property-based tests of automations and triggers. `watched` puts an observer before each policy; record events through
an engine with them, and look at what was found:

    >>> from itertools import count
    >>> from threadline.capabilities.profile.people.definition import rules
    >>> from threadline.engine.engine import Engine
    >>> from threadline.engine.folding.catalogue import Catalogue
    >>> from threadline.kernel.policy import Emit, Policy
    >>> from threadline.stores.memory import MemoryStore
    >>> from threadline.testing.policy_laws import watched
    >>> from threadline.testing.world import World
    >>> tickets, problems = count(), []
    >>> lottery = Policy(
    ...     name="lottery", handles=frozenset({"page"}), emits=frozenset({"ticket"}),
    ...     react=lambda recorded, known: [Emit(type="ticket", key=str(next(tickets)), occurred_at=1)],
    ... )
    >>> engine = Engine(MemoryStore(), Catalogue(watched([lottery], problems), rules()), lambda: 1_800_000_000_000_000)
    >>> receipts = engine.recorder.record(World(seed=1, people=2).events(20))
    >>> problems[0]
    "lottery on page: asked_again_it_wishes_for_the_same: ..."

Each of `LAWS` is checked on every event about which a policy is asked: the policy is pure and repeatable, never raises,
uses each key once for a cause, and emits only what it declares. Record events of the policy's own types, plausible ones
and hostile ones (`threadline.testing.scenarios`). An engine records an event although a policy raises about it, so look
at ``problems`` and not at receipts.

The law of asking: a policy that is asked although it need not be has nothing to say.

    engine = Engine(store, Catalogue(asked_always(values, is_due), rules), clock)

Every policy of `values` is asked about every event of its types. Where `Policy.is_asked` would have spared it, it may
wish for nothing, or for a timer, which will find nothing either; else an `AssertionError` names it. What time alone has
changed is for timers: while one of the person's is due, no policy is asked that need not be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from threadline.kernel.event import Recorded
from threadline.kernel.policy import CancelTimer, Effect, Emit, Policy, PolicyView, Timer, Wish
from threadline.kernel.projection import Fold, Projection, State


class Asking(NamedTuple):
    """A policy, an event, and the person right after it."""

    policy: Policy
    recorded: Recorded
    known: PolicyView
    projections: tuple[str, ...]
    """The names of all projections, for who compares states."""

    def wishes(self) -> list[Wish]:
        """What the policy wishes for."""
        return list(self.policy.react(self.recorded, self.known))


Law = Callable[[Asking], None]


def a_policy_never_raises(asking: Asking) -> None:
    """A payload can hold anything; what does not fit is ignored."""
    try:
        asking.wishes()
    except Exception as error:
        raise AssertionError(f"raises {error!r}") from error


def asked_again_it_wishes_for_the_same(asking: Asking) -> None:
    """Wishes follow from the event and the person: no clock, no chance, no memory of its own."""
    first, second = asking.wishes(), asking.wishes()
    assert first == second, f"wishes for {first}, and asked again for {second}"


def asking_changes_nothing(asking: Asking) -> None:
    """The event is in the log and the states are the engine's own: a policy looks at both."""

    def seen() -> tuple[bytes, ...]:
        states = (asking.known.get(name) for name in asking.projections)
        return (msgspec.json.encode(asking.recorded), *map(msgspec.msgpack.encode, states))

    before = seen()
    asking.wishes()
    names = ("the event", *asking.projections)
    changed = [name for name, earlier, later in zip(names, before, seen(), strict=True) if earlier != later]
    assert not changed, f"changes {changed}"


def keys_are_unique_within_a_cause(asking: Asking) -> None:
    """The id of an event or an effect is a function of policy, cause and key."""
    keys = [(type(wish).__name__, wish.key) for wish in asking.wishes() if isinstance(wish, Emit | Effect)]
    twice = sorted({key for key in keys if keys.count(key) > 1})
    assert not twice, f"uses twice: {twice}"


def only_what_is_declared_is_emitted(asking: Asking) -> None:
    """`emits` and `sends` are complete: what-if and readers of the catalogue go by them."""
    policy = asking.policy
    for wish in asking.wishes():
        if isinstance(wish, Emit):
            assert policy.emits is None or wish.type in policy.emits, f"emits {wish.type!r}, which it does not declare"
        elif isinstance(wish, Effect):
            assert policy.sends is None or wish.kind in policy.sends, f"sends {wish.kind!r}, which it does not declare"


def wishes_can_be_stored(asking: Asking) -> None:
    """The log holds JSON and states hold MessagePack."""
    for wish in asking.wishes():
        data = None if isinstance(wish, CancelTimer) else wish.properties if isinstance(wish, Emit) else wish.data
        for encode in (msgspec.json.encode, msgspec.msgpack.encode):
            try:
                encode(data)
            except (TypeError, ValueError, OverflowError, RecursionError) as error:
                raise AssertionError(f"wishes for {wish.key!r} with {error}") from error


LAWS: tuple[Law, ...] = (
    a_policy_never_raises,
    asked_again_it_wishes_for_the_same,
    asking_changes_nothing,
    keys_are_unique_within_a_cause,
    only_what_is_declared_is_emitted,
    wishes_can_be_stored,
)


def watched(values: Iterable[object], problems: list[str], laws: Sequence[Law] = LAWS) -> list[object]:
    """The same values, with policies that are held to the laws whenever they are asked; ``problems`` takes what breaks
    one."""
    listed = list(values)
    projections = tuple(projection.name for projection in listed if isinstance(projection, Projection))

    def policy(plain: Policy) -> Policy:
        def watching(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
            asking = Asking(plain, recorded, known, projections)
            for law in laws:
                try:
                    law(asking)
                except AssertionError as error:
                    problems.append(f"{plain.name} on {recorded.event.type}: {law.__name__}: {error}")
                    break
            return plain.react(recorded, known)

        return replace(plain, react=watching)

    return [policy(value) if isinstance(value, Policy) else value for value in listed]


def asked_always(values: Iterable[object], is_due: Callable[[Recorded], bool]) -> list[object]:
    """The same values, with policies that are asked always and watched; see the module.

    ``is_due``: whether a timer of the person is due by the instant at which an event is recorded, or occurred if that
    lies ahead.
    """
    watch = _Watch(is_due)
    return [
        watch.projection(value)
        if isinstance(value, Projection)
        else watch.policy(value)
        if isinstance(value, Policy)
        else value
        for value in values
    ]


class _Watch:
    """What each event has touched, as the folds say that take it in."""

    def __init__(self, is_due: Callable[[Recorded], bool]) -> None:
        self._is_due = is_due
        self._touched: set[tuple[str, str]] = set()
        self._reacting = False
        self._timers: list[int] = []
        """When the timers are due that were wished for in the same call: they are not committed yet."""
        self._call = 0

    def projection(self, projection: Projection) -> Projection:
        """A projection whose folds are watched."""
        name, compile, in_place = projection.name, projection.faster.fold, projection.in_place

        def watched(fold: Fold | None) -> Fold | None:
            if fold is None:
                return None

            def watching(state: State, recorded: Recorded) -> State | None:
                folded = fold(state, recorded)
                if folded is not None:
                    self._touch(name, recorded)
                return folded

            return watching

        def taken_in_place(state: State, recorded: Recorded) -> bool:
            taken = in_place is not None and in_place(state, recorded)
            if not taken:
                self._touch(name, recorded)
            return taken

        fold = watched(projection.fold)
        assert fold is not None
        changes: dict[str, Any] = {"fold": fold, "in_place": taken_in_place if projection.ordered else None}
        if compile is not None:
            changes["faster"] = replace(projection.faster, fold=lambda type: watched(compile(type)))
        return replace(projection, **changes)

    def _touch(self, name: str, recorded: Recorded) -> None:
        # A policy that looks at another instant has states folded for itself.
        if not self._reacting:
            self._touched.add((name, recorded.id))

    def policy(self, policy: Policy) -> Policy:
        """A policy that is asked about every event."""
        react: Callable[[Recorded, PolicyView], Sequence[Wish]] = policy.react

        def watching(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
            if recorded.recorded_at != self._call:
                self._timers.clear()
                self._call = recorded.recorded_at
            touched = any((read.projection, recorded.id) in self._touched for read in policy.reads)
            self._reacting = True
            try:
                if policy.is_asked(recorded, known, touched):
                    wishes = react(recorded, known)
                    self._timers += [wish.due_at for wish in wishes if isinstance(wish, Timer)]
                    return wishes
                is_due = self._is_due(recorded) or any(at <= known.at for at in self._timers)
                wishes = () if is_due else react(recorded, known)
            finally:
                self._reacting = False
            emitted = [wish for wish in wishes if not isinstance(wish, Timer)]
            assert not emitted, f"{policy.name} need not be asked about {recorded}, and says {emitted}"
            return ()

        return replace(policy, react=watching, reads=(), unsettled=None)
