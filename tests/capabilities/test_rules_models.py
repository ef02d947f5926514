"""Decision models as bodies of rules: they say what stands in them, the same whenever they are asked."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

import threadline
from tests import forked
from threadline.capabilities.decide.rules import model_reading
from threadline.capabilities.decide.rules.declared import read_rules
from threadline.capabilities.decide.rules.definition import rule_of_json
from threadline.capabilities.decide.rules.file_import import rules_of_files
from threadline.capabilities.decide.rules.models import ModelBody
from threadline.capabilities.foundation.conditions import Subject
from threadline.capabilities.foundation.conditions.tracing import plain_step
from threadline.capabilities.foundation.definitions import Definitions
from threadline.kernel.canonical import canonical_json
from threadline.kernel.errors import InvalidDefinition, InvalidValue
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.time import from_datetime

FOLDER = Path(__file__).parents[1] / "data/decision_models"
MODELS = {file.stem: json.loads(file.read_text()) for file in sorted(FOLDER.glob("*.json"))}
RECORDED_AT = from_datetime(datetime(2025, 8, 19, 16, 55, 2, tzinfo=UTC))
"""When the output of the one model that asks for the time was recorded, by that output itself."""

IN: dict[str, Any] = {"id": "in", "type": "inputNode", "name": "in"}
OUT: dict[str, Any] = {"id": "out", "type": "outputNode", "name": "out"}


def body_of(model: dict[str, Any]) -> ModelBody:
    body = rule_of_json("model", {"model": model}).body
    assert isinstance(body, ModelBody)
    return body


def subject(properties: dict[str, Any], at: int = RECORDED_AT) -> Subject:
    event = Event(
        type="asked", identifiers=(Identifier("user_id", "ada"),), occurred_at=at, key="1", properties=properties
    )
    return Subject({"profile": {"traits": {"plan": "gold"}}}.get, Recorded(event, "0" * 32, "1" * 32, 1, at))


def expressions(**texts: str) -> dict[str, Any]:
    told = [{"id": key, "key": key, "value": text} for key, text in texts.items()]
    node = {"id": "x", "type": "expressionNode", "name": "compute", "content": {"expressions": told}}
    edges = [{"id": "1", "sourceId": "in", "targetId": "x"}, {"id": "2", "sourceId": "x", "targetId": "out"}]
    return {"nodes": [IN, node, OUT], "edges": edges}


def without_functions(model: dict[str, Any]) -> dict[str, Any]:
    """The model with what its JavaScript says, said in expressions."""
    counts = {flag: f"len(filter(values(flags), # == '{flag}'))" for flag in ("red", "amber", "green")}
    aml = {
        "breakdown": f"{{red: {counts['red']}, amber: {counts['amber']}, green: {counts['green']}}}",
        "overallFlag": f"{counts['red']} > 0 ? 'red' : {counts['amber']} > 0 ? 'amber' : 'green'",
    }
    company = {flag: f"len(filter(values(flag), # == '{flag}'))" for flag in ("critical", "red", "amber", "green")}
    changed = copy.deepcopy(model)
    for node in changed["nodes"]:
        if node["type"] == "functionNode":
            texts, through = (aml, True) if "overallFlag" in json.dumps(node) else (company, False)
            node["type"] = "expressionNode"
            told = [{"id": key, "key": key, "value": text} for key, text in texts.items()]
            node["content"] = {"expressions": told, "passThrough": through}
    return changed


CASES = [(name, number) for name, model in MODELS.items() for number in range(len(model["tests"]))]


@pytest.mark.parametrize(("name", "number"), CASES)
def test_a_model_gives_the_output_that_stands_in_it(name: str, number: int) -> None:
    model = without_functions(MODELS[name])
    case = model["tests"][number]
    body = body_of(model)
    outcome = body.evaluate(subject(case["input"]))
    assert outcome.output == case["output"]
    assert outcome.matched
    assert body.test(subject(case["input"]))
    assert [step.step for step in outcome.steps] == list(range(1, len(outcome.steps) + 1))


def test_there_are_enough_of_them() -> None:
    assert len(MODELS) == 17
    assert len(CASES) == 22


@pytest.mark.parametrize("name", ["aml", "company-analysis"])
def test_javascript_is_refused_by_the_name_of_its_node(name: str) -> None:
    function = next(node["name"] for node in MODELS[name]["nodes"] if node["type"] == "functionNode")
    with pytest.raises(
        InvalidDefinition, match=rf"rule.model.nodes\[\d\]: node '{function}': a functionNode runs Java"
    ):
        body_of(MODELS[name])


@pytest.mark.parametrize("name", MODELS)
def test_the_same_inputs_in_another_order_give_the_same_decision(name: str) -> None:
    model = without_functions(MODELS[name])
    given = model["tests"][0]["input"]

    def turned(value: Any) -> Any:
        if type(value) is dict:
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(each) for each in value] if type(value) is list else value

    def written(properties: dict[str, Any]) -> bytes:
        outcome = body_of(model).evaluate(subject(properties))
        return canonical_json([outcome.output, outcome.matched, [plain_step(step) for step in outcome.steps]])

    assert written(given) == written(turned(given)) == written(json.loads(canonical_json(given)))


@pytest.mark.parametrize("name", MODELS)
def test_a_decision_can_be_reckoned_again_from_what_was_read(name: str) -> None:
    model = without_functions(MODELS[name])
    body = body_of(model)
    outcome = body.evaluate(subject(model["tests"][0]["input"]))
    again = body_of(json.loads(json.dumps(body.plain))).again(json.loads(canonical_json(outcome.inputs)))
    assert (again.output, again.matched, again.steps) == (outcome.output, outcome.matched, outcome.steps)


def test_the_trace_says_which_rules_applied_and_what_was_passed_over() -> None:
    model = MODELS["insurance-prior-authorization"]
    steps = [plain_step(step) for step in body_of(model).evaluate(subject(model["tests"][0]["input"])).steps]
    told = [(step["field"], step["operator"], step["matched"], step["note"]) for step in steps]
    assert told == [
        ("Insurance Type Check", "switch", True, ""),
        ("Commercial Rules", "table", True, ""),
        ("Diagnosis Code Exclusions", "table", True, ""),
        ("Final Determination", "node", True, ""),
        ("Medicaid Rules", "node", None, "skipped"),
        ("Medicare Rules", "node", None, "skipped"),
    ]
    assert (steps[1]["expected"][0]["_id"], steps[1]["actual"]) == ("r3", [{"serviceType": "Imaging"}])


def test_the_time_is_that_of_the_event() -> None:
    model = expressions(now="date('now')", day='dateString("now")', at="d().format('%Y-%m-%d')", text="'now'")
    del model["nodes"][1]["content"]["expressions"][3]
    outcome = body_of(model).evaluate(subject({}))
    assert outcome.output == {"now": 1_755_622_502, "day": "2025-08-19 16:55:02", "at": "2025-08-19"}
    assert outcome.inputs["event.occurred_at"] == "2025-08-19T16:55:02.000000Z"
    with pytest.raises(InvalidValue, match="there is no event"):
        body_of(model).evaluate(Subject({}.get))


@pytest.mark.parametrize(
    "text",
    [
        "rand(5)",
        "1 + rand( 5 )",
        "time('now')",
        "date(a ? 'now' : b)",
        "d('Europe/Berlin')",
        "d(a)",
        "d( a )",
        "d('2024-01-01').isToday()",
        "`${rand(5)}`",
        "`${d(a)}`",
        "`it's ${rand(5)}, isn't it`",
    ],
)
def test_what_asks_a_clock_or_throws_dice_is_refused(text: str) -> None:
    with pytest.raises(InvalidDefinition, match=r"rule.model.nodes\[1\].content.expressions\[0\].value: "):
        body_of(expressions(a=text))


@pytest.mark.parametrize(
    "text", ["'rand(5)'", "brand(5) ? 1 : 2", "'d(a)'", "a.d", "'date now'", "'now'", "grand", "date(a)"]
)
def test_what_only_looks_like_it_is_not(text: str) -> None:
    if text.startswith("brand"):
        with pytest.raises(InvalidDefinition) as error:
            body_of(expressions(a=text))
        assert "dice" not in str(error.value)
        return
    body_of(expressions(a=text))


def test_a_date_that_says_now_is_an_error_and_not_the_time() -> None:
    body = body_of(expressions(a="date(when)"))
    assert body.evaluate(subject({"when": "2024-01-01"})).output == {"a": 1_704_067_200}
    with pytest.raises(InvalidValue, match="'now' among the inputs"):
        body.evaluate(subject({"when": "now"}))
    assert body_of(expressions(a="when")).evaluate(subject({"when": "now"})).output == {"a": "now"}


@pytest.mark.parametrize(
    ("text", "given", "told"),
    [
        ("a + b", {"a": 0.1, "b": 0.2}, 0.3),
        ("a * 3", {"a": 1.1}, 3.3),
        ("a / 3", {"a": 1}, 0.3333333333333333),
        ("a + 1", {"a": 9_007_199_254_740_993}, 9_007_199_254_740_994),
        ("a / 2", {"a": 10}, 5),
        ("a", {"a": "0.10"}, "0.10"),
        ("a", {"a": 1.0}, 1),
        ("round(a, 0)", {"a": 2.5}, 3),
        ("a / 0", {"a": 1}, None),
        ("a", {"a": -0.0}, 0),
    ],
)
def test_numbers_are_decimals_of_28_digits(text: str, given: dict[str, Any], told: Any) -> None:
    output = body_of(expressions(x=text)).evaluate(subject(given)).output
    assert (output.get("x"), type(output.get("x"))) == (told, type(told))


@pytest.mark.parametrize("number", [1e300, 12_345_678_901_234_567_890_123_456_789_012])
def test_a_number_beyond_that_is_an_error(number: Any) -> None:
    with pytest.raises(InvalidValue, match="the decision model: "):
        body_of(expressions(x="a + 1")).evaluate(subject({"a": number}))


def test_inputs_are_named_and_a_match_is_what_says_true() -> None:
    model = {
        **expressions(ok="total > 100 and plan == 'gold'", total="total"),
        "inputs": {"total": "event.properties.total", "plan": "traits.plan"},
        "match": "ok",
    }
    body = body_of(model)
    assert body.reads == (("profile", ("traits", "plan")),)
    outcomes = [body.evaluate(subject({"total": total, "other": 1})) for total in (99, 101)]
    assert [outcome.matched for outcome in outcomes] == [False, True]
    assert outcomes[1].inputs == {"event.properties.total": 101, "traits.plan": "gold"}
    assert [body.test(subject({"total": total})) for total in (99, 101)] == [False, True]


def test_a_table_without_a_rule_that_applies_does_not_match() -> None:
    table = {
        "id": "t",
        "type": "decisionTableNode",
        "name": "limits",
        "content": {
            "hitPolicy": "first",
            "inputs": [{"id": "i", "name": "Total", "field": "total"}],
            "outputs": [{"id": "o", "name": "Result", "field": "result"}],
            "rules": [{"_id": "r", "i": "> 100", "o": "'reject'"}],
        },
    }
    edges = [{"id": "1", "sourceId": "in", "targetId": "t"}, {"id": "2", "sourceId": "t", "targetId": "out"}]
    body = body_of({"nodes": [IN, table, OUT], "edges": edges})
    missed, hit = (body.evaluate(subject({"total": total})) for total in (100, 101))
    assert (missed.matched, missed.output, missed.steps[0].note) == (False, {}, "no rule applies")
    assert (hit.matched, hit.output) == (True, {"result": "reject"})


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda m: m.pop("edges"), "rule.model: `edges` is a list"),
        (
            lambda m: m.update(edges=[{"id": "1", "sourceId": "x", "targetId": "x"}]),
            "this is not a decision",
        ),
        (lambda m: m.update(node=[]), "unknown key 'node'; did you mean 'nodes'?"),
        (lambda m: m["nodes"][1].update(type="expresionNode"), "did you mean 'expressionNode'?"),
        (lambda m: m["nodes"][1].update(type="decisionNode"), "calls another model"),
        (lambda m: m["nodes"][1].update(name=7), "has an `id` and a `name`"),
        (lambda m: m["nodes"][1]["content"]["expressions"][0].update(value="1 +"), "'1 +': Unexpected end"),
        (lambda m: m.update(inputs={"a": "event.propertys.a"}), "rule.model.inputs.a: "),
        (lambda m: m.update(inputs={}), "`inputs` names 1 to"),
        (lambda m: m.update(match=""), "rule.model.match: takes a path"),
        (lambda m: m.update(nodes=m["nodes"] * 80), "at most 200 nodes"),
        (lambda m: m["nodes"].pop(0), "rule.model: this is not a decision model"),
    ],
)
def test_a_mistake_is_named_where_it_stands(change: Any, problem: str) -> None:
    model = copy.deepcopy(expressions(a="1"))
    change(model)
    with pytest.raises(InvalidDefinition) as error:
        body_of(model)
    assert problem in str(error.value)


@pytest.mark.parametrize("text", ["map([1..10000000], #)", "count([1..n], # > 1)", "filter([a..b], true)"])
def test_what_walks_through_a_range_is_refused(text: str) -> None:
    with pytest.raises(InvalidDefinition, match="walks through a range"):
        body_of(expressions(a=text))
    body_of(expressions(a="total in [1..5]", b="map(items, # * 2)", c="'map(1..2)'"))


def test_what_the_library_throws_past_handlers_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import zen

    with pytest.raises(BaseException) as panic:
        zen.evaluate_expression("rand(-1)")
    assert not isinstance(panic.value, Exception), "if this is an exception now, nothing special is needed any more"
    monkeypatch.setattr(model_reading, "_FORBIDDEN", ())
    body = body_of(expressions(a="rand(score)"))
    with pytest.raises(InvalidValue, match="gave up"):
        body.evaluate(subject({"score": -1}))


def test_without_the_library_a_model_is_refused_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zen", None)
    with pytest.raises(InvalidDefinition, match=r"pip install '\.\[rules\]'"):
        body_of(expressions(a="1"))


def test_a_cycle_is_refused() -> None:
    model = expressions(a="1")
    model["edges"].append({"id": "3", "sourceId": "x", "targetId": "x"})
    with pytest.raises(InvalidDefinition, match="cyclicGraph"):
        body_of(model)


def test_a_model_decides_live_and_its_decisions_can_be_verified() -> None:
    bank = threadline.open("memory:")
    model = {
        **expressions(result="score > 80 ? 'reject' : 'approve'", half="score / 2"),
        "inputs": {"score": "event.properties.score"},
    }
    bank.rules.write(id="risk", rule={"model": model, "actions": [{"tag": {"tag": "risk-${output.half}"}}]})
    bank.rules.activate(id="risk", version=1, untested=True)
    bank.rule_sets.write(name="applications", events=["applied"], rules=["risk"])
    for key, score in (("1", 91), ("2", 10)):
        bank.track("ada", "applied", {"score": score}, key=key)
    decisions = bank.decisions.list(person="user_id:ada").decisions
    assert sorted((each.status, each.output["half"]) for each in decisions) == [
        ("Approved", 5),
        ("Rejected", 45.5),
    ]
    assert sorted(bank.person("user_id:ada").tags) == ["risk-45.5", "risk-5"]
    assert bank.decisions.verify().breaches == []
    bank.track("ada", "applied", {"score": "high"}, key="3")
    failed = bank.decisions.list(person="user_id:ada", status="Error").decisions
    assert len(failed) == 1
    assert failed[0].output["error"].startswith("the decision model: ")


# --- imported -------------------------------------------------------------------------------------


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src"), "COLUMNS": "120"}
    command = [forked.python(), "-m", "threadline", "rules", "import", *arguments]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("aml", "company-analysis")])
def test_an_imported_model_decides_as_its_file_says(name: str) -> None:
    [rule] = rules_of_files([(f"{name}.json", (FOLDER / f"{name}.json").read_bytes())]).rules
    assert rule.id == name
    text = yaml.safe_dump({"rules": {rule.id: {key: each for key, each in rule.content.items() if key != "id"}}})
    [declared] = read_rules(Definitions([("threadline.yaml", text)])).rules.values()
    assert declared.canonical == rule.canonical
    for case in MODELS[name]["tests"]:
        assert declared.body.evaluate(subject(case["input"])).output == case["output"]


@pytest.mark.slow
def test_the_command_prints_definitions_that_can_be_read(tmp_path: Path) -> None:
    files = [str(FOLDER / f"{name}.json") for name in ("loan-approval", "dynamic-ticket-pricing")]
    done = run(tmp_path, *files)
    assert (done.returncode, done.stderr) == (0, "")
    active = read_rules(Definitions([("threadline.yaml", done.stdout)]))
    assert sorted(active.rules) == ["dynamic-ticket-pricing", "loan-approval"]


@pytest.mark.slow
def test_the_command_writes_drafts(tmp_path: Path) -> None:
    done = run(tmp_path, str(FOLDER / "loan-approval.json"), "--draft", "--file", str(tmp_path / "bank.db"))
    assert (done.stdout, done.stderr) == ("loan-approval: version 1 is draft\n", "")
    bank = threadline.open(tmp_path / "bank.db")
    assert bank.rules.show(id="loan-approval", version=1).state == "draft"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "model.json: this is not JSON"),
        ("[[]]", "model.json[1]: neither a decision model"),
        ('{"nodes": 1}', "model.json.model.nodes: `nodes` is a list of objects"),
        (json.dumps(MODELS["aml"]), "a functionNode runs JavaScript"),
    ],
)
def test_a_file_that_is_no_model_is_told(text: str, problem: str) -> None:
    with pytest.raises(InvalidDefinition) as error:
        rules_of_files([("model.json", text.encode())])
    assert problem in str(error.value)
