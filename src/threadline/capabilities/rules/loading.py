"""From files of definitions to a book: the sections ``rules`` and ``rule_sets``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import yaml

from threadline.capabilities.conditions.operators import COMPARING
from threadline.capabilities.conditions.reading import misread
from threadline.capabilities.definitions import Definitions, Document, Noted, Plain
from threadline.capabilities.rules.book import Book
from threadline.capabilities.rules.definition import Rule, RuleSet
from threadline.capabilities.rules.reading import read_rule, read_set
from threadline.capabilities.rules.schema import RULES_SECTION, SETS_SECTION
from threadline.capabilities.rules.templates import Fail
from threadline.capabilities.webhooks.definition import SECTION as DESTINATIONS
from threadline.kernel.limits import RULE_BYTES_MAX, RULE_SETS_MAX, RULES_MAX
from threadline.kernel.suggestion import suggestion

Declared = TypeVar("Declared", Rule, RuleSet)
_DEPTH_MAX = 60
WEBHOOK_CALL = "call_webhook"
"""The action that names a destination."""


def read_book(definitions: Definitions) -> Book:
    """The declared rules and sets. Problems are noted in the documents, not raised."""
    rules = _read(definitions, RULES_SECTION.name, "rule", read_rule, RULES_MAX, RULE_BYTES_MAX)
    sets = _read(definitions, SETS_SECTION.name, "rule set", read_set, RULE_SETS_MAX, 2 * RULES_MAX)
    for document, nodes, found in sets.values():
        _check_members(document, nodes, found, rules)
    _check_destinations(definitions, rules)
    return Book([rule for _, _, rule in rules.values()], [found for _, _, found in sets.values()])


Found = dict[str, tuple[Document, yaml.Node, Declared]]


def _read(
    definitions: Definitions,
    section: str,
    what: str,
    read: Callable[[str, object, Fail], Declared | None],
    most: int,
    nodes_max: int,
) -> Found[Declared]:
    found: Found[Declared] = {}
    count = 0
    for document, _, value in definitions.section(section):
        for name, (key, node) in document.mapping(value, f"`{section}`").items():
            count += 1
            if name in found:
                document.fail(key, f"{what} {name!r} is already declared at {found[name][2].place}; keep one")
                continue
            before = len(document.problems)
            plain = Plain(document, what, name, key, nodes_max, _DEPTH_MAX)
            try:
                part = plain.part(node)
            except Noted:
                continue
            if misread(part, COMPARING.__contains__):
                continue
            written = part.value
            declared = read(name, written, _failing(document, plain, key))
            if declared is not None and len(document.problems) == before:
                found[name] = (document, node, replace(declared, place=document.place(key)))
    if count > most:
        definitions.problems.append(f"{count:,} {what}s are declared, at most {most:,} are allowed; remove some")
    return found


def _failing(document: Document, plain: Plain, key: yaml.Node) -> Fail:
    return lambda at, text: document.fail(plain.nearest(at) if at else key, text)


def _check_members(document: Document, node: yaml.Node, found: RuleSet, rules: Found[Rule]) -> None:
    for id in found.rules:
        if id not in rules:
            known = suggestion(id, rules) if rules else "none is declared"
            document.fail(node, f"rule set {found.name!r} names the rule {id!r}, which is not declared; {known}")


def _check_destinations(definitions: Definitions, rules: Found[Rule]) -> None:
    """Where destinations are declared, a rule that names another one has a mistake in it."""
    sections = [found.value for found in definitions.section(DESTINATIONS.name)]
    known = {key.value for each in sections if isinstance(each, yaml.MappingNode) for key, _ in each.value}
    for document, node, rule in rules.values() if known else ():
        for action in rule.actions:
            called = action.params.get("destination") if action.kind.name == WEBHOOK_CALL else None
            if called is not None and not called.holes and called.plain not in known:
                text = f"rule {rule.id!r} calls {called.plain!r}, which is no declared destination"
                document.fail(node, f"{text}; {suggestion(called.plain, known)}")
