"""What the rules capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.decide.rules.active_rules import ActiveRules
from threadline.capabilities.decide.rules.definition import RULES, SETS
from threadline.capabilities.decide.rules.policy import rules_policy
from threadline.capabilities.foundation.conditions.values_read import merged, values_compared
from threadline.capabilities.foundation.definitions import Definitions
from threadline.kernel.reading import Reading, Readings


def declare(definitions: Definitions) -> list[Any]:
    """The policy, always: rules may come at any time. As long as there are none, no event costs anything."""
    active = read_rules(definitions)
    return [rules_policy(active), Readings("rules", values_read(active))]


def values_read(active: ActiveRules) -> dict[str, list[Reading]]:
    """What rules of files compare in the events of which they are asked, and in traits."""
    return merged(
        *(
            values_compared([tree], rule_set.events)
            for rule_set in active.sets.values()
            for id in rule_set.rules
            if (rule := active.rules.get(id)) is not None and (tree := rule.body.tree) is not None
        )
    )


def read_rules(definitions: Definitions) -> ActiveRules:
    """The declared rules and sets. Problems are noted, not raised."""
    rules, sets = RULES.read(definitions), SETS.read(definitions)
    asked = {id for value in sets.values.values() for id in value.rules}
    for rule in rules.values.values():
        for action in rule.actions:
            for kind, name in action.makes:
                definitions.known_names[kind].add(name)
        if rule.id not in asked:
            definitions.warnings.append(f"{rule.place}: {in_no_set(rule.id)}")
    return ActiveRules(rules.values.values(), sets.values.values())


def in_no_set(rule: str) -> str:
    """The warning of a rule that nothing asks."""
    return f"rule {rule!r} is in no rule set here, so nothing asks it; name it under `rules` of a set"
