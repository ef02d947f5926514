"""Names in calls: an operation that is asked about what does not exist refuses, with the nearest that does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.capabilities.asked import Asked
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.context import Context
from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.errors import InvalidValue, ThreadlineError
from threadline.kernel.operation import Operation
from threadline.surfaces.console.fields import fields_of
from threadline.surfaces.operation_calls import named_kinds, offered_kinds, path_names, typed, with_types

DEFINITIONS = """
mail:
  senders: {shop-sender: {from: shop@example.com}}
  templates: {onboarding/welcome: {subject: Hello, text: Hello}}
consent: {topics: {weekly-news: {}}}
segments: {big-spenders: {when: {field: features.monetary_total, gt: 5}}}
journeys: {first-weeks: {steps: [{send: onboarding/welcome}]}}
destinations: {crm-system: {url: 'https://crm.example.com/'}}
rules: {risk-score: {conditions: {field: event.type, equals: x}, actions: [{tag: {tag: x}}]}}
rule_sets: {all-checkouts: {events: [x], rules: [risk-score]}}
leaderboards: {top-buyers: {score: points.earned}}
streaks: {every-day: {}}
"""
CATALOGUE = Catalogue.declared(Definitions([("shop.yaml", DEFINITIONS)]), rules())
OPERATIONS = {operation.name: operation for operation in CATALOGUE.operations}
NEW_OR_PAST = {
    ("rules_write", "rule"),
    ("what_if_run", "rule"),
    ("interests_of", "topic"),
    ("interests_summary", "topic"),
    ("feedback_receive", "sender"),
    ("rule_sets_write", "rules"),
    ("alerts_write", "tags"),
    ("exports_start", "tags"),
    ("webhooks_deliveries", "destination"),
    ("gallery_preview", "sender"),
    ("gallery_mails", "sender"),
    ("gallery_install", "sender"),
}
"""Parameters that are called by a kind and are of none: a rule's content, topics of interest, the address of a sender;
rules and tags that are still to come; a destination that is gone; and a candidate, which refuses by itself."""
STORED = {"broadcast": "spring-sale", "tag": "early-bird"}
"""What is in the store and in no definition."""


def parameters() -> Iterator[tuple[str, str, str]]:
    for operation in CATALOGUE.operations:
        for name, kind in named_kinds(operation.params).items():
            yield operation.name, name, kind


def plain(operation: Operation, names: dict[str, Any]) -> dict[str, Any]:
    """The least that a call needs besides, with other names that there are."""
    example = {} if operation.example is None else msgspec.to_builtins(operation.example)
    excluded = {
        name for choice in operation.choices if not names.keys().isdisjoint(choice.names) for name in choice.names
    }
    rest = {name: value for name, value in example.items() if name not in excluded}
    others = {
        name: value(operation, name, good_name(kind))
        for name, kind in named_kinds(operation.params).items()
        if name in rest or name in path_names(operation)
    }
    return {**dict.fromkeys(path_names(operation), "nobody"), **rest, **others, **names}


def good_name(kind: str) -> str:
    declared = CATALOGUE.names.known[kind] or [STORED[kind]]
    assert declared, f"the definitions of this test declare no {kind}"
    return min((name for name in declared if "-" in name or "_" in name or "/" in name), key=len)


def value(operation: Operation, name: str, called: str) -> Any:
    field = next(field for field in msgspec.structs.fields(operation.params) if field.encode_name == name)
    return [called] if "list[" in str(field.type) else called


@pytest.fixture(scope="module")
def asked() -> Asked:
    asked = Asked(catalogue=CATALOGUE)
    asked.tell("tag_added", user_id="ada", properties={"tag": STORED["tag"]})
    asked.ask("broadcasts_create", id=STORED["broadcast"], template="onboarding/welcome")
    return asked


@pytest.mark.parametrize(("name", "param", "kind"), [*parameters()])
def test_a_misspelt_name_in_a_call_is_refused_with_the_nearest(asked: Asked, name: str, param: str, kind: str) -> None:
    operation = OPERATIONS[name]
    good = good_name(kind)
    with pytest.raises(ThreadlineError) as refused:
        asked.ask(name, **plain(operation, {param: value(operation, param, f"{good}q")}))
    assert refused.value.status in (400, 404)
    said = CATALOGUE.names.kinds[kind].never or f"there is no {kind}"
    assert f"{said} {good + 'q'!r}; did you mean {good!r}?" in str(refused.value)
    assert refused.value.param == param


def test_every_parameter_that_is_called_by_a_kind_says_so() -> None:
    marked = {(name, param) for name, param, _ in parameters()}
    kinds = {kind.replace(" ", "_") for kind in CATALOGUE.names.kinds}
    called = {
        (operation.name, field.encode_name)
        for operation in CATALOGUE.operations
        for field in msgspec.structs.fields(operation.params)
        if field.encode_name in kinds or field.encode_name.removesuffix("s") in kinds
    }
    assert called - marked == NEW_OR_PAST


@pytest.mark.parametrize(
    ("name", "param"), [(each.name, param) for each in CATALOGUE.operations for param in typed(each.params)]
)
def test_a_type_of_events_that_nobody_has_sent_is_refused_with_the_nearest(asked: Asked, name: str, param: str) -> None:
    asked.tell("record_played", user_id="ada")
    operation = OPERATIONS[name]
    given = value(operation, param, "record_playd")
    call = plain(operation, {param: [*given, "*"] if isinstance(given, list) else given})
    if (
        "journey" in named_kinds(operation.params) and param != "assignment"
    ):  # an experiment compares the arms of something
        call = {key: item for key, item in call.items() if key not in ("broadcast", "assignment")}
        call["journey"] = good_name("journey")
    with pytest.raises(InvalidValue) as refused:
        asked.ask(name, **call)
    expected = f"{param}: no event of the type 'record_playd' was ever sent; did you mean 'record_played'?"
    assert str(refused.value) == expected
    assert refused.value.param == param


def test_a_type_of_events_is_known_by_its_name_on_pages(asked: Asked) -> None:
    asked.tell("record_played", user_id="ada")
    funnel = OPERATIONS["analytics_funnel"]
    steps = ["Record played", '{"event": "Record Played", "where": {"total": 5}}', "*", "record_played"]
    meant = with_types(funnel, Context(asked.engine, "default", asked.now), funnel.params(steps=steps))
    assert meant.steps == ["record_played", '{"event":"record_played","where":{"total":5}}', "*", "record_played"]


def test_a_form_offers_the_names_of_a_parameter(asked: Asked) -> None:
    assert offered(asked, "analytics_journey", "journey") == ["first-weeks"]
    assert offered(asked, "analytics_journey", "start") == []
    assert offered(asked, "feedback_counters", "broadcast") == [STORED["broadcast"]]


@pytest.mark.parametrize(
    ("name", "param", "kind"),
    [(each.name, param, kind) for each in CATALOGUE.operations for param, kind in offered_kinds(each.params).items()],
)
def test_a_form_offers_what_there_is_of_the_kind_that_a_parameter_names(
    asked: Asked, name: str, param: str, kind: str
) -> None:
    asked.tell("record_played", user_id="ada", properties={"record_speed": 33})
    there_is = {"property": "record_speed"}.get(kind) or good_name(kind)
    assert there_is in offered(asked, name, param)


def offered(asked: Asked, name: str, param: str) -> list[str]:
    (field,) = (field for field in fields_of(OPERATIONS[name].params) if field.name == param)
    names: list[str] = field.shown(asked.engine, "default")["offered"]
    return names
