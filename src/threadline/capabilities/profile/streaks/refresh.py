"""Milestones of everybody looked at again: who passed one before it was declared gets the event for it."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from threadline.capabilities.profile.streaks.definition import StreakSet
from threadline.capabilities.profile.streaks.events import STREAKS_REFRESHED
from threadline.capabilities.profile.streaks.policy import unreported
from threadline.capabilities.profile.streaks.projection import NAME
from threadline.kernel.applied import IndexPart
from threadline.kernel.calendar import day_of
from threadline.kernel.operation import Refresh, RefreshPart, first_due, refresh_reason, refresh_request
from threadline.kernel.person_view import PersonView
from threadline.kernel.ports import Ports
from threadline.kernel.why import DEFINITIONS


def milestones_refresh(streaks: StreakSet) -> Refresh | None:
    """The refresh of everybody's milestones, by these definitions; None where there are none."""
    parts = {streak.name: RefreshPart(streaks.version(streak)) for streak in streaks.streaks if streak.milestones}
    if not parts:
        return None
    return Refresh(
        NAME,
        streaks.fingerprint,
        partial(_page, streaks),
        parts,
        foretold=True,
        event=STREAKS_REFRESHED,
        lacks=partial(_lacks, streaks),
    )


def _lacks(streaks: StreakSet, known: PersonView, names: Collection[str]) -> bool:
    """Whether a run that is alive is as long as a milestone for which it has no event."""
    views = known.view(NAME)
    for streak in streaks.streaks:
        view = views[streak.name]
        reported = {str(milestone["length"]): day_of(milestone["day"]) or 0 for milestone in view["milestones"]}
        if streak.name in names and unreported(streak, view, reported):
            return True
    return False


def _page(streaks: StreakSet, engine: Ports, after: str, limit: int) -> tuple[int, str]:
    page, following = engine.reader.people(None, after, limit)
    now, why = engine.recorder.now(), refresh_reason(engine, NAME)
    names = {streak.name for streak in streaks.streaks if streak.milestones}
    if why == DEFINITIONS:
        filling = engine.maintenance.filling(IndexPart(NAME, name, rows=False) for name in sorted(names))
        names = {unfilled.part.of for unfilled in filling if unfilled.part.name == NAME}
    events = []
    for person in page:
        due = first_due(person.timers, NAME, now) if why == DEFINITIONS else None
        if _lacks(streaks, engine.reader.as_of(person, now if due is None else due - 1), names):
            events.append(refresh_request(engine, (NAME, STREAKS_REFRESHED), person, why, names, due))
    engine.recorder.record(events, known=True)
    return len(page), following
