"""What is read in an event: amounts, conditions, keys; and the caps on what a state keeps."""

from __future__ import annotations

import math
import random
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.capabilities.profile.features import projection, read_definitions
from threadline.capabilities.profile.features.cells import BUCKET_KEYS_MAX, CELLS, CURRENCIES_MAX, tally_layout
from threadline.capabilities.profile.features.values import read_key
from threadline.kernel.event import Event, Recorded
from threadline.kernel.fixed import FIXED_MAX, SCALE, from_fixed, to_fixed
from threadline.kernel.limits import DISTINCT_VALUES_MAX
from threadline.kernel.time import DAY, parse_time

T0 = parse_time("2026-03-02T10:00:00Z")


def record(n: int, properties: dict[str, Any], kind: str = "x", context: dict[str, Any] | None = None) -> Recorded:
    event = Event(
        type=kind, identifiers=(), occurred_at=T0 + n, key=str(n), properties=properties, context=context or {}
    )
    return Recorded(event, f"{n:032x}", "thread", n + 1, T0 + n)


def read(definitions: str, events: list[Recorded], now: int = T0 + DAY // 2) -> tuple[Any, dict[str, Any]]:
    """The state after these events and what its view shows; the plain and the fused fold must agree."""
    known = projection(read_definitions([("threadline.yaml", definitions)]))
    state, fused = known.empty(), known.empty()
    assert known.faster.fold is not None
    for each in events:
        state = known.after(state, each)
        fold = known.faster.fold(each.event.type)
        assert fold is not None
        fused = fold(fused, each)
    assert state == fused
    msgspec.msgpack.encode(state)
    return state, known.view(state, now, [])


# --- amounts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "units"),
    [
        (29.33, 29_330_000),
        ("29.33", 29_330_000),
        (3, 3_000_000),
        (-0.1, -100_000),
        (0.1 + 0.2, 300_000),
        ("1e-6", 1),
        ("0.0000005", 0),
        ("0.0000015", 2),
        (1.0000015, 1_000_002),
        ("-.5", -500_000),
        (1e-300, 0),
        ("1e-999", 0),
        (9.2e12, FIXED_MAX),
        (9_200_000_000_000, FIXED_MAX),
        ("9200000000000.000001", None),
        (9.21e12, None),
        (10**30, None),
        ("1e9999", None),
        ("1e99999", None),
        (True, None),
        (None, None),
        (math.nan, None),
        (math.inf, None),
        ("nan", None),
        ("Infinity", None),
        ("1_000", None),
        (" 1", None),
        ("1,5", None),
        ("١", None),
        ("29 EUR", None),
        ("", None),
        ("9" * 65, None),
        ([1], None),
        (Decimal("29.33"), 29_330_000),
        (Decimal("sNaN"), None),
    ],
)
def test_amounts(value: object, units: int | None) -> None:
    assert to_fixed(value) == units


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_counts_as_the_shortest_decimal_that_names_it(value: float) -> None:
    exact = Decimal(repr(value))
    units = None
    if abs(exact) <= FIXED_MAX // SCALE:
        units = (
            int((exact * SCALE).quantize(Decimal(1), rounding=ROUND_HALF_EVEN)) if abs(exact) > Decimal("1e-9") else 0
        )
    assert to_fixed(value) == units


@given(st.integers(-(10**15) + 1, 10**15 - 1))
def test_amounts_of_fifteen_digits_come_back_as_they_were(units: int) -> None:
    assert to_fixed(from_fixed(units)) == units
    assert to_fixed(repr(from_fixed(units))) == units


def test_a_sum_outgrows_64_bits_and_comes_back() -> None:
    definitions = "features: {spend: {aggregate: sum, events: x, of: v}, least: {aggregate: min, events: x, of: v}}"
    values = [9.2e12] * 5 + [-9.2e12] * 5 + [0.5]
    for order in (values, values[::-1], sorted(values)):
        _, shown = read(definitions, [record(n, {"v": value}) for n, value in enumerate(order)])
        assert shown["spend"]["value"] == 0.5
        assert shown["least"]["value"] == -9.2e12
    _, shown = read(definitions, [record(n, {"v": 9.2e12}) for n in range(5)])
    assert shown["spend"]["value"] == 4.6e13


