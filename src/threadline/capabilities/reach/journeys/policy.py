"""The policy ``journeys``: people enter, go on and leave in the commit of what causes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from threadline.capabilities.foundation.conditions.fields import PROFILE
from threadline.capabilities.foundation.webhooks.definition import KIND as WEBHOOK
from threadline.capabilities.reach.journeys.book import Book, declared_versions, make_book
from threadline.capabilities.reach.journeys.definition import Journey
from threadline.capabilities.reach.journeys.events import RUN_EVENTS
from threadline.capabilities.reach.journeys.reacting import Reaction
from threadline.capabilities.reach.journeys.steps import JOURNEYS
from threadline.capabilities.reach.journeys.walk import quiet_hours_until
from threadline.capabilities.reach.journeys.wishes import EMITTED
from threadline.capabilities.reach.mail.definition import KIND
from threadline.kernel.calendar import zone_of_person
from threadline.kernel.event import Recorded
from threadline.kernel.identity import MERGED, SPLIT
from threadline.kernel.outbox import PendingEffect
from threadline.kernel.person_view import PersonView
from threadline.kernel.policy import TIMER_FIRED, Policy, PolicyView, Read, Shared, TimerSentence, Wish, emission_budget
from threadline.kernel.ports import Ports
from threadline.kernel.preparation import DueEffect, Guard, Postponed
from threadline.kernel.time import MINUTE

LOOK_AGAIN = 10 * MINUTE
"""After how long a mail that a pause holds up is looked at again, in case that nobody makes it due before."""


def journeys_policy(journeys: Sequence[Journey], zone: str, transactional: frozenset[str] = frozenset()) -> Policy:
    """The policy for these journeys; ``zone`` is of people who name none, ``transactional`` are templates."""
    return Policy(
        name=JOURNEYS,
        handles=None,
        react=_react,
        timers=(
            TimerSentence("Goes on in its journeys", "rest/"),
            TimerSentence("Goes on in the journey {journey}", "(?P<journey>[^/]+)/"),
        ),
        also=frozenset({TIMER_FIRED, MERGED, SPLIT}),
        emits=RUN_EVENTS.union(EMITTED.values()),
        sends=frozenset({KIND, WEBHOOK}),
        reads=(Read(JOURNEYS), Read(PROFILE), *(read for journey in journeys for read in journey.reads)),
        shared=Shared(
            name=JOURNEYS,
            make=partial(make_book, tuple(journeys), zone, transactional),
            handles=Book.handles,
            declared=declared_versions(journeys),
            remembers=True,
        ),
        existing=lambda book: any(active.journey.existing for active in book.in_force.values()),
        withdrawn=withdrawn,
    )


def _react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
    book: Book = known.shared(JOURNEYS)
    budget = emission_budget(known, *RUN_EVENTS)
    return Reaction(book, recorded, known, known[JOURNEYS], budget).react()


def withdrawn(pending: PendingEffect, person: PersonView) -> str:
    """Why a mail that waits is not to be sent any more: its run was ended by something else than its own steps."""
    data = pending.effect.data
    if pending.effect.kind != KIND:
        return ""  # what else a step does is done with the step
    ended = person.view(JOURNEYS)["ended"].get(data["journey"], {}).get(data["run"])
    if ended is None or not ended["interrupted"]:
        return ""
    return f"the journey {data['journey']!r} was left: {ended['reason']}"


def _allow(engine: Ports, due: Sequence[DueEffect]) -> list[str | Postponed]:
    """A mail waits as long as its journey is paused, for everybody or for its person, and for quiet hours."""
    books: dict[str, Book] = {
        workspace: engine.shared.fresh(workspace, JOURNEYS) for workspace in {pending.workspace for _, pending in due}
    }
    now = engine.recorder.now()

    def answer(view: PersonView, pending: PendingEffect) -> str | Postponed:
        if pending.effect.kind != KIND:
            return ""
        book, journey = books[pending.workspace], pending.effect.data["journey"]
        if journey in book.paused or {journey, ""} & {*view.view(JOURNEYS)["paused"]}:
            return Postponed(until=now + LOOK_AGAIN, why="journey_paused")
        quiet = _quiet_until(book, view, pending.effect.data, now)
        return "" if quiet is None else Postponed(until=quiet, why="quiet_hours")

    return [answer(*effect) for effect in due]


def _quiet_until(book: Book, view: PersonView, data: Mapping[str, Any], now: int) -> int | None:
    """The end of the quiet hours in the zone that the person has by now; None: there are none."""
    compiled = book.version(data["journey"], data.get("journey_version", 0))
    if compiled is None or data["template"] in book.transactional:
        return None
    zone = zone_of_person(view.view(PROFILE), compiled.journey.timezone or book.zone)
    return quiet_hours_until(compiled.journey, zone, now)


GUARD = Guard(JOURNEYS, _allow)
