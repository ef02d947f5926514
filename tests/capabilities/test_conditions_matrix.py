"""The tables of docs/conditions.md: every operator by every pair of types, written by hand, run case by case."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from threadline.capabilities.conditions import Conditions, Subject, read_json
from threadline.capabilities.conditions.operators import OPERATORS

PAGE = (Path(__file__).parents[2] / "docs" / "conditions.md").read_text(encoding="utf-8")

Case = tuple[str, str, str, str]
"""What the field holds, the operator, what it is compared with, the outcome."""


def rows(text: str) -> list[list[str]]:
    lines = re.findall(r"^\|.*\|$", text, re.MULTILINE)
    cells = [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in cells if not all(set(cell) == {"-"} for cell in row)]


def matrix() -> list[Case]:
    whole = PAGE.split("## The operators, case by case")[1].split("\n## ")[0]
    cases = []
    for section in whole.split("\n### ")[1:]:
        head, *body = rows(section)
        operator = section.splitlines()[0]
        cases += [(held, operator, row[0], cell) for row in body for held, cell in zip(head[1:], row[1:], strict=True)]
    return cases


def worked() -> list[Case]:
    section = PAGE.split("## Worked: exact numbers")[1].split("\n## ")[0]
    return [(held, operator, operand, outcome) for held, operator, operand, outcome in rows(section)[1:]]


MATRIX, WORKED = matrix(), worked()


def asked(held: str, operator: str, operand: str) -> str:
    traits = {} if held == "missing" else {"x": json.loads(held)}
    subject = Subject({"profile": {"traits": traits, "tags": [], "groups": {}}}.get)
    tree = {"field": "traits.x", operator: json.loads(operand)}
    conditions = Conditions(read_json(tree))
    assert conditions.plain == tree
    trace = conditions.trace(subject)
    (step,) = trace.steps
    assert conditions.test(subject) == trace.matched == step.matched
    return "yes" if step.matched else step.note or "no"


@pytest.mark.parametrize("case", [*MATRIX, *WORKED], ids=" ".join)
def test_each_case(case: Case) -> None:
    held, operator, operand, outcome = case
    assert asked(held, operator, operand) == outcome


def test_the_matrix_is_whole() -> None:
    assert {operator for _, operator, _, _ in MATRIX} == set(OPERATORS)
    kinds: dict[str, set[str]] = {operator: set() for operator in OPERATORS}
    for held, operator, _, _ in MATRIX:
        kinds[operator].add(kind(held))
    assert set(map(frozenset, kinds.values())) == {
        frozenset({"int", "float", "decimal", "text", "time", "bool", "list", "dict", "null", "missing"})
    }
    assert {outcome for *_, outcome in MATRIX} == {"yes", "no", "type", "missing"}


def kind(held: str) -> str:
    if held == "missing":
        return held
    value: Any = json.loads(held)
    if isinstance(value, str):
        return "decimal" if value[:2] == "80" else "time" if value.startswith("2026-") else "text"
    return "null" if value is None else type(value).__name__
