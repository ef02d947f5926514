"""Law: every policy that ships keeps the policy laws, whatever its events hold."""

from __future__ import annotations

from itertools import count
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws import staging
from tests.laws.test_asking import DEFINITIONS, Life, told_by
from tests.laws.test_projections import FIELDS, storable
from threadline.capabilities.foundation.definitions import Definitions
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.policy import Effect, Emit, Policy, PolicyView, Timer
from threadline.kernel.time import DAY
from threadline.testing import policy_laws, scenarios
from threadline.testing.policy_laws import LAWS, Law, watched

MORE = """
points:
  tables:
    - version: 2
      from: 2000-01-01T00:00:00Z
      earn:
        tool_used: 8
        app_opened: {points: 20, per_day: 3, cooldown: 10m}
        purchase_completed: 5
  multipliers:
    - {by: streaks.daily.current, from: 2, times: 1.5}
  expires_after: 30d
feature_updates: {features: [recency_days, monetary_total], active_within: 2d}
mail:
  senders: {shop: {from: shop@example.com}}
  templates:
    thanks: {subject: Thanks, text: "{{ features.monetary_total }} {{ total }}", variables: {total: {}}}
    first: {subject: First, text: Hello}
    second: {subject: Second, text: Hello again}
    aside: {subject: Aside, text: By the way}
rules:
  large:
    version: 1
    conditions: {field: event.properties.total, greater_than: 20}
    actions:
      - store_decision: {result: large, reason: "${event.properties.total}"}
      - award_points: {points: 25, reason: "a purchase of ${event.properties.total}"}
      - send_notification: {message: "Thanks, ${traits.name}!", data: {total: "${event.properties.total}"}}
      - send_notification: {template: thanks, variables: {total: "${event.properties.total}"}}
  any:
    version: 1
    priority: 1
    conditions: {field: event.properties.tag, exists: true}
    actions:
      - tag: {tag: "${event.properties.tag}"}
      - emit_event: {type: noticed, properties: {value: "${event.properties.value}"}}
journeys:
  drawn:
    trigger: {event: [purchase_completed, app_action], map: {total: event.properties.total}}
    reentry: always
    exit_on: {event: tag_added}
    events: [{event: conversation_started, send: aside}]
    quiet_hours: {from: "20:00", to: "09:30"}
    timeout: 9d
    steps:
      - send: first
      - wait: {event: purchase_completed, timeout: 2d}
      - wait: {until: "09:00"}
      - {if: {sent: first}, then: [{send: second}]}
rule_sets:
  all:
    events: [purchase_completed, tag_added, app_action, segment_entered, points_earned]
    rules: [large, any]
    record: all
"""
VALUES = discover(definitions=Definitions([("threadline.yaml", DEFINITIONS + MORE)]))
POLICIES = Catalogue(VALUES, staging.CATALOGUE.rules).policies


def lived(random: Random, length: int) -> tuple[list[str], set[tuple[str, str]]]:
    """What breaks a law in a life of plausible events, with every timer fired; and who emitted what in it."""
    problems: list[str] = []
    life = Life(watched(VALUES, problems))
    for gap, call in told_by(random, length):
        life.until(life.now + gap)
        life.on.recorder.record(call)
    life.until(life.now + 40 * DAY)
    assert not life.on.recorder.policy_failures
    emitted = {
        (recorded.event.source.removeprefix("policy:"), recorded.event.type)
        for person in life.on.reader.all_people("default")
        for recorded in life.on.reader.events(person, limit=500)
        if recorded.event.source.startswith("policy:")
    }
    return problems, emitted


@pytest.mark.costly
@settings(max_examples=10)
@given(random=scenarios.randoms)
def test_plausible_events(random: Random) -> None:
    problems, _ = lived(random, 16)
    assert problems == []


@pytest.mark.slow
def test_every_policy_emits_in_a_long_life() -> None:
    problems, emitted = lived(Random(4), 120)
    assert problems == []
    # Those that these events are made for; one that is new may need others.
    shipped = {"campaign_ignored", "leaderboards", "points", "rules", "segments", "streaks"}
    assert {policy for policy, _ in emitted} >= shipped


def test_every_policy_declares_what_it_emits_and_sends() -> None:
    # Users write the types of rules, so these cannot be listed.
    assert {policy.name for policy in POLICIES if policy.emits is None} == {"rules"}
    assert {policy.name for policy in POLICIES if policy.sends is None} == set()


