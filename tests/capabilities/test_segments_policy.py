"""Segments through the engine: what is told of whom, at which instant, and what an event or time alone turns."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capabilities.asked import STARTS_AT, Asked
from tests.capabilities.segments_stage import RECENT, SPENDERS, bought, members, told, work
from threadline.capabilities.profile.segments import policy
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import DAY, HOUR, SECOND, format_time

ON_IT = "leaderboards.streak.scores.all"


def test_who_enters_and_leaves_is_told_once_in_the_commit_that_made_it_so() -> None:
    asked = Asked(definitions=SPENDERS)
    bought(asked, "ada", 80)
    assert told(asked) == []
    bought(asked, "ada", "0.01")
    person = asked.engine.reader.person("default", "user_id:ada")
    entered = next(e for e in asked.engine.reader.events(person) if e.event.type == "segment_entered")
    cause = asked.engine.log.event("default", entered.cause)
    assert cause.event.properties["total"] == "0.01"
    assert (entered.recorded_at, entered.event.source_type) == (cause.recorded_at, "internal")
    bought(asked, "ada", 5)
    assert told(asked) == [("segment_entered", "spenders")]
    asked.tell("purchase_refunded", user_id="ada", properties={"total": 10, "currency": "EUR"})
    assert told(asked) == [("segment_entered", "spenders"), ("segment_left", "spenders")]
    assert asked.ask("person", id="user_id:ada")["views"]["segments"] == {}


def test_without_a_section_there_is_no_policy_and_with_one_only_what_can_turn_is_reckoned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Asked().engine.catalogue.policy("segments") is None
    looked: list[int] = []

    class Counted(policy.Memberships):
        def __init__(self, sight: Any, at: int) -> None:
            looked.append(at)
            super().__init__(sight, at)

    monkeypatch.setattr(policy, "Memberships", Counted)
    asked = Asked(definitions=SPENDERS)
    for type in ("page", "identify", "tag_added", "segment_entered", "conversation_started", "campaign_delivered"):
        asked.tell(type, user_id="ada", properties={"tag": "x", "segment": "spenders"})
    assert looked == []
    bought(asked, "ada", 10)
    assert len(looked) == 1


BLANK = (
    "{field: traits.email, exists: false}",
    "{not: {field: traits.plan, equals: pro}}",
    "{field: features.has_purchased, equals: false}",
    "{not: {field: tags, contains: vip}}",
)
"""Conditions that are true of whoever nothing is known of."""


@pytest.mark.parametrize("conditions", BLANK)
def test_who_belongs_from_the_start_has_entered_with_the_first_event_whatever_its_type(conditions: str) -> None:
    asked = Asked(definitions=f"segments: {{some: {{when: {conditions}}}}}")
    for _ in range(4):
        asked.tell("page", user_id="ada")
    person = asked.engine.reader.person("default", "user_id:ada")
    [entered] = asked.engine.reader.events(person, types=frozenset({"segment_entered"}))
    [first, *_] = asked.engine.reader.events(person, types=frozenset({"page"}))
    assert (entered.cause, entered.event.occurred_at) == (first.id, first.recorded_at)
    assert members(asked, "some") == [person.id]
    (shown,) = asked.ask("segments_of", id="user_id:ada")["segments"]
    assert (shown["member"], shown["since"]) == (True, format_time(first.recorded_at))


def test_a_first_event_that_ends_what_was_true_of_nobody_is_no_entering() -> None:
    asked = Asked(definitions=f"segments: {{some: {{when: {BLANK[1]}}}, other: {{when: {BLANK[3]}}}}}")
    asked.tell("identify", user_id="ada", properties={"plan": "pro"})
    assert told(asked) == [("segment_entered", "other")]
    # Another identifier's first event is not the person's first.
    asked.tell("identify", user_id="ada", anonymous_id="a", properties={})
    asked.tell("page", anonymous_id="a")
    assert told(asked) == [("segment_entered", "other")]


def test_who_belongs_from_the_start_does_so_before_a_first_event_that_lies_ahead() -> None:
    asked = Asked(definitions=f"segments: {{some: {{when: {BLANK[1]}}}}}")
    ahead = asked.now + 5 * HOUR
    asked.tell("identify", at=ahead, user_id="ada", properties={"plan": "pro"})
    assert told(asked) == [("segment_entered", "some")]
    (shown,) = asked.ask("segments_of", id="user_id:ada")["segments"]
    assert (shown["member"], shown["until"]) == (True, format_time(ahead + 1))
    asked.now = ahead + 1
    work(asked)
    assert told(asked) == [("segment_entered", "some"), ("segment_left", "some")]


def test_whoever_knows_of_a_person_already_is_not_asked_what_is_true_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    class Counted(policy.Memberships):
        def __init__(self, sight: Any, at: int) -> None:
            looked.append(at)
            super().__init__(sight, at)

    asked = Asked(definitions=f"segments: {{some: {{when: {BLANK[2]}}}}}")
    asked.tell("page", user_id="ada")
    monkeypatch.setattr(policy, "Memberships", Counted)
    asked.tell("page", user_id="ada")
    asked.tell("identify", user_id="ada", properties={"plan": "pro"})
    assert looked == []
    asked.tell("page", user_id="bob")
    assert len(looked) == 1


@pytest.mark.parametrize(("heeded", "most"), [(False, 16), (True, 8)])
def test_many_segments_entered_at_once_are_told_one_after_the_other(heeded: bool, most: int) -> None:
    lines = "\n".join(f"  s{n}: {{when: {{field: tags, contains: vip}}}}" for n in range(30))
    rules = """