# --- conditions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "passing", "failing"),
    [
        ("text", ["text"], ["Text", None, {"a": 1}]),
        ("[1, a]", [1, 1.0, "1.0", "a"], [True, None]),
        ("{gt: 1, lte: 3}", [2, 3, 1.5, "2"], [1, 3.1, True, None]),
        ("{greater_than: 50}", ["80.00", 1e3], ["29.33", "50", None]),
    ],
)
def test_where_counts_the_events_that_pass_every_condition(where: str, passing: list[Any], failing: list[Any]) -> None:
    definitions = f"features: {{n: {{aggregate: count, events: x, where: {{v: {where}}}}}}}"
    events = [record(n, {"v": value}) for n, value in enumerate([*passing, *failing])]
    assert read(definitions, events)[1]["n"]["value"] == len(passing)
    assert read(definitions, events[: len(passing)])[1]["n"]["value"] == len(passing)


def test_where_as_a_list_of_trees_reads_all_that_the_event_says() -> None:
    definitions = """
        features:
          n:
            aggregate: count
            events: x
            where:
              - {field: event.source, equals: direct}
              - any: [{field: event.properties.v, gt: 5}, {field: event.context.vip, eq: true}]
              - not: {field: event.occurred_at, lt: "2026-03-02"}
    """
    events = [record(0, {"v": 6}), record(1, {"v": 5}), record(2, {}, context={"vip": True})]
    assert read(definitions, events)[1]["n"]["value"] == 2
    assert read(definitions, [record(-DAY, {"v": 6})])[1]["n"]["value"] == 0


def test_paths_reach_into_properties_and_context() -> None:
    definitions = """
        features:
          deep: {aggregate: last, events: x, of: order.id}
          city: {aggregate: last, events: x, of: context.location.city, where: {context.ip: {exists: true}}}
    """
    events = [record(0, {"order": {"id": "o1"}}, context={"ip": "::1", "location": {"city": "Rome"}})]
    events += [record(1, {"order": "o2"}, context={"location": {"city": "Oslo"}}), record(2, {"order": {"id": {}}})]
    _, shown = read(definitions, events)
    assert (shown["deep"]["value"], shown["city"]["value"]) == ("o1", "Rome")


def test_of_two_events_at_one_instant_the_id_decides() -> None:
    definitions = "features: {a: {aggregate: first, events: x, of: v}, z: {aggregate: last, events: x, of: v}}"
    twins = [Recorded(record(0, {"v": name}).event, name * 32, "t", 1, T0) for name in ("b", "a", "c")]
    _, shown = read(definitions, twins)
    assert (shown["a"]["value"], shown["z"]["value"]) == ("a", "c")


def test_texts_and_numbers_that_are_too_large_are_not_kept() -> None:
    definitions = "features: {z: {aggregate: last, events: x, of: v}}"
    kept = ["t" * 256, 2**63 - 1, False, 0.5]
    for value in kept:
        assert read(definitions, [record(0, {"v": value})])[1]["z"]["value"] == value
    for value in ["t" * 257, 2**63, math.nan, -math.inf, None, [], {}]:
        assert read(definitions, [record(0, {"v": value})])[1]["z"]["status"] == "NOT_FOUND"


def test_distinct_tells_types_apart_and_equal_numbers_not() -> None:
    definitions = "features: {n: {aggregate: distinct, events: x, of: v}}"
    values = [1, 1.0, "1", True, 1.5, "1.5", 2**70, float(2**70), -0.0, 0]
    assert read(definitions, [record(n, {"v": value}) for n, value in enumerate(values)])[1]["n"]["value"] == 7


# --- caps, each a function of the set of events ---------------------------------------------------------


