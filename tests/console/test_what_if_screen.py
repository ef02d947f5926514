"""The question of a what-if in a line, and its outcomes in words."""

from __future__ import annotations

import html
from typing import Any

import pytest

from tests.console.stage import csrf_of, opened, record, signed_in
from threadline.surfaces.console.frame import FILTERS
from threadline.surfaces.console.trace import question

TOTAL = {"field": "event.properties.total", "operator": "greater_than", "old": 100, "new": 50}
PLAN = {"field": "traits.plan", "operator": "in", "old": ["free"], "new": ["free", "club"]}


def change(*values: dict[str, Any]) -> dict[str, Any]:
    return {"rule": "large-order", "old": "version 3", "new": "draft", "values": list(values)}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ([change(TOTAL)], "large-order: total over 50 instead of over 100"),
        (
            [change(TOTAL, PLAN)],
            "large-order: total over 50 instead of over 100 and plan one of free, club instead of one of free",
        ),
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


def test_a_what_if_shows_its_question_and_the_values_that_moved(tmp_path: Any) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text(
        "rules: {large-order: {conditions: {field: event.properties.total, greater_than: 100}}}\n"
        "rule_sets: {orders: {events: [purchase_completed], rules: [large-order]}}\n"
    )
    with opened(file) as engine:
        record(
            engine,
            ("ada", "identify", {"first_name": "Ada"}),
            *(("ada", "purchase_completed", {"total": total, "currency": "EUR"}) for total in (20, 60, 120)),
        )
        client = signed_in(engine)
        content = '{"conditions": {"field": "event.properties.total", "greater_than": 50}}'
        form = {
            "rule": "large-order",
            "content:json": content,
            "wait": "true",
            "save": "true",
            "_then": "/what-if/{id}",
        }
        answer = client.post("/do/what_if_run", data={**form, "_csrf": csrf_of(client, engine)})
        page = html.unescape(client.get(answer.headers["location"]).text)
    assert "<h1>large-order: total over 50 instead of over 100</h1>" in page
    assert '<dt>total over</dt><dd><span class="was">100</span> → <strong>50</strong>' in page
    assert "NoMatch" not in page
    assert ">Ada</a>" in page
