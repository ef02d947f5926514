"""Laws of memory: any arrival is what the auditor says, limits do not show the order, retractions are exact."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.capabilities.asked import Asked
from tests.capabilities.memory_stage import INSIGHT, MEMORY, T0, fold, memory_of, record, view
from threadline.kernel.event import Recorded, event_id
from threadline.kernel.limits import FACT_RETRACTIONS_MAX, FACT_VALUE_BYTES_MAX, FACT_VOICES_MAX, FACTS_RETRACTED_MAX
from threadline.kernel.time import DAY, HOUR, SECOND, format_time
from threadline.testing import scenarios
from threadline.testing.audits import memory as auditor
from threadline.testing.projection_laws import LAWS

# --- any arrival is what is true ------------------------------------------------------------------


def facts_told(random: Random, count: int) -> list[Recorded]:
    """Facts told, derived, retracted and given back, crowded on few keys and few instants."""
    events = scenarios.recorded(scenarios.history(random, people=1, count=count // 2))
    ids = ["preference/colour", "fact/size", "interest/sea", "purchase/product:tent", "preference/payment_method"]
    for number in range(count - len(events)):
        at = scenarios.NOW - 30 * DAY + random.randrange(12) * HOUR
        kind = random.choice(("agent_insight", "fact_computed", "fact_remembered", "retract", "restore"))
        type, _, key = random.choice(ids).partition("/")
        taken = [each for each in events if each.event.type == "fact_retracted"]
        told: dict[str, Any] = {"type": type, "key": key}
        if kind == "restore" and taken:
            undone = random.choice(taken)
            told = {**undone.event.properties, "retraction": undone.id, "retracted_at": undone.event.occurred_at}
        elif kind not in ("retract", "restore"):
            told |= {"value": random.choice(("a", "b", {"c": [1]})), "derived_from": random.sample(ids, 2)}
            if random.randrange(3) == 0:
                told["confidence"] = random.choice((0.3, 0.95))
            if random.randrange(3) == 0:
                told["expires_at"] = format_time(scenarios.NOW + random.randrange(-2, 3))
        name = {"retract": "fact_retracted", "restore": "fact_restored"}.get(kind, kind)
        events.append(record(at, name, told, random.choice(("ann", "bob")), f"told {number}"))
    return events


@settings(max_examples=60)
@given(random=scenarios.randoms, count=st.integers(2, 60))
def test_any_arrival_is_what_the_auditor_says(random: Random, count: int) -> None:
    events = facts_told(random, count)
    shuffled = random.sample(events, len(events))
    assert fold(shuffled) == fold(events)
    for law in LAWS:
        law(MEMORY, events, random)
    now = random.choice((scenarios.NOW, scenarios.NOW + 1, scenarios.NOW - 30 * DAY + 6 * HOUR))
    known = [each for each in events if each.event.occurred_at < now]
    told = [scenarios.plain(each.event) for each in sorted(known, key=lambda e: (e.event.occurred_at, e.id))]
    assert view(shuffled, now) == auditor.memory(told, now)


@settings(max_examples=60)
@given(random=scenarios.randoms)
def test_due_is_the_next_instant_at_which_time_changes_the_view(random: Random) -> None:
    events = facts_told(random, 40)
    now = scenarios.NOW - 3
    known = [each for each in events if each.event.occurred_at < now]
    assert MEMORY.depends.due is not None
    due = MEMORY.depends.due(fold(known), now)
    until = scenarios.NOW + 10 if due is None else min(due - 1, scenarios.NOW + 10)
    assert view(known, until) == view(known, now)


DECLARED = """
memory:
  stay:
    events: {booked: {set: {state: open}}, cancelled: {set: {state: void}}}
    fact: fact/stay:{city}
    most: 3
    value: {first_room: {aggregate: first, of: room}, nights: {aggregate: sum, of: nights, times: guests}, room: room}
  wish: {events: booked, each: wishes, fact: "preference/{key:slug}", says: value, most: 2, source: agent_inferred}
  mood: {events: booked, fact: fact/mood, says: mood, source: agent_inferred, confidence: sure, expires_at: until}
