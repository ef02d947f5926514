"""Properties in questions of analytics: one that no event has is refused, for the answer would be 0 of 0."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from tests.surfaces.test_names_asked import plain, value
from threadline.app import open_engine
from threadline.capabilities.ask.analytics.names import lacking_in_conditions, lacking_in_step, lacking_property
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Event, Identifier
from threadline.kernel.names import Lacking
from threadline.kernel.time import DAY, parse_time
from threadline.settings import Settings
from threadline.surfaces.operation_calls import call, looked_into, typed

NOW = parse_time("2026-01-01T00:00:00Z")
WRITTEN: dict[Lacking, Callable[[str], str]] = {
    lacking_property: str,
    lacking_in_conditions: lambda name: json.dumps({name: {"exists": True}}),
    lacking_in_step: lambda name: json.dumps({"event": "record_played", "where": {name: {"exists": True}}}),
}
"""How a property is written in a parameter, by what looks for it there."""
NAMES = [
    ("record_speed", "record_sped", "no event has the property 'record_sped'; did you mean 'record_speed'?"),
    ("player.needle", "player.nedle", "no event has the property 'player.nedle'; did you mean 'needle'?"),
    ("context.page.path", "context.page.pth", "no event has the property 'context.page.pth'; did you mean 'path'?"),
]  # fmt: skip


def opened() -> Engine:
    engine = open_engine("memory:", Settings(), lambda: NOW)
    engine.recorder.record([
        Event(
            type="record_played", identifiers=(Identifier("user_id", str(person)),), occurred_at=NOW - days * DAY,
            key=f"{person}.{days}", properties={"record_speed": 33, "arm": "a", "player": {"needle": "fine"}},
            context={"page": {"path": "/"}, "campaign": {"source": "x"}},
        )
        for person in range(12) for days in (3, 30)
    ])  # fmt: skip
    return engine


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = opened()
    yield engine
    engine.close()


OPERATIONS = {operation.name: operation for operation in opened().catalogue.operations}
PARAMETERS = [
    (operation.name, name, lacking)
    for operation in OPERATIONS.values()
    for name, lacking, _ in looked_into(operation.params)
]


def ask(engine: Engine, name: str, param: str, written: str) -> Any:
    operation = OPERATIONS[name]
    played = {name: value(operation, name, "record_played") for name in typed(operation.params)}
    # Two steps make a funnel; an experiment compares the arms of an assignment.
    others = {"by": "", "value": "", "where": "", "arm": "arm", "journey": "", "broadcast": ""}
    given = {**plain(operation, {}), **played, **others, param: value(operation, param, written)}
    if name == "analytics_funnel":
        given["steps"] = [*given["steps"], "*"]
    known = {field.encode_name for field in msgspec.structs.fields(operation.params)}
    params = {key: item for key, item in given.items() if key in known}
    return call(operation, Context(engine, "default", NOW), params, strict=True)


@pytest.mark.parametrize(("good", "misspelt", "said"), NAMES)
@pytest.mark.parametrize(("name", "param", "lacking"), PARAMETERS)
def test_a_property_that_no_event_has_is_refused_and_one_that_some_event_has_is_not(
    engine: Engine, name: str, param: str, lacking: Lacking, good: str, misspelt: str, said: str
) -> None:
    assert refusal(engine, name, param, WRITTEN[lacking](misspelt)) == f"{param}: {said}"
    # That so few people make no model of lifetimes is no matter of names.
    assert "propert" not in refusal(engine, name, param, WRITTEN[lacking](good))


def refusal(engine: Engine, name: str, param: str, written: str) -> str:
    try:
        ask(engine, name, param, written)
    except InvalidValue as error:
        return str(error)
    return ""


def test_a_declared_property_may_be_asked_for_before_any_event_has_it(engine: Engine) -> None:
    ask(engine, "analytics_trend", "by", "currency")


def test_a_feature_is_looked_up_where_a_question_is_broken_down_by_it(engine: Engine) -> None:
    with pytest.raises(InvalidValue, match="did you mean 'monetary_total'"):
        ask(engine, "analytics_trend", "by", "features.monetary_totl")


def test_before_the_first_event_no_property_is_misspelt() -> None:
    engine = open_engine("memory:", Settings(), lambda: NOW)
    call(OPERATIONS["analytics_trend"], Context(engine, "default", NOW), {"by": "record_sped"}, strict=True)
    engine.close()


def test_what_another_workspace_has_is_not_named(engine: Engine) -> None:
    operation = OPERATIONS["analytics_trend"]
    call(operation, Context(engine, "other", NOW), {"by": "record_sped"}, strict=True)
