"""Features under generated events: order does not matter, fused equals plain, windows equal a recount."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.features_recount import NUMBERS, recount, unread_recount
from threadline.capabilities.profile.features import projection, read_definitions
from threadline.kernel.event import Event, Recorded, event_id
from threadline.kernel.time import DAY, HOUR, MINUTE, YEAR, parse_duration, parse_time
from threadline.testing.projection_laws import merging_two_states_equals_folding_the_union

BASE = parse_time("2026-03-29T00:00:00Z")
"""The day on which Europe/Rome leaves standard time, so that local hours are put to the test."""

WINDOWS = ["lifetime", "45m", "36h", "3d", "30d", "200d", "3y"]
OF_EVENTS = ["count", "any", "preferred_hour", "preferred_day"]
OF_VALUES = ["first", "last", "distinct"]
OR_NULL = ["first_or_null", "last_or_null"]
"""The same with `nulls: respect`."""


def definitions() -> str:
    """Every aggregate over every window, on one filtered source."""
    lines = ["features:"]
    for window in WINDOWS:
        for aggregate in [*OF_EVENTS, *NUMBERS, *OF_VALUES]:
            of = "" if aggregate in OF_EVENTS else ", of: amount"
            source = "{sale: null, refund: {sign: -1}}" if aggregate in NUMBERS else "[sale, refund]"
            where = "{kind: {ne: test}}"
            body = f"aggregate: {aggregate}, events: {source}, where: {where}, window: {window}{of}"
            lines.append(f"  {aggregate}_{window}: {{{body}}}")
        for aggregate in OR_NULL:
            body = f"events: [sale, refund], where: {where}, window: {window}, of: amount, nulls: respect"
            lines.append(f"  {aggregate}_{window}: {{aggregate: {aggregate.removesuffix('_or_null')}, {body}}}")
        money = f"aggregate: sum, events: sale, of: amount, currency: money.currency, window: {window}"
        lines.append(f"  money_{window}: {{{money}}}")
    lines.append("  days_since_sale: {aggregate: days_since, events: sale, stale_after: 2d}")
    lines.append("  sale_rate: {aggregate: ratio, numerator: count_3d, denominator: count_30d}")
    return "\n".join(lines)


FEATURES = read_definitions([("laws.yaml", definitions())])
PROJECTION = projection(FEATURES)

# Few instants, on the edges of buckets and one window apart, so that windows cut right between events.
instants = st.one_of(
    st.builds(
        lambda window, hour, nudge: BASE - window + hour * HOUR + nudge,
        st.sampled_from([0, 0, DAY, *(parse_duration(window) for window in WINDOWS[1:])]),
        st.integers(0, 24),
        st.sampled_from([-1, 0, 1, 30 * MINUTE]),
    ),
    st.integers(BASE - 4 * YEAR, BASE),
)
amounts = st.one_of(
    st.sampled_from([29.33, 0.1, 0.2, 10, -3, "10.50", "1e3"]),
    st.integers(-5, 5),
    st.sampled_from([True, None, "ten", float("inf"), float("nan"), 2**70, [1], 9.1e12]),
    st.floats(allow_nan=True),
)
properties = st.fixed_dictionaries(
    {"kind": st.sampled_from(["web", "web", "web", "web", 3, "test", None])},
    optional={
        "money": st.one_of(
            st.none(),
            st.fixed_dictionaries({"currency": st.sampled_from(["EUR", "EUR", "EUR", "usd", "USD", 7, "", ["x"]])}),
        ),
    },
)
contexts = st.sampled_from([{}, {"timezone": "Europe/Rome"}, {"timezone": "Asia/Kathmandu"}, {"timezone": "No/Where"}])
Draft = tuple[str, int, dict[str, Any], dict[str, Any]]
drafts = st.tuples(st.sampled_from(["sale", "sale", "refund", "page"]), instants, properties, contexts)


def record(drafts_: list[Draft]) -> list[Recorded]:
    """Events as recorded one by one in this order, a microsecond apart."""
    return [
        Recorded(
            Event(type=kind, identifiers=(), occurred_at=at, key=str(n), properties=given_, context=context),
            event_id("default", "direct", str(n)),
            "t",
            n + 1,
            BASE + 5 * YEAR + n,
        )
        for n, (kind, at, given_, context) in enumerate(drafts_)
    ]


def burst(draft: Draft, amounts_: list[Any], step: int) -> list[Draft]:
    """One event for each amount, a step apart: more than eight fill a bucket."""
    kind, at, given_, context = draft
    return [(kind, at + n * step, {**given_, "amount": amount}, context) for n, amount in enumerate(amounts_)]


bursts = st.builds(
    burst,
    drafts,
    st.one_of(st.lists(amounts, min_size=1, max_size=2), st.lists(amounts, min_size=9, max_size=12)),
    st.sampled_from([0, 1, MINUTE, 2 * HOUR, 9 * HOUR]),
)
histories = st.lists(bursts, min_size=1, max_size=8).map(lambda each: record([draft for one in each for draft in one]))


def folded(events: list[Recorded], plain: bool = True) -> Any:
    state = PROJECTION.empty()
    for each in events:
        fold = PROJECTION.fold if plain else PROJECTION.faster.fold(each.event.type)  # type: ignore[misc]
        state = fold(state, each) if fold else state
    return state


def canonical(state: Any) -> bytes:
    return msgspec.json.encode(state, order="deterministic")


def viewed(state: Any, events: list[Recorded], now: int) -> dict[str, Any]:
    """A view as the engine makes it: with the events of the edges and no others, and no harm to the state."""
    edges = PROJECTION.depends.edges(state, now)  # type: ignore[misc]
    assert all(edge.start < edge.stop <= now for edge in edges)
    assert all(one.stop < other.start for one, other in pairwise(edges))
    chosen = [each for each in events if any(edge.holds(each) for edge in edges)]
    before = copy.deepcopy(state)
    shown = PROJECTION.view(state, now, sorted(chosen, key=lambda each: (each.event.occurred_at, each.id)))
    assert state == before
    return shown


def nows(events: list[Recorded]) -> st.SearchStrategy[int]:
    """Instants after every event: just after, and where a window begins right at, before or after an event."""
    newest = max(each.event.occurred_at for each in events)
    cuts = [
        each.event.occurred_at + parse_duration(window) + nudge
        for each in events
        for window in WINDOWS[1:]
        for nudge in (-1, 0, 1)
    ]
    near = [at for at in cuts if newest < at <= newest + 3 * DAY] or [newest + 1]
    far = [at for at in cuts if at > newest]
    return st.one_of(st.just(newest + 1), st.sampled_from(near), st.sampled_from(far))


# --- the laws ---------------------------------------------------------------------------------------


@given(histories, st.randoms())
def test_any_order_gives_an_equal_state(events: list[Recorded], random: Any) -> None:
    shuffled = list(events)
    random.shuffle(shuffled)
    assert canonical(folded(events)) == canonical(folded(shuffled))


@given(histories, st.randoms())
def test_merging_two_states_equals_folding_the_union(events: list[Recorded], random: Any) -> None:
    merging_two_states_equals_folding_the_union(PROJECTION, events, random)


@given(histories)
def test_the_fused_fold_equals_the_plain_one(events: list[Recorded]) -> None:
    assert folded(events, plain=False) == folded(events)


@given(histories)
def test_a_state_goes_through_messagepack(events: list[Recorded]) -> None:
    state = folded(events)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(state)) == state


@given(histories, st.data())
def test_windows_equal_a_recount_at_any_instant(events: list[Recorded], data: st.DataObject) -> None:
    now = data.draw(nows(events))
    shown = viewed(folded(events), events, now)
    for window in WINDOWS:
        for aggregate in [*OF_EVENTS, *NUMBERS, *OF_VALUES, *OR_NULL, "money"]:
            value, known = recount(aggregate, window, events, now)
            read = shown[f"{aggregate}_{window}"]
            assert read["value"] == value, (aggregate, window)
            assert type(read["value"]) is type(value), (aggregate, window)
            assert read["computed_at"] == max((each.recorded_at for each in known), default=None), (aggregate, window)
            assert read["status"] == ("PRESENT" if known else "NOT_FOUND")


@given(histories, st.data())
def test_nothing_changes_before_changes_at(events: list[Recorded], data: st.DataObject) -> None:
    now = data.draw(nows(events))
    state = folded(events)
    shown = viewed(state, events, now)
    later = {each["changes_at"] - 1 for each in shown.values() if each["changes_at"]} | {now + 30 * YEAR}
    views = {at: viewed(state, events, at) for at in later}
    for name, read in shown.items():
        until = read["changes_at"] - 1 if read["changes_at"] else now + 30 * YEAR
        assert until >= now
        assert views[until][name]["value"] == read["value"], name
        assert views[until][name]["status"] == read["status"], name
        assert views[until][name].get("reason") == read.get("reason"), name


@given(histories, st.data())
def test_counts_and_days_change_at_changes_at(events: list[Recorded], data: st.DataObject) -> None:
    now = data.draw(nows(events))
    state = folded(events)
    shown = viewed(state, events, now)
    for name in [f"count_{window}" for window in WINDOWS] + ["any_3d", "recency_days"]:
        at = shown[name]["changes_at"]
        if at is not None:
            assert viewed(state, events, at)[name]["value"] != shown[name]["value"], name


@given(histories, st.data())
def test_due_is_the_first_change_of_the_view(events: list[Recorded], data: st.DataObject) -> None:
    now = data.draw(nows(events))
    state = folded(events)
    due = PROJECTION.depends.due(state, now)  # type: ignore[misc]
    first = min(
        (each["changes_at"] for each in viewed(state, events, now).values() if each["changes_at"]), default=None
    )
    if PROJECTION.depends.edges(state, now):  # type: ignore[misc]
        # Events of a cut bucket are not at hand: then it is a look at the next step, 1/24 of the widest bucket at most.
        assert due is not None
        assert now < due <= now + 28 * DAY // 24 + 1
    else:
        assert due == first


@given(histories)
def test_due_names_the_instant_at_which_a_later_event_comes_into_force(events: list[Recorded]) -> None:
    newest = max(each.event.occurred_at for each in events)
    due = PROJECTION.depends.due(folded(events), newest)  # type: ignore[misc]
    assert due is not None
    assert newest < due <= newest + 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
SHIPPED_FIELDS = ["total", "currency", "score", "campaign_id", "action", "channel", "category", "message_count"]


@given(
    st.sampled_from(["purchase_completed", "purchase_refunded", "sentiment_detected", "campaign_engaged", "sale", "x"]),
    st.dictionaries(st.sampled_from([*SHIPPED_FIELDS, "amount", "kind", "money"]), json_values),
    st.dictionaries(st.sampled_from(["timezone", "ip"]), json_values),
    st.sampled_from([-62_135_596_800_000_000, 253_402_300_799_999_999, BASE]),
)
def test_no_payload_breaks_the_fold(kind: str, given_: dict[str, Any], context: dict[str, Any], at: int) -> None:
    events = record([(kind, at, given_, context)] * 3)
    state = folded(events, plain=False)
    assert state == folded(events)
    msgspec.msgpack.encode(state)
    viewed(state, events, at + 1)


def test_fused_folds_leave_system_events_and_what_feeds_nothing_alone() -> None:
    assert PROJECTION.faster.fold is not None
    assert PROJECTION.faster.fold("threadline.timer_fired") is None
    assert PROJECTION.faster.fold("campaign_delivered") is not None
    only = projection(read_definitions([("a.yaml", "features: {" + ", ".join(f"{n}: false" for n in SHIPPED) + "}")]))
    assert only.faster.fold is not None
    assert only.faster.fold("purchase_completed") is None
    assert only.handles == frozenset()


SHIPPED = read_definitions().names


# --- a window that cuts a full day ------------------------------------------------------------------

ONE = ", ".join([*(f"{name}: false" for name in SHIPPED), "n: {aggregate: count, events: sale, window: 3d}"])
CROWDED = projection(read_definitions([("a.yaml", f"features: {{{ONE}}}")]))
minutes_of_a_day = st.integers(0, 24 * 60 - 1)


@given(
    # Few stretches of the day, so that most eighths of it are empty.
    st.lists(st.tuples(minutes_of_a_day, st.integers(1, 9)), min_size=2, max_size=5),
    st.booleans(),
    st.data(),
)
def test_a_full_day_that_is_cut_says_what_is_left_of_it(
    stretches: list[tuple[int, int]], another_day: bool, data: st.DataObject
) -> None:
    times = [BASE + (first + n) * MINUTE for first, count in stretches for n in range(count)]
    times = [at for at in times if at < BASE + DAY] + [BASE + DAY + HOUR] * another_day
    events = record([("sale", at, {}, {}) for at in times])
    state = CROWDED.empty()
    for each in events:
        state = CROWDED.after(state, each)
    assert CROWDED.depends.edges is not None
    assert CROWDED.depends.due is not None
    ends = [BASE + (first + count - 1) * MINUTE for first, count in stretches]
    near = st.builds(lambda at, nudge: at + nudge, st.sampled_from(ends), st.integers(-1, 1))
    start = data.draw(near | st.builds(lambda minute: BASE + minute * MINUTE, minutes_of_a_day))
    now = start + 3 * DAY
    edges = CROWDED.depends.edges(state, now)
    left = sorted(at for at in times if at >= start)
    shown = CROWDED.view(state, now, [each for each in events if any(edge.holds(each) for edge in edges)])["n"]
    leaves = left[0] + 3 * DAY + 1 if left else None
    assert (shown["value"], shown["changes_at"]) == (len(left), leaves)
    if not edges:
        assert CROWDED.depends.due(state, now) == leaves
    elif leaves is not None:
        assert now < (CROWDED.depends.due(state, now) or 0) <= max(leaves, now + HOUR)


# --- values that give no amount -----------------------------------------------------------------------


@given(histories, st.data())
def test_a_total_says_how_many_values_it_is_without(events: list[Recorded], data: st.DataObject) -> None:
    now = data.draw(nows(events))
    shown = viewed(folded(events), events, now)
    for window in WINDOWS:
        for aggregate in [*NUMBERS, "money"]:
            expected = unread_recount(aggregate, window, events, now)
            reason = shown[f"{aggregate}_{window}"].get("reason", "")
            assert reason.endswith(expected), (aggregate, window)
            assert ("could not be read" in reason or "out of range" in reason) == bool(expected), (aggregate, window)


TOTAL = "aggregate: sum, events: sale, of: amount"
SCORE = "{aggregate: score, parts: {s: {weight: 1, half: 10}}}"
PARTED = f"{{points: {SCORE}, s: {{{TOTAL}}}, w: {{{TOTAL}, window: 3d}}}}"
TOTALLED = projection(read_definitions([("a.yaml", f"features: {PARTED}")]))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["1.234,56", "€29", "29 EUR", "1,234.50", True, [1], {}, float("nan")], "8 values could not be read"),
        (["ten"], "1 value could not be read"),
        ([12_000_000_000_000, 1.2e13, "12000000000000", 2**70, 5], "4 values are out of range"),
        (["ten", 1e300], "1 value could not be read, 1 value is out of range"),
        ([None, "", " ", 5, "5.00", 9.1e12, -0.0], None),
    ],
)
def test_what_gives_no_amount_is_a_reason_of_the_total(values: list[Any], reason: str | None) -> None:
    events = record([("sale", BASE, {"amount": value}, {}) for value in values])
    state = TOTALLED.empty()
    for each in events:
        state = TOTALLED.after(state, each)
    shown = TOTALLED.view(state, BASE + DAY, [])
    assert shown["s"].get("reason") == reason
    assert shown["points"].get("reason") == (reason and f"s: {reason}")
    assert shown["w"].get("reason") == (reason and f"{reason} so far, the newest in the window")
    ends = BASE + 3 * DAY + 1
    assert shown["w"]["changes_at"] == ends
    assert "reason" not in TOTALLED.view(state, ends, [])["w"]


# --- single instants ----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [8, 9, 40])
@pytest.mark.parametrize("nudge", [-1, 0, 1])
def test_the_edge_is_exact_where_a_full_bucket_is_cut(count: int, nudge: int) -> None:
    events = record([("sale", BASE + n * HOUR // 2, {"amount": 1, "kind": "web"}, {}) for n in range(count)])
    now = BASE + 3 * HOUR + 3 * DAY + nudge
    shown = viewed(folded(events), events, now)
    # Those at 0:00, 0:30 … 2:30 are out; the one at 3:00 is in at the instant itself and out a microsecond later.
    assert shown["count_3d"]["value"] == count - 6 - (nudge > 0)
    assert shown["sum_3d"]["value"] == float(count - 6 - (nudge > 0))
    assert bool(PROJECTION.depends.edges(folded(events), now)) == (count > 8)  # type: ignore[misc]


@pytest.mark.parametrize("window", WINDOWS[1:])
def test_nothing_that_a_window_still_reaches_is_dropped(window: str) -> None:
    size = parse_duration(window)
    events = record([("sale", BASE + at, {"amount": 1, "kind": "web"}, {}) for at in (0, 1, size)])
    assert viewed(folded(events), events, BASE + size + 1)[f"count_{window}"]["value"] == 2
    assert viewed(folded(events), events, BASE + size + 2)[f"count_{window}"]["value"] == 1


def test_inside_a_cut_bucket_due_is_the_next_hour_at_which_to_look() -> None:
    known = projection(read_definitions([("a.yaml", "features: {n: {aggregate: count, events: sale, window: 3d}}")]))
    state = known.empty()
    for each in record([("sale", BASE + n * HOUR // 2, {}, {}) for n in range(40)]):
        state = known.after(state, each)
    assert known.depends.due is not None
    # The preferred hour never changes by time; recency does at 19:30 each day, whole days after the last event.
    now = BASE + 3 * DAY + 5 * HOUR + 7 * MINUTE
    assert known.depends.due(state, now) == BASE + 3 * DAY + 6 * HOUR + 1
    assert known.depends.due(state, BASE + 3 * DAY + 6 * HOUR + 1) == BASE + 3 * DAY + 7 * HOUR + 1
    # What occurred at the very hour leaves a microsecond after it.
    assert known.depends.due(state, BASE + 3 * DAY + 6 * HOUR) == BASE + 3 * DAY + 6 * HOUR + 1
    # Before the bucket is cut, its first event is known to the microsecond.
    assert known.depends.due(state, BASE + 3 * DAY - 5 * HOUR) == BASE + 3 * DAY - 5 * HOUR + HOUR // 2
    assert known.depends.due(state, BASE + 3 * DAY) == BASE + 3 * DAY + 1