rules: {greeted: {version: 1, conditions: {field: tags, contains: vip}, actions: [{award_points: {points: 1}}]}}
rule_sets: {entering: {events: [segment_entered], rules: [greeted]}}
"""
    asked = Asked(definitions=f"segments:\n{lines}\n{rules if heeded else ''}")
    asked.tell("tag_added", user_id="ada", properties={"tag": "vip"})
    assert len(told(asked)) == most
    asked.now += 1
    work(asked)
    assert sorted(told(asked)) == sorted(("segment_entered", f"s{n}") for n in range(30))
    person = asked.engine.reader.person("default", "user_id:ada")
    types = [each.event.type for each in asked.engine.reader.events(person, limit=1_000)]
    assert "threadline.cascade_cut" not in types
    assert types.count("decision_made") == (30 if heeded else 0)


def test_what_a_producer_says_of_segments_makes_nobody_a_member() -> None:
    asked = Asked(definitions=SPENDERS)
    asked.tell("segment_entered", user_id="ada", properties={"segment": "spenders", "version": "1"})
    assert members(asked, "spenders") == []
    assert asked.ask("person", id="user_id:ada")["views"]["segments"] == {}


def test_an_event_from_the_future_counts_from_its_own_time_on() -> None:
    asked = Asked(definitions=SPENDERS)
    ahead = asked.now + 5 * HOUR
    bought(asked, "ada", 100, at=ahead)
    assert told(asked) == []
    bought(asked, "ada", 1)
    assert told(asked) == []
    asked.now = ahead
    assert work(asked) == 0
    asked.now = ahead + 1
    work(asked)
    assert told(asked) == [("segment_entered", "spenders")]


def test_an_earlier_timer_does_not_lose_what_an_event_ahead_will_turn() -> None:
    asked = Asked(
        definitions="""
features:
  opens_7d: {events: tool_used, aggregate: count, window: 7d}
  opens_1h: {events: tool_used, aggregate: count, window: 1h}
segments:
  two: {when: {field: features.opens_7d, greater_than: 1}}
  hot: {when: {field: features.opens_1h, greater_than: 0}}
