"""Nothing that was promised is lost: each case of the page has its tests, each worked table is run by one."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.docs.markdown import ROOT, links

PAGE = ROOT / "docs/promises.md"
PROMISED: list[str] = yaml.safe_load((ROOT / "tests/docs/promises.yaml").read_text())
"""The cases that were promised. One that leaves this list is a promise that is taken back."""


class Promise(NamedTuple):
    """A row of the page."""

    case: str
    here: str
    elsewhere: str
    tests: list[tuple[str, str]]
    """The file and the function of each."""


def promises(text: str) -> list[Promise]:
    rows = [line.strip("|").split("|") for line in re.findall(r"^\| (?!case ).*\|$", text, re.MULTILINE)]
    read = [[cell.strip() for cell in row] for row in rows]
    return [
        Promise(case, here, elsewhere, re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", tests))
        for case, here, elsewhere, tests in read
    ]


TABLE = promises(PAGE.read_text())


@cache
def functions(file: str) -> dict[str, list[str]]:
    """The decorators of each function of a file of tests."""
    tree = ast.parse((ROOT / file).read_text())
    return {
        node.name: [ast.unparse(d) for d in node.decorator_list]
        for node in tree.body
        if hasattr(node, "decorator_list")
    }


def lost(promise: Promise) -> list[str]:
    """What is wrong with the tests of a promise."""
    if not promise.tests:
        return ["no test"]
    wrong = []
    for file, name in promise.tests:
        marks = functions(file) if (ROOT / file).exists() else {}
        if name not in marks:
            wrong.append(f"{file} has no {name}")
        elif any("mark.skip" in mark or "mark.xfail" in mark for mark in marks[name]):
            wrong.append(f"{name} is not run")
    return wrong


def test_no_promise_is_taken_back() -> None:
    assert len(PROMISED) == len(set(PROMISED))
    assert sorted(promise.case for promise in TABLE) == sorted(PROMISED)


@pytest.mark.parametrize("promise", TABLE, ids=lambda promise: promise.case)
def test_promise_has_a_test_that_runs(promise: Promise) -> None:
    assert promise.here
    assert lost(promise) == []


def test_what_was_reported_elsewhere_is_linked() -> None:
    wrong = [
        link
        for link in links(PAGE.read_text())
        if "://" in link and not re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/issues/\d+", link)
    ]
    assert wrong == []
    assert sum(bool(promise.elsewhere) for promise in TABLE) > 10


@pytest.mark.parametrize("page", sorted((ROOT / "docs/worked").glob("*.md")), ids=lambda page: page.stem)
def test_worked_tables_are_run_by_a_test_and_linked_from_their_page(page: Path) -> None:
    named = re.compile(rf"worked/{page.name}\b")
    assert [file.name for file in (ROOT / "tests/capabilities").glob("*.py") if named.search(file.read_text())]
    assert f"worked/{page.name}" in links((page.parents[1] / page.name).read_text())


@pytest.mark.parametrize(
    "tests",
    ["", "`tests/docs/gone.py::test_it`", "`tests/docs/test_promises.py::test_that_was_renamed`"],
    ids=["none", "no such file", "no such function"],
)
def test_promise_that_lost_its_test_is_noticed(tests: str) -> None:
    (promise,) = promises(f"| case | here | reported elsewhere | test |\n| a case | works | | {tests} |\n")
    assert lost(promise)
