"""What can be asked about journeys: what they are made of, who is where, what was done, what would have been."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from threadline.capabilities.reach.journeys.definition import Journey
from threadline.kernel.errors import NotFound
from threadline.kernel.names import names_a
from threadline.kernel.operation import Group
from threadline.kernel.suggestion import suggestion

JOURNEYS_GROUP = Group("journeys", "Journeys: their steps, who is in them, what they would send.")

Name = Annotated[str, names_a("journey"), Meta(description="A journey's name.", min_length=1, max_length=64)]
RunId = Annotated[str, Meta(description="The id of one way through a journey, 32 hex digits.", max_length=64)]
Journeys = Sequence[Journey]


def journey_named(journeys: Journeys, name: str) -> Journey:
    """The declared journey of this name; raises `NotFound` with the nearest one."""
    named = next((journey for journey in journeys if journey.name == name), None)
    if named is None:
        known = [journey.name for journey in journeys]
        hint = suggestion(name, known) if known else "none is declared"
        raise NotFound(f"there is no journey {name[:64]!r}; {hint}")
    return named
