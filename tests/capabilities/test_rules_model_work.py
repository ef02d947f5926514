"""Decision models are counted before they run: what could stop a process is an error, and the rest is as it was."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import threadline
from tests.capabilities.test_rules_models import IN, MODELS, OUT, body_of, expressions, subject, without_functions
from threadline.capabilities.decide.rules.model_engine import Engine
from threadline.capabilities.decide.rules.model_work import WALKS, Plan
from threadline.kernel.errors import InvalidDefinition, InvalidValue
from threadline.kernel.limits import MODEL_WORK_MAX

NUMBERS = {"items": list(range(5_000))}
FEW = {"items": [1, 2, 3]}


def chain(*nodes: dict[str, str], mode: str = "single", over: str | None = None) -> dict[str, Any]:
    """A model whose nodes follow each other."""
    made = [
        {
            "id": f"n{number}",
            "type": "expressionNode",
            "name": f"node {number}",
            "content": {
                "expressions": [{"id": key, "key": key, "value": text} for key, text in texts.items()],
                "passThrough": over is None,
                "executionMode": mode,
                "inputField": over,
            },
        }
        for number, texts in enumerate(nodes)
    ]
    ids = ["in", *(node["id"] for node in made), "out"]
    edges = [{"id": a, "sourceId": a, "targetId": b} for a, b in pairwise(ids)]
    return {"nodes": [IN, *made, OUT], "edges": edges}


DOUBLED = [{f"x{n}": f"[x{n - 1}, x{n - 1}]" if n else "[1, 1]"} for n in range(40)]
BOMBS: dict[str, dict[str, Any]] = {
    **{f"{name} of itself": expressions(x=f"{name}(items, items)") for name in ("map", "flatMap")},
    **{f"{name} nested": expressions(x=f"{name}(items, len(map(items, #)) > 9)") for name in sorted(WALKS)},
    "by another name": expressions(x="map(items as i, filter(items as j, i == j))"),
    "chained over nodes": chain({"x": "flatMap(items, [#, #])"}, {"y": "map(x, x)"}),
    "all that there is": expressions(x="map(items, $root)"),
    "all nodes": chain({"x": "1"}, {"y": "map(items, $nodes)"}),
    "within a node": expressions(x="map(items, #)", y="map($.x, $.x)"),
    "over each element": chain({"x": "map($root.items, 1)"}, {"y": "$nodes"}, mode="loop", over="items"),
    "statements": expressions(x="a = items; b = map(a, a); b"),
    "in a template": expressions(x="`${len(map(items, items))}`"),
    "a key that is computed": expressions(x="{[k]: map(items, [items])}"),
    "lists that double": chain(*DOUBLED),
    "lists that double in one node": expressions(
        **{key: text.replace("x", "$.x") for texts in DOUBLED for key, text in texts.items()}
    ),
    "texts that double": chain({"x": "'abcdefghijklmnopqrst'"}, *[{"x": "x + x"}] * 40),
    "texts in templates": chain({"x": "'abcdefghijklmnopqrst'"}, *[{"x": "`${x}${x}`"}] * 40),
    "texts for each element": expressions(x="map(items, text)"),
    "characters": expressions(x="map(split(text, ''), split(text, ''))"),
    "distances": expressions(x="map(items, fuzzyMatch(text, text))"),
    "patterns": expressions(x="map(items, matches(text, '(a{100}){90}b?'))"),
    "a range from elsewhere": expressions(a="[1..1000000000000]", b="map($.a, #)"),
    "a range in an object": expressions(a="{r: (0..1000000000000)}", b="map($.a.r, #)"),
    "a range by a name": expressions(a="r = [1..1000000000000]; 1", b="map(r, #)"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_an_error_before_it_is_evaluated(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body = body_of(BOMBS[name])
    monkeypatch.setattr(Engine, "ask", lambda *_, **__: pytest.fail("it was evaluated"))
    with pytest.raises(InvalidValue, match=r"may take more than 1,000,000 steps up to its node|makes a range"):
        body.evaluate(subject({**NUMBERS, "text": "a" * 30_000, "k": "x", "$root": 1, "$nodes": 1, "#": 1, "$": 1}))


def test_the_error_names_the_node_the_length_and_the_limit() -> None:
    with pytest.raises(InvalidValue, match=r"1,000,000 steps up to its node 'compute' .* has 5,000 elements; give it"):
        body_of(expressions(x="map(items, items)")).evaluate(subject(NUMBERS))


@pytest.mark.parametrize(
    "text",
    [
        "map(items, # * rate)",
        "filter(items, # > rate)",
        "sum(map(filter(items, # > 5), # * 2))",
        "count(items as i, i > rate and i < 99)",
        "some(items, # == 5)",
        "len(items) > 5 ? sum(items) / len(items) : 0",
        "total in [1..5]",
        "total in (0..100]",
        "`it's ${rate} \"x`",
        "matches(text, '^a{3}')",
        "'\\'",
    ],
)
def test_one_walk_through_thousands_of_elements_is_as_before(text: str) -> None:
    given = {**NUMBERS, "rate": 2, "total": 3, "text": "aaaa"}
    model = expressions(x=text)
    assert body_of(model).evaluate(subject(given)).output.keys() == {"x"}


@pytest.mark.parametrize("text", ["map(items, items)", "filter(items, len(filter(items, # > 5)) > 1)"])
def test_lists_within_lists_of_hundreds_are_as_before(text: str) -> None:
    assert body_of(expressions(x=text)).evaluate(subject({"items": list(range(400))})).matched


@pytest.mark.parametrize("name", MODELS)
def test_ordinary_models_take_a_small_part_of_the_limit(name: str) -> None:
    model = without_functions(MODELS[name])
    plan = Plan(model)
    for case in model["tests"]:
        assert plan.check(case["input"]) < MODEL_WORK_MAX / 10


def test_an_expression_of_brackets_alone_is_refused() -> None:
    with pytest.raises(InvalidDefinition, match="more than 64 brackets inside one another"):
        body_of(expressions(x="(" * 2_000 + "1" + ")" * 2_000))


def test_what_follows_a_backslash_in_quotes_is_code() -> None:
    with pytest.raises(InvalidDefinition, match="throws dice"):
        body_of(expressions(x="'\\' + string(rand(5)) + '\\'"))


def test_a_rule_whose_model_is_a_bomb_decides_that_it_is_an_error_and_others_decide(tmp_path: Path) -> None:
    rule = {"version": 1, "actions": [{"set_value": {"trait": "seen", "value": True}}]}
    definitions = {
        "rules": {
            "bomb": {**rule, "model": expressions(x="map(items, items)")},
            "fine": {**rule, "model": expressions(x="len(items)")},
        },
        "rule_sets": {"all": {"events": ["asked"], "rules": ["bomb", "fine"]}},
    }
    (tmp_path / "threadline.yaml").write_text(json.dumps(definitions))  # which is YAML as well
    shop = threadline.open("memory:", definitions=tmp_path / "threadline.yaml")
    event = {"type": "asked", "key": "1", "identifiers": {"user_id": "ada"}, "properties": NUMBERS}
    decisions = {each.rule: each for each in shop.decisions.evaluate(event=event, rule_set="all").decisions}
    assert {name: each.status for name, each in decisions.items()} == {"bomb": "Error", "fine": "Matched"}


# --- what is counted is never less than what comes ------------------------------------------

NAMES = st.sampled_from(["a", "b", "o", "o.a", "o.p", "t", "$.k0", "$.k1", "x", "$root", "$nodes", "#", "1", "'text'"])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    walk = st.sampled_from(sorted(WALKS))
    return st.one_of(
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("{{a: {}, k: {}}}".format, inner, inner),
        st.builds("{{[t]: {}}}".format, inner),
        st.builds("{}({}, {})".format, walk, inner, inner),
        st.builds("{}({} as x, {})".format, walk, inner, inner),
        st.builds("({} + {})".format, inner, inner),
        st.builds("({} == {} ? {} : {})".format, inner, inner, inner, inner),
        st.builds("({} ?? {})".format, inner, inner),
        st.builds("{}({})".format, st.sampled_from(["flatten", "keys", "values", "len", "upper"]), inner),
        st.builds("split({}, '')".format, inner),
        st.builds("`${{{}}}-${{{}}}`".format, NAMES, NAMES),
    )


TEXTS = st.recursive(NAMES, _larger, max_leaves=8)
NODES = st.lists(st.dictionaries(st.sampled_from(["k0", "k1", "a", "t"]), TEXTS, min_size=1), min_size=1, max_size=4)
PLAIN = st.recursive(
    st.integers(0, 9) | st.text("ab", max_size=40),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.sampled_from(["a", "p", "b"]), inner, max_size=3),
    max_leaves=20,
)
INPUTS = st.fixed_dictionaries({"a": PLAIN, "b": PLAIN, "o": PLAIN, "t": st.text("ab", max_size=40)})


def elements(value: Any) -> int:
    if type(value) is dict:
        return 1 + sum(map(elements, value.values()))
    return 1 + sum(map(elements, value)) if type(value) is list else 1


@settings(max_examples=400, deadline=None)
@given(NODES, INPUTS)
def test_whatever_the_model_and_the_input_no_more_comes_than_was_counted(
    nodes: list[dict[str, str]], given: dict[str, Any]
) -> None:
    model = chain(*nodes)
    try:
        body = body_of(model)
    except InvalidDefinition:
        return
    try:
        steps = Plan(model).check(given)
        outcome = body.evaluate(subject(given))
    except InvalidValue:
        return
    assert elements(outcome.output) <= steps
    assert all(elements(step.actual) <= steps for step in outcome.steps)
