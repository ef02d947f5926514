"""What can be asked about events: recorded, read, followed, corrected, and what the catalogue has."""

from __future__ import annotations

from threadline.kernel.operation import Group

EVENTS_GROUP = Group("events", "Events of one person, or of everybody in order.")
REJECTED_GROUP = Group("rejected", "Events that could not be recorded, and their correction.")
