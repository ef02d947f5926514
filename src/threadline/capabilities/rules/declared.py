"""What the rules capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import yaml

from threadline.capabilities.definitions import Definitions
from threadline.capabilities.journeys.steps import JOURNEYS
from threadline.capabilities.mail.definition import read_mail
from threadline.capabilities.rules.active_rules import ActiveRules
from threadline.capabilities.rules.definition import RULES, SETS, Rule
from threadline.capabilities.rules.policy import rules_policy
from threadline.capabilities.webhooks.definition import SECTION as DESTINATIONS
from threadline.kernel.suggestion import suggestion

WEBHOOK_CALL, NOTIFICATION = "call_webhook", "send_notification"
"""The actions that name a destination, and a mail template."""
JOURNEY_ACTIONS = frozenset({"enter_journey", "exit_journey"})
"""The actions that name a journey."""


def declare(definitions: Definitions) -> list[Any]:
    """The policy, always: rules may come at any time. As long as there are none, no event costs anything."""
    active = read_rules(definitions)
    return [rules_policy(active)]


def read_rules(definitions: Definitions) -> ActiveRules:
    """The declared rules and sets. Problems are noted, not raised."""
    rules, sets = RULES.read(definitions), SETS.read(definitions)
    for value in sets.values.values():
        for id in value.rules:
            if id not in rules.places:
                known = suggestion(id, rules.places) if rules.places else "none is declared"
                text = f"rule set {value.name!r} names the rule {id!r}, which is not declared; {known}"
                definitions.problems.append(f"{value.place}: {text}")
    mail = read_mail(definitions)
    templates = None if mail is None else mail.templates
    asked = {id for value in sets.values.values() for id in value.rules}
    for rule in rules.values.values():
        _check_destinations(definitions, rule)
        _check_templates(definitions, rule, templates)
        _check_journeys(definitions, rule)
        definitions.known_types.update(type for action in rule.actions if (type := action.emits) is not None)
        if rule.id not in asked:
            definitions.warnings.append(f"{rule.place}: {in_no_set(rule.id)}")
    return ActiveRules(rules.values.values(), sets.values.values())


def in_no_set(rule: str) -> str:
    """The warning of a rule that nothing asks."""
    return f"rule {rule!r} is in no rule set here, so nothing asks it; name it under `rules` of a set"


def _check_templates(definitions: Definitions, rule: Rule, templates: Collection[str] | None) -> None:
    """A rule that sends a mail by a template that is not declared has a mistake in it."""
    for action in rule.actions:
        template = action.params.get("template") if action.kind.name == NOTIFICATION else None
        if template is None or template.holes or template.plain in (templates or ()):
            continue
        hint = suggestion(template.plain, templates) if templates else "declare it in the section `mail`"
        text = f"rule {rule.id!r} sends {template.plain!r}, which is no declared mail template"
        definitions.problems.append(f"{rule.place}: {text}; {hint}")


def _check_destinations(definitions: Definitions, rule: Rule) -> None:
    """Where destinations are declared, a rule that names another one has a mistake in it."""
    known = _names(definitions, DESTINATIONS.name)
    for action in rule.actions if known else ():
        called = action.params.get("destination") if action.kind.name == WEBHOOK_CALL else None
        if called is not None and not called.holes and called.plain not in known:
            text = f"rule {rule.id!r} calls {called.plain!r}, which is no declared destination"
            definitions.problems.append(f"{rule.place}: {text}; {suggestion(called.plain, known)}")


def _check_journeys(definitions: Definitions, rule: Rule) -> None:
    """Where journeys are declared, a rule that names another one has a mistake in it."""
    known = _names(definitions, JOURNEYS)
    for action in rule.actions if known else ():
        named = action.params["journey"] if action.kind.name in JOURNEY_ACTIONS else None
        if named is not None and not named.holes and named.plain not in known:
            text = f"rule {rule.id!r} names {named.plain!r}, which is no declared journey"
            definitions.problems.append(f"{rule.place}: {text}; {suggestion(named.plain, known)}")


def _names(definitions: Definitions, section: str) -> set[str]:
    """What is declared in a section, rightly or wrongly."""
    sections = [item.value for item in definitions.section(section)]
    return {key.value for node in sections if isinstance(node, yaml.MappingNode) for key, _ in node.value}
