"""Rules: versioned conditions with actions; asked of each event, and every answer is a decision that can be checked.

What it promises: a version of a rule never changes, and which one was in force at an instant has an answer for ever. A
decision is an event in the person's thread with all that was read, the trace of every condition and a hash over both,
so that anybody can recompute it. Rules act through the same commit: what they add, send and award happens once.
`decide` is a pure function, so that a rule can be tried on history before it touches anybody.
"""

from threadline.capabilities.decide.rules.active_rules import ActiveRules
from threadline.capabilities.decide.rules.body import Body, ConditionsBody, Outcome
from threadline.capabilities.decide.rules.definition import Rule, RuleSet
from threadline.capabilities.decide.rules.policy import Decided, decide
from threadline.kernel.capability import Capability

CAPABILITY = Capability("rules", __name__, needs=frozenset({"whatif"}))

__all__ = ["CAPABILITY", "ActiveRules", "Body", "ConditionsBody", "Decided", "Outcome", "Rule", "RuleSet", "decide"]
