"""Streaks against the auditor: lives of late and early events from many zones, of people who are joined and split."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from tests.capabilities.asked import STARTS_AT, Asked
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.points.events import POINTS_EARNED
from threadline.capabilities.profile.streaks import read_streaks
from threadline.capabilities.profile.streaks.fold import fold
from threadline.capabilities.profile.streaks.plan import Plan
from threadline.capabilities.profile.streaks.state import ZONES_PER_DAY_MAX, State
from threadline.capabilities.profile.streaks.view import day_records
from threadline.kernel.calendar import day_text
from threadline.kernel.errors import Conflict, InvalidValue
from threadline.kernel.event import Event, Recorded
from threadline.kernel.identity import MERGED
from threadline.kernel.time import DAY, HOUR, MINUTE, format_time
from threadline.testing import scenarios
from threadline.testing.audits import streaks as audited

UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""A life takes half a second, so that shrinking one would take minutes; the failure prints it as it is."""

EARLY_RISERS = """
timezone: America/New_York
calendar: {day_start: "04:00"}
"""
LATE = 32 * DAY
LATENESS = (
    0,
    0,
    0,
    1,
    10 * MINUTE,
    3 * HOUR,
    20 * HOUR,
    -HOUR,
    -23 * HOUR,
    2 * DAY,
    30 * DAY,
    31 * DAY,
    LATE - HOUR,
    LATE - 1,
    LATE,
    LATE + 1,
    LATE + HOUR,
    33 * DAY,
    40 * DAY,
    70 * DAY,
    200 * DAY,
)
"""How long after it occurs an event becomes known."""
PAUSES = (0, 1, 10 * MINUTE, 10 * MINUTE, HOUR, 7 * HOUR, DAY - 1, DAY, 2 * DAY, 33 * DAY)
ZONES = ("UTC", "Pacific/Kiritimati", "Etc/GMT+12", "Asia/Kathmandu", "America/New_York", "+05:30", "No/Where", None)
WHO = ("a", "b", "c")


class Lived:
    """Three people whose events become known when the clock has reached that instant; some are joined for a while."""

    def __init__(self, random: Random, definitions: str) -> None:
        self.random = random
        self.asked = Asked(definitions=definitions)
        self.on = self.asked.engine
        self.zones = random.sample(ZONES, random.choice((1, 2, 3, len(ZONES))))
        self.lateness = random.choice((LATENESS[:3], LATENESS[:10], LATENESS))
        self.pauses = random.choice((PAUSES[:4], PAUSES[:7], PAUSES))
        self.zone: str | None = None
        for name in WHO:
            self.asked.tell("page", anonymous_id=name)

    def go_on(self) -> None:
        """Let time pass, and one thing happen."""
        self.asked.now += self.random.choice(self.pauses) + self.random.randrange(MINUTE)
        if self.random.random() < 0.05:
            self._join_or_split()
        else:
            self._record()

    def _record(self) -> None:
        if self.random.random() < 0.4:
            self.zone = self.random.choice(self.zones)
        named = self.zone is not None and self.random.random() < 0.8
        self.asked.tell(
            self.random.choice(("page", "page", "tool_used", "tag_added")),
            at=self.asked.now - self.random.choice(self.lateness),
            context={"timezone": self.zone} if named else {},
            anonymous_id=self.random.choice(WHO),
        )

    def _join_or_split(self) -> None:
        one, other = self.random.sample(WHO, 2)
        joins = [each.id for each in self.log(self.person(one)) if each.event.type == MERGED]
        try:
            if joins:
                self.on.identity.unmerge("default", self.random.choice(joins), request=f"{self.asked.now}")
            else:
                self.on.identity.merge(
                    "default", f"anonymous_id:{one}", f"anonymous_id:{other}", request=f"{self.asked.now}"
                )
        except (Conflict, InvalidValue):
            pass  # they are one already, or others have been joined to them since

    def person(self, name: str) -> Any:
        """Whoever has this identifier now."""
        return self.on.reader.person("default", f"anonymous_id:{name}")

    def log(self, person: Any) -> list[Recorded]:
        """Every event of a person."""
        found: list[Recorded] = self.on.reader.events(person, limit=1_000)
        assert len(found) < 1_000
        return found


