"""What the store has of decisions about a person."""

from __future__ import annotations

from threadline.capabilities.decide.rules import repository
from threadline.capabilities.decide.rules.events import DECISION_MADE, RULE_LOGGED
from threadline.capabilities.decide.rules.projection import SHADOW_TABLE as SHADOWS
from threadline.capabilities.decide.rules.projection import TABLE
from threadline.kernel.personal import PersonFile, StoreTable, joined, shown_events, shown_views

_OPERATORS = "rules that operators write, for everybody"
_REPEATS = "it leads to a decision among the person's events"
DECISION_TABLE = StoreTable(TABLE, "event_rows", why=_REPEATS)
SHADOW_TABLE = StoreTable(SHADOWS, "event_rows", why=_REPEATS)
HEAD_TABLE = StoreTable(repository.HEAD, "nobody", why=_OPERATORS)
VERSION_TABLE = StoreTable(repository.VERSION, "nobody", why=_OPERATORS)
LOG_TABLE = StoreTable(repository.LOG, "nobody", why=_OPERATORS)
DECISIONS_FILE = PersonFile(
    "decisions",
    "Automated decisions",
    "Decisions that rules made about you: which rule, in which version, what it "
    "went by, step by step, and what came of it.",
    joined(shown_views("decisions"), shown_events(DECISION_MADE, RULE_LOGGED)),
    ("decisions",),
)
