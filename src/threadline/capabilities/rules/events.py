"""The events of rules; Threadline itself puts them into a person's thread."""

from __future__ import annotations

from threadline.kernel.lasting import Lasting

DECISION_MADE = "decision_made"
"""A rule was asked because of an event. Its id is the decision's; docs/decisions-made.md lists the properties."""
RULE_LOGGED = "rule_logged"
"""A rule had something to note: ``message``, ``level`` and ``data``, beside ``rule`` and ``version``."""
DECISIONS_ASKED = "threadline.decisions_asked"
"""An operator asked what the rules say of the person as they were then; no properties."""

LASTING = Lasting(
    "rules", {DECISION_MADE: "a rule that decides once, or so often, would decide again; it is the proof of a decision"}
)
