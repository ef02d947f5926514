"""What a module says of itself: every example runs, and one that the pages have readers import has one."""

from __future__ import annotations

import ast
import re
import textwrap
from functools import cache
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT, Snippet, pages, snippets
from tests.docs.session import Session
from tests.house.source import Source, sources

PUBLIC_ROOMS = ("threadline", "threadline.kernel", "threadline.settings", "threadline.stores", "threadline.testing")
"""Packages whose modules are written for those who use Threadline. Of others the pages import what has something."""
WORDS_MIN = 25


def name_of(source: Source) -> str:
    """The module's name, as it is imported."""
    path = Path(source.path).relative_to("src").with_suffix("")
    return ".".join(path.parent.parts if path.name == "__init__" else path.parts)


def opening(source: Source) -> str:
    """A module's docstring."""
    return ast.get_docstring(source.tree) or ""


def imported(code: str) -> set[str]:
    """The modules that a snippet of a page imports from."""
    return set(re.findall(r"^\s*(?:>>> )?(?:from|import) (threadline[\w.]*)", code, re.MULTILINE))


@cache
def public() -> list[Source]:
    """Modules of the public rooms that some page has its readers import."""
    named = {
        module
        for page in pages()
        if page.parent.name != "decisions"
        for snippet in snippets(page.read_text())
        if snippet.language == "python"
        for module in imported(snippet.code)
    }
    return [
        source
        for source in sources()
        if name_of(source) in named
        if name_of(source) in PUBLIC_ROOMS or name_of(source).rpartition(".")[0] in PUBLIC_ROOMS
    ]


def example(text: str) -> str:
    """What a docstring has its readers type, with what they then see."""
    return textwrap.dedent("".join(line for line in text.splitlines(keepends=True) if line.startswith(("    ", "\n"))))


def prose(text: str) -> str:
    """A docstring without its first line, its examples and its tables."""
    lines = text.splitlines()[1:]
    return "\n".join(line for line in lines if not line.startswith((" ", "|")))


def test_modules_that_the_pages_import_are_found() -> None:
    assert {"threadline", "threadline.features", "threadline.kernel.event"} <= {name_of(source) for source in public()}


@pytest.mark.parametrize("source", public(), ids=name_of)
def test_a_public_module_opens_with_purpose_and_example(source: Source) -> None:
    text = opening(source)
    assert ">>> " in text, "a public module opens with an example that runs"
    assert len(prose(text).split()) >= WORDS_MIN, "say what it is for, in the words that somebody searches for"


@pytest.mark.parametrize("source", [source for source in sources() if ">>> " in opening(source)], ids=name_of)
def test_the_example_of_a_module_runs(source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session = Session(source.path, tmp_path)
    try:
        session.run(Snippet("python", example(opening(source)), line=1, not_run=""))
    finally:
        session.close()


def test_the_reading_path_begins_with_the_six_ideas_and_takes_an_hour() -> None:
    page = (ROOT / "docs" / "read-the-code.md").read_text().partition("## Then")[0]
    paths = re.findall(r"^\| `([\w/]+\.py)` \|", page, re.MULTILINE)
    ideas = ["event", "event_type", "projection", "policy", "operation", "store"]
    assert paths[:6] == [f"kernel/{idea}.py" for idea in ideas]
    files = {f"src/threadline/{path}": (ROOT / "src" / "threadline" / path).read_text() for path in paths}
    assert 10 <= len(paths) == len(files) <= 14
    assert 2_000 < sum(text.count("\n") for text in files.values()) < 4_000
    # What each row says to look at is in its file.
    for path, named in re.findall(r"^\| `([\w/]+\.py)` \| ([^|]+) \|", page, re.MULTILINE):
        text = files[f"src/threadline/{path}"]
        names = [name.rpartition(".")[2] for name in re.findall(r"`([\w.]+)`", named)]
        assert [name for name in names if not re.search(rf"\b{name}\b", text)] == [], path


@pytest.mark.parametrize("source", public(), ids=name_of)
def test_files_named_by_a_public_module_exist(source: Source) -> None:
    named = re.findall(r"(?:docs|tests)/[\w/.-]+\.(?:md|py)", opening(source))
    assert [path for path in named if not (ROOT / path).exists()] == []