HANDLED = {type for policy in POLICIES for type in (*(policy.handles or ()), *policy.also)}
TYPES = sorted(type for type in {*scenarios.TYPES, "anything", *HANDLED} if not type.startswith(SYSTEM_PREFIX))
hostile_events = st.lists(
    st.builds(
        lambda type, properties, context, at, key, ref, name, internal: Event(
            type=type,
            identifiers=(Identifier("user_id", name),),
            occurred_at=at,
            key=str(key),
            source="policy:points" if internal else "shop",
            source_type="internal" if internal else "external",
            properties=properties,
            context=context,
            object_ref=ref,
        ),
        st.sampled_from(TYPES),
        scenarios.hostile_payloads(FIELDS),
        scenarios.hostile_payloads(["timezone", "ip", "campaign", "page"]),
        st.sampled_from([-62_135_596_800_000_000, 0, scenarios.NOW - DAY, scenarios.NOW, scenarios.NOW + 1]),
        st.integers(0, 10**9),
        st.sampled_from(["", "acme", "é" * 600]),
        st.sampled_from(["u", "é" * 400]),
        st.booleans(),
    ).filter(storable),
    max_size=6,
)


def met(events: list[Event]) -> list[str]:
    """What breaks a law where events hold anything."""
    problems: list[str] = []
    on = staging.engine(shipped=False, values=watched(VALUES, problems))
    for event in events:
        on.recorder.record([event])
    assert not on.recorder.policy_failures
    return problems


@settings(max_examples=250)
@given(events=hostile_events)
def test_hostile_events(events: list[Event]) -> None:
    assert met(events) == []


# --- the laws themselves can fail -------------------------------------------------------------

GOOD = Emit(type="noted", key="k", occurred_at=scenarios.NOW)


def _raises(recorded: Recorded, known: PolicyView) -> Any:
    return recorded.event.properties["no_such_key"]


def _counts() -> Any:
    numbers = count()
    return lambda recorded, known: [Emit(type="noted", key=str(next(numbers)), occurred_at=scenarios.NOW)]


def _marks(recorded: Recorded, known: PolicyView) -> Any:
    recorded.event.properties["seen"] = True
    return [GOOD]


def _folds(recorded: Recorded, known: PolicyView) -> Any:
    known["profile"]["seen"] = known["profile"].get("seen", 0) + 1
    return [GOOD]


def _wishing(*wishes: Any) -> Any:
    return lambda recorded, known: wishes


BREAKS: list[tuple[Law, Any]] = [
    (policy_laws.a_policy_never_raises, _raises),
    (policy_laws.asked_again_it_wishes_for_the_same, _counts()),
    (policy_laws.asking_changes_nothing, _marks),
    (policy_laws.asking_changes_nothing, _folds),
    (policy_laws.keys_are_unique_within_a_cause, _wishing(GOOD, GOOD)),
    (policy_laws.keys_are_unique_within_a_cause, _wishing(Effect(kind="send", key="k"), Effect(kind="send", key="k"))),
    (policy_laws.only_what_is_declared_is_emitted, _wishing(Emit(type="else", key="k", occurred_at=0))),
    (policy_laws.only_what_is_declared_is_emitted, _wishing(Effect(kind="else", key="k"))),
    (policy_laws.wishes_can_be_stored, _wishing(Timer(key="k", due_at=1, data={"x": object()}))),
    (policy_laws.wishes_can_be_stored, _wishing(Emit(type="noted", key="k", occurred_at=0, properties={"x": 2**70}))),
]


@pytest.mark.policies_fail
@pytest.mark.parametrize(("law", "react"), BREAKS)
def test_each_law_is_broken_by_what_it_forbids(law: Law, react: Any) -> None:
    problems: list[str] = []
    policy = Policy(
        name="broken", handles=frozenset({"page"}), react=react, emits=frozenset({"noted"}), sends=frozenset({"send"})
    )
    values = watched([*staging.CATALOGUE.projections, policy], problems, [law])
    staging.engine(shipped=False, values=values).recorder.record([staging.event("page", {"user_id": "u"}, "1")])
    assert problems
    assert all(each.startswith(f"broken on page: {law.__name__}: ") for each in problems)


def test_a_sound_policy_breaks_no_law() -> None:
    policy = Policy("sound", frozenset({"page"}), _wishing(GOOD, Timer(key="k", due_at=1)), emits=frozenset({"noted"}))
    problems: list[str] = []
    values = watched([*staging.CATALOGUE.projections, policy], problems)
    staging.engine(shipped=False, values=values).recorder.record([staging.event("page", {"user_id": "u"}, "1")])
    assert problems == []


def test_every_law_has_something_that_breaks_it() -> None:
    assert {law for law, _ in BREAKS} == set(LAWS)
