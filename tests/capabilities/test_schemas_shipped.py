"""The schemas that ship: one for each type known by name, of all that the shipped definitions read in it."""

from __future__ import annotations

from random import Random

import pytest

from threadline.capabilities.foundation.conditions import All, Conditions
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.events.events import CAMPAIGN_ENGAGED, CONVERSATION_STARTED, EVENT_TYPES
from threadline.capabilities.foundation.schemas.definition import read_schemas, shipped_schemas
from threadline.capabilities.profile.features import load_definitions
from threadline.capabilities.profile.interests.definition import SHIPPED as INTERESTS
from threadline.capabilities.profile.memory import read_derivations
from threadline.capabilities.profile.memory.paths import Places, Variable
from threadline.kernel.errors import EventRejected, InvalidDefinition
from threadline.kernel.event import Event
from threadline.testing.world_payloads import payload_pools

KNOWN = {type.name for type in EVENT_TYPES}


def test_every_type_that_is_known_by_name_has_a_schema_that_says_what_it_is() -> None:
    assert set(shipped_schemas()) == KNOWN
    assert all(each.schema["description"] for each in shipped_schemas().values())


def read_in_events() -> set[tuple[str, str]]:
    """(type, property) of all that the shipped features, facts and interests read."""
    found: set[tuple[str, str]] = set()
    for feature in load_definitions().features:
        for feed in feature.source.feeds if feature.source is not None else ():
            fields = Conditions(All(feed.where.parts)).fields
            paths = (feed.path, feature.currency, *(path[2:] for path in fields))
            found |= {(feed.type, path[0]) for path in paths if path}
    for derivation in read_derivations().derivations:
        variables = [part.places for part in (*derivation.type, *derivation.key) if isinstance(part, Variable)]
        fields = [places for each in derivation.fields for places in (each.of, each.times, each.currency)]
        told = [derivation.value, derivation.confidence, derivation.expires_at, derivation.recalled]
        placed = [*variables, *fields, *told, derivation.derived_from]
        steps = [step for places in placed if isinstance(places, Places) for step in places.steps]
        if derivation.each is not None:
            # What stands in an entry may be of the entry alone.
            steps = [step[1:] for step in steps if step[0] == "event"] + list(derivation.each.steps)
            steps += [step for _, places in derivation.otherwise for step in places.steps]
        found |= {(feed.type, step[0]) for feed in derivation.feeds for step in steps}
    for type_, source in INTERESTS.items():
        found |= {(type_, field) for _, field in source.scopes}
    return {(type_, name) for type_, name in found if type_ in KNOWN}


def test_what_is_read_in_an_event_stands_in_its_schema() -> None:
    read = read_in_events()
    assert {("purchase_completed", "products"), ("campaign_engaged", "action"), ("interest_detected", "topic")} < read
    assert {each for each in read if each[1] not in shipped_schemas()[each[0]].schema["properties"]} == set()


def test_what_a_shop_tells_fits() -> None:
    for type_, payloads in payload_pools(Random(7)).items():
        for payload in payloads if type_ in KNOWN else ():
            # Which campaign it was is told with the event.
            told = {"campaign_id": "spring", **payload} if type_ == CAMPAIGN_ENGAGED else payload
            shipped_schemas()[type_].check(Event(type=type_, identifiers=(), occurred_at=0, key="k", properties=told))


def asked(text: str) -> list[str]:
    definitions = Definitions([("a.yaml", text)])
    found = read_schemas(definitions)
    definitions.refuse_unknown()
    return [each.name for each in found]


def test_one_that_ships_is_asked_for_by_a_word_and_none_without_it() -> None:
    assert asked("event_schemas: {}") == []
    assert asked("event_schemas: {purchase_completed: shipped, page: {required: [url]}}") == [
        "page",
        "purchase_completed",
    ]
    event = Event(
        type=CONVERSATION_STARTED, identifiers=(), occurred_at=0, key="k", properties={"channel": 5, "topic": "size"}
    )
    with pytest.raises(EventRejected, match='channel: the value is not of type "string"'):
        shipped_schemas()[CONVERSATION_STARTED].check(event)


def test_a_type_for_which_none_ships_is_told_the_nearest() -> None:
    text = "a.yaml:2: event schema 'purchase_complete': no schema ships for it; did you mean 'purchase_completed'?"
    with pytest.raises(InvalidDefinition) as caught:
        asked("event_schemas:\n  purchase_complete: shipped\n")
    assert str(caught.value) == text
