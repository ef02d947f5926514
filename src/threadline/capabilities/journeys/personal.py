"""What the store has of a person about journeys."""

from __future__ import annotations

from threadline.capabilities.journeys.events import (
    JOURNEY_ENTERED,
    JOURNEY_ENTRY_REQUESTED,
    JOURNEY_EXIT_REQUESTED,
    JOURNEY_EXITED,
    JOURNEY_MOVED,
    JOURNEY_PAUSED,
    JOURNEY_RESUMED,
    REQUESTS,
    RUN_EVENTS,
)
from threadline.capabilities.journeys.projection import TABLE
from threadline.capabilities.journeys.steps import JOURNEYS
from threadline.kernel.disclosure import ShownProperties
from threadline.kernel.personal import PersonFile, StoreTable, joined, shown_events, shown_views

JOURNEY_TABLE = StoreTable(TABLE, "state_rows", shown_in="journeys")
JOURNEYS_FILE = PersonFile(
    "journeys", "Series of messages", "Series of messages that you are in or were in, and how far.",
    joined(shown_views(JOURNEYS), shown_events(*RUN_EVENTS, *REQUESTS)), (JOURNEYS,),
)  # fmt: skip
_RUN = ("arm", "journey", "path", "step", "template")
SHOWN = ShownProperties(
    "journeys",
    {
        JOURNEY_ENTERED: _RUN,
        JOURNEY_MOVED: _RUN,
        JOURNEY_EXITED: _RUN,
        JOURNEY_PAUSED: ("journey",),
        JOURNEY_RESUMED: ("journey",),
        JOURNEY_ENTRY_REQUESTED: ("journey", "rule"),
        JOURNEY_EXIT_REQUESTED: ("journey", "rule"),
    },
)
