"""Feature updates: once a day what has changed is published, as an event and as a webhook, of whoever was active."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.asked import STARTS_AT, Asked
from tests.capabilities.segments_stage import bought, run_until
from threadline.capabilities.feature_updates.events import FEATURES_CHANGED
from threadline.capabilities.feature_updates.policy import next_time
from threadline.capabilities.feature_updates.projection import feature_updates_projection
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.event import Event, Recorded
from threadline.kernel.policy import Effect
from threadline.kernel.sender import EFFECT_DONE, Outcome
from threadline.kernel.time import DAY, HOUR, format_time
from threadline.senders.webhook import written
from threadline.testing import scenarios
from threadline.testing.projection_laws import LAWS

TOTALS = "feature_updates: {features: [monetary_total, has_purchased]}"
CALLED = f"{TOTALS[:-1]}, destination: crm, at: '22:30'}}\ndestinations: {{crm: {{url: https://crm.example.com/}}}}"


def published(asked: Asked, who: str = "ada") -> list[tuple[int, dict[str, Any]]]:
    person = asked.engine.reader.person("default", f"user_id:{who}")
    events = asked.engine.reader.events(person, types=frozenset({FEATURES_CHANGED}), limit=1_000)
    return [(each.event.occurred_at, each.event.properties["features"]) for each in events]


def test_at_six_what_has_changed_is_published_and_nothing_else() -> None:
    asked = Asked(definitions=TOTALS)
    bought(asked, "ada", 20)
    run_until(asked, STARTS_AT + 3 * DAY)
    bought(asked, "ada", 5)
    run_until(asked, STARTS_AT + 5 * DAY)
    six = STARTS_AT + 6 * HOUR
    assert published(asked) == [
        (six + 1, {"has_purchased": True, "monetary_total": 20.0}), (six + 3 * DAY + 1, {"monetary_total": 25.0}),
    ]  # fmt: skip
    feed = asked.ask("events_feed")["events"]
    assert [each["properties"]["as_of"] for each in feed if each["type"] == FEATURES_CHANGED] == [
        format_time(six + 2), format_time(six + 3 * DAY + 2)
    ]  # fmt: skip


def test_what_changes_by_time_alone_is_published_every_day_until_nobody_was_active_for_so_long() -> None:
    asked = Asked(definitions="feature_updates: {features: [recency_days], active_within: 4d}")
    asked.tell("page", user_id="ada")
    run_until(asked, STARTS_AT + 30 * DAY)
    assert [features["recency_days"] for _, features in published(asked)] == [0, 1, 2, 3]
    assert asked.engine.reader.person("default", "user_id:ada").timers == {}
    asked.tell("page", user_id="ada")
    run_until(asked, STARTS_AT + 31 * DAY)
    assert [features["recency_days"] for _, features in published(asked)][4:] == [0]


def test_all_features_are_published_where_none_is_named_and_only_those_with_events() -> None:
    asked = Asked(definitions="feature_updates: {}")
    asked.tell("page", user_id="ada")
    run_until(asked, STARTS_AT + DAY)
    ((_, features),) = published(asked)
    vector = asked.ask("features_of", id="user_id:ada", as_of=format_time(STARTS_AT + 6 * HOUR + 2))["features"]
    assert features == {name: each["value"] for name, each in vector.items() if each["status"] != "NOT_FOUND"}


class _Receiver:
    kind = "webhook"

    def __init__(self) -> None:
        self.sent: list[Effect] = []

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        self.sent.append(effect)
        return Outcome(type=EFFECT_DONE)


def test_a_destination_is_called_with_what_has_changed() -> None:
    asked = Asked(definitions=CALLED)
    bought(asked, "ada", 20)
    receiver = _Receiver()
    dispatcher = Dispatcher(asked.engine, {"webhook": receiver}, "test")
    for at in (22 * HOUR, 22 * HOUR + HOUR // 2 + 1, 47 * HOUR):
        asked.now = STARTS_AT + at
        while dispatcher.run_once():
            asked.now += 1
    (effect,) = receiver.sent
    person = asked.engine.reader.person("default", "user_id:ada").id
    assert effect.data["destination"] == "crm"
    body = json.loads(written(effect.data, None)[0])
    assert (body["type"], body["timestamp"], set(body["data"])) == (
        FEATURES_CHANGED, format_time(STARTS_AT + 22 * HOUR + HOUR // 2 + 2), {"payload"}
    )  # fmt: skip
    assert (effect.data["payload"]["person"], effect.data["payload"]["features"]) == (
        person, {"has_purchased": True, "monetary_total": 20.0}
    )  # fmt: skip


def test_without_the_section_there_is_no_timer() -> None:
    asked = Asked()
    bought(asked, "ada", 20)
    assert asked.engine.reader.person("default", "user_id:ada").timers == {}


@given(st.integers(0, DAY - 1), st.integers(-(10**16), 10**16))
def test_the_next_time_of_the_day_is_the_first_after_an_instant(time_of_day: int, at: int) -> None:
    found = next_time(time_of_day, at)
    assert at < found <= at + DAY
    assert found % DAY == time_of_day


VALUES = st.none() | st.dictionaries(st.sampled_from("abc"), st.sampled_from([1, None, "x", [1]]), max_size=3)


@given(st.lists(st.tuples(st.integers(0, 3), VALUES), max_size=6), scenarios.randoms)
def test_the_projection_obeys_the_laws(script: list[tuple[int, Any]], random: Random) -> None:
    projection = feature_updates_projection()
    events = [
        Recorded(
            Event(type=FEATURES_CHANGED, identifiers=(), occurred_at=at, key=str(n), source_type="internal",
                  properties={"features": values}),
            f"{n:032x}", "t", n, 9,
        )
        for n, (at, values) in enumerate(script)
    ]  # fmt: skip

    for law in LAWS:
        law(projection, events, random)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("feature_updates: {at: '6:00'}", '`at` must be a time of the day in UTC, such as "06:00"'),
        ("feature_updates: {at: '24:00'}", '`at` must be a time of the day in UTC, such as "06:00"'),
        ("feature_updates: {features: [recency_day]}", "did you mean 'recency_days'"),
        ("feature_updates: {destination: crn}\ndestinations: {crm: {url: https://x.example}}", "did you mean 'crm'"),
        (
            "feature_updates:\n  at: '06:00'\n  destination: crm",
            "threadline.yaml:3: `feature_updates`: `destination`: 'crm' is no declared destination; none is declared",
        ),
        ("feature_updates: {active_within: soon}", "`active_within` must be a duration"),
    ],
)
def test_a_mistake_is_named(text: str, problem: str) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        Asked(definitions=text)
    assert problem in str(raised.value)
