"""Flows in a real browser: hostile texts everywhere, a person found by keyboard, a live event, forms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.server import Server
from tests.console.flows import Visit, post, running
from tests.console.stage import HOSTILE
from threadline.surfaces.console.screens import screens

DEFINITIONS = """
segments:
  good_customers: {when: {field: features.monetary_total, greater_than: 20}}
rules:
  large-order: {conditions: {field: event.properties.total, greater_than: 100}}
rule_sets:
  orders: {events: [purchase_completed], rules: [large-order]}
leaderboards:
  spenders: {score: features.monetary_total, periods: [all]}
"""
DETAILS = {
    "person": "/people/ada",
    "segment": "/segments/good_customers",
    "rule": "/rules/large-order",
    "feature": "/features/monetary_total",
    "leaderboard": "/leaderboards/spenders",
    "analysis": "/analytics/trend?per=day",
}
"""One of each screen that is about something; others are reached where there is something."""


def _events() -> list[dict[str, Any]]:
    first = [
        {"type": "identify", "key": "i", "identifiers": {"user_id": "ada"}, "properties": {"first_name": "Ada"}},
        {
            "type": "purchase_completed",
            "key": "p",
            "identifiers": {"user_id": "ada"},
            "properties": {"total": 129.5, "currency": "EUR"},
        },
    ]
    hostile = [
        {
            "type": "page_viewed",
            "key": f"h{n}",
            "identifiers": {"user_id": f"hostile-{n % 5}"},
            "properties": {"title": text},
            "context": {"note": text},
        }
        for n, text in enumerate(HOSTILE)
    ]
    named = [
        {
            "type": "identify",
            "key": f"n{n}",
            "identifiers": {"user_id": f"hostile-{n % 5}"},
            "properties": {"first_name": text, "nickname": text},
        }
        for n, text in enumerate(HOSTILE)
        if text.strip()
    ]
    return [*first, *hostile, *named]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("console"), DEFINITIONS) as served:
        post(served.url, "/v1/events", {"events": _events()})
        yield served


def paths() -> list[str]:
    lists = [each.path for each in screens() if "{" not in each.path]
    tabs = ("memory", "features", "activity", "segments", "reach", "decisions", "identity", "privacy")
    return [*lists, *DETAILS.values(), *(f"/people/ada?tab={tab}" for tab in tabs), "/people/hostile-1"]


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1_600, "light"), (380, "dark")])
def test_hostile_texts_do_nothing_on_any_screen(browser: Any, server: Server, width: int, scheme: str) -> None:
    visit = Visit(browser, server.url, width, scheme)
    for path in paths():
        visit.open(path)
        wider = visit.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wider <= 0, f"{path} is {wider} pixels wider than a screen of {width}"
        assert visit.page.locator("h1").count() == 1, path
    assert visit.faults == []
    visit.page.context.close()


@pytest.mark.browser
def test_a_person_is_found_by_keyboard_alone(browser: Any, server: Server) -> None:
    visit = Visit(browser, server.url)
    page = visit.page
    page.keyboard.press("Control+k")
    page.wait_for_selector("dialog[open] input")
    page.keyboard.type("ada")
    page.wait_for_selector("dialog[open] li:first-child .kind:has-text('person')")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/people/"))
    assert page.locator("h1").inner_text() == "Ada"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert visit.faults == []
    page.context.close()


@pytest.mark.browser
def test_enter_in_the_palette_waits_for_the_answer_to_what_was_typed(browser: Any, server: Server) -> None:
    visit = Visit(browser, server.url)
    page = visit.page
    page.keyboard.press("Control+k")
    page.wait_for_selector("dialog[open] li a")
    waiting: list[Any] = []

    def hold_back(route: Any) -> None:
        waiting.append(route)

    page.route(re.compile("/find"), hold_back)
    page.keyboard.type("ada")
    page.keyboard.press("Enter")
    while not any("q=ada" in route.request.url for route in waiting):
        page.wait_for_timeout(20)
    assert page.locator("dialog[open]").count() == 1
    for route in waiting:
        route.continue_()
    page.wait_for_url(re.compile("/people/"))
    assert page.locator("h1").inner_text() == "Ada"
    assert visit.faults == []
    page.context.close()


@pytest.mark.browser
@pytest.mark.parametrize("width", [1_440, 390])
def test_the_list_of_people_is_narrowed_shaped_and_saved_by_keyboard_alone(
    browser: Any, server: Server, width: int
) -> None:
    visit = Visit(browser, server.url, width, accept_downloads=True)
    page = visit.page
    visit.open("/people")
    page.keyboard.press("/")
    page.keyboard.type("aDa")
    page.wait_for_selector("[role=status]:has-text('1 person')")
    page.locator("summary:has-text('Columns')").press("Enter")
    page.locator("input[value='features.monetary_total']").press("Space")
    page.wait_for_selector("th:has-text('Monetary total')")
    page.wait_for_selector("td:has-text('129.50')")
    with page.expect_download() as saved:
        page.locator("a:has-text('CSV')").press("Enter")
    rows = saved.value.path().read_text().splitlines()
    assert saved.value.suggested_filename == "people.csv"
    assert (len(rows), "fields.features.monetary_total" in rows[0], "129.5" in rows[1]) == (2, True, True)
    # The address says all of it, so that it can be shared.
    assert {"q=aDa", "column=features.monetary_total"} <= set(page.url.partition("?")[2].split("&"))
    assert visit.faults == []
    page.context.close()


@pytest.mark.browser
def test_a_new_event_appears_while_somebody_looks(browser: Any, server: Server) -> None:
    visit = Visit(browser, server.url)
    visit.page.goto(f"{server.url}/events")
    visit.page.wait_for_selector("#now-state:has-text('live')")
    visit.page.wait_for_timeout(500)
    event = {"type": "just_now", "key": "live", "identifiers": {"user_id": "ada"}}
    post(server.url, "/v1/events", {"events": [event]})
    visit.page.wait_for_selector("#now li:has-text('just now')", timeout=60_000)
    assert visit.faults == []
    visit.page.context.close()


@pytest.mark.browser
def test_a_tag_is_added_by_a_form_and_a_wrong_one_is_told_beside_it(browser: Any, server: Server) -> None:
    visit = Visit(browser, server.url)
    visit.open("/people/ada")
    visit.page.fill("[name='add:list']", "vip")
    visit.page.click("button:has-text('Add')")
    visit.page.wait_for_selector(".badge:has-text('vip')")
    visit.open("/people/ada?tab=memory")
    visit.page.fill("[action='/do/memory_remember'] [name=type]", "Not A Type!")
    visit.page.fill("[action='/do/memory_remember'] [name=key]", "x")
    visit.page.fill("[action='/do/memory_remember'] [name=value]", "y")
    visit.page.click("button:has-text('Remember')")
    visit.page.wait_for_selector(".problem-text:not(:empty)")
    visit.page.context.close()


@pytest.mark.browser
def test_a_group_of_the_navigation_opens_by_keyboard_and_without_a_script(browser: Any, server: Server) -> None:
    visit = Visit(browser, server.url, java_script_enabled=False)
    page = visit.page
    link = page.locator("nav a:has-text('Broadcasts')")
    assert not link.is_visible()
    page.locator("nav summary:has-text('Messages')").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/broadcasts$"))
    assert link.is_visible()
    assert visit.faults == []
    page.context.close()
