"""Feature updates: once a day what has changed is published, as an event and as a webhook, of whoever was active."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.asked import STARTS_AT, Asked
from tests.capabilities.segments_stage import bought
from threadline.capabilities.profile.feature_updates import job
from threadline.capabilities.profile.feature_updates.events import FEATURES_CHANGED
from threadline.capabilities.profile.feature_updates.job import next_time
from threadline.capabilities.profile.feature_updates.projection import feature_updates_projection
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.event import Event, Recorded
from threadline.kernel.policy import Effect
from threadline.kernel.sender import EFFECT_DONE, Outcome
from threadline.kernel.store import Put
from threadline.kernel.time import DAY, HOUR, MINUTE, format_time
from threadline.kernel.webhook import standard_body
from threadline.testing import scenarios
from threadline.testing.projection_laws import LAWS

TOTALS = "feature_updates: {features: [monetary_total, has_purchased]}"
CALLED = f"{TOTALS[:-1]}, destination: crm, at: '22:30'}}\ndestinations: {{crm: {{url: https://crm.example.com/}}}}"


def run_until(asked: Asked, until: int) -> None:
    """Let time pass: somebody looks for what is due every six hours, and at that instant."""
    dispatcher = Dispatcher(asked.engine, {}, "test")
    while asked.now < until:
        while dispatcher.run_once():
            pass
        asked.now = min(until, (asked.now // (6 * HOUR) + 1) * 6 * HOUR)


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
        (six, {"has_purchased": True, "monetary_total": 20.0}),
        (six + 3 * DAY, {"monetary_total": 25.0}),
    ]
    feed = asked.ask("events_feed")["events"]
    assert [each["properties"]["as_of"] for each in feed if each["type"] == FEATURES_CHANGED] == [
        format_time(six),
        format_time(six + 3 * DAY),
    ]


def test_what_changes_by_time_alone_is_published_every_day_until_nobody_was_active_for_so_long() -> None:
    asked = Asked(definitions="feature_updates: {features: [recency_days], active_within: 4d}")
    asked.tell("page", user_id="ada")
    run_until(asked, STARTS_AT + 30 * DAY)
    assert [features["recency_days"] for _, features in published(asked)] == [0, 1, 2, 3]
    asked.tell("page", user_id="ada")
    run_until(asked, STARTS_AT + 31 * DAY)
    assert [features["recency_days"] for _, features in published(asked)][4:] == [0]


def test_all_features_are_published_where_none_is_named_and_only_those_with_events() -> None:
    asked = Asked(definitions="feature_updates: {}")
    asked.tell("page", user_id="ada")
    run_until(asked, STARTS_AT + DAY)
    ((_, features),) = published(asked)
    vector = asked.ask("features_of", id="user_id:ada", as_of=format_time(STARTS_AT + 6 * HOUR))["features"]
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
    for at in (22 * HOUR, 22 * HOUR + HOUR // 2, 46 * HOUR):
        asked.now = STARTS_AT + at
        while dispatcher.run_once():
            pass
    (effect,) = receiver.sent
    person = asked.engine.reader.person("default", "user_id:ada").id
    assert effect.data["destination"] == "crm"
    body = json.loads(standard_body(effect.data, None)[0])
    assert (body["type"], body["timestamp"], set(body["data"])) == (
        FEATURES_CHANGED,
        format_time(STARTS_AT + 22 * HOUR + HOUR // 2),
        {"payload"},
    )
    assert (effect.data["payload"]["person"], effect.data["payload"]["features"]) == (
        person,
        {"has_purchased": True, "monetary_total": 20.0},
    )


def test_without_the_section_there_is_no_job_and_with_it_nobody_has_a_timer() -> None:
    assert "feature_updates" not in Asked().engine.catalogue.job_kinds
    asked = Asked(definitions=TOTALS)
    bought(asked, "ada", 20)
    assert asked.engine.reader.person("default", "user_id:ada").timers == {}


def test_whoever_has_done_nothing_since_the_section_was_declared_is_published_too() -> None:
    asked, later = Asked(), Asked(definitions=TOTALS)
    bought(asked, "ada", 20)
    asked.engine = Engine(asked.engine.store, later.engine.catalogue, lambda: asked.now)
    run_until(asked, STARTS_AT + DAY)
    assert [features["monetary_total"] for _, features in published(asked)] == [20.0]


def test_days_that_were_missed_are_made_up_for_once() -> None:
    asked = Asked(definitions="feature_updates: {features: [recency_days]}")
    asked.tell("page", user_id="ada")
    dispatcher = Dispatcher(asked.engine, {}, "test")
    for at in (0, 5 * DAY + 9 * HOUR, 6 * DAY, 6 * DAY + 6 * HOUR):
        asked.now = STARTS_AT + at
        while dispatcher.run_once():
            pass
    late = STARTS_AT + 5 * DAY + 9 * HOUR
    assert published(asked) == [(late, {"recency_days": 5}), (STARTS_AT + 6 * DAY + 6 * HOUR, {"recency_days": 6})]


def test_all_of_more_people_than_a_page_are_published_once_whoever_is_killed_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job, "PAGE", 5)
    asked = Asked(definitions=TOTALS)
    for number in range(8):
        bought(asked, f"p{number}", 10 + number)
    Dispatcher(asked.engine, {}, "first").run_once()
    asked.now = STARTS_AT + 6 * HOUR
    killed = Dispatcher(asked.engine, {}, "killed")
    commit, second = asked.engine.store.commit, Dispatcher(asked.engine, {}, "second")

    def until_the_job(batches: Any) -> Any:
        if any(write.key.table == "job" for batch in batches for write in batch.writes if type(write) is Put):
            raise KeyboardInterrupt  # its events are committed, and where it stands is not
        return commit(batches)

    asked.engine.store.commit = until_the_job  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        killed.run_once()
    asked.engine.store.commit = commit  # type: ignore[method-assign]
    asked.now += MINUTE  # its lease has run out
    while second.run_once():
        pass
    assert {len(published(asked, f"p{number}")) for number in range(8)} == {1}
    stored = asked.engine.jobs.get("default", "feature_updates")
    assert stored.due_at == STARTS_AT + DAY + 6 * HOUR


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
            Event(
                type=FEATURES_CHANGED,
                identifiers=(),
                occurred_at=at,
                key=str(n),
                source_type="internal",
                properties={"features": values},
            ),
            f"{n:032x}",
            "t",
            n,
            9,
        )
        for n, (at, values) in enumerate(script)
    ]

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
