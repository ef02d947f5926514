"""Law: what people read in the console and in the API's description uses the field's words and not the house's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from threadline.app import catalogue
from threadline.surfaces.cli import listing
from threadline.surfaces.cli.program import COMMANDS, GROUPS, SECTIONS
from threadline.surfaces.console.screens import screens
from threadline.surfaces.http.documents.openapi import document

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "src/threadline/surfaces/console/templates"
NEWCOMERS = (
    *("README", "docs/index", "docs/start", "docs/concepts", "docs/console", "docs/tour", "docs/segments"),
    *("docs/journeys", "docs/mail", "docs/broadcasts", "docs/analytics", "docs/sql", "docs/training", "docs/deploy"),
)
"""Pages of *Look up* that somebody meets who is new; all pages of *Learn* and *Do* are others."""
LEARN_AND_DO = [
    ROOT / "docs" / page
    for entry in yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    for layer, inside in entry.items()
    if layer in ("Learn", "Do")
    for page in re.findall(r"[\w/-]+\.md", str(inside))
]
PLAIN = {
    r"nothing folded": "show every event",
    r"will happen by itself": "scheduled",
    r"who is it about": "people",
    r"joins? in doubt": "merge review",
    r"on a desk": "desktop",
    r"c[ao]mes? to the end": "completed",
    r"brings? everybody": "recalculates everyone",
    r"brought up to (?!date)": "recalculated",
    r"claimed history": "imported",
    r"what (?:has )?(?:c[ao]me of|bec[ao]mes? of)": "the outcome, the results",
    r"of whom": "the person, the people who",
    r"who(?:m)?ever": "anyone who",
    r"told": "shown, given, answered",
    r"no news": "not new",
    r"speaks? against": "objection",
    r"(?:brings?|brought) about": "causes",
    r"nobody knows whether": "may or may not have",
    r"(?:re)?folded (?:anew|again)": "recalculated",
    r"folds? everybody": "recalculates everyone",
    r"(?:made|written) anew": "made again, replaced",
    r"tak(?:es|en) in": "read, imported",
    r"not one of": "none of",
}
"""What nobody in the field says, and what they say."""
ODD = re.compile(rf"\b(?:{'|'.join(PLAIN)})\b", re.IGNORECASE)


def texts_of_the_console() -> Iterator[tuple[str, str]]:
    for path in sorted(TEMPLATES.glob("*.html")):
        text = re.sub(r"\{#.*?#\}", "", path.read_text(), flags=re.DOTALL)
        yield path.name, " ".join(text.split())
    for screen in screens():
        yield f"screen {screen.path}", f"{screen.title} {screen.summary}"


def texts_of_the_api(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in ("summary", "description") and isinstance(inner, str):
                yield path, inner
            yield from texts_of_the_api(inner, f"{path}/{name}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from texts_of_the_api(inner, f"{path}/{number}")


def texts_of_the_command_line() -> Iterator[tuple[str, str]]:
    shipped = listing.shipped()
    yield from {**shipped.groups, **GROUPS}.items()
    yield from shipped.commands.items()
    for name, (module, attribute, summary) in COMMANDS.items():
        yield name, summary
        command = getattr(import_module(f"threadline.surfaces.cli.{module}"), attribute)
        for text in (command.help, *(getattr(param, "help", "") for param in command.params)):
            yield name, text or ""
    for heading in SECTIONS:
        yield heading, heading


def test_the_help_of_the_command_line_uses_the_words_of_the_field() -> None:
    texts = list(texts_of_the_command_line())
    assert len(texts) > 200
    assert [(place, match[0]) for place, text in texts for match in ODD.finditer(text)] == []


def test_the_console_and_the_api_use_the_words_of_the_field() -> None:
    texts = [*texts_of_the_console(), *texts_of_the_api(document(catalogue().operations))]
    assert len(texts) > 1_000
    assert [(place, match[0]) for place, text in texts for match in ODD.finditer(text)] == []


def test_the_pages_that_a_newcomer_meets_use_the_words_of_the_field() -> None:
    paths = [ROOT / f"{name}.md" for name in NEWCOMERS]
    paths += LEARN_AND_DO
    assert len(LEARN_AND_DO) > 40
    assert [(path.name, match[0]) for path in paths for match in ODD.finditer(path.read_text())] == []


@pytest.mark.parametrize(
    "text",
    [
        "Nothing folded",
        "What became of it",
        "what has come of it",
        "People of whom",
        "Whoever reads it",
        "It is told",
        "It is no news",
        "What speaks against it",
    ],
)
def test_a_word_of_our_own_is_seen(text: str) -> None:
    assert ODD.search(text)
    assert not ODD.search("Recalculated, brought up to date: results of mail")
