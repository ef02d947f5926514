"""Documentation is executed: snippets run, links lead somewhere, every page can be found."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import threadline
from tests.docs.markdown import ROOT, Snippet, broken_links, links, named_paths, pages, snippets
from tests.docs.session import Session
from tests.each import each_of
from threadline.capabilities.foundation.definitions import Definitions
from threadline.engine.folding.catalogue import discover
from threadline.kernel import errors
from threadline.kernel.capability import Capability
from threadline.testing.capability_laws import broken

LANGUAGES = {"python", "console", "yaml", "json", "sh", "text", "html", "javascript", "sql", "http", "toml"}
"""The first four are run or read. ``sh`` is for commands that change the reader's machine."""

each_page = pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
of_each_page = each_of(pages(), lambda page: page.relative_to(ROOT))


@each_page
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session = Session(str(page.relative_to(ROOT)), tmp_path)
    try:
        for snippet in snippets(page.read_text()):
            session.run(snippet)
    finally:
        session.close()


@of_each_page
def test_snippets_name_their_language(page: Path) -> None:
    for snippet in snippets(page.read_text()):
        assert snippet.language in LANGUAGES, f"{page.name}:{snippet.line}: say what this is, e.g. ```text"
        assert not snippet.not_run or len(snippet.not_run) > 20, f"{page.name}:{snippet.line}: give a whole reason"


@of_each_page
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []


@of_each_page
def test_paths_named_in_prose_exist(page: Path) -> None:
    # Decisions and the changelog speak of their own day.
    if page.parent.name == "decisions" or page.name == "CHANGELOG.md":
        return
    assert [path for path in named_paths(page.read_text()) if not (ROOT / path).exists()] == []


@of_each_page
def test_tests_named_in_prose_exist(page: Path) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", page.read_text())
    assert [name for file, name in named if f"def {name}(" not in (ROOT / file).read_text()] == []


def test_no_table_stands_in_the_docs_twice() -> None:
    # A merge once left the table of errors on the page of HTTP three times.
    seen: dict[str, str] = {}
    for page in pages():
        for table in re.findall(r"(?:^\|.*\n){4,}", page.read_text(), re.MULTILINE):
            assert table not in seen, f"{page.name}: a table that is in {seen[table]} as well"
            seen[table] = page.name


def test_the_map_names_what_is_there() -> None:
    page = (ROOT / "docs" / "where.md").read_text()
    section = page.partition("## The map")[2].partition("## ")[0]
    named = re.findall(r"`([\w/]+/(?:\w+\.py)?)`", section)
    assert len(named) > 30
    assert [
        path for path in named if not (ROOT / "src" / "threadline" / path.removeprefix("src/threadline/")).exists()
    ] == []


@of_each_page
def test_links_of_the_docs_stay_among_the_docs(page: Path) -> None:
    # A file that is no page is looked for by no renderer, and is missing all the same where the pages are served.
    if page.is_relative_to(ROOT / "docs"):
        targets = [target.partition("#")[0] for target in links(page.read_text()) if not re.match(r"[a-z]+:", target)]
        assert [each for each in targets if not (page.parent / each).resolve().is_relative_to(ROOT / "docs")] == []


def test_the_description_of_the_distribution_has_no_link_that_is_dead_outside_the_repository() -> None:
    text = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["readme"]["text"]
    assert [target for target in links(text) if not target.startswith("https://")] == []


def test_decisions_have_four_parts_or_name_the_one_that_supersedes_them() -> None:
    decisions = sorted(ROOT.glob("docs/decisions/*.md"))
    assert [int(page.name[:4]) for page in decisions] == list(range(1, len(decisions) + 1))
    for page in decisions:
        text = page.read_text()
        parts = re.findall(r"^## (.+)$", text, re.MULTILINE)
        if successor := re.search(r"^Superseded by \[[^\]]+\]\((\d{4})-", text, re.MULTILINE):
            assert not parts, page.name
            assert successor[1] > page.name[:4], page.name
        else:
            assert parts == ["Context", "Decision", "Consequences", "When to revisit"], page.name


def test_commands_of_the_docs_are_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in pages():
        named = re.findall(r"`make ([a-z-]+)", page.read_text())
        for snippet in snippets(page.read_text()):
            named += re.findall(r"^(?:\$ )?make ([a-z-]+)", snippet.code, re.MULTILINE)
        assert set(named) <= targets, page.name


CAPABILITY = (ROOT / "docs" / "how-to-add-a-capability.md").read_text()
FILES = dict(re.findall(r"`(\w+)\.py`:\n\n```python\n(.*?)```", CAPABILITY, re.DOTALL))
"""What the page has its readers save, by the name of the file."""


