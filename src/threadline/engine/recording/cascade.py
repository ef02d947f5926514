"""The cascade: policies react to an event and to what they add because of it, within a bound on both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person import Person
from threadline.engine.folding.person_view import ReactingPersonView
from threadline.engine.recording import emission
from threadline.kernel.event import Recorded
from threadline.kernel.limits import CASCADE_EVENTS_MAX
from threadline.kernel.policy import Policy, Wish


class Stage(Protocol):
    """Where policies are asked and their wishes applied: an attempt before its commit, or a sandbox."""

    @property
    def catalogue(self) -> Catalogue:
        """Says how many writes a wish takes."""
        ...

    def reacting(self, recorded: Recorded) -> Sequence[tuple[Policy, bool]]:
        """The policies that may be asked about an event, each with whether it has touched what the policy reads."""
        ...

    def known(self, person: Person, recorded: Recorded) -> ReactingPersonView:
        """The person right after an event."""
        ...

    def idle(self, person: Person, policy: str, wish: Wish) -> bool:
        """Whether a wish is for a timer that stays as it is: it changes nothing and takes no room."""
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


def cascade(stage: Stage, person: Person, first: Recorded) -> None:
    """Let policies react to an event and to what they add.

    One cause leads to at most `CASCADE_EVENTS_MAX` wishes, in the writes reserved for them; an event says where more
    were wished for. A policy that raises loses its wishes for the event at hand and nothing else.
    """
    queue = [first]
    added, writes = 0, 2  # of the event that says so

    def room() -> int:
        return _room(added, writes, stage.free(person))

    for recorded in queue:
        policies = stage.reacting(recorded)
        if not policies:
            continue
        known = stage.known(person, recorded)
        known.room_left = room
        for policy, touched in policies:
            # All wishes of a policy are prepared before one is applied: a policy that fails half-way has none applied.
            try:
                if not policy.is_asked(recorded, known, touched) or not (wishes := policy.react(recorded, known)):
                    continue
                ready = stage.prepare(person, recorded, policy, wishes)
            except Exception as error:  # noqa: BLE001 — the stage re-raises what is not the policy's
                failure = stage.fail(person, recorded, policy, error)
                if failure is None:
                    continue
                ready = stage.prepare(person, recorded, policy, (failure,))
            for wish, prepared in ready:
                if stage.idle(person, policy.name, wish):
                    continue
                writes += emission.writes_of(stage.catalogue, wish)
                if added == CASCADE_EVENTS_MAX - 1 or writes > 2 * CASCADE_EVENTS_MAX:
                    stage.cut(person, recorded, policy.name)
                    return
                added += 1
                emitted = stage.apply_wish(person, recorded, policy.name, prepared)
                if emitted is not None:
                    queue.append(emitted)


def _room(added: int, writes: int, free: int) -> int:
    """How many more wishes of a cause are allowed, and fit in its batch.

    Each takes two writes, and may change rows: a policy that uses half of the room leaves as much for these.
    """
    return max(0, min(CASCADE_EVENTS_MAX - 1 - added, CASCADE_EVENTS_MAX - (writes + 1) // 2, free // 2 - 2))
