"""What the store has of a person about journeys."""

from __future__ import annotations

from threadline.capabilities.reach.journeys.events import REQUESTS, RUN_EVENTS
from threadline.capabilities.reach.journeys.projection import TABLE
from threadline.capabilities.reach.journeys.steps import JOURNEYS
from threadline.kernel.personal import PersonFile, StoreTable, joined, shown_events, shown_views

JOURNEY_TABLE = StoreTable(TABLE, "state_rows", shown_in="journeys")
JOURNEYS_FILE = PersonFile(
    "journeys",
    "Series of messages",
    "Series of messages that you are in or were in, and how far.",
    joined(shown_views(JOURNEYS), shown_events(*RUN_EVENTS, *REQUESTS)),
    (JOURNEYS,),
)
