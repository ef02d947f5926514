"""Reactions that are timed, for the trace of the event that they are to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from threadline.engine.folding.person import Person
from threadline.engine.recording.attempt import Attempt
from threadline.engine.recording.reactions import Reactions
from threadline.engine.tracing import CallTrace, Reacted
from threadline.kernel.event import Recorded
from threadline.kernel.policy import Policy, PolicyView, Wish


class TracedReactions(Reactions):
    """The same as `Reactions`, with a note of every policy that wishes for something or raises."""

    __slots__ = ("_reacted", "_trace")

    def __init__(self, attempt: Attempt, trace: CallTrace, event: str) -> None:
        super().__init__(attempt)
        self._trace = trace
        self._reacted: list[Reacted] = []
        trace.reacted[event] = self._reacted

    def reacting(self, recorded: Recorded) -> list[tuple[Policy, bool]]:
        """See `Reactions`."""
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
        """See `Reactions`."""
        now = self._trace.clock()
        self._reacted.append(Reacted(policy.name, cause.id, now, now, 0, type(error).__name__))
        return super().fail(person, cause, policy, error)
