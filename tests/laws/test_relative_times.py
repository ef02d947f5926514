"""Law: a condition on a time relative to now turns at one instant, for readers, events, traces and rules alike."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.capabilities.asked import STARTS_AT, Asked
from tests.capabilities.segments_stage import run_until, work
from threadline.capabilities.foundation.conditions import Conditions, Subject, read_json
from threadline.capabilities.foundation.conditions.fields import RELATIVE, relative_change
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.time import DAY, HOUR, SECOND, format_time

DEFINITIONS = """
segments:
  renewing:
    when:
      all:
        - {field: days_until.traits.time, greater_than_or_equal: 0}
        - {field: days_until.traits.time, less_than: 7}
  lapsed: {when: {field: days_since.traits.time, greater_than_or_equal: 30}}
  ending: {when: {field: hours_until.traits.time, less_than: 12}}
  undated: {when: {not: {field: hours_since.traits.time, exists: true}}}
rules:
  remind: {conditions: {field: days_until.traits.time, less_than: 7}, actions: [{tag: {tag: reminded}}]}
rule_sets:
  logins: {events: [login], rules: [remind]}
"""
SINCE = """
segments:
  a_veterans: {when: {field: days_since.segments.vips.since, greater_than_or_equal: 30}}
  loyal: {when: {field: hours_since.segments.visitors.since, greater_than_or_equal: 72}}
  vips: {when: {field: tags, contains: vip}}
  visitors: {when: {field: features.recency_days, less_than: 10}}
  both: {when: {all: [{field: segments.a_veterans.since, exists: true}, {field: segments.loyal.since, exists: true}]}}
