"""Reads a page of Markdown: its fenced snippets, its links, its headings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[a-z]*)[^\n]*\n(?P<code>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
_NOT_RUN = re.compile(r"<!-- not run: (?P<why>[^\n]+) -->\s*\Z")
_LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_LINK_IN_CODE = re.compile(r"`[^`\n]*\]\([^`\n]*`")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_NAMED_PATH = re.compile(r"`((?:src|tests|bench|deploy|docs|requirements|\.ci)/[\w./-]+)`")


@dataclass(frozen=True, slots=True)
class Snippet:
    """A fenced block. ``line`` is that of its first line of code, counted from 1."""

    language: str
    code: str
    line: int
    not_run: str
    """Why it is not run, from the comment ``<!-- not run: … -->`` above the fence; empty: it is."""


def pages() -> list[Path]:
    """Every page that a reader may meet."""
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def snippets(text: str) -> list[Snippet]:
    """The fenced blocks of a page, in order, without their indentation."""
    found = []
    for match in _FENCE.finditer(text):
        reason = _NOT_RUN.search(text, 0, match.start())
        indent = match["indent"]
        code = "".join(line.removeprefix(indent) for line in match["code"].splitlines(keepends=True))
        line = text.count("\n", 0, match.start("code")) + 1
        found.append(Snippet(match["language"], code, line, reason["why"] if reason else ""))
    return found


def links(text: str) -> list[str]:
    """The targets of all links and pictures outside of code."""
    return [match["target"] for match in _LINK.finditer(_LINK_IN_CODE.sub("", _FENCE.sub("", text)))]


def named_paths(text: str) -> list[str]:
    """Paths of the repository that prose names in code type."""
    return _NAMED_PATH.findall(_FENCE.sub("", text))


def anchors(text: str) -> set[str]:
    """What ``#…`` may follow a link to this page: its headings, as GitHub and MkDocs spell them."""
    titles = (re.sub(r"[^\w\- ]", "", title.casefold()) for title in _HEADING.findall(_FENCE.sub("", text)))
    return {title.strip().replace(" ", "-") for title in titles}


def broken_links(page: Path) -> list[str]:
    """Links of a page to a file or heading that is not there."""
    broken = []
    for target in links(page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file.read_text())):
            broken.append(target)
    return broken
