"""What users may declare about streaks, how mistakes are told, and what makes a state fold anew."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from threadline.app import catalogue
from threadline.capabilities.foundation.definitions import Definitions, schema
from threadline.capabilities.profile.streaks import StreakSet, projection, read_streaks
from threadline.capabilities.profile.streaks.definition import CALENDAR, STREAKS
from threadline.capabilities.profile.streaks.events import OURS
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.time import HOUR

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "streaks.md").read_text(encoding="utf-8")


def read(*texts: str) -> StreakSet:
    definitions = Definitions([(f"{number}.yaml", text) for number, text in enumerate(texts)])
    streaks = read_streaks(definitions)
    definitions.refuse()
    return streaks


def test_what_ships() -> None:
    shipped = read()
    (daily,) = shipped.streaks
    assert (daily.name, daily.cadence, daily.times, daily.milestones) == ("daily", "day", 1, (7, 30, 100, 365))
    happens = ("campaign_delivered", "campaign_ignored", "tag_added", "tag_removed")
    noted = ("fact_remembered", "fact_computed", "fact_retracted", "fact_restored", "agent_insight")
    assert sorted(shipped.calendar.active.excluded) == sorted((*happens, *noted))


def test_the_examples_of_the_page() -> None:
    examples = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    streaks = read(*examples)
    assert sorted(streaks.by_name) == ["lessons", "weekly_training"]
    lessons, training = (streaks.by_name[name] for name in ("lessons", "weekly_training"))
    assert (lessons.counting, lessons.grace, lessons.freezes.every, training.counting) == (
        "events",
        2 * HOUR,
        7,
        "days",
    )
    calendar = streaks.calendar
    assert (calendar.timezone, calendar.day_start, calendar.week_start) == ("Europe/Rome", 4 * HOUR, 0)
    assert len(calendar.amnesty) == 1


def test_every_option_and_event_is_in_the_page() -> None:
    named = set(re.findall(r"`([a-z_]+)`", PAGE))
    assert {*STREAKS.form.schema["properties"], *CALENDAR.form.schema["properties"], *OURS} <= named


@pytest.mark.parametrize("quoted", ["04:30", "'04:30'"])
def test_a_time_of_day_is_read_as_it_is_written(quoted: str) -> None:
    # YAML 1.1 reads 04:30 as 270 and 10:30 as 630.
    assert read(f"calendar: {{day_start: {quoted}}}").calendar.day_start == 4 * HOUR + HOUR // 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("streaks:\n  Lessons: {}", "0.yaml:2: 'Lessons' is not a valid streak name"),
        ("streaks:\n  other: false", "0.yaml:2: streak 'other' does not ship and cannot be left out"),
        ("streaks:\n  a:\n    cadens: day", "0.yaml:3: streak 'a': unknown key 'cadens'; did you mean 'cadence'?"),
        ("streaks:\n  a:\n    cadence: dai", "0.yaml:3: streak 'a': `cadence` cannot be 'dai'; did you mean 'day'?"),
        ("streaks:\n  a:\n    except: [b]", "0.yaml:3: streak 'a': `except` goes with `events`"),
        ("streaks:\n  a: {cadence: week, times: 8}", "0.yaml:2: streak 'a': a week has at most 7 days"),
        ("streaks:\n  a: {times: 2, counting: days}", "0.yaml:2: streak 'a': a day has at most 1 days"),
        ("streaks:\n  a: {times: 32}", "0.yaml:2: streak 'a': `times` must be a whole number from 1 to 31"),
        ("streaks:\n  a: {times: 0}", "0.yaml:2: streak 'a': `times` must be a whole number from 1 to 31"),
        ("streaks:\n  a: {grace: 13h}", "0.yaml:2: streak 'a': `grace` must be a duration of at most 12h"),
        ("streaks:\n  a: {grace: soon}", "0.yaml:2: streak 'a': `grace` must be a duration of at most 12h"),
        ("streaks:\n  a: {freezes: {start: 1}}", "0.yaml:2: streak 'a': `freezes` needs `max`"),
        ("streaks:\n  a: {freezes: {start: 3, max: 2}}", "0.yaml:2: streak 'a': `freezes`: `start` is more than `max`"),
        ("streaks:\n  a: {milestones: [7, x]}", "0.yaml:2: streak 'a': `milestones[1]` must be a whole number"),
        ("streaks:\n  a: {events: threadline.person_merged}", "0.yaml:2: streak 'a': `events`: 'threadline."),
        ("streaks:\n  a: {events: points_earned}", "streak 'a': 'points_earned' is nothing that a person does"),
        (
            "streaks:\n  a: {events: [lesson, streak_freeze_granted]}",
            "0.yaml:2: streak 'a': 'streak_freeze_granted' is nothing that a person does",
        ),
        ("calendar: {active: {events: points_spent}}", "0.yaml:1: `calendar`: `active`: 'points_spent' is nothing"),
        ("calendar: {day_start: noon}", "0.yaml:1: `calendar`: `day_start` must be a time of day, such as 04:00"),
        ("calendar: {week_starts_on: sonday}", "`week_starts_on` cannot be 'sonday'; did you mean 'sunday'?"),
        ("calendar: {amnesty: {from: 2026-03-01}}", "0.yaml:1: `calendar`: `amnesty` must be a list, such as"),
        ("calendar: {amnesty: [{from: 2026-03-01}]}", "0.yaml:1: `calendar`: `amnesty[0]` needs `to`: a local date"),
        ("calendar: {amnesty: [{from: 2026-03-02, to: 2026-03-01}]}", "0.yaml:1: `calendar`: `amnesty[0]`: an amnesty"),
        ("calendar: {dayend: 1}", "0.yaml:1: `calendar`: unknown key 'dayend'"),
    ],
)
def test_mistakes_are_named_where_they_stand(text: str, message: str) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        read(text)
    assert message in str(refused.value)


def test_what_may_stand_once_only() -> None:
    with pytest.raises(InvalidDefinition, match=r"1.yaml:1: streak 'a' is already declared at 0.yaml:1"):
        read("streaks: {a: {}}", "streaks: {a: {}}")
    with pytest.raises(InvalidDefinition, match=r"1.yaml:1: `calendar.amnesty` is already declared at 0.yaml:1"):
        read("calendar: {amnesty: []}", "calendar: {amnesty: []}")


def test_a_state_is_folded_anew_only_for_what_it_holds() -> None:
    shipped = projection(read()).fingerprint
    same = [
        "streaks: {daily: {freezes: {max: 2, every: 7}, milestones: [3]}}",
        "calendar: {amnesty: [{from: 2026-03-01, to: 2026-03-02}]}",
    ]
    other = [
        "streaks: {daily: {grace: 1h}}",
        "streaks: {daily: {times: 2}}",
        "streaks: {daily: {events: page}}",
        "streaks: {second: {cadence: week}}",
        "calendar: {day_start: '04:00'}",
        "calendar: {active: {events: page}}",
        "timezone: Europe/Rome",
    ]
    assert [projection(read(text)).fingerprint == shipped for text in same] == [True] * len(same)
    prints = [projection(read(text)).fingerprint for text in other]
    assert shipped not in prints
    assert len(set(prints)) == len(prints)


def test_streaks_that_count_alike_share_what_is_kept() -> None:
    streaks = read("streaks: {weekly: {cadence: week, times: 3}, monthly: {cadence: month}, twice: {times: 2}}")
    assert len(streaks.streaks) == 4
    assert len(streaks.tallies) == 2


def test_streaks_with_conditions_on_one_and_on_true_keep_a_tally_each() -> None:
    streaks = read("streaks: {a: {events: {x: {where: {v: 1}}}}, b: {events: {x: {where: {v: true}}}}}")
    assert streaks.parts["a"][0] != streaks.parts["b"][0]


def test_the_schema_takes_what_the_reader_takes() -> None:
    made = schema(catalogue().sections)
    assert {"streaks", "calendar"} <= set(made["properties"])
    keys = {key for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) for key in yaml.safe_load(text)}
    assert keys <= set(made["properties"])
