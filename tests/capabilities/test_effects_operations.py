"""Effects as operators see them: queues, what is unknown, what was given up on, and what they can do about it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.laws.test_claims import SENT, World
from threadline.capabilities.operate.effects.operations import parked as parked_operation
from threadline.capabilities.operate.effects.operations import queues, redrive, resolve, unknown
from threadline.engine.context import Context
from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.operation import Operation
from threadline.kernel.sender import EFFECT_PARKED, EFFECT_RETRIED, EFFECT_UNKNOWN, Queue
from threadline.surfaces.http.answers.metrics import Metrics


def asked(world: World, operation: Operation, workspace: str = "default", **params: Any) -> Any:
    context = Context(world.engines[0], workspace, world.clock.now, "ada")
    return operation.run(context, msgspec.convert(params, operation.params))


@pytest.fixture
def world() -> World:
    """Three letters of which nobody knows, and one that was given up on."""
    made = World(Queue("letters", claims=True))
    for number in range(3):
        made.write(number, f"key {number}", "now", ["unknown"])
    made.write(3, "key 3", "now", ["park"])
    made.drain()
    return made


def test_unknown_effects_are_listed_page_by_page_with_what_was_to_be_sent(world: World) -> None:
    found, cursor = [], ""
    while page := asked(world, unknown, limit=2, cursor=cursor).effects:
        found += page
        cursor = page[-1].id
    assert [each.id for each in found] == sorted({call.id for call in world.post.calls if call.may_have_happened})
    assert {(each.kind, each.queue, each.policy, each.attempts) for each in found} == {
        ("letter", "letters", "clerk", 1)
    }
    assert {each.noted["to"] for each in found} == {each.data["to"] for each in found} == {"p0", "p1", "p2"}
    assert all(each.why.endswith("after the last byte") and each.claimed_at for each in found)
    assert asked(world, unknown, "another").effects == []


def test_each_way_to_resolve_an_unknown_effect_has_its_event_and_can_be_gone_once(world: World) -> None:
    ways = {"happened": [SENT], "send_again": [EFFECT_RETRIED, SENT], "give_up": [EFFECT_PARKED]}
    ids = {each.data["to"]: each.id for each in asked(world, unknown).effects}
    for number, way in enumerate(ways):
        id = ids[f"p{number}"]
        with pytest.raises(NotFound):
            asked(world, resolve, "another", id=id, outcome=way)
        assert asked(world, resolve, id=id, outcome=way, why="the post office says so").id == id
        with pytest.raises(NotFound, match="is unknown in this workspace"):
            asked(world, resolve, id=id, outcome=way)
    world.drain()
    assert [world.events(number) for number in range(3)] == [[EFFECT_UNKNOWN, *events] for events in ways.values()]
    assert asked(world, unknown).effects == []


def test_what_was_given_up_on_is_listed_by_queue_and_redriven_by_id(world: World) -> None:
    [parked] = asked(world, parked_operation, queue="letters").effects
    assert (parked.kind, parked.why, parked.data["to"]) == ("letter", "no such street", "p3")
    assert asked(world, parked_operation, queue="crm").effects == []
    assert asked(world, redrive, ids=["0" * 32]).redriven == 0
    assert asked(world, redrive, "another", ids=[parked.id]).redriven == 0
    assert asked(world, redrive, ids=[parked.id]).redriven == 1
    world.drain()
    assert world.events(3)[-1] == SENT


def test_queues_are_counted(world: World) -> None:
    [line] = asked(world, queues).queues
    assert (line.name, line.claims, line.state, line.waiting, line.unknown) == ("letters", True, "open", 0, 3)


@pytest.mark.parametrize("operation", [unknown, parked_operation, redrive], ids=lambda each: each.name)
def test_a_cursor_that_is_not_ours_is_refused(world: World, operation: Operation) -> None:
    with pytest.raises(InvalidValue):
        asked(world, operation, cursor="no cursor")


def test_a_gauge_by_queue_has_a_line_for_each() -> None:
    text = Metrics().text({"effects_unknown": ("Meaning.", {"crm": 0.0, 'a"b': 3.0})}, None)
    assert text.endswith(
        "# TYPE threadline_effects_unknown gauge\n"
        'threadline_effects_unknown{queue="crm"} 0\nthreadline_effects_unknown{queue="a\\"b"} 3\n'
    )
