"""The question of a what-if in a line, and its outcomes in words."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.console.stage import close_up, csrf_of, opened, record, signed_in
from threadline.engine.engine import Engine
from threadline.surfaces.console.frame import FILTERS
from threadline.surfaces.console.trace import question

TOTAL = {"field": "event.properties.total", "operator": "greater_than", "old": 100, "new": 50}
EMAIL = {"field": "traits.email", "operator": "exists", "old": True, "new": False}
LARGER = "large-order: total of the event is more than 50 instead of 100"
PLAN = {"field": "traits.plan", "operator": "in", "old": ["free"], "new": ["free", "club"]}


def change(*values: dict[str, Any]) -> dict[str, Any]:
    return {"rule": "large-order", "old": "version 3", "new": "draft", "values": list(values)}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ([change(TOTAL)], LARGER),
        (
            [change(TOTAL, PLAN)],
            f"{LARGER} and plan is one of free or club instead of free",
        ),
        ([change(EMAIL)], "large-order: email is missing instead of is known"),
        ([change()], "Rule large-order: draft against version 3"),
        ([change(TOTAL, TOTAL, PLAN)], "Rule large-order: draft against version 3"),
        ([change(TOTAL), change(TOTAL)], "Candidate.yaml: rules against what is in force"),
        ([], "Candidate.yaml: rules against what is in force"),
    ],
)
def test_the_question_fits_into_a_line(changes: list[dict[str, Any]], line: str) -> None:
    assert question(changes, "in force", "candidate.yaml: rules") == line


@pytest.mark.parametrize(
    ("status", "words"), [("NoMatch", "not matched"), ("Matched", "matched"), ("nothing", "nothing")]
)
def test_outcomes_are_words(status: str, words: str) -> None:
    assert FILTERS["outcome"](status) == words


RULES = """
rules: {large-order: {conditions: {field: event.properties.total, greater_than: 100}}}
rule_sets: {orders: {events: [purchase_completed], rules: [large-order]}}
"""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    file = tmp_path / "threadline.yaml"
    file.write_text(RULES)
    with opened(file) as made:
        bought = [("ada", "purchase_completed", {"total": total, "currency": "EUR"}) for total in (20, 60, 120)]
        record(made, ("ada", "identify", {"first_name": "Ada"}), *bought)
        yield made


def tried(engine: Engine, least: int) -> str:
    """The address of a what-if with another threshold."""
    client = signed_in(engine)
    content = f'{{"conditions": {{"field": "event.properties.total", "greater_than": {least}}}}}'
    form = {"rule": "large-order", "content:json": content, "wait": "true", "save": "true", "_then": "/what-if/{id}"}
    answer = client.post("/do/what_if_run", data={**form, "_csrf": csrf_of(client, engine)})
    return answer.headers["location"]


def test_a_what_if_shows_its_question_and_the_values_that_moved(engine: Engine) -> None:
    page = html.unescape(close_up(signed_in(engine).get(tried(engine, 50)).text))
    assert "<h1>large-order: total of the event is more than 50 instead of 100</h1>" in page
    assert '<dt>total of the event is more than</dt><dd><span class="was">100</span>→ 50</dd>' in page
    assert "NoMatch" not in page
    assert ">Ada</a>" in page


def test_two_what_ifs_are_compared_in_words(engine: Engine) -> None:
    one, other = (tried(engine, least).rpartition("/")[2] for least in (50, 10))
    page = close_up(signed_in(engine).get(f"/what-if?one={one}&other={other}").text)
    section = page.partition("The other compared with the one")[2].partition("</section>")[0]
    assert "<dt>Decisions changed</dt><dd>+1</dd>" in section
    assert '<td>not matched</td><td>matched</td><td class="number">+1</td>' in section