def told(log: Iterable[Recorded]) -> list[dict[str, Any]]:
    """Events as the auditor reads them."""
    return [
        {
            **scenarios.plain(each.event),
            "source_type": each.event.source_type,
            "recorded_at": each.recorded_at,
            "id": each.id,
        }
        for each in log
    ]


@pytest.mark.parametrize(
    ("definitions", "calendar"),
    [("", {}), (EARLY_RISERS, {"day_start": dt.timedelta(hours=4), "default": zoneinfo.ZoneInfo("America/New_York")})],
    ids=["shipped", "early"],
)
@settings(phases=UNSHRUNK)
@given(random=scenarios.randoms, count=st.integers(1, 120))
def test_streaks_and_days_are_what_the_auditor_reckons_from_the_log(
    definitions: str, calendar: dict[str, Any], random: Random, count: int
) -> None:
    lived = Lived(random, definitions)
    for _ in range(count):
        lived.go_on()
    for name in WHO:
        _check(lived, name, calendar, random)


def _check(lived: Lived, name: str, calendar: dict[str, Any], random: Random) -> None:
    asked, who = lived.asked, f"anonymous_id:{name}"
    log = told(lived.log(lived.person(name)))
    asked.now += random.choice(PAUSES) + DAY  # so that nothing lies ahead
    answer = asked.ask("streaks_days", id=who, start=format_time(asked.now - 300 * DAY)[:10])
    expected = {
        day: events
        for day, events in audited.days(log, asked.now, **calendar).items()
        if answer["today"] >= day >= format_time(asked.now - 300 * DAY)[:10]
    }
    assert {day["date"]: day["events"] for day in answer["days"]} == {day: len(es) for day, es in expected.items()}
    earned: Counter[str] = Counter()
    for line in lived.log(lived.person(name)):
        if line.event.type == POINTS_EARNED:
            earned[line.cause] += line.event.properties["points"]
    for day in answer["days"]:
        events = expected[day["date"]]
        assert day["points"] == sum(earned[event["id"]] for event in events), day
        if len(lived.zones) == 1:  # else an event of another day may lie in the same quarter of an hour
            assert day["first_event"] == min((event["occurred_at"], event["id"]) for event in events)[1], day
    shown = asked.ask("streaks_of", id=who)["streaks"]["daily"]
    assert _audited(shown) == audited.streaks(log, asked.now, **calendar)
    for _ in range(3):
        at = asked.now - random.randrange(asked.now - STARTS_AT + 1)
        shown = asked.ask("streaks_of", id=who, as_of=format_time(at), known="now")["streaks"]["daily"]
        assert _audited(shown) == audited.streaks(log, at, **calendar)
        then = lived.on.reader.identity_history("default", who).at(at)
        known = [each for each in told(lived.log(then)) if each["recorded_at"] <= at]
        shown = asked.ask("streaks_of", id=who, as_of=format_time(at))["streaks"]["daily"]
        assert _audited(shown) == audited.streaks(known, at, **calendar)


def _audited(shown: dict[str, Any]) -> dict[str, Any]:
    return {name: shown[name] for name in audited.FIELDS}


# --- travellers ---------------------------------------------------------------------------------

PLAN = Plan(read_streaks(Definitions([])))
DESTINATIONS = (
    "UTC",
    "Pacific/Kiritimati",
    "Etc/GMT+12",
    "Asia/Kathmandu",
    "America/New_York",
    "Europe/Rome",
    "Pacific/Auckland",
    "Australia/Lord_Howe",
    "America/Los_Angeles",
    "Asia/Tokyo",
)
QUARTER = 15 * MINUTE


