"""The page of forty questions names files that are there, and no question gives its answer away."""

from __future__ import annotations

import re

import pytest

from tests.house.source import ROOT

ROWS = re.findall(r"^\| (\d+) \| (.+?) \| `(\S+)` \|$", (ROOT / "docs" / "where.md").read_text(), re.MULTILINE)


def test_there_are_forty_questions() -> None:
    assert [int(number) for number, *_ in ROWS] == list(range(1, 41))


@pytest.mark.parametrize(("question", "path"), [(question, path) for _, question, path in ROWS])
def test_the_answer_is_a_file_and_the_question_does_not_quote_it(question: str, path: str) -> None:
    file = ROOT / "src" / "threadline" / path
    assert file.is_file()
    assert file.stem not in re.findall(r"\w+", question.lower())
