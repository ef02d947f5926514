"""Interests hold for any set of actions: as the auditor computes, in every order, and within their bounds."""

from __future__ import annotations

from collections import Counter, defaultdict
from decimal import Context, Decimal
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.interests import Interests, Topic, interests_projection, read_interests
from threadline.capabilities.profile.interests.attribution import ATTRIBUTION
from threadline.capabilities.profile.interests.ranking import rank
from threadline.capabilities.profile.interests.scoring import decay_weight
from threadline.capabilities.profile.interests.state import (
    BLOCK_DAYS,
    BLOCKS_MAX,
    CUTOFF,
    SLOTS_MAX,
    TOPICS,
    TOPICS_MAX,
)
from threadline.kernel.event import Event, Recorded, event_id
from threadline.kernel.limits import ITEM_BYTES_MAX
from threadline.kernel.time import DAY, HOUR, MINUTE
from threadline.testing import scenarios
from threadline.testing.audits.interests import attribution, interests
from threadline.testing.projection_laws import merged_states

NOW = scenarios.NOW


def declared(text: str = "") -> Interests:
    definitions = Definitions([("threadline.yaml", text)] if text else [])
    found = read_interests(definitions)
    definitions.refuse()
    return found


def action(at: int, key: object, value: str = "A", topic: str = "Article", **more: Any) -> Recorded:
    properties = {"topic": topic, "scopes": [{"topic": "category", "value": value}], **more}
    event = Event(type="app_action", identifiers=(), occurred_at=at, key=str(key), properties=properties)
    return Recorded(event, event_id("default", "direct", str(key)), "t", 1, at)


def folded(known: Interests, events: list[Recorded]) -> dict[str, Any]:
    projection = interests_projection(known)
    state = projection.empty()
    for recorded in events:
        if recorded.event.type in (projection.handles or ()):
            state = projection.after(state, recorded)
    found: dict[str, Any] = state
    return found


def written(state: dict[str, Any]) -> bytes:
    return msgspec.msgpack.encode(state, order="sorted")


# --- against the auditor ------------------------------------------------------------------------


@settings(max_examples=60)
@given(history=scenarios.histories(people=1, count_max=80), random=scenarios.randoms, days=st.integers(0, 200))
def test_the_view_is_what_the_auditor_says(history: list[Event], random: Random, days: int) -> None:
    now = NOW - days * DAY + random.randrange(DAY)
    before = [event for event in history if event.occurred_at < now]
    told = sorted(map(scenarios.plain, before), key=lambda each: (each["occurred_at"], _id(each)))
    projection = interests_projection(Interests())
    state = folded(Interests(), scenarios.recorded(scenarios.shuffled(random, before)))
    shown = {
        topic: {
            scope: {value: (each["weight"], each["current"], each["previous"]) for value, each in values.items()}
            for scope, values in view["scopes"].items()
        }
        for topic, view in projection.view(state, now, []).items()
    }
    assert shown == interests(told, now)
    touched = ATTRIBUTION.empty()
    for recorded in scenarios.recorded(scenarios.shuffled(random, before)):
        touched = ATTRIBUTION.after(touched, recorded)
    view = ATTRIBUTION.view(touched, now, [])
    found = [view["first_touch"], view["last_touch"]]
    names = [each and {name: text for name, text in each.items() if name not in ("at", "event")} for each in found]
    assert names == attribution(told, now)


def _id(told: dict[str, Any]) -> str:
    return event_id(told["workspace"], told["source"], told["key"])


def test_the_histories_reach_what_they_are_to_test() -> None:
    seen: Counter[str] = Counter()
    for seed in range(60):
        for view in interests(list(map(scenarios.plain, scenarios.history(Random(seed), 1, 80))), NOW).values():
            for values in view.values():
                seen.update("previous" if each[2] else "current" if each[1] else "older" for each in values.values())
    assert min(seen[name] for name in ("current", "previous", "older")) > 20


# --- counting -----------------------------------------------------------------------------------