def journeys(random: Random) -> list[tuple[int, str]]:
    """Instants, and the zone that is named or none, of somebody who stays in each zone for eight hours or longer."""
    begins = random.randrange(600, 620) * 32 * DAY + 2 * DAY  # a month whose days are settled together
    at, leaves, stay = begins, begins, random.choice((1, 24, 60))
    destinations = random.sample(DESTINATIONS, random.randrange(1, len(DESTINATIONS)))
    zone, found = "", list[tuple[int, str]]()
    while at < begins + 28 * DAY and (destinations or at < leaves):
        arrives = at >= leaves
        if arrives:
            # What names no zone is dated by quarters of an hour; so none lies in that of a change of zone.
            at = at // QUARTER * QUARTER + QUARTER
            zone, leaves = destinations.pop(), at + 8 * HOUR + random.randrange(stay) * HOUR
        found.append((at + random.randrange(QUARTER), zone if arrives or random.random() < 0.6 else ""))
        at = (at if not arrives else at // QUARTER * QUARTER) + random.choice((QUARTER, HOUR, 5 * HOUR, 11 * HOUR))
    return sorted(found)


def own_days(journey: list[tuple[int, str]]) -> Counter[str] | None:
    """How many events each local day has, one event after the other; None where one may be held back from its day, or a
    day is in more zones than are told apart."""
    counted: Counter[str] = Counter()
    zones: dict[str, set[str]] = {}
    zone, changed_at, been = "", None, list[tuple[int, str]]()
    for at, named in journey:
        if named and named != zone:
            zone, changed_at = named, at if zone else None
        moment = dt.datetime.fromtimestamp(at // 1_000_000, zoneinfo.ZoneInfo(zone or "UTC"))
        day = moment.date().isoformat()
        lately = {other for when, other in been if when > at - DAY - QUARTER} | {day}
        if changed_at is not None and at - changed_at < DAY + QUARTER and len(lately) > 2:
            return None
        if named:
            zones.setdefault(day, set()).add(named)
        been.append((at, day))
        counted[day] += 1
    return counted if max(map(len, zones.values())) <= ZONES_PER_DAY_MAX else None


@settings(max_examples=300, suppress_health_check=[HealthCheck.filter_too_much])
@given(random=scenarios.randoms)
def test_where_nothing_is_held_back_each_event_counts_for_its_own_local_day(random: Random) -> None:
    journey = journeys(random)
    expected = own_days(journey)
    unnamed = Counter(at // DAY for at, zone in journey if not zone)
    assume(expected is not None and max(unnamed.values(), default=0) <= 24)
    state: State = {}
    for number, (at, zone) in random.sample([*enumerate(journey)], len(journey)):
        context = {"timezone": zone} if zone else {}
        event = Event(type="page", identifiers=(), occurred_at=at, key=str(number), context=context)
        fold(PLAN, state, Recorded(event, f"{number:032x}", "t", 1, at + random.randrange(LATE)))
    first, last = journey[0][0] // DAY - 1, journey[-1][0] // DAY + 1
    assert {day_text(day): events for day, _, events in day_records(PLAN, state, first, last)} == expected


@settings(max_examples=200)
@given(random=scenarios.randoms, count=st.integers(1, 120))
def test_days_of_somebody_in_many_zones_at_once_are_what_the_auditor_reckons(random: Random, count: int) -> None:
    begins = random.randrange(600, 620) * 32 * DAY + 2 * DAY
    zones = random.sample([zone for zone in ZONES if zone], random.randrange(1, 8))
    log = []
    for number in range(count):
        at = begins + random.randrange(3 * DAY)
        context = {"timezone": random.choice(zones)} if random.random() < 0.7 else {}
        event = Event(type="page", identifiers=(), occurred_at=at, key=str(number), context=context)
        log.append(Recorded(event, f"{number:032x}", "t", number, at + random.randrange(LATE)))
    state: State = {}
    for recorded in random.sample(log, len(log)):
        fold(PLAN, state, recorded)
    records = day_records(PLAN, state, begins // DAY - 2, begins // DAY + 5)
    expected = audited.days(told(log), begins + 9 * DAY)
    assert {day_text(day): events for day, _, events in records} == {day: len(es) for day, es in expected.items()}
