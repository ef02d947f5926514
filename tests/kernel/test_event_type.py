"""Which types of events there are: declared, given a schema, made by definitions, or only seen; each is one value."""

from __future__ import annotations

from typing import Annotated

import pytest
from msgspec import Meta

from threadline.kernel.event_type import EventType, EventTypes, Origin, Properties


class _Bought(Properties):
    total: Annotated[int, Meta(description="What it cost.")]


BOUGHT = EventType("bought", "The person bought.", _Bought)
WRITTEN = {"type": "object", "properties": {"size": {"type": "string"}}}
TYPES = EventTypes([BOUGHT], {"fitted": WRITTEN}, ["greeted"]).and_seen(["waved", "bought"])


@pytest.mark.parametrize(
    ("name", "origin"),
    [
        ("bought", "threadline"),
        ("fitted", "schema"),
        ("greeted", "definitions"),
        ("waved", "seen"),
        ("wavd", "unknown"),
    ],
)
def test_a_type_says_from_where_it_is_known(name: str, origin: Origin) -> None:
    assert (TYPES.of(name).name, TYPES.of(name).origin) == (name, origin)


def test_the_known_types_are_those_of_every_origin_by_name() -> None:
    assert [type.name for type in TYPES.known] == ["bought", "fitted", "greeted", "waved"]
    assert TYPES.names == {type.name for type in TYPES.known}


def test_a_schema_of_users_stands_in_place_of_the_declared_properties() -> None:
    assert [*TYPES.of("bought").property_schemas] == ["total"]
    written = EventTypes([BOUGHT], {"bought": WRITTEN}).of("bought")
    assert [*written.property_schemas] == ["size"]
    assert written.about == BOUGHT.about


def test_a_misspelt_type_is_near_to_one_that_is_known_from_anywhere() -> None:
    assert [TYPES.near(name) for name in ("bougth", "fited", "greted", "wavd", "elephant")] == [
        "bought",
        "fitted",
        "greeted",
        "waved",
        None,
    ]


def test_types_that_were_seen_leave_who_may_say_others_as_it_was() -> None:
    own = EventType("granted", "Points were granted.", speaker="process")
    assert EventTypes([own]).and_seen(["granted"]).of("granted").speaker == "process"