moments = st.lists(
    st.tuples(st.integers(0, 40 * DAY), st.sampled_from("AB"), st.sampled_from(["web", ""])), max_size=60
)


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("window", [10 * MINUTE, 6 * HOUR, DAY, 7 * DAY])
@given(told=moments, crowd=st.integers(1, 50), random=scenarios.randoms)
def test_capped_counts_are_a_function_of_the_set(
    most: int, window: int, told: list[tuple[int, str, str]], crowd: int, random: Random
) -> None:
    """Of the actions of one cell in one window as many count as are allowed, whoever came first."""
    start = NOW - 50 * DAY
    told = [(start + at // crowd, value, application) for at, value, application in told]
    known = Interests(Topic(period_days=100, counting="capped", most=most, window=window))
    events = [action(at, n, value, application_id=app) for n, (at, value, app) in enumerate(told)]
    expected: Counter[str] = Counter()
    for (value, _, _), count in Counter((value, app, at // window) for at, value, app in told).items():
        expected[value] += min(count, most)
    random.shuffle(events)
    ranked = rank(known, folded(known, events), NOW)
    assert {each.value: each.actions for each in ranked["Article"].entries} == expected if told else not ranked


@given(told=moments)
def test_unique_is_capped_at_one(told: list[tuple[int, str, str]]) -> None:
    events = [action(NOW - 50 * DAY + at, n, value) for n, (at, value, _) in enumerate(told)]
    unique = declared("interests: {counting: unique, window: 6h}")
    capped = declared("interests: {counting: capped, most: 1, window: 6h}")
    assert written(folded(unique, events)) == written(folded(capped, events))


# --- decay --------------------------------------------------------------------------------------


@given(days=st.integers(0, 3_000), half_life=st.integers(1, 3_650 * DAY))
def test_a_decayed_weight_is_the_power_of_two(days: int, half_life: int) -> None:
    context = Context(prec=60, Emin=-999_999)
    exact = context.power(Decimal(2), context.divide(Decimal(-days * DAY), Decimal(half_life)))
    error = Decimal(decay_weight(days, half_life)) - context.multiply(exact, Decimal(1 << 64))
    assert abs(error) < Decimal("1.01")  # units of 2⁻⁶⁴


def test_decayed_weights_are_the_same_bits_on_every_machine() -> None:
    assert [decay_weight(days, 30 * DAY) for days in (0, 1, 30, 365)] == [
        18446744073709551616,
        18025419856780639094,
        9223372036854775808,
        4012251135041684,
    ]


def test_a_half_life_halves() -> None:
    for days in range(1, 60):
        assert decay_weight(days, days * DAY) == 1 << 63
        assert decay_weight(2 * days, days * DAY) == 1 << 62


@given(told=st.lists(st.tuples(st.integers(1, 300), st.sampled_from("ABC")), max_size=30), random=scenarios.randoms)
def test_a_decayed_sum_does_not_depend_on_the_order(told: list[tuple[int, str]], random: Random) -> None:
    known = declared("interests: {mode: decay, half_life: 10d}")
    events = [action(NOW - days * DAY, n, value) for n, (days, value) in enumerate(told)]
    expected: dict[str, Decimal] = defaultdict(Decimal)
    for days, value in told:
        expected[value] += Decimal(2) ** (Decimal(-days) / 10)
    random.shuffle(events)
    ranked = rank(known, folded(known, events), NOW)
    weights = {each.value: Decimal(each.units) / each.scale for each in ranked["Article"].entries} if ranked else {}
    assert set(weights) >= {value for value, weight in expected.items() if weight > Decimal("0.000001")}
    assert all(abs(weight - expected[value]) <= Decimal("0.0000006") for value, weight in weights.items())


# --- bounds -------------------------------------------------------------------------------------


def crowd(random: Random, actions: int, values: int, days: int) -> list[Recorded]:
    """Actions on very many values with names as long as they may be."""
    return [
        action(
            NOW - random.randrange(days * DAY),
            n,
            f"{random.randrange(values):05d}" + random.choice("xé") * 90,
            application_id="a" * 50,
        )
        for n in range(actions)
    ]


def test_what_is_kept_of_too_much_depends_on_no_order(seed: int) -> None:
    random = Random(seed)
    events = crowd(random, 1_500, 400, 2 * BLOCK_DAYS)
    expected = folded(Interests(), events)
    blocks = [cells for name, cells in expected.items() if name != TOPICS]
    assert all(CUTOFF in cells for cells in blocks), "the crowd was to be too large"
    for _ in range(3):
        random.shuffle(events)
        assert written(folded(Interests(), events)) == written(expected)
    assert rank(Interests(), expected, NOW)["Article"].capped


@pytest.mark.slow
def test_full_blocks_of_two_people_merge_as_if_one_person_had_filled_them(seed: int) -> None:
    random, known = Random(seed), interests_projection(Interests())
    for number in range(40):
        values = [f"{number}-{n}" + random.choice("xé") * 80 for n in range(150)]
        told = [*values, *random.sample(values, random.randrange(60, 120))]
        events = [action(NOW - DAY, n, value) for n, value in enumerate(told)]
        one, other, union = (folded(Interests(), part) for part in (events[:150], events[150:], events))
        assert all(CUTOFF in cells for state in (one, other) for name, cells in state.items() if name != TOPICS)
        assert merged_states(known, one, other) == merged_states(known, other, one) == written(union)


def test_old_blocks_leave_in_every_order(seed: int) -> None:
    random = Random(seed)
    events = [action(NOW - number * 10 * DAY, number) for number in range(100)]
    expected = folded(Interests(), events)
    assert len(expected) == BLOCKS_MAX + 1
    for _ in range(3):
        random.shuffle(events)
        assert written(folded(Interests(), events)) == written(expected)
    newest = sorted(int(name) for name in expected if name != TOPICS)
    assert newest[-1] == (NOW // DAY) // BLOCK_DAYS


def test_short_windows_keep_the_newest_in_every_order(seed: int) -> None:
    random = Random(seed)
    known = declared("interests: {counting: unique, window: 10m}")
    events = [action(NOW - DAY - number * 11 * MINUTE, number) for number in range(600)]
    expected = folded(known, events)
    assert max(len(cell) for name, cells in expected.items() if name != TOPICS for cell in cells.values()) == (
        2 * SLOTS_MAX
    )
    for _ in range(3):
        random.shuffle(events)
        assert written(folded(known, events)) == written(expected)


def test_too_many_topics_keep_their_first_days_in_every_order(seed: int) -> None:
    random = Random(seed)
    events = [action(NOW - random.randrange(90 * DAY), n, topic=f"topic {n % 200}") for n in range(600)]
    expected = folded(Interests(), events)
    assert len(expected[TOPICS]) == TOPICS_MAX
    for _ in range(3):
        random.shuffle(events)
        assert written(folded(Interests(), events)) == written(expected)


@pytest.mark.slow
def test_the_largest_state_leaves_room_for_others(seed: int) -> None:
    random = Random(seed)
    state = folded(Interests(), crowd(random, 60_000, 120, BLOCKS_MAX * BLOCK_DAYS))
    assert len(state) > BLOCKS_MAX
    assert len(written(state)) < ITEM_BYTES_MAX / 2
