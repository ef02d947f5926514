"""Usual times: which instants each is, in a zone, and that every list with a from and an until offers them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.console.stage import elements, opened, signed_in
from threadline.kernel.calendar import local_day, zone_names
from threadline.kernel.time import DAY, format_time, parse_time
from threadline.surfaces.console.presets import presets
from threadline.surfaces.console.screens import screens_of
from threadline.surfaces.console.screens.analytics import GROUP

YEARS = st.integers(parse_time("2001-01-01"), parse_time("2099-12-31"))


def test_presets_of_a_morning_in_march_are_days_of_the_zone() -> None:
    made = {each.label: each[1:] for each in presets(parse_time("2026-03-01T12:00:00Z"), "Europe/Berlin")}
    assert made == {
        "Today": ("2026-02-28T23:00:00Z", ""),
        "Yesterday": ("2026-02-27T23:00:00Z", "2026-02-28T23:00:00Z"),
        "7 days": ("2026-02-22T23:00:00Z", ""),
        "30 days": ("2026-01-30T23:00:00Z", ""),
        "90 days": ("2025-12-01T23:00:00Z", ""),
        "This month": ("2026-02-28T23:00:00Z", ""),
        "Last month": ("2026-01-31T23:00:00Z", "2026-02-28T23:00:00Z"),
        "All": ("", ""),
    }


@given(now=YEARS, zone=st.sampled_from(sorted(zone_names().values())))
def test_presets_in_any_zone_begin_days_and_lie_in_the_past(now: int, zone: str) -> None:
    made = {each.label: each for each in presets(now, zone)}
    ends = [parse_time(text) for each in made.values() for text in each[1:] if text]
    assert all(at <= now for at in ends)
    # A zone that was moved over the date line has left a day out: the days before and after it touch.
    assert all(local_day(zone, at - 1) < local_day(zone, at) for at in ends)
    assert local_day(zone, parse_time(made["Today"].start)) == local_day(zone, now)
    assert made["Yesterday"].stop == made["Today"].start
    assert made["Last month"].stop == made["This month"].start
    assert parse_time(made["This month"].start) - parse_time(made["Last month"].start) >= 27 * DAY


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    file = tmp_path_factory.mktemp("presets") / "definitions.yaml"
    file.write_text("timezone: Europe/Berlin\n")
    with opened(file) as engine:
        client = signed_in(engine)
        paths = [screen.path for screen in screens_of(engine.catalogue) if "{" not in screen.path]
        asked = [each.name for each in engine.catalogue.operations if each.name.startswith(GROUP)]
        paths += [f"/analytics/{name.removeprefix(GROUP)}" for name in asked]
        yield {path: client.get(path, params={"type": "signed_up"}).text for path in paths}


def test_every_list_with_a_from_and_an_until_offers_the_usual_times(pages: dict[str, str]) -> None:
    asked = {path for path, markup in pages.items() if _has_times(markup)}
    assert {"/events", "/audit", "/mails", "/analytics/trend"} <= asked
    assert {path for path in asked if 'aria-label="Usual times"' not in pages[path]} == set()


def _has_times(markup: str) -> bool:
    """Whether a form that asks, and changes nothing, has a field for each end of a range of time."""
    names, method = set[str](), ""
    for tag, attributes in elements(markup):
        method = str(attributes.get("method")) if tag == "form" else method
        names |= {str(attributes.get("name"))} if tag == "input" and method == "get" else set()
    return {"start", "stop"} <= names


def test_usual_times_keep_what_else_is_asked_for_and_mark_the_chosen_one(pages: dict[str, str]) -> None:
    links = [dict(attributes) for tag, attributes in elements(pages["/events"]) if tag == "a"]
    today = next(each for each in links if "start=" in str(each.get("href")))
    assert "type=signed_up" in str(today["href"])
    chosen = [each for each in links if each.get("aria-current") == "true"]
    assert [str(each["href"]) for each in chosen] == ["/events?type=signed_up"]
    assert format_time(parse_time("2026-02-28T23:00:00Z"))[:19].replace(":", "%3A") in str(today["href"])


def test_a_usual_time_alone_asks_no_question_that_needs_a_choice_first() -> None:
    with opened() as engine:
        page = signed_in(engine).get("/analytics/experiment?start=2026-01-01T00:00:00Z").text
        assert "part=answer" not in page
        page = signed_in(engine).get("/analytics/experiment?journey=welcome&start=2026-01-01T00:00:00Z").text
        assert "part=answer" in page