def orders(events: list[Recorded], seed: int) -> list[list[Recorded]]:
    shuffled = list(events)
    random.Random(seed).shuffle(shuffled)
    return [events, events[::-1], shuffled]


def same_states(definitions: str, events: list[Recorded], seed: int) -> tuple[Any, dict[str, Any]]:
    results = [read(definitions, order) for order in orders(events, seed)]
    texts = {msgspec.json.encode(state, order="deterministic") for state, _ in results}
    assert len(texts) == 1
    return results[0]


def test_any_takes_the_options_of_a_type() -> None:
    definitions = """
        features:
          on_the_web: {aggregate: count, events: {any: {where: {channel: web}}}, except: [z]}
          paid_out: {aggregate: sum, of: total, events: {any: {value: amount, sign: -1}}}
          plain: {aggregate: count, events: {any: null}}
          listed: {aggregate: count, events: any}
    """
    properties = [{"channel": "shop", "total": 5, "amount": 7}, {"channel": "web", "total": 5, "amount": 4}, {}]
    events = [record(n, each, kind) for n, each in enumerate(properties) for kind in ("x", "y")]
    _, shown = read(definitions, [*events, record(9, {"channel": "web"}, "z")])
    values = {name: shown[name]["value"] for name in ("on_the_web", "paid_out", "plain", "listed")}
    assert values == {"on_the_web": 2, "paid_out": -22.0, "plain": 7, "listed": 7}


def test_distinct_keeps_a_bounded_number_in_any_order(seed: int) -> None:
    definitions = "features: {n: {aggregate: distinct, events: x, of: v}}"
    events = [record(n, {"v": n}) for n in range(DISTINCT_VALUES_MAX + 50)]
    # Going up through the hashes and down again is what tells a cap that keeps the smallest from any other.
    events.sort(key=lambda each: read_key(each.event.properties["v"]) or 0)
    state, shown = same_states(definitions, events, seed)
    assert (shown["n"]["value"], shown["n"]["capped"]) == (DISTINCT_VALUES_MAX + 1, True)
    assert len(msgspec.msgpack.encode(state)) < 10 * DISTINCT_VALUES_MAX
    shown = read(definitions, events[:DISTINCT_VALUES_MAX])[1]["n"]
    assert (shown["value"], "capped" in shown) == (DISTINCT_VALUES_MAX, False)
    assert "capped" in read(definitions, events[: DISTINCT_VALUES_MAX + 1])[1]["n"]


@pytest.mark.parametrize("window", ["lifetime", "30d"])
def test_what_is_built_on_a_capped_value_says_so(window: str) -> None:
    definitions = f"""
        features:
          seen: {{aggregate: distinct, events: x, of: v, window: {window}}}
          few: {{aggregate: distinct, events: y, of: v, window: {window}}}
          above: {{aggregate: ratio, numerator: seen, denominator: few}}
          below: {{aggregate: ratio, numerator: few, denominator: seen}}
          above_that: {{aggregate: ratio, numerator: above, denominator: few}}
          score: {{aggregate: score, parts: {{seen: {{weight: 1, half: 1}}}}}}
          exact: {{aggregate: score, parts: {{few: {{weight: 1, half: 1}}}}}}
    """
    events = [record(n, {"v": n}) for n in range(DISTINCT_VALUES_MAX + 1)]
    _, shown = read(definitions, [*events, record(1, {"v": 1}, "y"), record(2, {"v": 2}, "y")])
    capped = {name for name, each in shown.items() if each.get("capped")}
    assert {"seen", "above", "below", "above_that", "score"} <= capped
    assert not {"few", "exact", "engagement_score"} & capped


def test_distinct_in_a_window_is_exact_until_a_bucket_is_full(seed: int) -> None:
    definitions = "features: {n: {aggregate: distinct, events: x, of: v, window: 30d}}"
    events = [record(n, {"v": n}) for n in range(BUCKET_KEYS_MAX)]
    _, shown = same_states(definitions, events, seed)
    assert (shown["n"]["value"], "capped" in shown["n"]) == (BUCKET_KEYS_MAX, False)
    events = [record(n, {"v": n}) for n in range(BUCKET_KEYS_MAX + 50)]
    _, shown = same_states(definitions, events, seed)
    assert (shown["n"]["value"], shown["n"]["capped"]) == (BUCKET_KEYS_MAX + 1, True)


