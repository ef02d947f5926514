"""Derivations in YAML: what users add, replace and leave out, and what they are told about their mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capabilities.memory_stage import memory_of
from threadline.capabilities.profile.memory import read_derivations
from threadline.capabilities.profile.memory.paths import slug
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.event import Event, Recorded, event_id
from threadline.kernel.limits import FACT_KEY_LENGTH_MAX
from threadline.kernel.time import DAY, parse_time

T0 = parse_time("2026-03-01T00:00:00Z")


def values(definitions: str, *told: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """The values of all facts after these events, a day apart, told backwards."""
    memory = memory_of(definitions)
    state = memory.empty()
    for number, (type, properties) in reversed(list(enumerate(told))):
        event = Event(
            type=type,
            identifiers=(),
            occurred_at=T0 + number * DAY,
            key=str(number),
            properties=properties,
            context={"ip": "192.0.2.1"},
        )
        state = memory.after(state, Recorded(event, event_id("", "", str(number)), "thread", 1, 0))
    shown = memory.view(state, T0 + 100 * DAY, [])
    return {f"{type}/{key}": f["value"] for type in shown if type != "retracted" for key, f in shown[type].items()}


def test_a_derivation_needs_no_code() -> None:
    declared = """
        memory:
          shoe_size: {events: bought, where: {category: shoes}, fact: preference/shoe_size, value: size}
          visits:
            events: {store_visited: {set: {place: store}}, fair_visited: {set: {place: fair}}}
            fact: "behavioral/visits:{city}"
            value:
              visits: {aggregate: count}
              spent: {aggregate: sum, of: price, times: quantity}
              first_guide: {aggregate: first, of: guide.name|guide}
              ip: context.ip
    """
    assert values(
        declared,
        ("bought", {"category": "shoes", "size": 41}),
        ("bought", {"category": "socks", "size": 2}),
        ("store_visited", {"city": "Lyon", "price": "0.1", "quantity": 3, "guide": {"name": "Ann"}}),
        ("fair_visited", {"city": "Lyon", "price": 0.2, "guide": "Bob"}),
        ("fair_visited", {"price": 5}),
    ) == {
        "preference/shoe_size": 41,
        "behavioral/visits:Lyon": {"visits": 2, "spent": 0.5, "first_guide": "Ann", "ip": "192.0.2.1", "place": "fair"},
    }


def test_entries_of_lists_and_mappings_make_facts() -> None:
    declared = """
        memory:
          guest: {events: booked, each: guests, fact: "fact/guest:{name|value}", value: {age: age, room: event.room}}
          wish: {events: booked, each: wishes, fact: "preference/{key:slug}", value: value}
    """
    told = {
        "room": 12,
        "guests": [{"name": "Ann", "age": 7}, "Bob", {"age": 1}, None],
        "wishes": {"Late check-out": True, "Pillow (soft)": "two", " ": 1, "None": None},
    }
    assert values(declared, ("booked", told)) == {
        "fact/guest:Ann": {"age": 7, "room": 12},
        "fact/guest:Bob": {"age": None, "room": 12},
        "preference/late_check_out": True,
        "preference/pillow_soft": "two",
    }


def test_what_sources_say_is_kept_apart_and_what_was_recalled_is_left_out() -> None:
    declared = "memory: {mood: {events: noted, fact: fact/mood, says: mood, source: agent_inferred, recalled: known}}"
    assert values(declared, ("noted", {"mood": "glad"}), ("noted", {"mood": "sad", "known": ["fact/mood"]})) == {
        "fact/mood": "glad"
    }


def test_one_that_ships_is_replaced_or_left_out() -> None:
    declared = """
        memory:
          payment_method: {events: purchase_completed, fact: preference/payment_method, value: paid_by}
          product: false
    """
    purchase = ("purchase_completed", {"product_id": "a", "total": 1, "paid_by": "cash", "payment_method": "card"})
    assert sorted(values(declared, purchase).items())[0] == ("preference/payment_method", "cash")
    assert sorted(values(declared, purchase)) == ["preference/payment_method", "purchase/last_transaction"]
    assert len(values("", purchase)) == 3


def test_the_fingerprint_follows_what_shapes_facts_only() -> None:
    one = "memory: {a: {events: x, fact: fact/a, value: v, description: One}}"
    other = "memory: {a: {description: Other, value: v, fact: fact/a, events: [x]}}"
    assert read_derivations([("a.yaml", one)]).fingerprint == read_derivations([("b.yaml", other)]).fingerprint
    changed = read_derivations([("a.yaml", one.replace("value: v", "value: w"))])
    assert changed.fingerprint != read_derivations([("a.yaml", one)]).fingerprint


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ("a: {fact: fact/a, value: v}", "derivation 'a' needs `events`"),
        (
            "a: {events: x, value: v}",
            "derivation 'a' needs `fact`: type and key of the fact, such as preference/colour",
        ),
        ("a: {events: x, fact: fact/a}", "needs `value` or `says`"),
        ("a: {events: x, fact: fact/a, value: v, says: v}", "has both `value` and `says`"),
        ("a: {events: x, fact: facts/a, value: v}", "unknown type 'facts'; did you mean 'fact'?"),
        (
            "a: {events: x, fact: colour, value: v}",
            "`fact` must be written like preference/colour or purchase/product:{product_id}, and 'colour' is not",
        ),
        ("a: {events: x, fact: 'fact/{a', value: v}", "`fact` must be written like"),
        ("a: {events: x, fact: '{type}/a', value: v}", "a type that varies needs a key that does"),
        ("a: {events: any, fact: fact/a, value: v}", "'any' makes no facts"),
        ("a: {events: fact_retracted, fact: fact/a, value: v}", "'fact_retracted' makes no facts"),
        ("a: {events: [x, x], fact: fact/a, value: v}", "`events` names 'x' twice; keep one"),
        (
            "a: {events: x, fact: fact/a, value: v, source: user_declare}",
            "`source` cannot be 'user_declare'; did you mean 'user_declared'?",
        ),
        ("a: {events: x, fact: fact/a, value: v, confidence: 0.99}", "at most 0.95 for event_derived"),
        ("a: {events: x, fact: fact/a, value: v, expires_after: soon}", "is not a duration"),
        ("a: {events: x, fact: fact/a, value: v, most: 900}", "`most` must be a whole number from 1 to 200"),
        ("a: {events: x, fact: fact/a, value: v, derived_from: b}", "`derived_from` goes with `says` only"),
        ("a: {events: x, fact: fact/a, value: v, recalled: b}", "`recalled` goes with `says` only"),
        ("a: {events: x, fact: fact/a, each: b, value: v}", "entries of `each` need a key that varies"),
        ("a: {events: x, fact: fact/a, value: v, otherwise: {b: c}}", "`otherwise` goes with `each` only"),
        ("a: {events: x, fact: fact/a, value: {n: {aggregate: total}}}", "`value.n.aggregate` cannot be 'total'"),
        ("a: {events: x, fact: fact/a, value: {n: {aggregate: sum}}}", "needs the path of a value"),
        ("a: {events: x, fact: fact/a, value: {n: {aggregate: count, of: b}}}", "'count' takes no `of`"),
        ("a: {events: x, fact: fact/a, value: {n: {of: b, currency: c}}}", "'last' takes no `currency`"),
        ("a: {events: x, fact: fact/a, value: a..b}", "must be a path such as"),
        ("a: {events: x, fact: fact/a, value: v, where: {b: {gtt: 1}}}", "unknown operator 'gtt'; did you mean 'gt'?"),
        ("a: {events: {x: {set: {b: null}}}, fact: fact/a, value: {c: d}}", "`events.x.set.b` must be a text"),
        ("a: {events: x, fact: fact/a, valu: v}", "unknown key 'valu'; did you mean 'value'?"),
        ("A: {events: x, fact: fact/a, value: v}", "'A' is not a valid derivation name"),
        (
            "a: {events: [], fact: fact/a, value: v}",
            "derivation 'a': `events` must be a list of at least 1, and it is empty",
        ),
        ("a: {events: {x: {set: {b: 1}}}, fact: fact/a, value: v}", "`set` puts fields into a value that is a mapping"),
        ("a: {events: {x: {set: {b: 1}}}, fact: fact/a, says: v}", "`set` puts fields into a value that is a mapping"),
        (
            "a: {events: {x: {set: {b: 1}}, y: }, fact: fact/a, value: {b: b, c: c}}",
            "field 'b' is read from events and set as well",
        ),
        (
            "a: {events: x, fact: fact/a, value: {s: {aggregate: sum, of: b, currency: c}, s_by_currency: d}}",
            "field 's_by_currency' is what the sum 's' is told as per currency",
        ),
        (f"a: {{events: x, fact: fact/{'k' * 129}, value: v}}", "a key has at most 128 characters"),
        (f"a: {{events: x, fact: 'fact/{'k' * 128}{{b}}', value: v}}", "a key has at most 128 characters"),
        ("a: {events: x, fact: fact/ a, value: v}", "a key must not begin or end with a blank"),
        ("a: true", "derivation 'a' must be a mapping"),
        ("remembered: false", "derivation 'remembered' ships and can be neither replaced nor left out"),
        ("produkt: false", "does not ship and cannot be left out; did you mean 'product'?"),
    ],
)
def test_a_mistake_is_named_where_it_stands(declared: str, told: str) -> None:
    with pytest.raises(InvalidDefinition) as caught:
        read_derivations([("a.yaml", f"memory:\n  {declared}\n")])
    assert told in str(caught.value)
    assert str(caught.value).startswith("a.yaml:2: ")


def test_a_slug_is_a_plain_word() -> None:
    assert slug("How did you hear of us?") == "how_did_you_hear_of_us"
    assert slug("  Straße / Größe № 7 ") == "strasse_grosse_no_7"
    assert slug("Quelle est ta pointure ?") == slug("quelle-est-ta-POINTURE")
    assert slug("年齢は？") == "年齢は"
    assert slug("") == ""
    assert len(slug("a b" * 100)) == 64


def test_what_means_something_else_is_another_word() -> None:
    others = [
        ("मेरी", "मेरा"),
        ("バス", "ハス"),
        ("がき", "かき"),
        ("🙂", "👍"),
        ("?!", "!?"),
        ("x" * 64 + " one", "x" * 64 + " two"),
        ("न" * 1_001 + "अ", "न" * 1_001 + "आ"),
    ]
    for one, other in others:
        assert slug(one) != slug(other)
        assert all(0 < len(slug(each)) <= 64 for each in (one, other))
    assert slug("मेरी उम्र?") == "मेरी_उम्र"
    # What is cut stays the same word in whatever way it is written.
    assert slug("Ö" * 64 + "!") == "o" * 64
    assert slug("Ö" * 65 + "!") == slug("o" * 65)
    # Composed or decomposed, it looks the same and is the same.
    assert slug("ば") == slug("\u306f\u3099")
    assert slug("Ελλάδα, Ёлка, Žluťoučký") == "ελλαδα_елка_zlutoucky"
    assert slug("☺️ 1️⃣ size") == "1_size"


def test_no_key_is_longer_than_one_can_ask_for() -> None:
    declared = """
        memory:
          visits: {events: visited, fact: "behavioral/visits:{city}", value: {n: {aggregate: count}}}
    """
    kept, left_out = "x" * (FACT_KEY_LENGTH_MAX - len("visits:")), "x" * (FACT_KEY_LENGTH_MAX - len("visits:") + 1)
    told = values(declared, ("visited", {"city": kept}), ("visited", {"city": left_out}))
    assert told == {f"behavioral/visits:{kept}": {"n": 1}}
