"""A journey drawn: random edits of the drawing, the text and what is interpreted say the same after each."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.definitions.splicing import value_of
from threadline.capabilities.foundation.definitions.writing import yaml_of
from threadline.capabilities.reach.journeys.declared import read_journeys
from threadline.capabilities.reach.journeys.drawing import kind_of, step_text
from threadline.capabilities.reach.journeys.outline import ADD, Outline, OutlinedStep, outlined, path_text
from threadline.capabilities.reach.journeys.program import END, compiled
from threadline.kernel.errors import InvalidDefinition
from threadline.surfaces.console.flowchart import drawn
from threadline.surfaces.console.item_editing import Drawn
from threadline.surfaces.console.journey_editing import NEW_STEPS, changed

BEGUN = """\
# Who signs up is welcomed.
trigger: {event: signed_up}
timeout: 90d
steps:
  # Say hello first.
  - send: hello
  - wait: 1d  # not too early
  - if: {field: features.has_purchased, equals: false}
    then:
      - id: nudge
        send: nudge
    else: [{send: thanks}]
"""
EXAMPLES = {"template": "hello", "event": "purchase_completed", "journey": "other", "destination": "crm"}


def _following(steps: dict[str, OutlinedStep], to: str) -> str:
    """The next step from a point on; empty: the end."""
    while to.startswith(ADD):
        to = steps[to].ways[0].to
    return to


def _graph(outline: Outline) -> dict[str, tuple[str, str, list[str]]]:
    """Id of each step -> its kind, what it does, and the ids that come next."""
    steps = {step.step: step for step in outline.steps}
    made = {}
    for step in outline.steps:
        if step.kind != ADD:
            # An arrow leads on from an exit to steps behind it, so that they can be moved; nobody takes it.
            ways = [] if step.kind == "exit" else [_following(steps, way.to) for way in step.ways]
            made[step.id] = (step.kind, step.does, [steps[way].id if way else END for way in ways] or [END])
    return made


def _interpreted(text: str) -> dict[str, tuple[str, str, list[str]]] | None:
    """The same by the interpreter; None where the text cannot be in force."""
    definitions = Definitions([("t.yaml", f"journeys:\n  j:\n{_indented(text)}")])
    journeys = read_journeys(definitions)
    try:
        definitions.refuse()
    except InvalidDefinition:
        return None
    assert journeys
    nodes = compiled(journeys[0]).nodes
    return {node.id: (kind_of(node.step), step_text(node.step), _ways(node)) for node in nodes.values()}


def _ways(node: Any) -> list[str]:
    step = node.step
    if step.choice:
        return [*(way for _, way in node.branches), node.otherwise]
    if step.condition is not None:
        return [node.then, node.otherwise]
    if step.wait is not None and step.wait.is_for_event and step.wait.timeout is not None:
        return [node.then, node.otherwise]
    return [*node.ways]


def _indented(text: str) -> str:
    return "".join(f"    {line}" if line.strip() else line for line in text.splitlines(keepends=True))


def _actions(random: Random, state: Drawn, outline: Outline) -> str:
    points = [step.step.removeprefix(ADD) for step in outline.steps if step.kind == ADD]
    steps = [step.step for step in outline.steps if step.kind != ADD]
    choices = [step.step for step in outline.steps if step.kind == "choice"]
    offered = [f"new:{random.choice(points)}:{random.choice([*NEW_STEPS])}"] * 2
    if state.moving:
        offered += [f"put:{random.choice(points)}"] * 4
    if steps:
        at = random.choice(steps)
        offered += [f"remove:{at}", f"copy:{at}", f"move:{at}", f"up:{at}", f"down:{at}", f"at:{at}"]
    if choices:
        at = random.choice(choices)
        offered += [f"branch:{at}", f"unbranch:{at}.choice.0"]
    return random.choice(offered)


def _kinds(value: Any) -> Iterator[str]:
    """What is in a journey, however it is ordered."""
    if isinstance(value, dict):
        yield repr(sorted((key, inner) for key, inner in value.items() if not isinstance(inner, (dict, list))))
        for inner in value.values():
            yield from _kinds(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _kinds(inner)


@pytest.mark.parametrize("number", range(12))
def test_after_random_edits_drawing_text_and_interpreter_agree(seed: int, number: int) -> None:
    random = Random(f"{seed} {number}")
    state, interpreted = Drawn(BEGUN, ""), 0
    for _ in range(25):
        outline = outlined(state.text)
        assert outline is not None
        action = _actions(random, state, outline)
        before = state
        state = changed(state, action, EXAMPLES)
        after = outlined(state.text)
        assert after is not None, (action, state.text)
        if action.startswith(("move:", "at:")):
            assert state.text == before.text
        if action.startswith(("put:", "up:", "down:")):
            assert sorted(_kinds(value_of(state.text))) == sorted(_kinds(value_of(before.text))), (action, before.text)
        assert "# Who signs up is welcomed." in state.text
        expected = _interpreted(state.text)
        if expected is not None:
            interpreted += 1
            graph = _graph(after)
            reachable = {id: graph[id] for id in expected}
            assert reachable == expected, (action, state.text)
        picture = drawn({"entered_by": after.entered_by, "steps": [_plain(step) for step in after.steps]}, None)
        assert len(picture["points"]) == sum(step.kind == ADD for step in after.steps)
    assert interpreted


def _plain(step: OutlinedStep) -> dict[str, Any]:
    ways = [{"to": way.to, "when": way.when} for way in step.ways]
    return {"step": step.step, "kind": step.kind, "does": step.does, "ways": ways, "joins": step.joins}


def test_a_step_is_moved_into_a_branch_with_the_comment_above_it() -> None:
    state = changed(Drawn(BEGUN, ""), "move:steps.0", EXAMPLES)
    state = changed(state, "put:steps.2.then.1", EXAMPLES)
    assert state.at == "steps.1.then.1"
    assert value_of(state.text)["steps"][1]["then"] == [{"id": "nudge", "send": "nudge"}, {"send": "hello"}]
    assert "      # Say hello first.\n      - send: hello\n" in state.text


def test_a_step_is_not_moved_into_itself() -> None:
    state = changed(Drawn(BEGUN, ""), "move:steps.2", EXAMPLES)
    assert changed(state, "put:steps.2.then.0", EXAMPLES) == Drawn(BEGUN, "steps.2")


def test_a_copy_has_no_id_of_its_own() -> None:
    state = changed(Drawn(BEGUN, ""), "copy:steps.2", EXAMPLES)
    steps = value_of(state.text)["steps"]
    assert steps[3]["then"] == [{"send": "nudge"}]
    assert steps[2]["then"] == [{"id": "nudge", "send": "nudge"}]


def test_the_last_step_of_a_branch_taken_out_takes_the_branch_with_it() -> None:
    state = changed(Drawn(BEGUN, ""), "remove:steps.2.else.0", EXAMPLES)
    assert "else" not in value_of(state.text)["steps"][2]


def test_steps_that_are_wrong_are_drawn_all_the_same() -> None:
    outline = outlined("steps:\n  - wait: soon\n  - foo: 1\n  - send: {variants: 3}\n  - 7\n")
    assert outline is not None
    does = [step.does for step in outline.steps if step.kind != ADD]
    assert does == ["wait …", "not finished", "send …", "not finished"]
    lines = [(step.first_line, step.last_line) for step in outline.steps if step.kind != ADD]
    assert lines == [(2, 2), (3, 3), (4, 4), (5, 5)]


def test_a_text_that_is_no_mapping_has_no_drawing_and_an_empty_one_has_a_point() -> None:
    assert outlined("[") is None
    assert outlined("- a\n") is None
    empty = outlined("")
    assert empty is not None
    assert [step.step for step in empty.steps] == ["+steps.0"]


def test_a_path_is_written_and_read() -> None:
    outline = outlined(yaml_of({"steps": [{"choice": [{"when": {"sent": "x"}, "steps": [{"exit": "a"}]}]}]}))
    assert outline is not None
    assert path_text(("steps", 0, "choice", 0, "steps", 0)) in {step.step for step in outline.steps}