"""
SINCE_CATALOGUE = Asked(definitions=SINCE).engine.catalogue
CATALOGUE = Asked(definitions=DEFINITIONS).engine.catalogue


def segments(asked: Asked, at: int) -> dict[str, dict[str, Any]]:
    asked.now = at - 1
    return {each["segment"]: each for each in asked.ask("segments_of", id="user_id:ada")["segments"]}


def turns(asked: Asked) -> list[tuple[str, str, int]]:
    person = asked.engine.reader.person("default", "user_id:ada")
    events = asked.engine.reader.events(person, limit=1_000)
    return [
        (e.event.type, e.event.properties["segment"], e.event.occurred_at) for e in events if "segment" in e.event.type
    ]


@given(st.integers(-40 * DAY, 40 * DAY))
@example(0)
@example(7 * DAY)
@example(-30 * DAY)
def test_segments_turn_at_the_instant_and_events_say_so(offset: int) -> None:
    asked = Asked(catalogue=CATALOGUE)
    began = asked.now + 2
    time = began + offset
    asked.tell("identify", user_id="ada", properties={"time": format_time(time)})
    expected = {
        "renewing": (time - 7 * DAY + 1, time + 1),
        "lapsed": (time + 30 * DAY, None),
        "ending": (time - 12 * HOUR + 1, None),
    }
    for name, (enters, leaves) in expected.items():
        for turn in (enters, leaves):
            for at in () if turn is None else (turn - 1, turn, turn + 1):
                if at > began:
                    shown = segments(asked, at)
                    member = enters <= at and (leaves is None or at < leaves)
                    assert shown[name]["member"] is member
                    assert shown[name]["until"] == (format_time(leaves) if member and leaves is not None else None)
                    assert not shown["undated"]["member"]
    asked.now = began
    while timers := asked.engine.reader.person("default", "user_id:ada").timers:
        asked.now = max(asked.now, min(timers.values())) + SECOND
        if asked.now > time + 45 * DAY:
            break
        work(asked)
    late = sorted((type, name, at) for type, name, at in turns(asked) if at > began)
    assert late == sorted(
        (type, name, at)
        for name, instants in expected.items()
        for type, at in zip(("segment_entered", "segment_left"), instants, strict=True)
        if at is not None and at > began
    )


steps = st.lists(st.tuples(st.sampled_from(["page", "tag_added", "tag_removed"]), st.integers(1, 45 * 24)), max_size=6)


def delayed(spans: list[tuple[int, int]], delay: int) -> list[tuple[int, int]]:
    """When somebody has belonged for so long, from when they belonged."""
    return [(start + delay, stop) for start, stop in spans if start + delay < stop]


@settings(max_examples=12)
@given(steps)
@example([("tag_added", 1), ("page", 29 * 24), ("page", 3 * 24), ("page", 3 * 24)])
def test_since_when_somebody_is_in_a_segment_turns_others_at_the_instant(script: list[tuple[str, int]]) -> None:
    asked = Asked(catalogue=SINCE_CATALOGUE)
    tagged: list[tuple[int, int]] = []
    visited: list[tuple[int, int]] = []
    at, end = STARTS_AT, STARTS_AT + 500 * DAY
    for type, hours in [("page", 0), *script]:
        at += hours * HOUR + 1
        if asked._keys:
            run_until(asked, at)
        asked.now = at - 1
        asked.tell(type, at=at, user_id="ada", properties={"tag": "vip"})
        vip = bool(tagged) and tagged[-1][1] == end
        if type == "tag_added" and not vip:
            tagged.append((at, end))
        elif type == "tag_removed" and vip:
            tagged[-1] = (tagged[-1][0], at)
        elif type == "page":
            again = bool(visited) and visited[-1][1] > at
            visited[-1:] = [(visited[-1][0], at + 10 * DAY)] if again else [*visited[-1:], (at, at + 10 * DAY)]
    run_until(asked, at + 40 * DAY)
    veterans, loyal = delayed(tagged, 30 * DAY), delayed(visited, 3 * DAY)
    spans = {"vips": tagged, "visitors": visited, "a_veterans": veterans, "loyal": loyal}
    starts_and_stops = [(max(a, c), min(b, d)) for a, b in veterans for c, d in loyal]
    spans["both"] = [(start, stop) for start, stop in starts_and_stops if start < stop]
    found = turns(asked)
    for name, each in spans.items():
        expected = [turn for start, stop in each for turn in (("segment_entered", start), ("segment_left", stop))]
        events = sorted(((type, at) for type, of, at in found if of == name), key=lambda turn: turn[1])
        assert [type for type, _ in events] == [type for type, at in expected if at < end], name
        # Who waits for the event of another segment enters right after it.
        assert all(0 <= at - wanted <= 3 for (_, at), (_, wanted) in zip(events, expected, strict=False)), name
    shown = {each["segment"]: each["member"] for each in asked.ask("segments_of", id="user_id:ada")["segments"]}
    assert shown == {name: any(start < asked.now <= stop for start, stop in each) for name, each in spans.items()}


@given(st.integers(-3 * DAY, 3 * DAY))
def test_units_are_whole_and_change_exactly_when_they_say(offset: int) -> None:
    time, at = STARTS_AT, STARTS_AT + offset
    views = {"profile": {"traits": {"time": format_time(time)}, "tags": [], "groups": {}}}
    for first, (sign, unit) in RELATIVE.items():
        conditions = Conditions(read_json({"field": f"{first}.traits.time", "exists": True}))
        (step,) = conditions.trace(Subject(views.get, at=at)).steps
        assert step.actual * unit <= sign * (at - time) < (step.actual + 1) * unit


@given(
    st.integers(-3 * DAY, 3 * DAY),
    st.sampled_from(sorted(RELATIVE)),
    st.sampled_from(["equals", "not_equals", "greater_than", "greater_than_or_equal", "less_than", "in"]),
    st.sampled_from([0, 1, -1, 2, 1.5, "-0.5", "x", "1e30"]),
)
def test_a_test_turns_at_the_instant_that_is_foreseen_and_not_before(
    offset: int, first: str, operator: str, operand: object
) -> None:
    views = {"profile": {"traits": {"time": format_time(STARTS_AT)}, "tags": [], "groups": {}}}
    field = {"field": f"{first}.traits.time", operator: [operand] if operator == "in" else operand}
    conditions = Conditions(read_json(field))
    (test,), at = conditions.relative, STARTS_AT + offset
    before = conditions.test(Subject(views.get, at=at))
    change = relative_change(Subject(views.get, at=at), test)
    until = STARTS_AT + 9 * DAY if change is None else change
    instants = [*range(at, until, HOUR // 2), *range(at - at % HOUR + 1, until, HOUR), until - 1]
    assert all(conditions.test(Subject(views.get, at=each)) == before for each in instants if at <= each < until)


def test_a_trace_shows_the_units_and_why_there_are_none() -> None:
    asked = Asked(definitions=DEFINITIONS)
    asked.tell("identify", user_id="ada", properties={"time": format_time(STARTS_AT + 3 * DAY)})
    why = asked.ask("segments_why", id="user_id:ada", segment="lapsed")
    assert [(step["field"], step["actual"], step["matched"]) for step in why["steps"]] == [
        ("days_since.traits.time", -3, False)
    ]
    asked.tell("identify", user_id="ada", properties={"time": "soon"})
    (step,) = asked.ask("segments_why", id="user_id:ada", segment="lapsed")["steps"]
    assert (step["note"], step["reason"], step.get("actual")) == ("missing", "'soon' is not a time", None)


@pytest.mark.parametrize(("days", "reminded"), [(6, True), (7, False)])
def test_a_rule_counts_from_its_event_and_its_decision_is_recomputed_later(days: int, reminded: bool) -> None:
    asked = Asked(definitions=DEFINITIONS)
    asked.tell("identify", user_id="ada", properties={"time": format_time(asked.now + days * DAY + HOUR)})
    asked.tell("login", user_id="ada")
    assert ("reminded" in asked.ask("person", id="user_id:ada")["tags"]) is reminded
    asked.now += 30 * DAY
    for decision in asked.ask("decisions_list", person="user_id:ada")["decisions"]:
        assert decision["inputs"] == {"days_until.traits.time": days}
    assert asked.ask("decisions_verify")["breaches"] == []


@pytest.mark.parametrize("field", ["days_until", "days_until.days_since.traits.time", "days_since.traits"])
def test_a_relative_field_names_a_time(field: str) -> None:
    with pytest.raises(InvalidDefinition, match=r"such as (days_until\.traits\.renewal|traits\.plan)"):
        read_json({"field": field, "exists": True})