"""
    )
    start = asked.now
    asked.tell("tool_used", at=start + 8 * HOUR, user_id="ada")
    asked.tell("tool_used", at=start, user_id="ada")
    shown = {each["segment"]: each for each in asked.ask("segments_of", id="user_id:ada")["segments"]}
    assert (shown["two"]["member"], shown["hot"]["until"]) == (False, format_time(start + HOUR + 1))
    for hour in range(1, 12):
        asked.now = start + hour * HOUR + 2
        work(asked)
    ahead = start + 8 * HOUR + 1
    person = asked.engine.reader.person("default", "user_id:ada")
    found = [
        (each.event.type, each.event.properties["segment"], each.event.occurred_at)
        for each in asked.engine.reader.events(person, types=frozenset({"segment_entered", "segment_left"}))
    ]
    [first, *others] = found
    assert first[:2] == ("segment_entered", "hot")
    assert sorted(others) == [
        ("segment_entered", "hot", ahead),
        ("segment_entered", "two", ahead),
        ("segment_left", "hot", start + HOUR + 1),
        ("segment_left", "hot", ahead + HOUR),
    ]


def test_a_timer_that_comes_late_takes_nothing_back_that_was_told_since() -> None:
    asked = Asked(definitions=f"{RECENT[:-1]}, vips: {{when: {{field: tags, contains: vip}}}}}}")
    asked.tell("page", user_id="ada")
    asked.now += 3 * DAY + HOUR
    asked.tell("tag_added", user_id="ada", properties={"tag": "vip"})
    work(asked)
    assert told(asked) == [("segment_entered", "recent"), ("segment_left", "recent"), ("segment_entered", "vips")]


def test_until_and_who_leaves_soon_reckon_with_what_lies_ahead() -> None:
    asked = Asked(definitions="segments: {free: {when: {field: traits.plan, equals: free}}}")
    asked.tell("identify", user_id="ada", properties={"plan": "free"})
    ahead = asked.now + 5 * HOUR
    asked.tell("page", at=ahead - HOUR, user_id="ada")
    asked.tell("identify", at=ahead, user_id="ada", properties={"plan": "pro"})
    for worked in (False, True):
        if worked:
            asked.now = ahead - HOUR + 1
            work(asked)
        (shown,) = asked.ask("segments_of", id="user_id:ada")["segments"]
        assert (shown["member"], shown["until"]) == (True, format_time(ahead + 1))
        page = asked.ask("segments_leaving", name="free", within="1d")
        assert [each["until"] for each in page["leaving"]] == [format_time(ahead + 1)]
    asked.now = ahead + 1
    work(asked)
    assert told(asked) == [("segment_entered", "free"), ("segment_left", "free")]


def test_imported_history_and_late_events_change_what_holds_now() -> None:
    asked = Asked(definitions=SPENDERS)
    bought(asked, "ada", 50)
    receipt = asked.tell(
        "purchase_completed",
        at=STARTS_AT - 900 * DAY,
        user_id="ada",
        properties={"total": 50, "currency": "EUR"},
        historical=True,
    )
    assert receipt["status"] == "accepted"
    (entered,) = (
        e for e in asked.engine.reader.events(asked.engine.reader.person("default", "user_id:ada")) if e.cause
    )
    assert entered.event.occurred_at == entered.recorded_at
    # As of an earlier instant, and with what was known by then, the person did not belong.
    before = format_time(entered.recorded_at - SECOND)
    assert not asked.ask("segments_why", id="user_id:ada", segment="spenders", as_of=before)["member"]
    assert asked.ask("segments_why", id="user_id:ada", segment="spenders")["member"]


def test_a_person_who_is_told_of_all_day_long_costs_a_timer_a_day_at_most() -> None:
    asked = Asked(definitions=RECENT)
    for _ in range(240):
        asked.tell("page", user_id="ada")
        asked.now += HOUR
        work(asked)
    person = asked.engine.reader.person("default", "user_id:ada")
    fired = asked.engine.reader.events(person, types=frozenset({"threadline.timer_fired"}), limit=1_000)
    assert len(fired) <= 10
    assert told(asked) == [("segment_entered", "recent")]
    assert len(person.timers) == 1


@pytest.mark.parametrize(
    ("field", "operator", "operand", "tell", "leaves"),
    [
        ("streaks.daily.current", "greater_than", 0, ("product_viewed", {}), 2 * DAY),
        ("features.frequency_purchases_90d", "exists", True, ("purchase_completed", {"total": 1}), None),
        ("features.campaigns_received_30d", "equals", 1, ("campaign_delivered", {"campaign_id": "c"}), 30 * DAY + 1),
        ("memory.purchase.last_transaction", "exists", True, ("purchase_completed", {"total": 1}), None),
    ],
)
def test_whatever_a_projection_tells_can_be_asked_for(
    field: str, operator: str, operand: Any, tell: tuple[str, dict[str, Any]], leaves: int | None
) -> None:
    asked = Asked(definitions=f"segments: {{some: {{when: {{field: {field}, {operator}: {str(operand).lower()}}}}}}}")
    asked.now = STARTS_AT + 12 * HOUR if field.startswith("streaks") else STARTS_AT
    start = asked.now - (12 * HOUR if field.startswith("streaks") else 0)
    type, properties = tell
    asked.tell(type, at=asked.now, user_id="ada", properties=properties)
    assert ("segment_entered", "some") in told(asked)
    asked.now += 400 * DAY
    work(asked)
    person = asked.engine.reader.person("default", "user_id:ada")
    left = [
        e.event.occurred_at for e in asked.engine.reader.events(person, limit=1_000) if e.event.type == "segment_left"
    ]
    assert left == ([] if leaves is None else [start + leaves])


def test_who_leaves_a_board_by_time_alone_leaves_the_segment_of_those_on_it_at_that_instant() -> None:
    board = "leaderboards: {streak: {score: streaks.daily.current}}"
    asked = Asked(definitions=f"{board}\nsegments: {{on_it: {{when: {{field: {ON_IT}, greater_than: 0}}}}}}")
    asked.tell("page", user_id="ada")
    [until] = [each["until"] for each in asked.ask("segments_of", id="user_id:ada")["segments"]]
    assert (told(asked), until) == ([("segment_entered", "on_it")], format_time(STARTS_AT + 2 * DAY))
    asked.now = STARTS_AT + 2 * DAY
    work(asked)
    assert told(asked) == [("segment_entered", "on_it"), ("segment_left", "on_it")]


def test_merging_the_anonymous_past_makes_a_member_at_once() -> None:
    asked = Asked(definitions=SPENDERS)
    bought(asked, "ada", 50)
    for key, kinds in (("a", {"anonymous_id": "x"}), ("b", {"anonymous_id": "x", "user_id": "ada"})):
        event = Event(
            type="purchase_completed" if key == "a" else "page",
            key=key,
            occurred_at=asked.now,
            identifiers=tuple(Identifier(*each) for each in kinds.items()),
            properties={"total": 50, "currency": "EUR"} if key == "a" else {},
        )
        assert asked.engine.recorder.record([event])[0].status == "accepted"
    assert told(asked) == [("segment_entered", "spenders")]
    assert len(members(asked, "spenders")) == 1
