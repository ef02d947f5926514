"""Laws of rules: any batching with any crash decides the same, and decisions are what a slow reading says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.staging import CATALOGUE, Crash, CrashingStore, assert_log_is_whole, assert_refold_changes_nothing
from threadline.capabilities.decide.rules import ActiveRules, decide
from threadline.capabilities.decide.rules.definition import rule_of_json, set_of_json
from threadline.capabilities.decide.rules.hashing import decision_hash
from threadline.capabilities.decide.rules.operations.verification import breaches
from threadline.capabilities.decide.rules.policy import rules_policy
from threadline.capabilities.decide.rules.projection import TABLE
from threadline.capabilities.foundation.conditions import Conditions, Subject, read_json
from threadline.capabilities.foundation.conditions.tracing import is_shortened, plain_step
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.maintenance.dump import dump
from threadline.kernel.canonical import canonical_json
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.store import feed_pages, scan_pages
from threadline.stores.memory import MemoryStore
from threadline.testing import scenarios
from threadline.testing.audits.segments import satisfied
from threadline.testing.scenarios import NOW

RULES: dict[str, dict[str, Any]] = {
    "big": {
        "priority": 5,
        "conditions": {"field": "event.properties.total", "greater_than": 10},
        "actions": [
            {"store_decision": {"result": "approve", "total": "${event.properties.total}"}},
            {"tag": {"tag": "buys ${event.properties.currency}"}},
            {"award_points": {"points": 3}},
            {"call_webhook": {"destination": "crm"}},
        ],
    },
    "tagged": {
        "conditions": {"all": [{"field": "tags", "contains": "vip"}, {"field": "points.balance", "exists": True}]},
        "actions": [{"emit_event": {"type": "noticed", "properties": {"of": "${points.balance}"}}}],
    },
    "chained": {"conditions": {"field": "event.type", "equals": "noticed"}, "actions": []},
    "broken": {"conditions": {"field": "event.type", "exists": True}, "actions": [{"tag": {"tag": "${traits.plan}"}}]},
}
SETS: dict[str, dict[str, Any]] = {
    "money": {"events": ["purchase_completed", "purchase_refunded"], "rules": ["big", "broken"], "record": "all"},
    "people": {"events": ["tag_added", "identify", "page"], "rules": ["tagged"]},
    "own": {"events": ["noticed"], "rules": ["chained"]},
}
BOOK = ActiveRules(
    [rule_of_json(id, value) for id, value in RULES.items()], [set_of_json(name, each) for name, each in SETS.items()]
)
# Of the other policies only the one that rules act through; each has laws of its own.
POINTS = [each for each in CATALOGUE.policies if each.name == "points"]
RULED = Catalogue([*CATALOGUE.projections, *POINTS, rules_policy(BOOK)], CATALOGUE.rules)


def engine(store: Any) -> Engine:
    return Engine(store, RULED, lambda: NOW)


def told(store: Any, calls: Sequence[Sequence[Event]]) -> Engine:
    on = engine(store)
    for call in calls:
        assert {receipt.status for receipt in on.recorder.record(call)} <= {"accepted", "duplicate"}
    return on


def whole(on: Engine) -> tuple[list[str], list[Any]]:
    """The dump and every mark of a decision."""
    return dump(on.store, on.catalogue), sorted(map(repr, scan_pages(on.store, TABLE)))


def decisions(on: Engine) -> list[dict[str, Any]]:
    found = [
        on.log.event("default", each.entry.id) for each in feed_pages(on.store) if each.entry.type == "decision_made"
    ]
    return [recorded.event.properties for recorded in found if recorded.event.source_type == "internal"]


@given(events=scenarios.histories(people=2), random=scenarios.randoms)
def test_batches_duplicates_and_crashes_change_nothing(events: list[Event], random: Random) -> None:
    alone = told(MemoryStore(), [[event] for event in events])
    expected = whole(alone)
    assert whole(told(MemoryStore(), scenarios.batched(random, scenarios.duplicated(random, events)))) == expected
    store = MemoryStore()
    for call in scenarios.batched(random, events):
        while True:
            try:
                engine(fragile(store, random)).recorder.record(call)
                break
            except Crash:
                continue
    assert whole(engine(store)) == expected
    assert_refold_changes_nothing(alone)
    assert_log_is_whole(alone)
    keys = [(made["event_id"], made["rule"], made["version"], made["mode"]) for made in decisions(alone)]
    assert len(keys) == len(set(keys))


def fragile(store: MemoryStore, random: Random) -> Any:
    return CrashingStore(store, random.randint(1, 4), random.choice(("before", "after", "half")))


@given(events=scenarios.histories(people=2), random=scenarios.randoms)
def test_merging_and_undoing_it_leaves_the_decisions_of_each(events: list[Event], random: Random) -> None:
    on = told(MemoryStore(), scenarios.batched(random, events))
    people = list(on.reader.all_people("default"))
    if len(people) < 2:
        return
    before = {person.id: on.reader.views(person, NOW + 10)["decisions"] for person in people}
    made = decisions(on)
    one, other = sorted(before, key=lambda id: (-len(before[id]), id))[:2]
    _, gone = on.identity.merge("default", one, other, request="m", force=True)
    merged = on.reader.views(on.reader.person("default", one), NOW + 10)["decisions"]
    assert set(merged) == {*before[one], *before[other]}
    merges = on.reader.events(on.reader.person("default", one), types=frozenset({"threadline.person_merged"}))
    on.identity.unmerge(
        "default", next(each.id for each in merges if each.event.properties["merged"] == gone), request="u"
    )
    after = {person.id: on.reader.views(person, NOW + 10)["decisions"] for person in on.reader.all_people("default")}
    assert after == before
    # Neither is an event that rules are asked of.
    assert decisions(on) == made
    assert_refold_changes_nothing(on)


@given(events=scenarios.histories(people=1), random=scenarios.randoms)
def test_the_order_of_arrival_decides_only_what_was_known(events: list[Event], random: Random) -> None:
    """Rules that go by the event alone decide the same, in whatever order events come."""
    found = []
    for order in (events, scenarios.shuffled(random, events)):
        on = told(MemoryStore(), scenarios.batched(random, order))
        alone = [made for made in decisions(on) if made["rule"] == "big"]
        found.append(sorted((made["decision_id"], made["hash"], made["status"]) for made in alone))
    assert found[0] == found[1]


# --- against a slow reading ---------------------------------------------------------------------

FIELDS = ("event.type", "event.properties.a", "event.properties.b", "traits.plan", "features.total", "features.none")
VALUES = st.sampled_from(
    [0, 1, 2, 80, 80.0, 80.5, "80", "80.0", "x", "xy", 'q"%s{}é', "2026-03-01", "2026-03-01T00:00:00Z", True, False]
)
HELD = VALUES | st.sampled_from([None, [1, "x"], {"x": 1}, "y" * 2_000, 1e300, 2**60, -0.0])


def asking(operator: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda field, value: {"field": field, operator: value}, st.sampled_from(FIELDS), values)


TESTS = st.one_of(
    asking("equals", VALUES),
    asking("equals", VALUES),
    asking("not_equals", VALUES),
    asking("in", st.lists(VALUES, min_size=1, max_size=3)),
    asking("greater_than", st.sampled_from([0, 1.5, "80", "x"])),
    asking("exists", st.booleans()),
    asking("regex", st.sampled_from(["^x", "8"])),
)
TREES = st.recursive(
    TESTS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"all": parts}),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"any": parts}),
        inner.map(lambda part: {"not": part}),
    ),
    max_leaves=6,
)
VIEWS = st.fixed_dictionaries({}, optional={"plan": HELD, "total": HELD})
EVENTS = st.fixed_dictionaries({}, optional={"a": HELD, "b": HELD})


def depth(tree: dict[str, Any]) -> int:
    inner = tree.get("all") or tree.get("any") or ([tree["not"]] if "not" in tree else [])
    return 1 + max(map(depth, inner)) if inner else 0


@given(
    trees=st.lists(TREES.filter(lambda tree: depth(tree) <= 5), min_size=1, max_size=12),
    priorities=st.lists(st.integers(0, 3), min_size=12, max_size=12),
    policy=st.sampled_from(["all", "first"]),
    record=st.sampled_from(["matched", "all"]),
    properties=EVENTS,
    known=VIEWS,
)
def test_what_matches_is_what_a_slow_reading_says(
    trees: list[dict[str, Any]], priorities: list[int], policy: str, record: str, properties: Any, known: Any
) -> None:
    ids = [f"r{number:02d}" for number in range(len(trees))]
    rules = [
        rule_of_json(id, {"conditions": tree, "priority": priority})
        for id, tree, priority in zip(ids, trees, priorities, strict=False)
    ]
    asked = set_of_json("s", {"events": ["t"], "rules": ids, "policy": policy, "record": record})
    event = Event(
        type="t", identifiers=(Identifier("user_id", "ada"),), occurred_at=NOW, key="k", properties=properties
    )
    recorded = Recorded(event, "0" * 32, "1" * 32, 1, NOW)
    traits = {"plan": known["plan"]} if "plan" in known else {}
    features = {"total": {"value": known["total"]}} if "total" in known else {}
    views = {"profile": {"traits": traits, "tags": [], "groups": {}}, "features": features}
    picture = {
        "event": {"type": "t", "properties": properties},
        "traits": traits,
        "features": {name: each["value"] for name, each in features.items()},
    }
    expected = []
    order = sorted(range(len(trees)), key=lambda number: (-priorities[number], ids[number]))
    for number in order:
        matched = satisfied(trees[number], picture)
        if matched or record == "all":
            expected.append((ids[number], "Matched" if matched else "NoMatch"))
        if matched and policy == "first":
            break

    class Known:
        at = NOW

        def view(self, name: str) -> Any:
            return views.get(name)

    found = decide(ActiveRules(rules, [asked]), recorded, Known())
    assert [(each.rule.id, each.status) for each in found] == expected
    for each in found:
        steps = Conditions(read_json(trees[ids.index(each.rule.id)])).trace(Subject(views.get, recorded)).steps
        if not any(map(is_shortened, each.inputs.values())):
            again = each.rule.body.again(each.inputs)
            assert (again.matched, again.steps) == (each.status == "Matched", steps)
        # What is put together from bytes that are known is what the plain way gives.
        assert each.trace == [plain_step(step) for step in steps]
        plain = (each.inputs, each.status, each.output, each.trace, each.wished)
        assert each.hash == decision_hash(canonical_json(each.rule.content), *plain)
        assert breaches(each.plain, each.rule) == []
        assert msgspec.json.decode(msgspec.json.encode(each.plain)) == each.plain
        assert re.fullmatch("[0-9a-f]{64}", each.hash)
