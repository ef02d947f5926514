"""Streaks in any order: travellers, hoppers, freezes and amnesty, told late, twice, in calls, to engines that crash."""

from __future__ import annotations

from copy import deepcopy
from datetime import timedelta
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws import staging
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.streaks import StreakSet, day_ranges, projection, read_streaks
from threadline.capabilities.profile.streaks.definition import Freezes
from threadline.capabilities.profile.streaks.events import STREAK_MILESTONE_REACHED
from threadline.capabilities.profile.streaks.plan import Plan
from threadline.capabilities.profile.streaks.policy import Watched, policy
from threadline.capabilities.profile.streaks.runs import run_course
from threadline.capabilities.profile.streaks.view import Reader, day_records
from threadline.kernel.calendar import day_text
from threadline.kernel.event import Event, Identifier, Recorded, event_id
from threadline.kernel.projection import Projection
from threadline.kernel.time import DAY, EARLIEST, HOUR, LATEST, MINUTE, parse_time
from threadline.testing import scenarios
from threadline.testing.audits import streaks as audited
from threadline.testing.projection_laws import LAWS

DEFINITIONS = """
timezone: Europe/Rome
calendar:
  day_start: "03:00"
  week_starts_on: sunday
  amnesty: [{from: 2025-12-20, to: 2025-12-21}]
streaks:
  lessons: {events: lesson_done, cadence: day, times: 3, grace: 2h, freezes: {start: 1, every: 3, max: 2}}
  weekly: {cadence: week, times: 2, grace: 4h, milestones: [2]}
  monthly: {events: {page: {where: {kind: long}}}, cadence: month, times: 4, counting: events}
"""
ZONES = (
    "UTC",
    "Pacific/Kiritimati",
    "Etc/GMT+12",
    "Asia/Kathmandu",
    "America/New_York",
    "+05:30",
    "No/Where",
    None,
    7,
    "GMT",
    "Asia/Katmandu",
    "localtime",
)
TYPES = ("page", "page", "lesson_done", "lesson_done", "tag_added", "streak_freeze_granted", "streak_amnesty_granted")


def read(text: str = "") -> StreakSet:
    return read_streaks(Definitions([("threadline.yaml", text)] if text else []))


def declared(text: str = "") -> Projection:
    return projection(read(text))


EARLY = 'calendar: {day_start: "04:00"}'
SHIPPED, MANY, EARLY_RISERS = declared(), declared(DEFINITIONS), declared(EARLY)


def journeys(random: Random, count: int) -> list[Event]:
    """One person whose events name many zones, in hours that crowd, over some weeks."""
    return [_event(random, number) for number in range(count)]


def _event(random: Random, number: int) -> Event:
    type, zone = random.choice(TYPES), random.choice(random.choice((ZONES, ("UTC", None))))
    back = random.choice((random.randrange(40) * DAY, random.randrange(72) * HOUR, random.randrange(6) * 10 * MINUTE))
    properties: dict[str, Any] = {"kind": random.choice(("long", "short"))}
    if type == "streak_freeze_granted":
        properties = {"streak": random.choice(("lessons", None, "nothing")), "freezes": random.choice((1, 2, -1, "x"))}
    elif type == "streak_amnesty_granted":
        day = random.randrange(1, 28)
        properties = {"from": f"2025-12-{day:02}", "to": f"2025-12-{min(day + random.randrange(-1, 4), 31):02}"}
    return Event(
        type=type,
        identifiers=(Identifier("user_id", "u"),),
        occurred_at=scenarios.NOW - 20 * DAY - back,
        key=f"k{number}",
        source_type=random.choice(("direct",) * 7 + ("internal",)),
        properties=properties,
        context={} if zone is None else {"timezone": zone},
    )


histories = st.builds(journeys, scenarios.randoms, st.integers(1, 60))


@pytest.mark.parametrize("known", [SHIPPED, MANY], ids=["shipped", "many"])
@given(history=histories, random=scenarios.randoms)
def test_projection_laws(known: Projection, history: list[Event], random: Random) -> None:
    for law in LAWS:
        law(known, scenarios.recorded(history), random)


def lives(random: Random, count: int) -> list[Recorded]:
    """One person over some months, whose events become known when they occur or up to ten weeks later."""
    events = [
        msgspec.structs.replace(
            event, occurred_at=event.occurred_at - random.choice((0, 0, random.randrange(200))) * DAY
        )
        for event in journeys(random, count)
    ]
    late = (0, 0, HOUR, 3 * DAY, 31 * DAY, 32 * DAY, 32 * DAY + 1, 70 * DAY, -DAY)
    return [
        Recorded(event, event_id("", "", event.key), "t", number, event.occurred_at + random.choice(late))
        for number, event in enumerate(events, 1)
    ]


