"""Lists say what happened before what Threadline noted of it, and small data in words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.console.stage import close_up, opened, record, signed_in
from threadline.app import catalogue
from threadline.capabilities.ask.analytics.operations.today import Today
from threadline.surfaces.console.event_types import typed_members
from threadline.surfaces.console.frame import environment
from threadline.surfaces.console.sentences import event_words

SEGMENT = "segments: {professionals: {when: {field: traits.plan, equals: pro}}}"


def test_events_fold_what_threadline_noted_and_a_search_lists_it(tmp_path: Path) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text(SEGMENT)
    with opened(file) as engine:
        record(engine, *((who, "identify", {"plan": "pro"}) for who in ("ada", "bob", "cleo")))
        client = signed_in(engine)
        listed = close_up(client.get("/events").text)
        entered = "Entered the segment professionals"
        rows = re.findall(r'<a class="strong" href="/events/[^"]*">([^<]*)', listed)
        assert [row.strip() for row in rows] == ["Identify"] * 3
        assert listed.count(entered) == 3
        searched = close_up(client.get("/events?type=segment_entered").text)
        assert len(re.findall(rf'<a class="strong" href="/events/[^"]*">{entered}', searched)) == 3


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"broadcast": "autumn-letter"}, "Broadcast autumn-letter"),
        ({"first_name": "Ada", "age": None, "old": True}, "First name Ada · Old yes"),
        ({}, "–"),
        ({"lines": [1]}, '{"lines": [1]}'),
        ({"inside": {"deep": 1}}, "Inside Deep 1"),
        ({"inside": {"deep": {"deeper": 1}}}, "Inside Deep Deeper 1"),
        ({"model": 0.23511986189725542}, "Model 0.2351"),
        (["a", "b"], "a, b"),
    ],
)
def test_a_small_mapping_of_plain_values_is_shown_in_words(given: object, shown: str) -> None:
    template = '{% from "parts.html" import value %}{{ value(given) }}'
    markup = environment(event_words(catalogue())).render_str(template, given=given)
    text = " ".join(re.sub("<[^>]*>", " ", markup).replace("&quot;", '"').split())
    assert text == shown


def test_the_types_of_today_are_known_as_types_so_that_they_have_the_names_of_every_page() -> None:
    assert "type" in typed_members(Today, "")
