"""Streaks as callers read them: how each stands at an instant, and what was done on each local day."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Date, Instant, PersonRef, instant
from threadline.capabilities.foundation.events.instants import person_as_of
from threadline.capabilities.foundation.events.parameters import KnownAsOf
from threadline.capabilities.profile.points.events import POINTS_EARNED, amount_of
from threadline.capabilities.profile.streaks.definition import StreakSet
from threadline.capabilities.profile.streaks.plan import Plan, is_alone
from threadline.capabilities.profile.streaks.projection import NAME
from threadline.capabilities.profile.streaks.state import State
from threadline.capabilities.profile.streaks.view import Reader, dated_window, day_records, days_of
from threadline.capabilities.profile.streaks.whereabouts import Journey
from threadline.kernel.calendar import day_begins, day_of, day_text, local_day
from threadline.kernel.disclosure import not_personal
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Recorded
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, Group, Operation, Params, operation, shaped_operation
from threadline.kernel.ports import Person, Ports
from threadline.kernel.time import DAY, HOUR

STREAKS_GROUP = Group("streaks", "Days in a row on which a person was active.")

DAYS_USUAL = 30
DAYS_MAX = 400
"""Days of one answer."""

_FIRST_EVENTS = 10
"""Events read at a time to find the first activity of a day."""

Day = Annotated[str, Meta(description="A local date, such as 2026-03-01.")]


@not_personal
class RunView(msgspec.Struct, kw_only=True):
    """Periods in a row."""

    begins: Annotated[Day, Meta(description="The first day of the first period.")] = msgspec.field(name="from")
    ends: Annotated[Day, Meta(description="The last day of the last period that was done.")] = msgspec.field(name="to")
    length: Annotated[int, Meta(description="How many periods were done.")]
    frozen: Annotated[int, Meta(description="How many missed ones in between were bridged by freezes.")]


@not_personal
class MilestoneView(msgspec.Struct, kw_only=True):
    """A milestone, when it was last reported."""

    length: int
    day: Day


@not_personal
class StreakView(msgspec.Struct, kw_only=True):
    """One streak at one instant."""

    current: Annotated[int, Meta(description="Periods in a row, up to now; 0 once one is missed.")]
    longest: int
    at_risk: Annotated[bool, Meta(description="Whether the running period is still to be done to keep it.")]
    expires_at: Annotated[
        Instant | None, Meta(description="When it ends if nothing more happens and all freezes are spent.")
    ]
    last_active_on: Annotated[Day | None, Meta(description="The last local day that counted.")]
    progress: Annotated[int, Meta(description="How often the person was active in the running period.")]
    times: Annotated[int, Meta(description="How often that is asked for.")]
    cadence: str
    freezes: Annotated[int, Meta(description="How many are held.")]
    run: RunView | None
    longest_run: RunView | None
    history: Annotated[list[RunView], Meta(description="Runs that ended, newest first, at most 20.")]
    milestones: list[MilestoneView]


class StreaksParams(KnownAsOf, kw_only=True):
    """Whose streaks, and at which instant."""

    id: PersonRef


class StreaksResult(msgspec.Struct, kw_only=True):
    """All declared streaks. Only what occurred before ``as_of`` counts."""

    person: str
    position: Annotated[int, Meta(description="How many events were ever recorded of the person, erased ones too.")]
    as_of: Instant
    streaks: dict[str, StreakView]


@operation("GET /v1/people/{id}/streaks", STREAKS_GROUP, example=StreaksParams(id="user_id:42"))
def of(context: Context, params: StreaksParams) -> StreaksResult:
    """Show a person's streaks, now or as they stood at an instant."""
    asked = person_as_of(context, params.id, params.as_of, params.known)
    shown = msgspec.convert(asked.views(NAME)[NAME], dict[str, StreakView])
    return StreaksResult(person=asked.person.id, position=asked.person.position, as_of=asked.shown_at, streaks=shown)


# --- days -------------------------------------------------------------------------------------


class DaysParams(Params, kw_only=True):
    """Whose days, from when to when."""

    id: PersonRef
    start: Annotated[Date | None, Meta(description="From this local date on; without it 30 days.")] = None
    stop: Annotated[Date | None, Meta(description="Before this local date; without it up to today.")] = None
    first_events: Annotated[
        bool, Meta(description="Whether to name the first event of each day, for which the log is read day by day.")
    ] = True


