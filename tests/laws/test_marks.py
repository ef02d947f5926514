"""What is ignored is marked: each reader of an event says what it could not read, and never goes on without a word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.capabilities.asked import Asked
from tests.docs.markdown import ROOT
from threadline.kernel import event
from threadline.kernel.event import MARKS, ZONE_IGNORED, ZONE_TRANSLATED

NO_ZONES = ["CEST", "(GMT+01:00) Berlin", "Berlin", "UTC+15", "No/Where", " ", "a" * 65, 2, True, ["Europe/Rome"]]


def test_every_mark_is_in_the_list_of_marks_and_in_the_docs() -> None:
    declared = re.findall(r'^[A-Z_]+ = "(\w+)"\n"""The mark of', Path(event.__file__).read_text(), re.MULTILINE)
    assert (tuple(declared), len(declared)) == (MARKS, len(set(MARKS)))
    documented = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "marks.md").read_text(), re.MULTILINE)
    assert set(MARKS) <= set(documented)


@pytest.mark.parametrize("zone", NO_ZONES)
def test_an_event_whose_zone_cannot_be_read_is_marked_and_counts_as_one_without(zone: object) -> None:
    asked = Asked()
    marked = asked.tell("page", user_id="ann", context={"timezone": zone})
    shown = asked.ask("events_show", id=marked["id"])
    assert (shown["marks"], shown["context"]) == ([ZONE_IGNORED], {"timezone": zone})
    days = asked.ask("streaks_days", id="user_id:ann", start="2025-12-31", stop="2026-01-03")["days"]
    assert [day["date"] for day in days] == ["2026-01-01"]


@pytest.mark.parametrize("zone", ["America/los_angeles ", "UTC-8", "GMT-0800", "-08:00"])
def test_a_zone_in_any_of_its_spellings_counts_without_a_mark(zone: str) -> None:
    asked = Asked()
    receipt = asked.tell("page", user_id="ann", context={"timezone": zone})
    assert asked.ask("events_show", id=receipt["id"]).get("marks", []) == []
    days = asked.ask("streaks_days", id="user_id:ann", start="2025-12-31", stop="2026-01-03")["days"]
    assert [day["date"] for day in days] == ["2025-12-31"]


@pytest.mark.parametrize("zone", ["Pacific Standard Time", " pacific standard time"])
def test_an_event_with_a_zone_of_windows_is_marked_and_names_the_zone_that_it_counts_in(zone: str) -> None:
    asked = Asked()
    receipt = asked.tell("page", user_id="ann", context={"timezone": zone})
    shown = asked.ask("events_show", id=receipt["id"])
    assert (shown["marks"], shown["context"]) == ([ZONE_TRANSLATED], {"timezone": zone})
    assert shown["wire"]["zone"] == "America/Los_Angeles"
    days = asked.ask("streaks_days", id="user_id:ann", start="2025-12-31", stop="2026-01-03")["days"]
    assert [day["date"] for day in days] == ["2025-12-31"]


@pytest.mark.parametrize("context", [{}, {"timezone": None}, {"timezone": ""}])
def test_an_event_that_names_no_zone_has_no_mark(context: dict[str, object]) -> None:
    asked = Asked()
    receipt = asked.tell("page", user_id="ann", context=context)
    assert asked.ask("events_show", id=receipt["id"]).get("marks", []) == []
