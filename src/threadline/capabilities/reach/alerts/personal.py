"""What the store has of a person about alerts: which were dismissed."""

from __future__ import annotations

from threadline.capabilities.reach.alerts.repository import NEWEST, VERSIONS
from threadline.kernel.personal import PersonFile, StoreTable, shown_views

_OPERATORS = "what operators tell everybody"
NEWEST_TABLE = StoreTable(NEWEST, "nobody", why=_OPERATORS)
VERSIONS_TABLE = StoreTable(VERSIONS, "nobody", why=_OPERATORS)
ALERTS_FILE = PersonFile(
    "alerts",
    "Notices that you have closed",
    "Notices in the application that you did not want to see any more.",
    shown_views("alerts"),
    ("alerts",),
)