@key_fields("date", "events", "points")
@not_personal
class DayView(msgspec.Struct, kw_only=True):
    """What a person did on one local day."""

    date: Day
    events: Annotated[int, Meta(description="Events that say that the person was active.")]
    first_event: Annotated[str, Meta(description="The id of the first of them; empty without `first_events`.")]
    first_at: Instant | None
    points: Annotated[int, Meta(description="Points earned on that day, whether or not they were spent since.")]


@not_personal
class DaysResult(msgspec.Struct, kw_only=True):
    """Active days, oldest first."""

    person: str
    position: int
    zone: Annotated[str, Meta(description="The zone in which the person is, as far as is known.")]
    today: Day
    days: list[DayView]


@shaped_operation(
    "GET /v1/people/{id}/days",
    STREAKS_GROUP,
    example=DaysParams(id="user_id:42", start="2026-03-01", stop="2026-04-01"),
)
def days(plan: Plan, context: Context, params: DaysParams) -> DaysResult:
    """List the local days on which a person was active, with what was done and earned."""
    engine, reader = context.engine, Reader(plan)
    person = engine.reader.person(context.workspace, params.id)
    state: State = engine.reader.state(person, NAME, context.now)
    today = reader.today(state, context.now)
    stop = _day(params.stop, "stop", today + 1)
    start = _day(params.start, "start", stop - DAYS_USUAL)
    if not 1 <= stop - start <= DAYS_MAX:
        raise InvalidValue(f"ask for 1 to {DAYS_MAX} days, from `start` on and before `stop`", param="start")
    points = _points(plan, engine, person, state, start, stop - 1)
    shown = []
    for day, first_at, events in day_records(plan, state, start, stop - 1):
        first, at = _first_event(plan, engine, person, first_at) if params.first_events else ("", None)
        shown.append(
            DayView(
                date=day_text(day),
                events=events,
                first_event=first,
                first_at=None if at is None else instant(at),
                points=points.get(day, 0),
            )
        )
    return DaysResult(
        person=person.id,
        position=person.position,
        zone=reader.zone(state, context.now),
        today=day_text(today),
        days=shown,
    )


def _day(text: str | None, name: str, otherwise: int) -> int:
    if not text:
        return otherwise
    day = day_of(text)
    if day is None:
        raise InvalidValue(f"{name}: {text!r} is not a date; write it like 2026-03-01")
    return day


def _first_event(plan: Plan, engine: Ports, person: Person, at: int) -> tuple[str, int]:
    """Id and instant of the first activity of a day."""
    # The state keeps an instant only: 16 bytes a day less, and the log finds it at once. Of what named no zone that is
    # the quarter of an hour, and what counts for other streaks alone is no activity.
    for event in engine.reader.all_events(person, start=at, stop=at + DAY, size=_FIRST_EVENTS):
        if plan.is_active(event.event):
            return event.id, event.event.occurred_at
    return "", at


def _points(plan: Plan, engine: Ports, person: Person, state: State, since: int, until: int) -> dict[int, int]:
    """Points earned by local day: that of the event that earned them."""
    calendar, journey = plan.calendar, dated_window(plan, state)[0]
    start, stop = day_begins("UTC", since) - DAY, day_begins("UTC", until) + 3 * DAY
    earned = list(
        engine.reader.all_events(person, types=frozenset({POINTS_EARNED}), start=start, stop=stop, counting=True)
    )
    days: dict[str, int] = {}
    if earned and (len(journey.changes) > 2 or any(_may_lie_elsewhere(journey, recorded) for recorded in earned)):
        days = days_of(plan, journey, engine.reader.all_events(person, start=start, stop=stop))
    points: dict[int, int] = {}
    for recorded in earned:
        at = recorded.event.occurred_at
        day = days.get(recorded.cause)
        if day is None:
            day = local_day(journey.zone_at(at), at, calendar.day_start)
        points[day] = points.get(day, 0) + (amount_of(recorded.event) or 0)
    return points


def _may_lie_elsewhere(journey: Journey, earned: Recorded) -> bool:
    """Whether the event that earned these points may count for another day than the one of their own instant."""
    at = earned.event.occurred_at
    is_ahead = at >= earned.recorded_at
    return is_alone(earned) or is_ahead or any(abs(at - first) < HOUR for first in journey.changes[1:2])


def operations(streaks: StreakSet) -> list[Operation]:
    """The operations on these streaks."""
    return [days(Plan(streaks))]
