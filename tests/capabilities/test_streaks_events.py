"""Streaks through an engine: the people of the domain, what is told once, what a late event changes, who is merged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.capabilities.streaks_stage import MILESTONE, Stage
from threadline.app import open_dispatcher
from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.time import DAY, HOUR, MINUTE, SECOND, format_time, parse_time
from threadline.settings import Settings


@pytest.fixture
def stage(tmp_path: Path) -> Callable[[str], Stage]:
    return lambda definitions="": Stage(tmp_path, definitions)


# --- the people of the domain -----------------------------------------------------------------


def test_gap_and_restart(stage: Callable[..., Stage]) -> None:
    on = stage()
    on.days(1, 2, 3, 4, 6, 7)
    shown = on.streak()
    assert (shown["current"], shown["longest"], shown["run"]["from"]) == (2, 4, "2026-03-06")
    assert shown["history"] == [{"from": "2026-03-01", "to": "2026-03-04", "length": 4, "frozen": 0}]


def test_near_midnight(stage: Callable[..., Stage]) -> None:
    on = stage()
    for at in ("2026-03-02T02:59:59.999999Z", "2026-03-02T03:00:00Z", "2026-03-03T03:00:00Z"):
        on.tell("lesson", at, zone="America/Sao_Paulo")
    shown = on.streak()
    assert (shown["current"], shown["run"]["from"], shown["run"]["to"]) == (3, "2026-03-01", "2026-03-03")
    assert on.streak(at="2026-03-05T02:59:59.999999Z")["current"] == 3
    assert on.streak(at="2026-03-05T03:00:00Z")["current"] == 0


def test_daylight_saving(stage: Callable[..., Stage]) -> None:
    on = stage()
    # Half past eleven in the evening, every day, over the change on March 8: 24 hours apart, then 23, then 24.
    for at in ("2026-03-07T04:30Z", "2026-03-08T04:30Z", "2026-03-09T03:30Z", "2026-03-10T03:30Z"):
        on.tell("lesson", at, zone="America/New_York")
    assert on.streak()["current"] == 4


def test_fifteen_sends_that_are_three_events(stage: Callable[..., Stage]) -> None:
    on = stage()
    on.now = parse_time("2026-03-03T13:00:00Z")
    statuses = [
        on.tell("lesson", f"2026-03-0{number + 1}T12:00:00Z", key=f"event-{number}", late=True)["status"]
        for _ in range(5)
        for number in range(3)
    ]
    assert statuses.count("accepted") == 3
    assert statuses.count("duplicate") == 12
    assert on.streak()["current"] == 3
    assert [day.events for day in on.app.streaks.days("user_id:ada").days] == [1, 1, 1]


def test_thirteen_hours_ahead(stage: Callable[..., Stage]) -> None:
    on = stage()
    for at in ("2026-03-01T10:30:00Z", "2026-03-01T11:30:00Z", "2026-03-03T10:59:59Z"):
        on.tell("lesson", at, zone="Pacific/Tongatapu")
    shown = on.streak()
    assert (shown["current"], shown["run"]["from"], shown["run"]["to"]) == (3, "2026-03-01", "2026-03-03")


def test_a_burst_of_unknown_types(stage: Callable[..., Stage]) -> None:
    on = stage()
    for number in range(105):
        at = parse_time("2026-03-01T09:00:00Z") + number * MINUTE // 2
        on.tell(f"never heard of {number}", format_time(at))
    assert on.streak()["current"] == 1
    (day,) = on.app.streaks.days("user_id:ada").days
    first = on.app.events.of("user_id:ada", order="asc", limit=1).events[0]
    assert (day.date, day.events, day.first_event) == ("2026-03-01", 105, first.id)
    (same,) = on.app.streaks.days("user_id:ada", first_events=False).days
    assert (same.date, same.events, same.points) == (day.date, day.events, day.points)
    assert (same.first_event, same.first_at) == ("", None)
    assert day.first_at == "2026-03-01T09:00:00.000000Z"


# --- a late event -----------------------------------------------------------------------------

FREEZES = "streaks: {daily: {milestones: [2, 5], freezes: {start: 1, max: 1}}}"


def test_a_late_event_repairs_gives_back_a_freeze_and_takes_nothing_away(stage: Callable[..., Stage]) -> None:
    on = stage(FREEZES)
    for day in (1, 2, 3, 5, 6):
        on.tell("conversation_started", f"2026-03-{day:02}T12:00:00Z")
    shown = on.streak()
    assert (shown["current"], shown["run"]["frozen"], shown["freezes"]) == (5, 1, 0)
    milestones, points = on.told(MILESTONE), on.told("points_earned")
    assert [each["length"] for each in milestones] == [2, 5]
    assert len(points) == 5
    on.tell("lesson", "2026-03-04T12:00:00Z", late=True)
    shown = on.streak()
    assert (shown["current"], shown["run"]["frozen"], shown["freezes"]) == (6, 0, 1)
    assert (on.told(MILESTONE), on.told("points_earned")) == (milestones, points)


def test_a_late_event_mends_a_streak_that_had_ended(stage: Callable[..., Stage]) -> None:
    on = stage()
    on.days(1, 2, 4, 5)
    assert on.streak()["current"] == 2
    on.days(3, late=True)
    assert (on.streak()["current"], on.streak()["history"]) == (5, [])


def test_the_past_is_read_as_it_was(stage: Callable[..., Stage]) -> None:
    on = stage()
    on.days(1, 2, 3, 6)
    assert [on.streak(at=f"2026-03-0{day}T13:00:00Z")["current"] for day in (1, 2, 3, 4, 5, 6)] == [1, 2, 3, 3, 0, 1]
    with pytest.raises(InvalidValue, match="in the future"):
        on.app.streaks.of("user_id:ada", as_of="2027-01-01T00:00:00Z")
    with pytest.raises(NotFound):
        on.app.streaks.of("user_id:nobody")


# --- milestones -------------------------------------------------------------------------------


def test_a_milestone_is_told_once_in_each_run(stage: Callable[..., Stage]) -> None:
    on = stage("streaks: {daily: {milestones: [2, 3]}}")
    on.days(1, 2, 2, 3, 4)
    assert on.told(MILESTONE) == [
        {"streak": "daily", "length": 2, "day": "2026-03-02"},
        {"streak": "daily", "length": 3, "day": "2026-03-03"},
    ]
    on.days(6, 7)
    assert [each["day"] for each in on.told(MILESTONE)] == ["2026-03-02", "2026-03-03", "2026-03-07"]
    # The two runs become one, in which all of it has been told already.
    on.days(5, late=True)
    assert on.streak()["current"] == 7
    assert len(on.told(MILESTONE)) == 3
    told = on.streak()["milestones"]
    assert told == [{"length": 2, "day": "2026-03-07"}, {"length": 3, "day": "2026-03-03"}]


def test_what_is_long_past_when_it_becomes_known_reaches_no_milestone(stage: Callable[..., Stage]) -> None:
    on = stage("streaks: {daily: {milestones: [2]}}")
    on.now = parse_time("2026-06-01T00:00:00Z")
    on.days(1, 2, 3, late=True, historical=True)
    assert (on.streak()["longest"], on.told(MILESTONE)) == (3, [])


def test_a_late_event_may_reach_several_at_once(stage: Callable[..., Stage]) -> None:
    on = stage("streaks: {daily: {milestones: [3, 4, 5]}}")
    on.days(1, 2, 4, 5)
    on.days(3, late=True)
    assert sorted(each["length"] for each in on.told(MILESTONE)) == [3, 4, 5]


def test_milestones_beyond_what_one_commit_may_tell_are_told_by_timers(stage: Callable[..., Stage]) -> None:
    on = stage(f"streaks: {{daily: {{milestones: {list(range(1, 51))}}}}}")
    on.now = parse_time("2026-04-20T13:00:00Z")
    on.tell("lesson", "2026-04-20T12:00:00Z", late=True)
    days = [f"2026-{month:02}-{day:02}T12:00:00Z" for month in (3, 4) for day in range(1, 32) if (month, day) < (4, 19)]
    for at in (*days, "2026-04-19T12:00:00Z"):
        on.tell("lesson", at, late=True)
    dispatcher = open_dispatcher(on.app.engine, Settings())
    for _ in range(3):
        on.now += SECOND
        assert dispatcher.run_once() == 1
    assert on.streak()["current"] == 51
    assert sorted(each["length"] for each in on.told(MILESTONE)) == list(range(1, 51))
    assert not on.told("threadline.cascade_cut")


def test_what_lengthens_a_run_without_a_day_reaches_its_milestones(stage: Callable[..., Stage]) -> None:
    on = stage("streaks: {daily: {freezes: {max: 1}, milestones: [4]}}")
    on.days(1, 2, 4, 5)
    amnesty = {"from": "2026-03-03", "to": "2026-03-03"}
    on.tell("streak_amnesty_granted", "2026-03-05T13:00:00Z", properties=amnesty)
    assert [each["day"] for each in on.told(MILESTONE)] == ["2026-03-05"]
    on.days(1, 2, who="bob", late=True)
    on.days(3, 4, 5, who="eve", late=True)
    on.app.people.merge("user_id:bob", other="user_id:eve", force=True)
    assert [each["day"] for each in on.told(MILESTONE, "bob")] == ["2026-03-05"]


def test_nobody_can_put_milestones_into_our_mouth(stage: Callable[..., Stage]) -> None:
    on = stage()
    on.tell(MILESTONE, "2026-03-01T12:00:00Z", properties={"streak": "daily", "length": 365, "day": "2026-03-01"})
    on.days(2)
    assert (on.streak()["milestones"], on.streak()["current"]) == ([], 1)


def test_every_streak_has_its_own(stage: Callable[..., Stage]) -> None:
    on = stage(
        "streaks: {daily: false, lessons: {events: lesson, milestones: [2]},"
        " weeks: {cadence: week, milestones: [2]}, twice: {events: lesson, times: 2, milestones: [1]}}"
    )
    on.days(1, 2, 9, 9)
    assert [(each["streak"], each["length"]) for each in on.told(MILESTONE)] == [
        ("lessons", 2),
        ("weeks", 2),
        ("twice", 1),
    ]
    answer = on.app.streaks.of("user_id:ada").streaks
    assert sorted(answer) == ["lessons", "twice", "weeks"]


# --- what others tell -------------------------------------------------------------------------


def test_granted_freezes_are_spent_from_their_day_on(stage: Callable[..., Stage]) -> None:
    on = stage("streaks: {daily: {freezes: {max: 5}}}")
    on.days(1, 2, 5)
    assert on.streak()["current"] == 1
    on.tell("streak_freeze_granted", "2026-03-02T18:00:00Z", late=True, properties={"freezes": 2})
    assert (on.streak()["current"], on.streak()["run"]["frozen"]) == (3, 2)
    on.tell("streak_freeze_granted", "2026-03-05T18:00:00Z", properties={"streak": "daily"})
    assert on.streak()["freezes"] == 1
    for properties in ({"streak": "other"}, {"freezes": -1}, {"freezes": "3"}, {"streak": 7}):
        on.tell("streak_freeze_granted", "2026-03-05T19:00:00Z", properties=properties)
    assert on.streak()["freezes"] == 1


def test_a_freeze_is_granted_for_the_day_where_the_person_is(stage: Callable[..., Stage]) -> None:
    on = stage("streaks: {daily: {freezes: {max: 1}}}")
    on.days(1, 2, 3, hour=20, zone="America/Los_Angeles")
    # Six in the evening of the fourth, which is the day that nothing else is done on.
    on.tell("streak_freeze_granted", "2026-03-05T02:00:00Z")
    assert on.streak()["freezes"] == 1
    on.days(5, hour=20)
    shown = on.streak()
    assert (shown["current"], shown["freezes"], shown["run"]["frozen"]) == (4, 0, 1)


def test_a_freeze_granted_while_the_grace_runs_is_held_at_once(stage: Callable[..., Stage]) -> None:
    on = stage("streaks: {daily: {grace: 2h, freezes: {max: 1}}}")
    on.days(1, 2, 3)
    on.tell("streak_freeze_granted", "2026-03-04T00:30:00Z")
    for at in ("2026-03-04T01:00:00Z", "2026-03-04T02:00:00Z"):
        shown = on.streak(at=at)
        assert (shown["freezes"], shown["expires_at"]) == (1, "2026-03-06T02:00:00.000000Z")
    assert on.streak(at="2026-03-05T12:00:00Z")["current"] == 3
    assert on.streak(at="2026-03-06T02:00:00Z")["current"] == 0


def test_a_freeze_granted_after_another_is_spent_is_foreseen_as_well(
    stage: Callable[..., Stage],
) -> None:
    on = stage("streaks: {daily: {grace: 2h, freezes: {start: 1, max: 1}}}")
    on.days(1, 2)
    # The third is missed, and its freeze spent when the grace is over; the one of the fourth then saves the fourth.
    on.tell("streak_freeze_granted", "2026-03-04T00:30:00Z")
    assert (on.streak()["freezes"], on.streak()["expires_at"]) == (1, "2026-03-06T02:00:00.000000Z")
    assert on.streak(at="2026-03-06T01:59:59.999999Z")["current"] == 2
    assert on.streak(at="2026-03-06T02:00:00Z")["current"] == 0


def test_amnesty_for_one_person(stage: Callable[..., Stage]) -> None:
    on = stage()
    on.days(1, 2, 5)
    on.tell("streak_amnesty_granted", "2026-03-05T18:00:00Z", properties={"from": "2026-03-03", "to": "2026-03-04"})
    assert on.streak()["current"] == 3
    for properties in ({}, {"from": "2026-03-09", "to": "2026-03-08"}, {"from": 1, "to": 2}):
        on.tell("streak_amnesty_granted", "2026-03-05T18:00:00Z", properties=properties)
    assert on.streak()["current"] == 3


def test_what_only_happens_to_a_person_is_no_activity(stage: Callable[..., Stage]) -> None:
    on = stage()
    for type in ("campaign_delivered", "tag_added", "tag_removed", "streak_freeze_granted", "agent_insight"):
        on.tell(type, "2026-03-01T12:00:00Z", properties={"campaign_id": "c", "tag": "t"})
    assert (on.streak()["current"], on.streak()["last_active_on"]) == (0, None)
    on = stage("calendar: {active: {events: [campaign_delivered]}}")
    on.tell("campaign_delivered", "2026-03-01T12:00:00Z")
    on.tell("lesson", "2026-03-02T12:00:00Z")
    assert on.streak()["last_active_on"] == "2026-03-01"


# --- days -------------------------------------------------------------------------------------


def test_days_with_what_was_earned_on_them(stage: Callable[..., Stage]) -> None:
    on = stage()
    on.tell("conversation_started", "2026-03-01T15:30:00Z", zone="Asia/Tokyo")
    on.tell("tool_used", "2026-03-01T14:30:00Z", zone="Asia/Tokyo", late=True)
    on.tell("tool_used", "2026-03-03T14:30:00Z", zone="Asia/Tokyo")
    answer = on.app.streaks.days("user_id:ada")
    assert (answer.zone, answer.today) == ("Asia/Tokyo", "2026-03-03")
    assert [(day.date, day.events, day.points) for day in answer.days] == [
        ("2026-03-01", 1, 5),
        ("2026-03-02", 1, 10),
        ("2026-03-03", 1, 5),
    ]
    chosen = on.app.streaks.days("user_id:ada", start="2026-03-02", stop="2026-03-03").days
    assert [day.date for day in chosen] == ["2026-03-02"]
    for start, stop in (("2026-03-02", "2026-03-02"), ("2020-01-01", "2026-03-01"), ("yesterday", "")):
        with pytest.raises(InvalidValue):
            on.app.streaks.days("user_id:ada", start=start, stop=stop)


def test_points_go_with_the_day_of_what_earned_them(stage: Callable[..., Stage]) -> None:
    on = stage()
    zones = ("Etc/GMT+12", "UTC", "Pacific/Kiritimati")
    for minutes, zone in enumerate(zones):
        on.tell("conversation_started", f"2026-03-10T10:{minutes}0:00Z", zone=zone)
    # In Kiritimati it is the eleventh, a third day, so what is done there still counts for the tenth.
    days = on.app.streaks.days("user_id:ada").days
    assert [(day.date, day.events) for day in days] == [("2026-03-09", 1), ("2026-03-10", 2)]
    assert [day.points for day in days] == [10, 20]
    on.tell("conversation_started", "2026-03-11T11:00:00Z")
    days = on.app.streaks.days("user_id:ada").days
    assert [day.points for day in days] == [10, 20, 10]
    assert days[2].date == "2026-03-12"


def test_days_of_more_than_a_year_ago_are_sets_only(stage: Callable[..., Stage]) -> None:
    on = stage()
    begin = parse_time("2024-01-01T12:00:00Z")
    for day in range(0, 800, 2):
        on.tell("lesson", format_time(begin + day * DAY))
    on.now = begin + 799 * DAY + SECOND
    assert len(on.streak()["history"]) == 20
    long_ago = on.app.streaks.days("user_id:ada", start="2024-01-01", stop="2024-03-02")
    assert long_ago.days == []
    lately = on.app.streaks.days("user_id:ada", start="2025-02-10")
    assert len(lately.days) == 197
    # The sets know all of it: one missing day after the other is filled in, and the whole is one streak.
    for day in range(1, 800, 2):
        on.tell("lesson", format_time(begin + day * DAY), late=True)
    assert on.streak()["current"] == 800


# --- merging ----------------------------------------------------------------------------------


def test_merge_makes_one_streak_of_two_and_unmerge_two_again(stage: Callable[..., Stage]) -> None:
    on = stage()
    on.days(1, 3, 5, who="ada", zone="Asia/Tokyo", hour=20)
    on.days(2, 4, 6, who="bob", zone="America/New_York", hour=2)
    before = [on.streak(who) for who in ("ada", "bob")]
    # Five in the morning of the next day in Tokyo, nine in the evening of the day before in New York.
    assert [shown["last_active_on"] for shown in before] == ["2026-03-06", "2026-03-05"]
    engine = on.app.engine
    survivor, _ = engine.identity.merge("default", "user_id:ada", "user_id:bob", request="m", force=True)
    joined = on.streak()
    assert (joined["longest"], joined["last_active_on"]) == (6, "2026-03-06")
    merge = on.app.events.of(survivor, type="threadline.person_merged").events[0].id
    engine.identity.unmerge("default", merge, request="u")
    assert [on.streak(who) for who in ("ada", "bob")] == before


def test_expiry_is_a_moment(stage: Callable[..., Stage]) -> None:
    on = stage()
    on.days(1, 2)
    shown = on.streak()
    assert (shown["current"], shown["at_risk"], shown["expires_at"]) == (2, False, "2026-03-04T00:00:00.000000Z")
    assert on.streak(at="2026-03-03T00:00:00Z")["at_risk"] is True
    assert on.streak(at="2026-03-03T23:59:59.999999Z")["current"] == 2
    on.now = parse_time("2026-03-04T00:00:00Z") + 3 * HOUR
    over = on.streak(at="2026-03-04T00:00:00Z")
    assert (over["current"], over["at_risk"], over["expires_at"], over["longest"]) == (0, False, None, 2)
