"""Segments through the engine: what is told, what is read, who leaves soon, and what changed definitions do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capabilities.asked import STARTS_AT, Asked
from threadline.capabilities.definitions import Definitions
from threadline.capabilities.people.definition import rules
from threadline.capabilities.segments import policy
from threadline.engine.catalogue import Catalogue, discover
from threadline.engine.dispatch import Dispatcher
from threadline.engine.engine import Engine
from threadline.kernel.errors import InvalidDefinition, InvalidValue, NotFound
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import DAY, HOUR, SECOND, format_time

SPENDERS = "segments: {spenders: {when: {field: features.monetary_total, greater_than: 80}}}"
RECENT = "segments: {recent: {when: {field: features.recency_days, less_than: 3}}}"


def bought(asked: Asked, who: str, total: Any, at: int | None = None) -> None:
    receipt = asked.tell("purchase_completed", at=at, user_id=who, properties={"total": total, "currency": "EUR"})
    assert receipt["status"] == "accepted"


def told(asked: Asked, who: str = "ada") -> list[tuple[str, str]]:
    person = asked.engine.person("default", f"user_id:{who}")
    events = asked.engine.events(person, limit=1_000)
    return [(e.event.type, e.event.properties["segment"]) for e in events if e.event.type.startswith("segment_")]


def work(asked: Asked) -> int:
    dispatcher, fired = Dispatcher(asked.engine, {}, "test"), 0
    while done := dispatcher.run_once():
        fired += done
        asked.now += 1
    return fired


def members(asked: Asked, name: str, limit: int = 100) -> list[str]:
    found: list[str] = []
    after = ""
    while True:
        page = asked.ask("segment_members", name=name, after=after, limit=limit)
        assert len(page["members"]) <= limit
        found += [each["person"] for each in page["members"]]
        after = page["next"]
        if not after:
            return found


def redefined(asked: Asked, definitions: str) -> Asked:
    """The same store under other definitions, as after a restart."""
    other = Asked(definitions=definitions)
    other.engine = Engine(asked.engine.store, other.engine.catalogue, lambda: other.now)
    other.now, other._keys = asked.now, asked._keys
    return other


# --- events -----------------------------------------------------------------------------------


def test_who_enters_and_leaves_is_told_once_in_the_commit_that_made_it_so() -> None:
    asked = Asked(definitions=SPENDERS)
    bought(asked, "ada", 80)
    assert told(asked) == []
    bought(asked, "ada", "0.01")
    person = asked.engine.person("default", "user_id:ada")
    entered = next(e for e in asked.engine.events(person) if e.event.type == "segment_entered")
    cause = asked.engine.event("default", entered.cause)
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

    class Counted(policy.Moment):
        def __init__(self, sight: Any, at: int) -> None:
            looked.append(at)
            super().__init__(sight, at)

    monkeypatch.setattr(policy, "Moment", Counted)
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
    person = asked.engine.person("default", "user_id:ada")
    [entered] = asked.engine.events(person, types=frozenset({"segment_entered"}))
    [first, *_] = asked.engine.events(person, types=frozenset({"page"}))
    assert (entered.cause, entered.event.occurred_at) == (first.id, first.recorded_at)
    assert members(asked, "some") == [person.id]
    (shown,) = asked.ask("segments", id="user_id:ada")["segments"]
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
    (shown,) = asked.ask("segments", id="user_id:ada")["segments"]
    assert (shown["member"], shown["until"]) == (True, format_time(ahead + 1))
    asked.now = ahead + 1
    work(asked)
    assert told(asked) == [("segment_entered", "some"), ("segment_left", "some")]


def test_whoever_knows_of_a_person_already_is_not_asked_what_is_true_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    class Counted(policy.Moment):
        def __init__(self, sight: Any, at: int) -> None:
            looked.append(at)
            super().__init__(sight, at)

    asked = Asked(definitions=f"segments: {{some: {{when: {BLANK[2]}}}}}")
    asked.tell("page", user_id="ada")
    monkeypatch.setattr(policy, "Moment", Counted)
    asked.tell("page", user_id="ada")
    asked.tell("identify", user_id="ada", properties={"plan": "pro"})
    assert looked == []
    asked.tell("page", user_id="bob")
    assert len(looked) == 1


@pytest.mark.parametrize(("heeded", "most"), [(False, policy.TURNS_MAX), (True, policy.HEEDED_TURNS_MAX)])
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
    person = asked.engine.person("default", "user_id:ada")
    types = [each.event.type for each in asked.engine.events(person, limit=1_000)]
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
    shown = {each["segment"]: each for each in asked.ask("segments", id="user_id:ada")["segments"]}
    assert (shown["two"]["member"], shown["hot"]["until"]) == (False, format_time(start + HOUR + 1))
    for hour in range(1, 12):
        asked.now = start + hour * HOUR + 2
        work(asked)
    ahead = start + 8 * HOUR + 1
    person = asked.engine.person("default", "user_id:ada")
    found = [
        (each.event.type, each.event.properties["segment"], each.event.occurred_at)
        for each in asked.engine.events(person, types=frozenset({"segment_entered", "segment_left"}))
    ]
    [first, *others] = found
    assert first[:2] == ("segment_entered", "hot")
    assert sorted(others) == [
        ("segment_entered", "hot", ahead), ("segment_entered", "two", ahead),
        ("segment_left", "hot", start + HOUR + 1), ("segment_left", "hot", ahead + HOUR),
    ]  # fmt: skip


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
        (shown,) = asked.ask("segments", id="user_id:ada")["segments"]
        assert (shown["member"], shown["until"]) == (True, format_time(ahead + 1))
        page = asked.ask("segment_leaving", name="free", within="1d")
        assert [each["until"] for each in page["leaving"]] == [format_time(ahead + 1)]
    asked.now = ahead + 1
    work(asked)
    assert told(asked) == [("segment_entered", "free"), ("segment_left", "free")]


def test_imported_history_and_late_events_change_what_holds_now() -> None:
    asked = Asked(definitions=SPENDERS)
    bought(asked, "ada", 50)
    receipt = asked.tell(
        "purchase_completed", at=STARTS_AT - 900 * DAY, user_id="ada", properties={"total": 50, "currency": "EUR"},
        historical=True,
    )  # fmt: skip
    assert receipt["status"] == "accepted"
    (entered,) = (e for e in asked.engine.events(asked.engine.person("default", "user_id:ada")) if e.cause)
    assert entered.event.occurred_at == entered.recorded_at
    # As of an earlier instant, and with what was known by then, the person did not belong.
    before = format_time(entered.recorded_at - SECOND)
    assert not asked.ask("segment", id="user_id:ada", segment="spenders", as_of=before)["member"]
    assert asked.ask("segment", id="user_id:ada", segment="spenders")["member"]


def test_a_person_who_is_told_of_all_day_long_costs_a_timer_a_day_at_most() -> None:
    asked = Asked(definitions=RECENT)
    for _ in range(240):
        asked.tell("page", user_id="ada")
        asked.now += HOUR
        work(asked)
    person = asked.engine.person("default", "user_id:ada")
    fired = asked.engine.events(person, types=frozenset({"threadline.timer_fired"}), limit=1_000)
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
    person = asked.engine.person("default", "user_id:ada")
    left = [e.event.occurred_at for e in asked.engine.events(person, limit=1_000) if e.event.type == "segment_left"]
    assert left == ([] if leaves is None else [start + leaves])


# --- reading ----------------------------------------------------------------------------------


def test_reading_is_exact_while_a_timer_waits() -> None:
    asked = Asked(definitions=RECENT)
    asked.tell("page", at=STARTS_AT, user_id="ada")
    until = STARTS_AT + 3 * DAY
    asked.now = until - 2
    (shown,) = asked.ask("segments", id="user_id:ada")["segments"]
    assert (shown["member"], shown["until"]) == (True, format_time(until))
    (shown,) = asked.ask("segments", id="user_id:ada")["segments"]
    assert (shown["member"], shown["until"]) == (False, None)
    assert shown["since"] is not None, "the events do not tell of leaving before the timer has fired"
    assert len(members(asked, "recent")) == 1
    work(asked)
    (shown,) = asked.ask("segments", id="user_id:ada")["segments"]
    assert (shown["member"], shown["since"]) == (False, None)
    assert members(asked, "recent") == []


def test_why_and_why_not() -> None:
    asked = Asked(
        definitions="segments: {some: {when: {all: [{field: traits.plan, equals: pro}, "
        "{any: [{field: tags, contains: vip}, {field: features.monetary_total, greater_than: 80}]}]}}}"
    )
    asked.tell("identify", user_id="ada", properties={"plan": "pro"})
    bought(asked, "ada", 81)
    why = asked.ask("segment", id="user_id:ada", segment="some")
    assert why["member"]
    assert [(s["field"], s.get("actual"), s["matched"]) for s in why["steps"]] == [
        ("traits.plan", "pro", True), ("tags", [], False), ("features.monetary_total", 81.0, True)
    ]  # fmt: skip
    asked.tell("identify", user_id="ada", properties={"plan": None})
    why = asked.ask("segment", id="user_id:ada", segment="some")
    assert not why["member"]
    assert [s.get("note", "") for s in why["steps"]] == ["missing", "skipped", "skipped"]


def test_members_are_paged_over_all_shards_and_stay_in_their_workspace() -> None:
    asked = Asked(definitions=SPENDERS)
    for number in range(60):
        bought(asked, f"u{number}", 100 if number % 3 else 10)
    asked.tell("purchase_completed", workspace="other", user_id="x", properties={"total": 100, "currency": "EUR"})
    expected = sorted(asked.engine.person("default", f"user_id:u{number}").id for number in range(60) if number % 3)
    for limit in (1, 7, 40, 1_000):
        assert members(asked, "spenders", limit) == expected
    asked.tell("purchase_refunded", user_id="u1", properties={"total": 100, "currency": "EUR"})
    expected.remove(asked.engine.person("default", "user_id:u1").id)
    assert members(asked, "spenders", 7) == expected
    assert len(asked.ask("segment_members", workspace="other", name="spenders")["members"]) == 1


def test_who_leaves_soon_is_told_to_the_microsecond_in_their_order() -> None:
    asked = Asked(definitions=RECENT)
    for number in range(20):
        asked.tell("page", at=STARTS_AT - number * 6 * HOUR, user_id=f"u{number}")
    asked.now = STARTS_AT + HOUR
    # Somebody who comes back stays, whatever timer was set before.
    asked.tell("page", user_id="u7")
    for worked in (False, True):
        if worked:
            asked.now += 2 * HOUR
            work(asked)
        page = asked.ask("segment_leaving", name="recent", within="1d")
        now = asked.now
        until = {each["identifiers"][0]: each["until"] for each in page["leaving"]}
        ends = {f"user_id:u{n}": STARTS_AT - n * 6 * HOUR + 3 * DAY for n in range(20) if n != 7}
        assert until == {who: format_time(at) for who, at in ends.items() if now < at <= now + DAY}
        assert list(until.values()) == sorted(until.values())
        assert page["next"] == ""
    assert asked.ask("segment_leaving", name="recent", within="1h")["leaving"] == []
    with pytest.raises(InvalidValue, match="at most a year"):
        asked.ask("segment_leaving", name="recent", within="2y")


def test_who_leaves_soon_goes_on_from_where_a_call_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(definitions=RECENT)
    for number in range(9):
        asked.tell("page", at=STARTS_AT - number * SECOND, user_id=f"u{number}")
    monkeypatch.setattr("threadline.capabilities.segments.operations.LOOKED_AT_MAX", 4)
    found: list[str] = []
    after, calls = "", 0
    while True:
        page = asked.ask("segment_leaving", name="recent", within="3d", after=after)
        found += [each["person"] for each in page["leaving"]]
        after, calls = page["next"], calls + 1
        if not after:
            break
    assert (len(found), len(set(found)), calls) == (9, 9, 3)


def test_an_unknown_segment_is_named_with_the_nearest() -> None:
    asked = Asked(definitions=SPENDERS)
    bought(asked, "ada", 1)
    for operation, params in (("segment_members", {"name": "spender"}), ("segment_leaving", {"name": "spender"})):
        with pytest.raises(NotFound, match="did you mean 'spenders'"):
            asked.ask(operation, **params)
    with pytest.raises(NotFound, match="none is declared"):
        Asked().ask("segment_members", name="spender")
    with pytest.raises(InvalidValue, match="lies ahead"):
        asked.ask("segments", id="user_id:ada", as_of="2999-01-01")


# --- changed definitions ----------------------------------------------------------------------


def refreshed(asked: Asked, limit: int = 1_000) -> tuple[int, int]:
    people = changed = 0
    after = ""
    while True:
        page = asked.ask("segments_refresh", after=after, limit=limit)
        people, changed, after = people + page["people"], changed + page["refreshed"], page["next"]
        if not after:
            return people, changed


@pytest.mark.parametrize("limit", [1, 3, 1_000])
def test_refreshing_tells_what_other_conditions_make_of_everybody(limit: int) -> None:
    asked = Asked(definitions=SPENDERS)
    for number in range(10):
        bought(asked, f"u{number}", 70 + 5 * number)  # 70, 75 … 115
    assert len(members(asked, "spenders")) == 7
    other = redefined(asked, SPENDERS.replace("80", "100"))
    assert len(members(other, "spenders")) == 7
    # Three leave, seven were and stay out or were and stay in; of the latter the new version is told.
    assert refreshed(other, limit) == (10, 7)
    assert len(members(other, "spenders")) == 3
    assert told(other, "u9") == [("segment_entered", "spenders"), ("segment_kept", "spenders")]
    assert told(other, "u3") == [("segment_entered", "spenders"), ("segment_left", "spenders")]
    assert refreshed(other, limit) == (10, 0)
    wider = redefined(other, SPENDERS.replace("80", "72"))
    assert refreshed(wider, limit) == (10, 9)
    assert len(members(wider, "spenders")) == 9


def test_a_member_of_older_conditions_is_looked_at_with_the_next_event_of_any_type() -> None:
    asked = Asked(definitions=SPENDERS)
    for who, total in (("ada", 90), ("bob", 120)):
        bought(asked, who, total)
    other = redefined(asked, SPENDERS.replace("80", "100"))
    for who in ("ada", "bob"):
        for _ in range(2):
            other.tell("page", user_id=who)
    assert told(other, "ada")[-1] == ("segment_left", "spenders")
    assert told(other, "bob") == [("segment_entered", "spenders"), ("segment_kept", "spenders")]


def test_refreshing_sets_the_timers_that_new_segments_need() -> None:
    asked = Asked(definitions=SPENDERS)
    asked.tell("page", at=STARTS_AT, user_id="ada")
    other = redefined(asked, "segments: {lapsed: {when: {field: features.recency_days, greater_than_or_equal: 5}}}")
    assert refreshed(other) == (1, 1)
    assert refreshed(other) == (1, 0)
    assert told(other) == []
    other.now += 10 * DAY
    work(other)
    assert told(other) == [("segment_entered", "lapsed")]
    person = other.engine.person("default", "user_id:ada")
    (entered,) = other.engine.events(person, types=frozenset({"segment_entered"}))
    assert entered.event.occurred_at == STARTS_AT + 5 * DAY


def test_a_segment_that_is_declared_no_more_is_left() -> None:
    asked = Asked(definitions=SPENDERS)
    bought(asked, "ada", 100)
    other = redefined(asked, "segments: {}")
    assert refreshed(other) == (1, 1)
    assert told(other) == [("segment_entered", "spenders"), ("segment_left", "spenders")]
    again = redefined(other, SPENDERS)
    assert members(again, "spenders") == []
    assert refreshed(again) == (1, 1)
    assert len(members(again, "spenders")) == 1


def test_another_order_of_words_is_no_other_version() -> None:
    def version(text: str) -> str:
        asked = Asked(definitions=text)
        return str(asked.ask("segment_definitions")["segments"][0]["version"])

    when = "{greater_than: 80, field: features.monetary_total}"
    same = f"segments:\n  spenders:\n    description: Other words.\n    when: {when}\n"
    assert version(SPENDERS) == version(same)
    assert version(SPENDERS) != version(SPENDERS.replace("80", "81"))


# --- mistakes ---------------------------------------------------------------------------------

MISTAKES = [
    ("segments: [a]", "t.yaml:1: `segments` must be a mapping"),
    ("segments: {Big: {when: {field: tags, contains: vip}}}", "t.yaml:1: 'Big' is no name of a segment"),
    ("segments:\n  a: {}", "t.yaml:2: segment 'a' needs `when`"),
    ("segments:\n  a: {wen: 1}", "t.yaml:2: segment 'a': unknown key 'wen'; did you mean 'when'?"),
    ("segments:\n  a: {when: {field: event.type, equals: x}}", "t.yaml:2: a segment goes by what is known of a person"),
    ("segments:\n  a: {when: {field: segments, contains: x}}", "t.yaml:2: a segment cannot go by segments"),
    ("segments:\n  a:\n    when:\n      all:\n        - {field: tags, contain: x}", "t.yaml:5: unknown operator"),
    ("segments:\n  a: {when: {field: featurs.x, exists: true}}",
     "t.yaml:2: segment 'a': nothing is known under 'featurs'; did you mean 'features'?"),
    ("segments:\n  a: {when: {field: features.monetary_totl, exists: true}}",
     "t.yaml:2: segment 'a': features has no 'monetary_totl'; did you mean 'monetary_total'?"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), MISTAKES, ids=lambda each: each[:60])
def test_a_mistake_is_named_where_it_stands(text: str, message: str) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        Catalogue(discover(definitions=Definitions([("t.yaml", text)])), rules())
    assert any(line.startswith(message) for line in str(raised.value).splitlines()), str(raised.value)


def test_a_name_that_two_files_declare_is_refused() -> None:
    with pytest.raises(InvalidDefinition, match=r"b.yaml:1: segment 'spenders' is declared at a.yaml:1 already"):
        discover(definitions=Definitions([("a.yaml", SPENDERS), ("b.yaml", SPENDERS)]))


def test_merging_the_anonymous_past_makes_a_member_at_once() -> None:
    asked = Asked(definitions=SPENDERS)
    bought(asked, "ada", 50)
    for key, kinds in (("a", {"anonymous_id": "x"}), ("b", {"anonymous_id": "x", "user_id": "ada"})):
        event = Event(
            type="purchase_completed" if key == "a" else "page", key=key, occurred_at=asked.now,
            identifiers=tuple(Identifier(*each) for each in kinds.items()),
            properties={"total": 50, "currency": "EUR"} if key == "a" else {},
        )  # fmt: skip
        assert asked.engine.record([event])[0].status == "accepted"
    assert told(asked) == [("segment_entered", "spenders")]
    assert len(members(asked, "spenders")) == 1