@pytest.mark.parametrize("known", [SHIPPED, MANY], ids=["shipped", "many"])
@settings(max_examples=200)
@given(random=scenarios.randoms, count=st.integers(1, 80))
def test_projection_laws_over_months(known: Projection, random: Random, count: int) -> None:
    recorded = lives(random, count)
    for law in LAWS:
        law(known, recorded, random)


@pytest.mark.parametrize("known", [SHIPPED, MANY], ids=["shipped", "many"])
@settings(max_examples=200)
@given(random=scenarios.randoms, count=st.integers(1, 80))
def test_what_becomes_known_in_time_never_has_the_log_read(known: Projection, random: Random, count: int) -> None:
    """Folded as it became known it comes to the same as in the order in which it occurred."""
    arrived = sorted(lives(random, count), key=lambda each: each.recorded_at)
    states = [known.empty(), known.empty()]
    assert known.in_place is not None
    for recorded in arrived:
        assert known.in_place(states[0], recorded)
        states[0] = known.after(states[0], recorded)
    for recorded in sorted(arrived, key=lambda each: (each.event.occurred_at, each.id)):
        states[1] = known.after(states[1], recorded)
    assert msgspec.msgpack.encode(states[0], order="sorted") == msgspec.msgpack.encode(states[1], order="sorted")


@given(
    instants=st.lists(st.sampled_from([EARLIEST, EARLIEST + DAY, 0, LATEST - DAY, LATEST]), max_size=5),
    zones=st.lists(st.sampled_from(ZONES), min_size=5, max_size=5),
    random=scenarios.randoms,
)
def test_the_ends_of_time(instants: list[int], zones: list[Any], random: Random) -> None:
    told = [
        Event(type="lesson_done", identifiers=(), occurred_at=at, key=str(number), context={"timezone": zone})
        for number, (at, zone) in enumerate(zip(instants, zones, strict=False))
    ]
    for law in LAWS:
        law(MANY, scenarios.recorded(told), random)


@pytest.mark.parametrize("known", [SHIPPED, MANY], ids=["shipped", "many"])
@given(history=histories, before=st.integers(-10 * DAY, 10 * DAY), after=st.integers(1, 40 * DAY))
def test_nothing_changes_before_it_is_due(known: Projection, history: list[Event], before: int, after: int) -> None:
    now = scenarios.NOW - 20 * DAY + before
    state = known.empty()
    for recorded in sorted(scenarios.recorded(history), key=lambda each: (each.event.occurred_at, each.id)):
        if recorded.event.occurred_at < now:
            state = known.after(state, recorded)
    assert known.depends.due is not None
    due = known.depends.due(state, now)
    until = now + after if due is None else min(now + after, due - 1)
    assert known.view(state, until, []) == known.view(state, now, [])


