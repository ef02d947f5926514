"""The formatter lays the code out, and templates, style sheets and scripts are laid out as if one did."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.house.source import ROOT

LINE_MAX = 160
LEFT_TO_US_MAX = 50
"""Tables and lists of words that read better as they were written, in all of the code."""

CODE = ("src", "tests", "bench", "release", "plugins")
PAGES = sorted(
    file
    for suffix in ("html", "css", "js")
    for room in ("src", "plugins")
    for file in (ROOT / room).rglob(f"*.{suffix}")
    if "node_modules" not in file.parts
)
TEMPLATES = [file for file in PAGES if file.suffix == ".html"]
VOID = {"br", "circle", "hr", "img", "input", "link", "meta", "path", "rect"}
"""Elements without an end."""

_JINJA = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}(?!\})", re.DOTALL)
_LEFT = re.compile(r"#\s*(fmt|yapf):\s*(skip|off)")
_TAG = re.compile(r"<(/?)([a-z][a-z0-9]*)[^<>]*?(/?)>")


def name_of(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def lines_of(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def unformatted(text: str) -> Iterator[str]:
    """The comments that keep the formatter from a statement."""
    if not _LEFT.search(text):
        return  # only what may have one is taken apart, which is slow
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and _LEFT.match(token.string):
            yield token.string


def test_the_formatter_has_its_way_with_all_code_but_a_few_tables() -> None:
    found = {
        name_of(file): count
        for room in CODE
        for file in sorted((ROOT / room).rglob("*.py"))
        if not {"node_modules", "data"} & set(file.parts) and (count := len([*unformatted(file.read_text())]))
    }
    assert found, "nothing was read"
    assert sum(found.values()) <= LEFT_TO_US_MAX, found


def test_a_line_of_a_page_can_be_read() -> None:
    lines = [(f"{name_of(file)}:{number}", line) for file in PAGES for number, line in enumerate(lines_of(file), 1)]
    assert {place: len(line) for place, line in lines if len(line) > LINE_MAX} == {}


def left_open(template: str) -> Iterator[tuple[int, list[str]]]:
    """Line -> the elements that begin in it and end in another one."""
    # What is in braces stands for text; its line breaks stay, so that lines keep their numbers.
    text = _JINJA.sub(lambda found: re.sub(r"[^\n]", "·", found[0]), template)
    opened: list[tuple[str, int]] = []
    spans: list[tuple[str, int, int]] = []
    for tag in _TAG.finditer(text):
        line = text.count("\n", 0, tag.start())
        if tag[1]:
            begun = next((at for at in range(len(opened) - 1, -1, -1) if opened[at][0] == tag[2]), None)
            if begun is not None:
                spans.append((*opened.pop(begun), line))
        elif not tag[3] and tag[2] not in VOID:
            opened.append((tag[2], line))
    for start in sorted({span[1] for span in spans}):
        yield start + 1, [name for name, first, last in spans if first == start and last > start]


def test_an_element_that_takes_several_lines_of_a_template_begins_a_line_of_its_own() -> None:
    opened = {file: left_open(file.read_text(encoding="utf-8")) for file in TEMPLATES}
    crowded = {f"{name_of(file)}:{line}": names for file in TEMPLATES for line, names in opened[file] if len(names) > 1}
    assert crowded == {}


def test_crowded_lines_and_comments_for_the_formatter_are_seen() -> None:
    crowded = "<ul><li>\n{% if x %}<b>{{ '<i>' }}</b>{% endif %}</li></ul>\n<p>\n<br>x</p>"
    assert dict(left_open(crowded)) == {1: ["li", "ul"], 3: ["p"], 2: []}
    assert [*unformatted("x = [\n 1,  2]  # fmt: skip\ny = '# fmt: skip'\n# fmt: off\n")] == [
        "# fmt: skip",
        "# fmt: off",
    ]