@pytest.mark.parametrize("window", ["lifetime", "30d"])
def test_currencies_are_bounded_in_any_order(window: str, seed: int) -> None:
    definitions = f"features: {{n: {{aggregate: sum, events: x, of: v, currency: c, window: {window}}}}}"
    codes = [chr(65 + n // 26) + chr(65 + n % 26) for n in range(CURRENCIES_MAX + 20)]
    events = [record(n, {"v": 1, "c": code}) for n, code in enumerate(codes * 2)]
    _, shown = same_states(definitions, events, seed)
    assert shown["n"]["value"] is None
    assert shown["n"]["amounts"] == dict.fromkeys(codes[: CURRENCIES_MAX + 1], 2.0)
    assert shown["n"]["capped"]


@pytest.mark.parametrize("window", ["lifetime", "30d"])
def test_as_many_currencies_as_may_be_are_added_up_and_one_more_is_not(window: str) -> None:
    codes = ["", *(f"A{chr(65 + n // 26)}{chr(65 + n % 26)}" for n in range(CURRENCIES_MAX))]
    rates = "".join(f"    {code}: 1\n" for code in codes[1:])
    definitions = f"currencies:\n  total_in: USD\n  default: AAA\n  rates:\n{rates}features:\n"
    definitions += f"  n: {{aggregate: sum, events: x, of: v, currency: c, window: {window}}}"
    events = [record(n, {"v": 1, "c": code}) for n, code in enumerate(codes)]
    shown = read(definitions, events[:CURRENCIES_MAX])[1]["n"]
    assert (shown["value"], "capped" in shown) == (float(CURRENCIES_MAX), False)
    shown = read(definitions, events)[1]["n"]
    assert (shown["value"], shown["capped"], len(shown["amounts"])) == (None, True, CURRENCIES_MAX + 1)


@pytest.mark.parametrize("window", ["36h", "30d", "1y", "10y"])
@pytest.mark.slow
def test_a_window_keeps_a_bounded_number_of_buckets(window: str) -> None:
    definitions = f"features: {{n: {{aggregate: count, events: x, window: {window}}}}}"
    known = projection(read_definitions([("threadline.yaml", definitions)]))
    state = known.empty()
    step = 6 * 3_600_000_000
    for n in range(20_000):
        state = known.after(state, record(n * step, {}))
    names = [name for name in state if len(msgspec.msgpack.encode(state[name])) > 4_000]
    assert len(msgspec.msgpack.encode(state)) < 16_000, names


SHAPES = {
    "clock": ("n", "hours", "days"),
    "number": ("n", "sum", "min", "max"),
    "money": ("n", "money", "range"),
    "scalar": ("n", "first", "last"),
    "key": ("n", "keys"),
}
UNITS = st.integers(-(2**63) + 1, 2**63 - 1)
BEHIND = {
    "clock": (st.integers(0, 167),),
    "number": (UNITS,),
    "money": (UNITS, st.sampled_from(["", "EUR", "USD"])),
    "scalar": (st.uuids().map(str), st.text(max_size=3)),
    "key": (st.integers(0, 2**63 - 1),),
}


def test_every_cell_is_told_of_here() -> None:
    assert set().union(*SHAPES.values()) == set(CELLS)


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
def test_entries_taken_together_come_to_what_they_come_to_one_by_one(shape: str, data: st.DataObject) -> None:
    entry = st.tuples(st.integers(T0, T0 + DAY), *BEHIND[shape]).map(list)
    entries = data.draw(st.lists(entry, min_size=1, max_size=20))
    cells = tally_layout(SHAPES[shape])
    one_by_one = cells.start(entries[0])
    for each in entries[1:]:
        cells.absorb(one_by_one, each)
    assert cells.of(entries) == one_by_one
