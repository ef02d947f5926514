"""The operations of rules, a file for each noun."""

from __future__ import annotations

from threadline.kernel.operation import Group

DECISIONS_GROUP = Group("decisions", "Decisions that rules have made, and why.")
RULES_GROUP = Group("rules", "Rules, their versions, and why one matches.")
RULE_SETS_GROUP = Group("rule_sets", "Which rules run on which events.")
