"""The tables in the documentation of the wire formats are true: each row is tried."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.wire.segment_cases import one, send, track
from tests.wire.test_cloudevents import BAD as BAD_CLOUDEVENTS
from tests.wire.test_cloudevents import ce
from tests.wire.test_cloudevents import one as one_cloudevent
from tests.wire.test_segment_hostile import BAD as BAD_SEGMENT
from threadline.kernel.event import Event
from threadline.kernel.time import format_time, parse_time
from threadline.wire.rejection import CODES
from threadline.wire.segment import CATALOGUE, SEMANTIC

DOCS = Path(__file__).parents[2] / "docs"


def table(page: str, head: str) -> list[list[str]]:
    """The rows of the table whose first line is ``head``, cell by cell, without code type."""
    lines = (DOCS / page).read_text("utf-8").splitlines()
    rows = []
    for line in lines[lines.index(head) + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([re.sub(r"^`([^`]*)`$", r"\1", cell.strip()) for cell in line.strip("|").split("|")])
    assert rows
    return rows


def codes(page: str) -> set[str]:
    """The codes that a page of a format lists; errors.md has their meanings, generated."""
    listed = (DOCS / page).read_text("utf-8").partition("This format gives:\n\n")[2].partition("\n\n")[0]
    return set(re.findall(r"`(\w+)`", listed))


@pytest.mark.parametrize(("page", "tried"), [("segment.md", BAD_SEGMENT), ("cloudevents.md", BAD_CLOUDEVENTS)])
def test_the_codes_of_rejections_are_those_that_the_format_gives(page: str, tried: dict[str, object]) -> None:
    assert codes(page) == set(tried)


def test_every_code_but_those_of_tables_and_native_events_stands_on_a_page() -> None:
    assert set(CODES) - codes("segment.md") - codes("cloudevents.md") == {
        "invalid_key",
        "invalid_value",
        "missing_column",
        "payload_missing",
    }


def test_the_names_of_track_calls() -> None:
    rows = table("segment.md", "| track call | type |")
    assert [(name, one(track(event=name)).type) for name, _ in rows] == [(name, type_) for name, type_ in rows]
    own = {name.replace("_", " ").title() for name in CATALOGUE}
    assert set(SEMANTIC) == {name for name, _ in rows} | own


@pytest.mark.parametrize(
    ("stamp", "sent", "occurred", "marks"), table("segment.md", "| timestamp | sentAt | occurred at | marks |")
)
def test_when_it_occurred(stamp: str, sent: str, occurred: str, marks: str) -> None:
    at = {name: f"2026-03-01T{value}Z" for name, value in (("timestamp", stamp), ("sentAt", sent)) if value}
    (result,) = send({"batch": [track(**at)]}, received_at=parse_time("2026-03-01T12:00:00Z")).results
    assert isinstance(result, Event)
    assert re.sub(r"\.0+Z$", "", format_time(result.occurred_at)) == f"2026-03-01T{occurred}"
    assert result.marks == tuple(marks.split())


@pytest.mark.parametrize(
    ("attribute", "example", "identifier"), table("cloudevents.md", "| attribute | example | identifier |")
)
def test_whose_cloudevent_it_is(attribute: str, example: str, identifier: str) -> None:
    event = one_cloudevent(ce(**{"subject": ..., attribute: example}))
    assert [str(found) for found in event.identifiers] == [identifier]
