"""What the rules capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

import yaml

from threadline.capabilities.definitions import Definitions
from threadline.capabilities.rules.active_rules import ActiveRules
from threadline.capabilities.rules.definition import RULES, SETS, Rule
from threadline.capabilities.rules.policy import rules_policy
from threadline.capabilities.webhooks.definition import SECTION as DESTINATIONS
from threadline.kernel.suggestion import suggestion

WEBHOOK_CALL = "call_webhook"
"""The action that names a destination."""


def declare(definitions: Definitions) -> list[Any]:
    """The policy, always: rules may come at any time. As long as there are none, no event costs anything."""
    active = read_rules(definitions)
    return [rules_policy(active)]


def read_rules(definitions: Definitions) -> ActiveRules:
    """The declared rules and sets. Problems are noted, not raised."""
    rules, sets = RULES.read(definitions), SETS.read(definitions)
    for each in sets.values.values():
        for id in each.rules:
            if id not in rules.places:
                known = suggestion(id, rules.places) if rules.places else "none is declared"
                text = f"rule set {each.name!r} names the rule {id!r}, which is not declared; {known}"
                definitions.problems.append(f"{each.place}: {text}")
    asked = {id for each in sets.values.values() for id in each.rules}
    for rule in rules.values.values():
        _check_destinations(definitions, rule)
        definitions.known_types.update(type for action in rule.actions if (type := action.emits) is not None)
        if rule.id not in asked:
            text = f"rule {rule.id!r} is in no rule set here, so nothing asks it; name it under `rules` of a set"
            definitions.warnings.append(f"{rule.place}: {text}")
    return ActiveRules(rules.values.values(), sets.values.values())


def _check_destinations(definitions: Definitions, rule: Rule) -> None:
    """Where destinations are declared, a rule that names another one has a mistake in it."""
    sections = [found.value for found in definitions.section(DESTINATIONS.name)]
    known = {key.value for each in sections if isinstance(each, yaml.MappingNode) for key, _ in each.value}
    for action in rule.actions if known else ():
        called = action.params.get("destination") if action.kind.name == WEBHOOK_CALL else None
        if called is not None and not called.holes and called.plain not in known:
            text = f"rule {rule.id!r} calls {called.plain!r}, which is no declared destination"
            definitions.problems.append(f"{rule.place}: {text}; {suggestion(called.plain, known)}")
