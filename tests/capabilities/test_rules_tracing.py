"""Law: the trace of tests that all must hold, which is written fast, is the one that conditions define, to the byte."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.conditions_drawn import leaves, traits
from threadline.capabilities.decide.rules.definition import rule_of_json
from threadline.capabilities.decide.rules.hashing import decision_hash, inputs_of, plain_step
from threadline.capabilities.decide.rules.tracing import Traced
from threadline.capabilities.foundation.conditions import Conditions, Subject
from threadline.kernel.canonical import standard_json


@given(st.lists(leaves, min_size=1, max_size=5), traits)
def test_both_tracers_give_the_same_steps_inputs_and_hash(tests: list[dict[str, Any]], known: dict[str, Any]) -> None:
    rule = rule_of_json("r", {"conditions": {"all": tests}, "actions": [{"store_decision": {"result": "x"}}]})
    tree = rule.body.tree
    assert tree is not None
    defined = Conditions(tree).trace(_subject(known))
    steps, inputs = [plain_step(step) for step in defined.steps], inputs_of(defined.steps)

    fast = rule.body.evaluate(_subject(known))
    assert isinstance(fast, Traced)
    assert (fast.matched, standard_json(fast.trace), standard_json(fast.inputs)) == (
        defined.matched,
        standard_json(steps),
        standard_json(inputs),
    )
    before, after = b',"output":{},"status":"matched","trace":', b',"wished":[]}'
    hashed = fast.tracer.hashed(rule.hasher.copy(), fast.memo, fast.end, before, after)
    assert hashed == decision_hash(rule.standard, inputs, "matched", {}, steps, [])


def _subject(known: dict[str, Any]) -> Subject:
    return Subject(lambda name: {"traits": known} if name == "profile" else {}, None, 1)