def test_files_of_the_page_are_a_capability_in_their_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(FILES) == {"projection", "policy", "sender", "operations", "screen", "personal"}
    folder = tmp_path / "chats_of_the_page"
    folder.mkdir()
    for name, code in {"__init__": "", **FILES}.items():
        (folder / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    names = {type(value).__name__ for value in discover(folder.name, definitions=Definitions())}
    assert names == {
        "Projection",
        "Section",
        "EventType",
        "Policy",
        "SenderFactory",
        "Operation",
        "PublicRoute",
        "PersonFile",
    }
    assert broken(Capability("chats", folder.name), [("threadline.yaml", "chats: {patience: 3d}")]) == []


def test_files_to_be_saved_from_a_page_are_in_the_style_of_the_house(tmp_path: Path) -> None:
    # Whoever reads the page takes them for an example of it.
    (tmp_path / "__init__.py").touch()
    files = [tmp_path / f"{name}_of_the_page.py" for name in FILES]
    for file, code in zip(files, FILES.values(), strict=True):
        assert re.match(r'"""[^\n]+\."""\n', code), f"{file.name}: it opens with its sign"
        file.write_text(code)
    # With the configuration of both, so that they are held to the same rules as what ships.
    config = ROOT / "pyproject.toml"
    for command in (
        ["ruff", "check", f"--config={config}"],
        ["ruff", "format", "--check", f"--config={config}"],
        ["mypy", f"--config-file={config}", "--strict"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", *command, *map(str, files)], capture_output=True, text=True, cwd=ROOT, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_exceptions_are_named_as_the_page_of_errors_says() -> None:
    # The root is for faults; an event's rejection takes its code from the reason, and damage to one is the store's.
    apart = (errors.EventRejected, errors.EventDamaged)
    found = [kind for kind in vars(errors).values() if isinstance(kind, type) and kind.__base__ is not Exception]
    named = {kind.__name__: kind.code.title().replace("_", "") for kind in found if kind not in apart}
    assert len(named) > 12
    assert named == {name: name for name in named}
    assert set(named) <= set(threadline.__all__)


# --- the checks themselves can fail ---------------------------------------------------------


def snippet(language: str, code: str) -> Snippet:
    return Snippet(language, code, line=1, not_run="")


@pytest.mark.parametrize(
    "broken",
    [
        snippet("python", "assert 1 + 1 == 3\n"),
        snippet("python", ">>> 1 + 1\n3\n"),
        snippet("console", "$ false\n"),
        snippet("console", "$ echo one\ntwo\n"),
        snippet("console", "$ exit 3 &\n"),
        snippet("console", "echo no prompt\n"),
        snippet("yaml", "a: [\n"),
        snippet("json", "{'a': 1}\n"),
    ],
    ids=lambda broken: f"{broken.language} {broken.code.strip()}",
)
def test_a_broken_snippet_is_noticed(broken: Snippet, tmp_path: Path) -> None:
    session = Session("page.md", tmp_path)
    try:
        with pytest.raises((AssertionError, ValueError, yaml.YAMLError)):
            session.run(broken)
    finally:
        session.close()


def test_a_page_is_one_session(tmp_path: Path) -> None:
    session = Session("page.md", tmp_path)
    session.run(snippet("python", "total = 3\n"))
    session.run(snippet("python", ">>> total + 1\n4\n>>> other = 5\n"))
    session.run(snippet("python", "assert other == 5\n"))
    session.run(snippet("console", "$ echo kept > file\n$ cat file\nk...t\n"))
    session.run(snippet("yaml", "# threadline.yaml\na: 1\n"))
    session.run(snippet("console", "$ tail -1 threadline.yaml\na: 1\n"))
    session.run(snippet("html", "<!-- page.html -->\n<p>8787</p>\n"))
    session.run(snippet("console", f"$ tail -1 page.html\n<p>{session.port}</p>\n"))
    with pytest.raises(AssertionError, match="wanted"):
        session.run(snippet("console", "$ cat file\nlost\n"))


def test_a_server_is_waited_for_and_ended(tmp_path: Path) -> None:
    session = Session("page.md", tmp_path)
    session.run(
        snippet("console", "$ python -m http.server 8787 --bind 127.0.0.1 &\n$ curl -s -o got 127.0.0.1:8787/\n")
    )
    session.close()
    assert "Directory listing" in (tmp_path / "got").read_text()
    assert session.servers[0].poll() is not None


def test_a_page_is_read_as_a_reader_sees_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One thing: two\n[good](#one-thing-two) [lost](gone.md) [far](https://example.org)\n"
        "<!-- not run: it would end the reader's session -->\n```sh\n[no link](here.md)\n```\n"
        "1. step\n\n    ```python\n    x = 1\n    ```\n"
    )
    assert broken_links(page) == ["gone.md"]
    first, second = snippets(page.read_text())
    assert first.not_run == "it would end the reader's session"
    assert (second.not_run, second.code, second.line) == ("", "x = 1\n", 10)
