"""Whatever fields hold, a tree of conditions on them gives the same answer in every section of the definitions."""

from __future__ import annotations

import json
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.conditions_drawn import traits, trees
from threadline.capabilities.decide.rules.declared import read_rules
from threadline.capabilities.decide.rules.policy import decide
from threadline.capabilities.foundation.conditions import Subject
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.features import projection
from threadline.capabilities.profile.features.definition import read_features
from threadline.capabilities.profile.memory.definition import derivations_of
from threadline.capabilities.profile.memory.projection import fact_derivations, facts_of
from threadline.capabilities.profile.segments.definition import read_segments
from threadline.capabilities.profile.streaks.definition import read_streaks
from threadline.kernel.event import Event, Recorded
from threadline.testing.audits.segments import satisfied


def declared(drawn: list[dict[str, Any]]) -> Definitions:
    """Every section that holds conditions, with each of these trees under a number."""
    persons = {f"n{number}": tree for number, tree in enumerate(drawn)}
    events = json.loads(json.dumps(persons).replace('"traits.', '"event.properties.'))
    wheres = {name: {"where": _where(tree)} for name, tree in events.items()}
    sections = {
        "features": {name: {"aggregate": "count", "events": "x", **where} for name, where in wheres.items()},
        "streaks": {name: {"events": {"x": where}} for name, where in wheres.items()},
        "memory": {
            name: {"events": {"x": where}, "fact": f"fact/{name}", "value": "always"} for name, where in wheres.items()
        },
        "segments": {name: {"when": tree} for name, tree in persons.items()},
        "rules": {name: {"conditions": tree} for name, tree in events.items()},
        "rule_sets": {"all": {"events": ["x"], "rules": list(events)}},
    }
    return Definitions([("test.yaml", yaml.safe_dump(sections, allow_unicode=True))])


def _where(tree: dict[str, Any]) -> Any:
    """The short form of a single condition, a list of trees of anything else."""
    if "field" not in tree:
        return [tree]
    ((operator, operand),) = ((name, value) for name, value in tree.items() if name != "field")
    return {tree["field"].removeprefix("event.properties."): {operator: operand}}


@given(st.lists(trees, min_size=1, max_size=6), st.lists(traits, min_size=1, max_size=4))
def test_features_streaks_memory_rules_and_segments_give_one_answer(
    drawn: list[dict[str, Any]], held: list[dict[str, Any]]
) -> None:
    definitions = declared(drawn)
    features, streaks = projection(read_features(definitions)), read_streaks(definitions).by_name
    makers, active = fact_derivations(derivations_of(definitions)), read_rules(definitions)
    segments = read_segments(definitions)
    definitions.refuse()
    names = [f"n{number}" for number in range(len(drawn))]
    sources = [streaks[name].source for name in names]
    wheres = [feed.where for source in sources if source is not None for feed in source.feeds]
    compiled = None if features.faster.fold is None else features.faster.fold("x")
    assert compiled is not None
    assert segments is not None
    for fields in held:
        answers = [satisfied(tree, {"traits": fields}) for tree in drawn]
        event = Event(type="x", identifiers=(), occurred_at=0, key="k", properties={**fields, "always": 1})
        recorded = Recorded(event, "0" * 32, "t" * 32, 1, 0)
        for fold in (features.fold, compiled):
            state = features.empty()
            shown = features.view(fold(state, recorded) or state, 1, [])
            assert [shown[name]["value"] == 1 for name in names] == answers
        assert [where.test(event) for where in wheres] == answers
        made = {key for _, key in facts_of(makers, recorded)}
        assert [name in made for name in names] == answers
        matched = {decided.rule.id for decided in decide(active, recorded, Subject({}.get))}
        assert [name in matched for name in names] == answers
        person = Subject({"profile": {"traits": fields, "tags": [], "groups": {}}}.get)
        # Segments are read by name, and n10 comes before n2.
        belongs = {segment.name: segment.conditions.test(person) for segment in segments}
        assert [belongs[name] for name in names] == answers