"""


@given(random=scenarios.randoms)
def test_whatever_is_declared_keeps_the_laws(random: Random) -> None:
    declared = memory_of(DECLARED)
    rooms = [7, "suite", None, {"floor": 1}]
    events = [
        record(
            T0 + random.randrange(3),
            random.choice(("booked", "cancelled")),
            {
                "city": random.choice("abcde"),
                "room": random.choice(rooms),
                "nights": random.choice((1, "0.5", None)),
                "guests": random.choice((2, None)),
                "mood": random.choice(("glad", 3)),
                "sure": random.random(),
                "wishes": random.choice(({"A": 1, "a!": 2}, {"B": 1}, {"c": True}, None, [])),
            },
            random.choice(("ann", "bob", "cid", "dan")),
            str(number),
        )
        for number in range(30)
    ]
    for law in LAWS:
        law(declared, events, random)


# --- one purchase, three facts --------------------------------------------------------------------


@settings(max_examples=15)
@given(random=scenarios.randoms)
def test_one_purchase_makes_exactly_three_facts(random: Random) -> None:
    """Fifty purchases of one product, told in any order, some of them again, through the whole engine."""
    shop = Asked()
    purchases = [
        {
            "order_id": f"order-{n}",
            "product_id": "whey_1kg",
            "product_name": f"Whey {n}",
            "total": n + 0.1,
            "currency": "BRL",
            "payment_method": ("pix", "card")[n % 2],
        }
        for n in range(50)
    ]
    arrivals = random.sample(range(50), 50) + random.choices(range(50), k=25)
    for n in random.sample(arrivals, len(arrivals)):
        shop.tell("purchase_completed", T0 - 60 * DAY + n * DAY, key=f"p{n}", user_id="ada", properties=purchases[n])
    answer = shop.ask("memory_of", id="user_id:ada")
    facts = {(fact["type"], fact["key"]): fact for fact in answer["facts"]}
    assert {name: fact["value"] for name, fact in facts.items()} == {
        ("purchase", "last_transaction"): {
            "order_id": "order-49",
            "product_id": "whey_1kg",
            "product_name": "Whey 49",
            "total": 49.1,
            "currency": "BRL",
            "payment_method": "card",
            "purchased_at": "2025-12-21T00:00:00.000000Z",
        },
        ("purchase", "product:whey_1kg"): {
            # 0 + 1 + … + 49 is 1225, and fifty tenths are 5.
            "product_name": "Whey 49",
            "purchases": 50,
            "total_spent": 1230.0,
            "total_spent_by_currency": {"BRL": 1230.0},
            "average_interval_days": 1.0,
            "first_at": "2025-11-02T00:00:00.000000Z",
            "last_at": "2025-12-21T00:00:00.000000Z",
        },
        ("preference", "payment_method"): "card",
    }
    newest = [event_id("default", "shop", f"p{n}") for n in (49, 48, 47)]
    assert facts["purchase", "last_transaction"]["source_event_ids"] == newest
    assert {(fact["events"], fact["source"], fact["confidence"]) for fact in facts.values()} == {
        (50, "event_derived", 0.95)
    }


def test_what_happened_counts_whatever_else_is_told_of_it() -> None:
    events = [
        record(T0, "purchase_completed", {"order_id": "1", "products": [{"product_id": "a", "quantity": 2}]}),
        record(T0 + DAY, "purchase_completed", {"product_id": "a", "product_name": "A", "total": 5}),
        record(T0 + 2 * DAY, "purchase_completed", {"product_id": "a"}),
        record(T0, "objection_raised", {"topic": "Too dear"}),
        record(T0, "product_asked", {"product_id": "a"}),
        record(T0, "conversation_started", {"category": "support", "topic": "size"}),
        # Where the key is always the same, an event that says nothing is none of it.
        record(T0, "campaign_ignored", {}),
        record(T0, "purchase_refunded", {"reference": "1"}),
    ]
    shown = view(events, T0 + 3 * DAY)
    product = shown["purchase"]["product:a"]["value"]
    assert (product["purchases"], product["total_spent"], product["average_interval_days"]) == (3, 5.0, 1.0)
    assert shown["behavioral"]["objection:too_dear"]["value"]["text"] == "Too dear"
    assert shown["interest"]["product:a"]["value"]["questions"] == 1
    assert shown["support"]["topic:size"]["value"]["requests"] == 1
    assert "campaign" not in shown
    assert "last_refund" not in shown["purchase"]


# --- expiry ---------------------------------------------------------------------------------------


def test_a_fact_is_gone_at_the_microsecond_at_which_it_expires() -> None:
    told = {"type": "fact", "key": "trip", "value": "Rome", "expires_at": "2026-02-01T00:00:00.000001Z"}
    events = [
        record(T0, "fact_remembered", told),
        record(T0, "agent_insight", {**told, "value": "Paris", "expires_at": None}),
    ]
    until = T0 + 31 * DAY + 1
    assert view(events, until - 1)["fact"]["trip"]["value"] == "Rome"
    # The weaker claim has stood beside it all the time.
    assert view(events, until)["fact"]["trip"]["value"] == "Paris"
    assert MEMORY.depends.due is not None
    assert MEMORY.depends.due(fold(events), until - 1) == until
    assert MEMORY.depends.due(fold(events), until) is None


# --- limits ---------------------------------------------------------------------------------------


def assert_bounded(events: list[Recorded], random: Random) -> Any:
    state = fold(events)
    for _ in range(3):
        assert fold(random.sample(events, len(events))) == state
    return state


def test_limits_do_not_show_the_order(seed: int) -> None:
    random = Random(seed)
    products = [
        record(T0 + n, "purchase_completed", {"product_id": f"p{n % 150}", "total": n}, key=str(n)) for n in range(400)
    ]
    state = assert_bounded(products, random)
    kept = view(products, T0 + DAY)["purchase"]
    assert len(kept) == 61  # last_transaction and sixty products
    assert all(
        fact["value"]["purchases"] == sum(1 for n in range(400) if f"product:p{n % 150}" == key)
        for key, fact in kept.items()
        if key != "last_transaction"
    )
    assert len(msgspec.msgpack.encode(state)) < 8_000
    voices = [record(T0 + n, "agent_insight", INSIGHT | {"value": n}, f"agent {n % 9}") for n in range(50)]
    assert_bounded(voices, random)
    fact = view(voices, T0 + DAY)["fact"]["likes"]
    assert len(fact["conflicts"]) == FACT_VOICES_MAX - 1


CROWDED = """
memory:
  note: {events: noted, fact: "fact/{key}", says: value, source: agent_inferred, expires_at: until, most: 4}
  seen: {events: noted, fact: "behavioral/seen:{key}", value: {n: {aggregate: count}}, expires_after: 3h, most: 8}
