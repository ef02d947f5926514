"""Segments as they are read: who belongs, why or why not, members page by page, and who leaves soon."""

from __future__ import annotations

import pytest

from tests.capabilities.asked import STARTS_AT, Asked
from tests.capabilities.segments_stage import RECENT, SPENDERS, bought, members, work
from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.time import DAY, HOUR, SECOND, format_time


def test_reading_is_exact_while_a_timer_waits() -> None:
    asked = Asked(definitions=RECENT)
    asked.tell("page", at=STARTS_AT, user_id="ada")
    until = STARTS_AT + 3 * DAY
    asked.now = until - 2
    (shown,) = asked.ask("segments_of", id="user_id:ada")["segments"]
    assert (shown["member"], shown["until"]) == (True, format_time(until))
    (shown,) = asked.ask("segments_of", id="user_id:ada")["segments"]
    assert (shown["member"], shown["until"]) == (False, None)
    assert shown["since"] is not None, "the events do not tell of leaving before the timer has fired"
    assert len(members(asked, "recent")) == 1
    work(asked)
    (shown,) = asked.ask("segments_of", id="user_id:ada")["segments"]
    assert (shown["member"], shown["since"]) == (False, None)
    assert members(asked, "recent") == []


def test_when_time_may_change_a_segment_is_said_for_now_and_for_no_earlier_instant() -> None:
    asked = Asked(definitions=RECENT)
    asked.tell("page", at=STARTS_AT, user_id="ada")
    days = [format_time(STARTS_AT + number * DAY) for number in range(6)]
    (shown,) = asked.ask("segments_of", id="user_id:ada")["segments"]
    assert (shown["until"], shown["changes_at"]) == (days[3], days[1]), "a count of days may change each day"
    (shown,) = asked.ask("segments_of", id="user_id:ada", as_of=format_time(asked.now))["segments"]
    assert (shown["until"], shown["changes_at"]) == (None, None)
    asked.now += 4 * DAY
    (shown,) = asked.ask("segments_of", id="user_id:ada")["segments"]
    assert (shown["member"], shown["changes_at"]) == (False, days[5])


def test_why_and_why_not() -> None:
    asked = Asked(
        definitions="segments: {some: {when: {all: [{field: traits.plan, equals: pro}, "
        "{any: [{field: tags, contains: vip}, {field: features.monetary_total, greater_than: 80}]}]}}}"
    )
    asked.tell("identify", user_id="ada", properties={"plan": "pro"})
    bought(asked, "ada", 81)
    why = asked.ask("segments_why", id="user_id:ada", segment="some")
    assert why["member"]
    assert [(s["field"], s.get("actual"), s["matched"]) for s in why["steps"]] == [
        ("traits.plan", "pro", True),
        ("tags", [], False),
        ("features.monetary_total", 81.0, True),
    ]
    asked.tell("identify", user_id="ada", properties={"plan": None})
    why = asked.ask("segments_why", id="user_id:ada", segment="some")
    assert not why["member"]
    assert [s.get("note", "") for s in why["steps"]] == ["missing", "skipped", "skipped"]


def test_a_purchase_without_currency_is_the_reason_for_leaving_a_segment() -> None:
    asked = Asked(definitions=SPENDERS)
    bought(asked, "ada", 81)
    asked.tell("purchase_completed", user_id="ada", properties={"total": 10})
    why = asked.ask("segments_why", id="user_id:ada", segment="spenders")
    (step,) = why["steps"]
    reason = "2 currencies: EUR and none; no rates"
    assert (why["member"], step["note"], step["reason"]) == (False, "missing", reason)
    feature = asked.ask("features_of", id="user_id:ada", names="monetary_total")["features"]["monetary_total"]
    assert (feature["value"], feature["status"], feature["reason"]) == (None, "PRESENT", reason)


def test_members_are_paged_over_all_shards_and_stay_in_their_workspace() -> None:
    asked = Asked(definitions=SPENDERS)
    for number in range(60):
        bought(asked, f"u{number}", 100 if number % 3 else 10)
    asked.tell("purchase_completed", workspace="other", user_id="x", properties={"total": 100, "currency": "EUR"})
    expected = sorted(
        asked.engine.reader.person("default", f"user_id:u{number}").id for number in range(60) if number % 3
    )
    for limit in (1, 7, 40, 1_000):
        assert members(asked, "spenders", limit) == expected
    asked.tell("purchase_refunded", user_id="u1", properties={"total": 100, "currency": "EUR"})
    expected.remove(asked.engine.reader.person("default", "user_id:u1").id)
    assert members(asked, "spenders", 7) == expected
    (member,) = asked.ask("segments_members", workspace="other", name="spenders")["members"]
    assert member["identifiers"] == ["user_id:x"]


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
        page = asked.ask("segments_leaving", name="recent", within="1d")
        now = asked.now
        until = {each["identifiers"][0]: each["until"] for each in page["leaving"]}
        ends = {f"user_id:u{n}": STARTS_AT - n * 6 * HOUR + 3 * DAY for n in range(20) if n != 7}
        assert until == {who: format_time(at) for who, at in ends.items() if now < at <= now + DAY}
        assert list(until.values()) == sorted(until.values())
        assert page["next"] == ""
    assert asked.ask("segments_leaving", name="recent", within="1h")["leaving"] == []
    with pytest.raises(InvalidValue, match="at most a year"):
        asked.ask("segments_leaving", name="recent", within="2y")


def test_who_leaves_soon_goes_on_from_where_a_call_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(definitions=RECENT)
    for number in range(9):
        asked.tell("page", at=STARTS_AT - number * SECOND, user_id=f"u{number}")
    monkeypatch.setattr("threadline.capabilities.profile.segments.operations.members.LOOKED_AT_MAX", 4)
    found: list[str] = []
    after, calls = "", 0
    while True:
        page = asked.ask("segments_leaving", name="recent", within="3d", cursor=after)
        found += [each["person"] for each in page["leaving"]]
        after, calls = page["next"], calls + 1
        if not after:
            break
    assert (len(found), len(set(found)), calls) == (9, 9, 3)


def test_an_unknown_segment_is_named_with_the_nearest() -> None:
    asked = Asked(definitions=SPENDERS)
    bought(asked, "ada", 1)
    for operation, params in (("segments_members", {"name": "spender"}), ("segments_leaving", {"name": "spender"})):
        with pytest.raises(NotFound, match="did you mean 'spenders'"):
            asked.ask(operation, **params)
    with pytest.raises(NotFound, match="none is declared"):
        Asked().ask("segments_members", name="spender")
    with pytest.raises(InvalidValue, match="is in the future"):
        asked.ask("segments_of", id="user_id:ada", as_of="2999-01-01")
