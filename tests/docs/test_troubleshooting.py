"""What the page by symptom quotes is what the code says: each message, and each command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT, pages
from tests.each import each_of
from threadline.app import operations
from threadline.surfaces.cli.listing import command_name
from threadline.surfaces.cli.program import COMMANDS

PAGE = (ROOT / "docs/troubleshooting.md").read_text()
SYMPTOMS = [
    line.split(" | ")[0].removeprefix("| ") for line in re.findall(r"^\| (?!you see ).*\|$", PAGE, re.MULTILINE)
]
QUOTED = [text for symptom in SYMPTOMS for text in re.findall(r"`([^`]+)`", symptom)]
SOURCE = "\n".join(path.read_text() for path in (ROOT / "src/threadline").rglob("*.py"))
NAMES = {command_name(operation) for operation in operations()} | COMMANDS.keys()
GROUPS = {name.split()[0] for name in NAMES if " " in name}


def unknown_commands(text: str) -> list[str]:
    """Commands of the program that a text names and that it does not have."""
    named = re.findall(r"(?:`|^\$ (?:.* )?)threadline ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?", text, re.MULTILINE)
    lines = [f"{first} {second}".strip() if first in GROUPS and second else first for first, second in named]
    return sorted({line for line in lines if line not in NAMES | GROUPS})


@pytest.mark.parametrize("text", QUOTED)
def test_quoted_message_stands_in_the_code(text: str) -> None:
    # The number in a message is the reader's own, and a line of the code ends where the text goes on.
    assert re.sub(r"\s*…$", "", text) in re.sub(r'"\s*\n\s*f?"', "", SOURCE)


def test_symptoms_quote_messages() -> None:
    assert len(SYMPTOMS) > 25
    assert len(QUOTED) > 8


@each_of(pages(), lambda page: page.relative_to(ROOT))
def test_commands_that_a_page_names_are_those_of_the_program(page: Path) -> None:
    # Decisions and the changelog speak of their own day, and one page adds a command.
    if page.parent.name != "decisions" and page.name not in ("CHANGELOG.md", "how-to-add-a-capability.md"):
        assert unknown_commands(page.read_text()) == []


def test_command_that_there_is_not_is_noticed() -> None:
    assert unknown_commands("Ask `threadline segments whynot ada`, or `threadline docter`.") == [
        "docter",
        "segments whynot",
    ]
