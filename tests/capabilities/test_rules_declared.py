"""Rules that the definitions declare: their history, and what stands beside them by operations."""

from __future__ import annotations

import pytest

from tests.capabilities.asked import Asked
from tests.capabilities.lifecycle_stage import activate, asked_with_set, decided, rule
from threadline.engine.engine import Engine
from threadline.kernel.errors import Conflict, NotFound
from threadline.kernel.time import DAY, format_time


def test_the_definitions_have_a_history_as_well() -> None:
    text = "rules: {score: {version: 3, conditions: {field: tags, exists: true}}}"
    asked = Asked(definitions=text)
    opened = asked.now
    asked.now += DAY
    view = asked.ask("rules_show", id="score", at=format_time(asked.now))
    assert (view["version"], view["declared"], view["since"]) == (3, True, format_time(opened))
    asked.engine = Engine(asked.engine.store, Asked().engine.catalogue, lambda: asked.now)
    gone = asked.now
    with pytest.raises(NotFound, match="no version of rule 'score' was in force"):
        asked.ask("rules_show", id="score", at=format_time(gone))
    assert asked.ask("rules_show", id="score", at=format_time(gone - 1))["content"]["conditions"] == {
        "field": "tags",
        "exists": True,
    }
    told = asked.ask("rules_log", id="score")["declared"]
    assert [(each["version"], each["to"]) for each in told] == [(3, "declared"), (3, "withdrawn")]


# --- definitions and operations -----------------------------------------------------------------

DECLARED = """
rules: {score: {conditions: {field: event.properties.score, greater_than: 10}}}
rule_sets: {apps: {events: [applied], rules: [score]}}
"""


def test_what_the_definitions_declare_is_changed_there() -> None:
    asked = Asked(definitions=DECLARED)
    for operation, params in (
        ("rules_write", {"rule": rule()}),
        ("rules_activate", {"version": 1}),
        ("rules_retire", {"version": 1}),
    ):
        with pytest.raises(Conflict, match="is declared in the definitions"):
            asked.ask(operation, id="score", **params)
    with pytest.raises(Conflict, match="is declared in the definitions"):
        asked.ask("rule_sets_write", name="apps", events=["x"], rules=["score"])
    with pytest.raises(Conflict, match="is declared in the definitions"):
        asked.ask("rule_sets_remove", name="apps")


def test_the_definitions_stand_before_what_was_written() -> None:
    written = asked_with_set()
    activate(written, 90)
    asked = Asked(definitions=DECLARED)
    asked.engine = Engine(written.engine.store, asked.engine.catalogue, lambda: asked.now)
    asked.now = written.now
    assert decided(asked, 20, key="a") == [("Matched", 1)]
    (line,) = asked.ask("rules_list")["rules"]
    assert (line["declared"], line["active"], line["rule_sets"]) == (True, 1, ["apps"])


def test_what_was_written_counts_again_when_the_definitions_declare_it_no_more() -> None:
    asked = asked_with_set()
    activate(asked, 90)
    assert decided(asked, 95) == [("Rejected", 1)]
    written, declared = asked.engine.catalogue, Asked(definitions=DECLARED).engine.catalogue
    instants = [asked.now]
    for catalogue, said in ((declared, [("Matched", 1)]), (written, [("Rejected", 1)])):
        asked.now += DAY
        asked.engine = Engine(asked.engine.store, catalogue, lambda: asked.now)
        instants.append(asked.now)
        assert decided(asked, 95) == said
    found = [asked.ask("rules_show", id="score", at=format_time(at)) for at in instants]
    assert [(each["declared"], each["content"]["conditions"]["greater_than"]) for each in found] == [
        (False, 90),
        (True, 10),
        (False, 90),
    ]
    assert [each["since"] for each in found[1:]] == [format_time(at) for at in instants[1:]]
    # Of one number there are two versions, and each decision is reckoned by the one that made it.
    audits = [
        asked.ask("decisions_audit", decision=each["decision_id"])
        for each in asked.ask("decisions_list", rule="score")["decisions"]
    ]
    assert [(each["in_force"], each["problems"]) for each in audits] == [(True, [])] * 3
    assert [each["rule"]["conditions"]["greater_than"] for each in audits] == [90, 10, 90]
    assert asked.ask("decisions_verify")["breaches"] == []