"""


def crowd(random: Random, count: int) -> list[Recorded]:
    """Notes on many things, most of them for some hours only; some are taken back, and some of that is undone."""
    events: list[Recorded] = []
    for number in range(count):
        at = T0 + random.randrange(40) * HOUR
        key = {"type": "fact", "key": f"k{random.randrange(16)}"}
        taken = [each for each in events if each.event.type == "fact_retracted"]
        kind = random.choice(("noted",) * 8 + ("fact_retracted", "fact_restored"))
        told: dict[str, Any] = key
        if kind == "fact_restored":
            if not taken:
                continue
            undone = random.choice(taken)
            told = {**undone.event.properties, "retraction": undone.id, "retracted_at": undone.event.occurred_at}
        elif kind == "noted":
            until = random.choice((None, format_time(at + random.randrange(6) * HOUR)))
            told = {**key, "value": number, "until": until}
        events.append(record(at, kind, told, random.choice(("ann", "bob")), str(number)))
    return events


@pytest.mark.slow
@settings(max_examples=60)
@given(random=scenarios.randoms, count=st.integers(1, 80))
def test_facts_that_expire_are_sorted_out_alike_in_any_order(random: Random, count: int) -> None:
    declared = memory_of(CROWDED)
    events = crowd(random, count)
    for law in LAWS:
        law(declared, events, random)
    state = declared.empty()
    for each in sorted(events, key=lambda each: (each.event.occurred_at, each.id)):
        state = declared.after(state, each)
    for hour in range(45):
        shown = declared.view(state, T0 + hour * HOUR, [])
        assert len(shown.get("fact", {})) <= 4
        assert len(shown.get("behavioral", {})) <= 8


def test_of_facts_that_are_all_over_nothing_stays_however_they_are_folded() -> None:
    declared = memory_of(CROWDED)
    events = [
        record(T0 + hour * HOUR, "noted", {"key": f"k{hour}", "value": hour, "until": format_time(T0 + until * HOUR)})
        for hour, until in ((0, 3), (4, 6), (7, 8), (8, 12), (11, 12), (12, 12))
    ]
    for law in LAWS:
        law(declared, events, Random(0))
    events.append(record(T0 + 13 * HOUR, "noted", {"key": "k0", "value": "again"}))
    state = declared.empty()
    for each in events:
        assert declared.faster.fold is not None
        state = declared.faster.fold("noted")(state, each)  # type: ignore[misc]
    fact = declared.view(state, T0 + 14 * HOUR, [])["fact"]["k0"]
    assert (fact["value"], fact["created_at"], fact["events"]) == ("again", format_time(T0 + 13 * HOUR), 1)


@given(random=scenarios.randoms)
def test_what_is_over_keeps_no_fact_out(random: Random) -> None:
    """Every hour four things are noted for an hour, each time others; all four are known, whatever was there before."""
    declared = memory_of(CROWDED)
    state = declared.empty()
    for hour in range(20):
        keys = [f"{hour}-{random.random()}" for _ in range(4)]
        for key in keys:
            told = {"key": key, "value": hour, "until": format_time(T0 + (hour + 1) * HOUR)}
            state = declared.after(state, record(T0 + hour * HOUR, "noted", told, key=key))
        assert sorted(declared.view(state, T0 + hour * HOUR + 1, [])["fact"]) == sorted(keys)
    assert len(state[next(code for code in state if code not in "!~")]) <= 10


def test_retractions_are_bounded_and_the_newest_stay(seed: int) -> None:
    random = Random(seed)
    told = {"type": "fact", "key": "likes"}
    events = [record(T0 + n * SECOND, "fact_retracted", told, key=str(n)) for n in range(3 * FACT_RETRACTIONS_MAX)]
    events += [record(T0 + n, "fact_retracted", {"type": "fact", "key": str(n)}) for n in range(FACTS_RETRACTED_MAX)]
    state = assert_bounded(events, random)
    assert len(state["!"]) == FACTS_RETRACTED_MAX
    only = fold(events[: 3 * FACT_RETRACTIONS_MAX])["!"]["fact/likes"]
    assert [each[0] for each in only] == [T0 + n * SECOND for n in range(47, 31, -1)]


def test_what_is_too_large_is_not_kept() -> None:
    for value, kept in (("é" * (FACT_VALUE_BYTES_MAX // 2), True), ("é" * (FACT_VALUE_BYTES_MAX // 2 + 1), False)):
        shown = view([record(T0, "fact_remembered", {"type": "fact", "key": "x", "value": value})], T0 + DAY)
        assert ("fact" in shown) == kept
    for key in ("", "  ", "k" * 129, None, True, 1.5):
        assert "fact" not in view([record(T0, "fact_remembered", {"type": "fact", "key": key, "value": 1})], T0 + DAY)


# --- retraction -----------------------------------------------------------------------------------


def test_what_rests_on_a_retracted_fact_goes_with_it_unless_somebody_else_says_so() -> None:
    def insight(n: int, key: str, premise: str = "", source: str = "ann") -> Recorded:
        told = {"type": "fact", "key": key, "value": True} | ({"derived_from": [premise]} if premise else {})
        return record(T0 + n, "agent_insight", told, source, f"{n}")

    events = [
        insight(1, "a"),
        insight(2, "b", "fact/a"),
        insight(3, "c", "fact/b"),
        insight(4, "d", "fact/b"),
        insight(5, "d", source="bob"),
        record(T0 + 10, "fact_retracted", {"type": "fact", "key": "a"}),
        insight(11, "c", "fact/b"),
    ]
    shown = view(events, T0 + DAY)
    # `c` was learned again after the retraction, `d` is what Bob says too.
    assert sorted(shown["fact"]) == ["c", "d"]
    assert {each["key"]: each["because_of"] for each in shown["retracted"]} == {"a": "", "b": "fact/a"}
    ring = [insight(1, "x", "fact/y"), insight(2, "y", "fact/x")]
    assert sorted(view(ring, T0 + DAY)["fact"]) == ["x", "y"]
    ring.append(record(T0 + 10, "fact_retracted", {"type": "fact", "key": "y"}))
    assert "fact" not in view(ring, T0 + DAY)


def test_a_word_that_has_expired_keeps_nothing_alive() -> None:
    def insight(at: int, key: str, source: str, **told: Any) -> Recorded:
        return record(
            T0 + at, "agent_insight", {"type": "fact", "key": key, "value": True, **told}, source, key + source
        )

    events = [
        record(T0, "fact_remembered", {"type": "fact", "key": "a", "value": True}),
        insight(1, "b", "ann", derived_from=["fact/a"]),
        insight(1, "b", "bob", expires_at=format_time(T0 + HOUR)),
        insight(2, "c", "ann", derived_from=["fact/b"]),
        record(T0 + 10, "fact_retracted", {"type": "fact", "key": "a"}),
    ]
    assert sorted(view(events, T0 + HOUR - 1)["fact"]) == ["b", "c"]
    assert MEMORY.depends.due is not None
    assert MEMORY.depends.due(fold(events), T0 + HOUR - 1) == T0 + HOUR
    gone = view(events, T0 + HOUR)
    assert "fact" not in gone
    assert [(each["key"], each["because_of"]) for each in gone["retracted"]] == [
        ("a", ""),
        ("b", "fact/a"),
        ("c", "fact/a"),
    ]


def test_what_was_taken_back_does_not_return_by_time_alone() -> None:
    def insight(at: int, key: str, **told: Any) -> Recorded:
        return record(T0 + at, "agent_insight", {"type": "fact", "key": key, "value": True, **told}, key=key)

    events = [
        insight(0, "a"),
        insight(1, "b", derived_from=["fact/a"], expires_at=format_time(T0 + HOUR)),
        insight(2, "c", derived_from=["fact/b"]),
        record(T0 + 10, "fact_retracted", {"type": "fact", "key": "a"}),
    ]
    for at in (11, HOUR - 1, HOUR, DAY):
        shown = view(events, T0 + at)
        assert "fact" not in shown, at
        # What has expired is not what a retraction keeps from being told.
        assert [each["key"] for each in shown["retracted"]] == ["a", "b", "c"] if at < HOUR else ["a", "c"]
    # Nobody took anything back: what rests on something that is over stands.
    assert sorted(view(events[:3], T0 + HOUR)["fact"]) == ["a", "c"]


@given(random=scenarios.randoms)
def test_a_retraction_undone_leaves_no_trace_in_what_is_told(random: Random) -> None:
    events = [each for each in facts_told(random, 40) if not each.event.type.startswith("fact_re")]
    fact = {"type": "purchase", "key": "product:tent"}
    at = scenarios.NOW - random.randrange(1, 120) * DAY
    taken = record(at, "fact_retracted", fact)
    undone = record(at, "fact_restored", {**fact, "retraction": taken.id, "retracted_at": at})
    told = random.sample([*events, taken, undone], len(events) + 2)
    assert view(told, scenarios.NOW) == view(events, scenarios.NOW)
