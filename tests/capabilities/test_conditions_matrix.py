"""The table of docs/worked/conditions.md: each operator by each pair of types, written by hand, run in every place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import yaml

from tests.each import each_of
from threadline.capabilities.decide.rules.active_rules import ActiveRules
from threadline.capabilities.decide.rules.definition import rule_of_json, set_of_json
from threadline.capabilities.decide.rules.policy import decide
from threadline.capabilities.foundation.conditions import Conditions, Subject, read_json
from threadline.capabilities.foundation.conditions.forms import DEFS, WHERE, WHERE_FORM
from threadline.capabilities.foundation.conditions.operators import ALIASES, OPERATORS
from threadline.capabilities.foundation.definitions import Document, Plain
from threadline.kernel.event import Event, Recorded

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("conditions.md", "worked/conditions.md"))
NOWHERE: dict[str, Any] = {"profile": {"traits": {}, "tags": [], "groups": {}}}

SCHEMA = jsonschema_rs.Draft202012Validator({**WHERE, "$defs": DEFS})

Case = tuple[str, str, str, str]
"""What the field holds, the operator, what it is compared with, the outcome."""
Properties = dict[str, Any]


def rows(title: str) -> list[list[str]]:
    section = PAGE.split(f"\n## {title}")[1].split("\n## ")[0]
    lines = re.findall(r"^\|.*\|$", section, re.MULTILINE)
    cells = [[cell.strip(" `").replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in cells if not all(set(cell) == {"-"} for cell in row)]


HEAD, *BODY = rows("Every operator")
MATRIX: list[Case] = [
    (value, row[0], row[1], cell)
    for row in BODY
    for values, cell in zip(HEAD[2:], row[2:], strict=True)
    for value in values.split(" / ")
]
WORKED: list[Case] = [(row[0], row[1], row[2], row[3]) for row in rows("Edge cases")[1:]]


# --- the places in which definitions hold conditions -------------------------------------------


def recorded(properties: Properties) -> Recorded:
    event = Event(type="x", identifiers=(), occurred_at=0, key="k", properties=properties)
    return Recorded(event, "0" * 32, "t" * 32, 1, 0)


def outcome(tree: dict[str, Any], subject: Subject) -> str:
    conditions = Conditions(read_json(tree))
    trace = conditions.trace(subject)
    (step,) = trace.steps
    assert conditions.test(subject) == trace.matched == step.matched
    return "yes" if step.matched else step.note or "no"


def of_a_person(properties: Properties, operator: str, operand: Any) -> str:
    return outcome({"field": "traits.x", operator: operand}, Subject({"profile": {"traits": properties}}.get))


def of_an_event(properties: Properties, operator: str, operand: Any) -> str:
    return outcome({"field": "event.properties.x", operator: operand}, Subject(NOWHERE.get, recorded(properties)))


def of_a_rule(properties: Properties, operator: str, operand: Any) -> str:
    """By a set that asks only rules that may match, and by one that traces every rule; both must agree."""
    tree = {"field": "event.properties.x", operator: operand}
    rule = rule_of_json("r", {"conditions": tree})
    found = {}
    for record in ("matched", "all"):
        sets = [set_of_json("s", {"events": ["x"], "rules": ["r"], "record": record})]
        found[record] = decide(ActiveRules([rule], sets), recorded(properties), Subject(NOWHERE.get))
    ((step,),) = (each.trace for each in found["all"])
    assert bool(found["matched"]) == step["matched"]
    return "yes" if step["matched"] else step["note"] or "no"


def of_where(properties: Properties, operator: str, operand: Any) -> bool:
    """Whether the event passes, by the short form and by a tree; both must agree."""
    answers = set()
    for written in ({"x": {operator: operand}}, [{"field": "event.properties.x", operator: operand}]):
        assert SCHEMA.is_valid(written)
        document = Document("threadline.yaml")
        node = document.compose(yaml.safe_dump(written, allow_unicode=True))
        assert node is not None
        where = WHERE_FORM.read(Plain(document, "feature 'f'").part(node))
        assert document.problems == []
        assert where
        answers.add(where.test(recorded(properties).event))
    (answer,) = answers
    return answer


PLACES: list[Callable[[Properties, str, Any], str]] = [of_a_person, of_an_event, of_a_rule]


@each_of([*MATRIX, *WORKED], " ".join)
def test_each_cell_of_the_table_in_each_place(case: Case) -> None:
    value, operator, operand, expected = case
    properties = {} if value == "missing" else {"x": json.loads(value)}
    for spelling in (operator, *(short for short, full in ALIASES.items() if full == operator)):
        for place in PLACES:
            assert place(properties, spelling, json.loads(operand)) == expected, place.__name__
        assert of_where(properties, spelling, json.loads(operand)) == (expected == "yes")


def test_the_table_has_every_operator_and_every_type() -> None:
    assert {operator for _, operator, _, _ in MATRIX} == set(OPERATORS)
    kinds = {kind(value) for value, *_ in MATRIX}
    assert kinds == {"int", "float", "decimal", "text", "time", "bool", "list", "dict", "null", "missing"}
    assert {expected for *_, expected in MATRIX} == {"yes", "no", "type", "missing"}


def test_short_spellings_are_listed_and_stored_under_the_full_name() -> None:
    listed = {}
    for row in rows("Comparison"):
        names, short = (re.findall(r"\w+", cell) for cell in row[:2])
        if set(names) <= set(OPERATORS):
            listed |= dict(zip(short, names, strict=False))
    assert listed == ALIASES
    for short, full in ALIASES.items():
        assert Conditions(read_json({"field": "tags", short: 1})).plain == {"field": "tags", full: 1}


def kind(held: str) -> str:
    if held == "missing":
        return held
    value: Any = json.loads(held)
    if isinstance(value, str):
        return "decimal" if value[:2] == "80" else "time" if value.startswith("2026-") else "text"
    return "null" if value is None else type(value).__name__
