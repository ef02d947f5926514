"""Law: what people read in the console and in the API's description uses the field's words and not the house's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from threadline.app import catalogue
from threadline.surfaces.console.screens import screens
from threadline.surfaces.http.documents.openapi import document

TEMPLATES = Path(__file__).parents[2] / "src/threadline/surfaces/console/templates"
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


def test_the_console_and_the_api_use_the_words_of_the_field() -> None:
    texts = [*texts_of_the_console(), *texts_of_the_api(document(catalogue().operations))]
    assert len(texts) > 1_000
    assert [(place, match[0]) for place, text in texts for match in ODD.finditer(text)] == []


@pytest.mark.parametrize(
    "text",
    ["Nothing folded", "What became of it", "what has come of it", "People of whom", "Whoever reads it", "It is told"],
)
def test_a_word_of_our_own_is_seen(text: str) -> None:
    assert ODD.search(text)
    assert not ODD.search("Recalculated, brought up to date: results of mail")
