"""Every setting, operation and code is documented, in the words of its declaration."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from threadline.app import catalogue, operations
from threadline.settings import describe
from threadline.surfaces.cli.inspection import errors_table, event_types_table, operations_table
from threadline.surfaces.cli.program import COMMANDS
from threadline.surfaces.http.documents.codes import error_codes

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("page", "table", "command"),
    [
        ("http.md", operations_table(operations()), "threadline catalogue --markdown"),
        ("errors.md", errors_table(), "threadline catalogue --markdown"),
        (
            "event-types.md",
            event_types_table(catalogue().event_types.declared.values()),
            "threadline catalogue --markdown",
        ),
    ],
)
def test_the_tables_of_the_docs_are_those_of_the_code(page: str, table: str, command: str) -> None:
    assert table in (ROOT / "docs" / page).read_text(), f"paste what `{command}` prints into docs/{page}"


@pytest.mark.parametrize(
    ("page", "names"),
    [("settings.md", [each.name for each in describe()]), ("cli.md", sorted(COMMANDS))],
)
def test_every_name_is_on_its_page(page: str, names: list[str]) -> None:
    text = (ROOT / "docs" / page).read_text()
    assert len(names) > 15
    assert [name for name in names if not re.search(rf"`{name}[` ]", text)] == []


def test_every_code_that_is_raised_is_told() -> None:
    told = {code for code, _, _ in error_codes()}
    raised = set()
    for file in (ROOT / "src").rglob("*.py"):
        raised |= set(
            re.findall(r"(?:EventRejected|Poisoned)\(\s*(?:\[[^]]*\], |[\w.]+, )?\"(\w+)\"", file.read_text())
        )
    assert len(raised) > 15
    assert raised <= told, raised - told