@pytest.mark.parametrize(("text", "hours"), [("", 0), (EARLY, 4)], ids=["midnight", "four"])
@given(history=histories, before=st.integers(-10 * DAY, 10 * DAY))
def test_the_auditor_says_the_same(text: str, hours: int, history: list[Event], before: int) -> None:
    known, plan = declared(text), Plan(read(text))
    day_start = timedelta(hours=hours)
    now = scenarios.NOW - 20 * DAY + before
    told = sorted(scenarios.recorded(history), key=lambda each: (each.event.occurred_at, each.id))
    told = [each for each in told if each.event.occurred_at < now and each.event.type != "streak_amnesty_granted"]
    state = known.empty()
    for recorded in told:
        state = known.after(state, recorded)
    plain = [
        {**scenarios.plain(each.event), "recorded_at": each.recorded_at}
        for each in told
        if each.event.source_type != "internal"
    ]
    expected = audited.streaks(plain, now, day_start)
    shown = known.view(state, now, [])["daily"]
    assert {name: shown[name] for name in audited.FIELDS} == expected
    counted = {day_text(day): events for day, _, events in day_records(plan, state, now // DAY - 300, now // DAY + 2)}
    assert counted == {day: len(events) for day, events in audited.days(plain, now, day_start).items()}


@given(numbers=st.lists(st.integers(-20, 80), max_size=60), probe=st.integers(-25, 85), width=st.integers(0, 40))
def test_a_set_of_days_is_a_set(numbers: list[int], probe: int, width: int) -> None:
    kept: day_ranges.Ranges = []
    plain: set[int] = set()
    for number in numbers:
        assert day_ranges.add(kept, number) == (number not in plain)
        plain.add(number)
    assert [n for first, last in day_ranges.pairs(kept) for n in range(first, last + 1)] == sorted(plain)
    assert all(
        last + 1 < first
        for (_, last), (first, _) in zip(day_ranges.pairs(kept), day_ranges.pairs(kept[2:]), strict=False)
    )
    assert day_ranges.holds(kept, probe) == (probe in plain)
    left_out = [n for first, last in day_ranges.gaps(kept, probe, probe + width) for n in range(first, last + 1)]
    assert left_out == [n for n in range(probe, probe + width + 1) if n not in plain]


@settings(max_examples=30)
@given(random=scenarios.randoms)
def test_a_set_forgets_what_is_too_old_in_any_order(random: Random) -> None:
    numbers = [random.randrange(3 * day_ranges.SPAN_MAX) for _ in range(200)]
    kept: list[day_ranges.Ranges] = [[], []]
    for each in (0, 1):
        for number in random.sample(numbers, len(numbers)):
            day_ranges.add(kept[each], number)
    assert kept[0] == kept[1]
    expected = sorted({n for n in numbers if n > max(numbers) - day_ranges.SPAN_MAX})
    assert [n for first, last in day_ranges.pairs(kept[0]) for n in range(first, last + 1)] == expected


def test_the_worst_state_is_bounded() -> None:
    """Half a century of every second day, by a hopper who was given all that can be given."""
    state = SHIPPED.empty()
    for number in range(9_000):
        context = {"timezone": ("UTC", "Etc/GMT+12", "Pacific/Kiritimati")[number % 3]}
        event = Event(type="page", identifiers=(), occurred_at=number * 2 * DAY, key=str(number), context=context)
        state = SHIPPED.after(state, Recorded(event, f"{number:032x}", "t", number + 1, number * 2 * DAY))
    size = len(msgspec.msgpack.encode(state))
    assert 20_000 < size < 50_000


MILESTONES = """
streaks:
  daily: {milestones: [2, 3, 5]}
  frozen: {milestones: [2, 4], freezes: {start: 1, every: 2, max: 2}}
  weekly: {cadence: week, milestones: [1, 2]}
  twice: {times: 2, grace: 3h, milestones: [1, 2]}
"""


def told_milestones(history: list[Event], size: int, zone: str) -> list[tuple[int, str, int]]:
    """What is told while these events, all of them from one zone, arrive in this order, half an hour apart."""
    context = {"timezone": zone} if zone else {}
    home = [msgspec.structs.replace(each, context=context) for each in history if not each.type.startswith("streak_")]
    streaks = read_streaks(Definitions([("threadline.yaml", MILESTONES)]))
    clock = iter(range(scenarios.NOW - 20 * DAY + 1, scenarios.NOW, 30 * MINUTE))
    on = staging.engine(clock=lambda: next(clock), values=[projection(streaks), policy(streaks)], shipped=False)
    if not zone or not home:
        on.recorder.record([staging.event("page", {"user_id": "u"}, "first", at=0)])
    for start in range(0, len(home), size):
        on.recorder.record(home[start : start + size])
    events = on.reader.events(
        on.reader.person("default", "user_id:u"), types=frozenset({STREAK_MILESTONE_REACHED}), limit=1_000
    )
    said = [(each.event.occurred_at, each.event.properties) for each in events]
    return sorted((at, properties["streak"], properties["length"]) for at, properties in said)


@given(history=histories, size=st.sampled_from([1, 7, 60]), zone=st.sampled_from(["", "Asia/Tokyo"]))
def test_no_milestone_is_missed_by_the_glances_that_come_first(history: list[Event], size: int, zone: str) -> None:
    told = told_milestones(history, size, zone)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Watched, "is_far", lambda self, state: False)
        patch.setattr(Watched, "may_have_reached", lambda self, life, at: True)
        assert told_milestones(history, size, zone) == told


@settings(max_examples=200)
@given(random=scenarios.randoms, count=st.integers(1, 40), zone=st.sampled_from(["", "Asia/Tokyo", "Pacific/Apia"]))
def test_who_is_far_from_a_milestone_at_a_glance_has_reached_none(random: Random, count: int, zone: str) -> None:
    streaks = read('calendar: {day_start: "04:00"}\nstreaks: {daily: {milestones: [2]}}')
    known, plan = projection(streaks), Plan(streaks)
    watched, state = Watched(plan, streaks.by_name["daily"]), known.empty()
    for recorded in lives(random, count):
        event = recorded.event
        if zone and not event.type.startswith("streak_"):
            event = msgspec.structs.replace(event, context={"timezone": zone})
        state = known.after(state, msgspec.structs.replace(recorded, event=event))
        if watched.is_far(state):
            [run] = Reader(plan).life(state).sets[watched.name]
            assert not run or run[-1] - run[-2] + 1 < 2


numbers = st.lists(st.integers(0, 60), max_size=40).map(lambda found: day_ranges.union((each, each) for each in found))


@given(done=numbers, excused=numbers, closed=st.integers(-5, 80), running=st.integers(0, 2))
def test_a_course_without_freezes_is_that_of_a_walk_with_none(
    done: day_ranges.Ranges, excused: day_ranges.Ranges, closed: int, running: int
) -> None:
    # Freezes that nobody is ever given: the walk is the same.
    slow = run_course(done, excused, Freezes(max=1), (), closed, closed + running)
    assert run_course(done, excused, Freezes(max=0), (), closed, closed + running) == slow


@given(
    days=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8),
    times=st.integers(1, 3),
    random=scenarios.randoms,
)
def test_what_counts_early_is_given_away_once_and_no_more(
    days: list[tuple[int, int]], times: int, random: Random
) -> None:
    """``days`` are how many events each day has in its first two hours, and how many after them."""
    known = declared(f"streaks: {{s: {{events: page, counting: events, times: {times}, grace: 2h}}}}")
    told = [
        Event(type="page", identifiers=(), occurred_at=scenarios.NOW // DAY * DAY + day * DAY + at, key=f"{day} {at}")
        for day, (early, late) in enumerate(days)
        for at in (*range(early), *range(12 * HOUR, 12 * HOUR + late))
    ]
    state = known.empty()
    for recorded in scenarios.recorded(random.sample(told, len(told))):
        state = known.after(state, recorded)
    # Day by day: what is there, less what the day before has taken of it.
    done, taken, have = [False], 0, 0
    for number, (early, late) in enumerate(days):
        have = early + late - taken
        following = days[number + 1][0] if number + 1 < len(days) else 0
        lacks = times - have
        taken = lacks if 0 < lacks <= following and (early + late or done[-1]) else 0
        done.append(lacks <= taken)
    shown = known.view(state, scenarios.NOW // DAY * DAY + len(days) * DAY - 1, [])["s"]
    runs = "".join("x" if each else " " for each in done[1:]).split()
    assert shown["longest"] == max(map(len, runs), default=0)
    assert shown["progress"] == min(have, times)
    assert (shown["current"] > 0) == (done[-1] or done[-2])


AT_HOME = """
calendar:
  amnesty: [{from: 2025-11-20, to: 2025-11-23}, {from: 2025-12-01, to: 2025-12-01}]
streaks:
  daily: {grace: 12h}
  frozen: {grace: 12h, freezes: {start: 1, every: 3, max: 2}}
  weekly: {cadence: week, grace: 12h, freezes: {every: 2, max: 1}}
  monthly: {cadence: month}
"""


@given(
    hours=st.lists(st.integers(0, 30 * 12), min_size=1, max_size=40),
    later=st.integers(0, 10 * 24),
    part=st.integers(0, 1_000_000),
)
def test_whoever_is_active_before_a_streak_expires_keeps_it(hours: list[int], later: int, part: int) -> None:
    """``hours`` are those since the first of November at which the person was active, two at a time."""
    known, begins = declared(AT_HOME), scenarios.NOW - 61 * DAY
    told = [Event(type="page", identifiers=(), occurred_at=begins + 2 * h * HOUR, key=str(h)) for h in sorted(hours)]
    state = known.empty()
    for recorded in scenarios.recorded(told):
        state = known.after(state, recorded)
    now = told[-1].occurred_at + later * HOUR + 1
    for name, before in known.view(state, now, []).items():
        if before["expires_at"] is not None:
            at = now + (parse_time(before["expires_at"]) - 1 - now) * part // 1_000_000
            one_more = Event(type="page", identifiers=(), occurred_at=at, key="one more")
            (recorded,) = scenarios.recorded([one_more])
            after = known.view(known.after(deepcopy(state), recorded), at + 1, [])[name]
            assert after["run"] is not None, name
            assert (after["run"]["from"], after["history"]) == (before["run"]["from"], before["history"]), name
