"""Law: of what is counted on a page a single one is named in the singular, by one filter and one function."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/threadline"
TEMPLATES = sorted((SOURCE / "surfaces/console/templates").glob("*.html"))
SHOWN = sorted(
    file
    for folder in ("capabilities/ask", "capabilities/decide/whatif", "surfaces/console")
    for file in (SOURCE / folder).rglob("*.py")
)
"""Modules whose texts stand on pages."""
THINGS = (
    *("people", "persons", "events", "mails", "answers", "rows", "entries", "sessions", "conversions", "cohorts"),
    *("steps", "journeys", "segments", "notes", "features", "points", "days", "problems", "warnings", "messages"),
    *("versions", "variants", "purchases", "bytes", "documents", "errors", "results", "changes", "definitions"),
)
PLURAL = rf"(?:{'|'.join(THINGS)})\b"
IN_TEMPLATE = re.compile(rf"\|\s*(?:number|length)\s*\}}\}} (?:\w+ )?{PLURAL}|\|\s*number\) ~ \" {PLURAL}")


def plurals_in_template(text: str) -> list[str]:
    return [match[0] for match in IN_TEMPLATE.finditer(text)]


def plurals_in_module(text: str) -> Iterator[str]:
    """A number in an f-string with a plural behind it; a constant of the house, such as a limit, is many."""
    for node in ast.walk(ast.parse(text)):
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        for number, behind in pairwise(parts):
            if not isinstance(number, ast.FormattedValue) or not isinstance(behind, ast.Constant):
                continue
            shown, words = ast.unparse(number.value), str(behind.value)
            is_mean = number.format_spec is not None and "." in ast.unparse(number.format_spec)
            if re.match(f" {PLURAL}", words) and not shown.isupper() and not is_mean:
                yield f"{shown}{words[:30]}"


def test_a_template_counts_things_by_the_filter() -> None:
    assert len(TEMPLATES) > 80
    found = {file.name: plurals_in_template(file.read_text(encoding="utf-8")) for file in TEMPLATES}
    assert {name: plurals for name, plurals in found.items() if plurals} == {}


def test_a_text_of_a_page_counts_things_by_the_function() -> None:
    assert len(SHOWN) > 80
    found = {str(file.relative_to(SOURCE)): list(plurals_in_module(file.read_text(encoding="utf-8"))) for file in SHOWN}
    assert {name: plurals for name, plurals in found.items() if plurals} == {}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("{{ people | number }} people", 1),
        ("{{ it.rows | length }} more rows", 1),
        ('{{ "Import " ~ (it.rows | number) ~ " rows" }}', 1),
        ('{{ people | counted("person") }}', 0),
        ("{{ took | number }} ms", 0),
    ],
)
def test_a_plural_of_a_template_is_seen(text: str, count: int) -> None:
    assert len(plurals_in_template(text)) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('f"{people:,} people"', 1),
        ('f"{len(rows)} rows are left"', 1),
        ("f\"{counted(people, 'person')} in it\"", 0),
        ('f"at most {ROWS_MAX} rows"', 0),
        ('f"{share:.1f} events each"', 0),
    ],
)
def test_a_plural_of_a_module_is_seen(text: str, count: int) -> None:
    assert len(list(plurals_in_module(text))) == count
