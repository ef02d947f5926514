"""The policy ``journeys``: people enter, go on and leave in the commit of what causes it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from threadline.capabilities.journeys.book import Book, declared_versions, make_book
from threadline.capabilities.journeys.definition import Journey
from threadline.capabilities.journeys.events import RUN_EVENTS
from threadline.capabilities.journeys.reacting import Reaction
from threadline.capabilities.journeys.steps import JOURNEYS
from threadline.capabilities.mail.definition import KIND
from threadline.kernel.event import Recorded
from threadline.kernel.identity import MERGED, SPLIT
from threadline.kernel.outbox import PendingEffect
from threadline.kernel.person_view import PersonView
from threadline.kernel.policy import TIMER_FIRED, Policy, PolicyView, Read, Shared, Wish, emission_budget
from threadline.kernel.ports import Ports
from threadline.kernel.preparation import DueEffect, Guard, Postponed
from threadline.kernel.time import HOUR

_LOOK_AGAIN = HOUR
"""After how long a mail that a pause holds up is looked at again."""


def journeys_policy(journeys: Sequence[Journey], zone: str) -> Policy:
    """The policy for these journeys; ``zone`` is of people who name none."""
    return Policy(
        name=JOURNEYS,
        handles=None,
        react=_react,
        also=frozenset({TIMER_FIRED, MERGED, SPLIT}),
        emits=RUN_EVENTS,
        sends=frozenset({KIND}),
        reads=(Read(JOURNEYS), Read("profile"), *(read for journey in journeys for read in journey.reads)),
        shared=Shared(
            name=JOURNEYS,
            make=partial(make_book, tuple(journeys), zone),
            handles=Book.handles,
            declared=declared_versions(journeys),
            remembers=True,
        ),
        withdrawn=withdrawn,
    )


def _react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
    book: Book = known.shared(JOURNEYS)
    budget = emission_budget(known, *RUN_EVENTS)
    return Reaction(book, recorded, known, known[JOURNEYS], budget).react()


def withdrawn(pending: PendingEffect, person: PersonView) -> str:
    """Why a mail that waits is not to be sent any more: its run was ended by something else than its own steps."""
    data = pending.effect.data
    ended = person.view(JOURNEYS)["ended"].get(data["journey"], {}).get(data["run"])
    if ended is None or not ended["interrupted"]:
        return ""
    return f"the journey {data['journey']!r} was left: {ended['reason']}"


def _allow(engine: Ports, due: Sequence[DueEffect]) -> list[str | Postponed]:
    """A mail waits as long as its journey is paused, for everybody or for its person."""
    books: dict[str, Book] = {
        workspace: engine.shared.fresh(workspace, JOURNEYS) for workspace in {pending.workspace for _, pending in due}
    }
    later = Postponed(until=engine.recorder.now() + _LOOK_AGAIN)

    def is_paused(view: PersonView, pending: PendingEffect) -> bool:
        journey = pending.effect.data["journey"]
        return journey in books[pending.workspace].paused or bool({journey, ""} & {*view.view(JOURNEYS)["paused"]})

    return [later if is_paused(*effect) else "" for effect in due]


GUARD = Guard(JOURNEYS, _allow)
