"""The law of asking: a policy that is asked although it need not be has nothing to say.

    engine = Engine(store, Catalogue(asked_always(values, is_due), rules), clock)

Every policy of `values` is asked about every event of its types. Where `Policy.is_asked` would have spared it, it may
wish for nothing, or for a timer, which will find nothing either; else an `AssertionError` names it. What time alone has
changed is for timers: while one of the person's is due, no policy is asked that need not be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from threadline.kernel.event import Recorded
from threadline.kernel.policy import Policy, PolicyView, Timer, Wish
from threadline.kernel.projection import Fold, Projection, State


def asked_always(values: Iterable[object], is_due: Callable[[Recorded], bool]) -> list[object]:
    """The same values, with policies that are asked always and watched; see the module.

    ``is_due``: whether a timer of the person is due by the instant at which an event is recorded, or occurred if that
    lies ahead.
    """
    watch = _Watch(is_due)
    return [
        watch.projection(each)
        if isinstance(each, Projection)
        else watch.policy(each)
        if isinstance(each, Policy)
        else each
        for each in values
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
        name, compile, in_place = projection.name, projection.compile, projection.in_place

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
            changes["compile"] = lambda type: watched(compile(type))
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
            said = [wish for wish in wishes if not isinstance(wish, Timer)]
            assert not said, f"{policy.name} need not be asked about {recorded}, and says {said}"
            return ()

        return replace(policy, react=watching, reads=(), unsettled=None)
