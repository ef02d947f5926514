"""The worked tables of docs/worked/features.md, and what a view tells beside the value."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from threadline.capabilities.profile.features import projection, read_definitions
from threadline.capabilities.profile.features.definition import AGGREGATES
from threadline.kernel.event import Event, Recorded, event_id
from threadline.kernel.time import DAY, HOUR, SECOND, parse_time

PAGE = (Path(__file__).parents[2] / "docs/features.md").read_text(encoding="utf-8")
WORKED = (Path(__file__).parents[2] / "docs/worked/features.md").read_text(encoding="utf-8")

LATER = 5 * SECOND
"""How long after it occurred each event of these tests was recorded."""


class Worked(NamedTuple):
    title: str
    definitions: str
    events: list[list[str]]
    instants: list[str]
    values: list[list[str]]


def tables(text: str) -> list[list[list[str]]]:
    found = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    rows = [[[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()] for table in found]
    return [[table[0], *table[2:]] for table in rows]


def worked() -> list[Worked]:
    cases = []
    for section in WORKED.split("\n## ")[1:]:
        events, values = tables(section)
        definitions = "\n".join(re.findall(r"```yaml\n(.*?)```", section, re.DOTALL))
        title = section.splitlines()[0]
        cases.append(Worked(title, definitions, events[1:], values[0][1:], values[1:]))
    return cases


def record(at: int, kind: str, properties: dict[str, Any], context: dict[str, Any] | None = None) -> Recorded:
    key = f"{kind} {at}"
    event = Event(type=kind, identifiers=(), occurred_at=at, key=key, properties=properties, context=context or {})
    return Recorded(event, event_id("default", "direct", key), "thread", 1, at + LATER)


def view(definitions: str, events: list[Recorded], now: int) -> dict[str, Any]:
    known = projection(read_definitions([("threadline.yaml", definitions)] if definitions else []))
    state = known.empty()
    for each in events:
        state = known.after(state, each)
    assert known.depends.edges is not None
    assert known.depends.edges(state, now) == []
    return known.view(state, now, [])  # type: ignore[no-any-return]


CASES = worked()


def test_the_page_has_worked_cases() -> None:
    assert [case.title for case in CASES] == [
        "One person",
        "Two currencies, one table of rates",
        "Several currencies, no rates",
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_worked_tables(case: Worked) -> None:
    events = [record(parse_time(at), kind, json.loads(properties)) for at, kind, properties in case.events]
    for column, instant in enumerate(case.instants, start=1):
        now = parse_time(instant)
        shown = view(case.definitions, [each for each in events if each.event.occurred_at < now], now)
        expected = {row[0]: json.loads(row[column]) for row in case.values}
        assert {name: shown[name]["value"] for name in expected} == expected, instant


def test_every_shipped_feature_is_worked() -> None:
    case = next(case for case in CASES if case.title == "One person")
    assert case.instants[0] < case.events[0][0], "the first column shows what nothing known means"
    assert sorted(row[0] for row in case.values) == list(read_definitions().names)


def test_every_shipped_feature_and_aggregate_is_in_the_page() -> None:
    ships = PAGE.split("## What ships")[1].split("\n## ")[0]
    assert set(read_definitions().names) <= set(re.findall(r"`(\w+)`", ships))
    aggregates = PAGE.split("## Aggregates")[1].split("\n## ")[0]
    assert set(AGGREGATES) <= set(re.findall(r"`(\w+)`", aggregates))


# --- beside the value -------------------------------------------------------------------------------

T0 = parse_time("2026-03-02T10:00:00Z")


def test_a_purchase_moves_only_what_it_feeds() -> None:
    sentiment = record(T0, "sentiment_detected", {"score": 0.5})
    purchase = record(T0 + HOUR, "purchase_completed", {"total": 20, "currency": "EUR"})
    before = view("", [sentiment], T0 + DAY)
    after = view("", [sentiment, purchase], T0 + DAY)
    moved = {name for name in after if after[name]["computed_at"] != before[name]["computed_at"]}
    assert moved == {
        "recency_days",
        "preferred_hour_of_day",
        "preferred_day_of_week",
        "frequency_purchases_90d",
        "days_since_last_purchase",
        "has_purchased",
        "monetary_total",
        "monetary_gross_total",
        "monetary_avg_ticket",
        "conversion_rate",
        "engagement_score",
    }
    assert {after[name]["computed_at"] for name in moved} == {T0 + HOUR + LATER}
    assert after["sentiment_avg_30d"]["computed_at"] == T0 + LATER
    assert after["campaign_open_rate"]["status"] == "NOT_FOUND"


def test_money_tells_its_currency_and_its_parts() -> None:
    euro = record(T0, "purchase_completed", {"total": 10, "currency": "eur"})
    dollar = record(T0 + 1, "purchase_completed", {"total": 4.2, "currency": "USD"})
    bare = record(T0 + 2, "purchase_completed", {"total": 1})
    one = view("", [euro], T0 + DAY)["monetary_total"]
    assert (one["value"], one["currency"], "amounts" in one) == (10.0, "EUR", False)
    unnamed = view("", [bare], T0 + DAY)["monetary_total"]
    assert (unnamed["value"], unnamed["currency"]) == (1.0, None)
    several = view("", [euro, dollar, bare], T0 + DAY)["monetary_total"]
    assert (several["value"], several["currency"]) == (None, None)
    assert several["amounts"] == {"EUR": 10.0, "USD": 4.2, "unknown": 1.0}
    rates = 'currencies: {total_in: USD, rates: {EUR: "1.08"}}'
    converted = view(rates, [euro], T0 + DAY)["monetary_total"]
    assert (converted["value"], converted["currency"], converted["amounts"]) == (10.8, "USD", {"EUR": 10.0})
    assert view(rates, [euro, bare], T0 + DAY)["monetary_total"]["value"] is None


@pytest.mark.parametrize(
    ("currencies", "codes", "reason"),
    [
        ("{}", ["EUR", None], "2 currencies: EUR and none; no rates"),
        ("{}", ["USD", None, "EUR"], "3 currencies: EUR, USD and none; no rates"),
        ("{default: EUR}", ["EUR", None], ""),
        ("{}", ["EUR", "EUR"], ""),
        ("{total_in: USD}", ["EUR"], "currency: EUR; no rate to USD for EUR"),
        ('{total_in: USD, rates: {EUR: "1.08"}}', ["EUR", None], "2 currencies: EUR and none; no rate to USD for none"),
        ("{}", [f"C{a}{b}" for a in "ABCDEF" for b in "ABCDEF"], "more than 32 currencies"),
    ],
)
def test_money_without_a_total_says_why(currencies: str, codes: list[str | None], reason: str) -> None:
    bought = [
        record(T0 + n, "purchase_completed", {"total": 1} | ({} if code is None else {"currency": code}))
        for n, code in enumerate(codes)
    ]
    per_visit = "{aggregate: ratio, numerator: monetary_total, denominator: has_purchased}"
    score = "{aggregate: score, parts: {monetary_total: {weight: 1, half: 1}}}"
    shown = view(f"currencies: {currencies}\nfeatures: {{share: {per_visit}, worth: {score}}}", bought, T0 + DAY)
    assert shown["monetary_total"].get("reason", "") == reason
    assert (shown["monetary_total"]["value"] is None) == bool(reason)
    for built_on_it in ("share", "worth"):
        assert shown[built_on_it].get("reason", "") == (f"monetary_total: {reason}" if reason else "")


def test_smallest_and_largest_amounts_are_compared_after_conversion() -> None:
    rates = """
        currencies: {total_in: EUR, default: EUR, rates: {JPY: "0.006"}}
        features:
          cheapest: {aggregate: min, events: buy, of: total, currency: currency, window: 30d}
          dearest: {aggregate: max, events: buy, of: total, currency: currency, window: 30d}
    """
    totals = [(100, "JPY"), (2, "EUR"), (1_000, "JPY"), (4, None)]
    events = [
        record(T0 + n, "buy", {"total": total, **({"currency": code} if code else {})})
        for n, (total, code) in enumerate(totals)
    ]
    shown = view(rates, events, T0 + DAY)
    assert (shown["cheapest"]["value"], shown["dearest"]["value"]) == (0.6, 6.0)
    shown = view(rates, events[3:], T0 + DAY)
    assert (shown["cheapest"]["value"], shown["cheapest"]["currency"]) == (4.0, "EUR")


def test_staleness_begins_right_after_its_time_and_is_announced() -> None:
    definitions = "features: {visits: {aggregate: count, events: page, stale_after: 2d}}"
    events = [record(T0, "page", {})]
    fresh = view(definitions, events, T0 + 2 * DAY)["visits"]
    assert (fresh["status"], fresh["changes_at"]) == ("PRESENT", T0 + 2 * DAY + 1)
    stale = view(definitions, events, T0 + 2 * DAY + 1)["visits"]
    assert (stale["status"], stale["value"], stale["changes_at"]) == ("STALE", 1, None)


def test_a_composed_feature_grows_stale_with_its_parts() -> None:
    definitions = "features: {rate: {aggregate: ratio, stale_after: 1d, numerator: has_purchased, denominator: visits},"
    definitions += " visits: {aggregate: count, events: page}}"
    events = [record(T0, "page", {}), record(T0 + HOUR, "purchase_completed", {})]
    rate = view(definitions, events, T0 + DAY)["rate"]
    assert (rate["value"], rate["status"], rate["changes_at"]) == (1.0, "PRESENT", T0 + HOUR + DAY + 1)
    known = projection(read_definitions([("a.yaml", definitions)]))
    state = known.after(known.after({}, events[0]), events[1])
    assert known.depends.due is not None
    # Whole days since the page come sooner than staleness.
    assert known.depends.due(state, T0 + HOUR + DAY - 1) == T0 + HOUR + DAY
    assert known.depends.due(state, T0 + HOUR + DAY) == T0 + HOUR + DAY + 1


def test_the_null_rule_replaces_the_value_of_nothing() -> None:
    definitions = "features: {spend: {aggregate: sum, events: buy, of: total, window: 1d, empty: null},"
    definitions += " rate: {aggregate: ratio, numerator: spend, denominator: has_purchased, empty: -1}}"
    never = view(definitions, [], T0)
    assert (never["spend"]["value"], never["spend"]["status"], never["rate"]["value"]) == (None, "NOT_FOUND", -1)
    over = view(definitions, [record(T0, "buy", {"total": 3})], T0 + 2 * DAY)
    assert (over["spend"]["value"], over["spend"]["status"], over["rate"]["value"]) == (None, "PRESENT", -1)


def test_local_hours_follow_the_zone_of_each_event_and_daylight_saving() -> None:
    rome = {"timezone": "Europe/Rome"}
    # 00:30Z is 01:30 before the change on 2026-03-29 at 01:00Z, and 01:30Z is 03:30 after it.
    assert _hour_of("2026-03-29T00:30:00Z", rome) == (1, 7)
    assert _hour_of("2026-03-29T01:30:00Z", rome) == (3, 7)
    # 23:00Z on a Saturday is Sunday in Rome, and 05:45 ahead in Nepal.
    assert _hour_of("2026-03-28T23:00:00Z", rome) == (0, 7)
    assert _hour_of("2026-03-28T23:00:00Z", {"timezone": "Asia/Kathmandu"}) == (4, 7)
    assert _hour_of("2026-03-28T23:00:00Z", {"timezone": "../../etc/passwd"}) == (23, 6)
    assert _hour_of("2026-03-28T23:00:00Z", {}, "timezone: Pacific/Auckland") == (12, 7)


def _hour_of(at: str, context: dict[str, Any], definitions: str = "") -> tuple[Any, Any]:
    shown = view(definitions, [record(parse_time(at), "page", {}, context)], parse_time(at) + 1)
    return shown["preferred_hour_of_day"]["value"], shown["preferred_day_of_week"]["value"]


def test_the_state_of_ten_events_is_small() -> None:
    case = CASES[0]
    known = projection(read_definitions())
    state = known.empty()
    for at, kind, properties in case.events[:10]:
        state = known.after(state, record(parse_time(at), kind, json.loads(properties)))
    assert len(msgspec.msgpack.encode(state)) < 600


def test_last_with_nulls_is_empty_when_the_last_event_lacks_the_value() -> None:
    definitions = """
        features:
          known: {aggregate: last, events: page, of: plan}
          current: {aggregate: last, events: page, of: plan, nulls: respect}
          named: {aggregate: last, events: page, of: plan, nulls: respect, empty: none}
    """
    events = [record(T0, "page", {"plan": "pro"}), record(T0 + 1, "page", {})]
    before, after = view(definitions, events[:1], T0 + DAY), view(definitions, events, T0 + DAY)
    assert [before[name]["value"] for name in ("known", "current", "named")] == ["pro"] * 3
    assert [after[name]["value"] for name in ("known", "current", "named")] == ["pro", None, "none"]
    assert after["current"]["status"] == "PRESENT"
    assert after["current"]["reason"] == "the latest event has no such value"
    assert "reason" not in after["known"]
