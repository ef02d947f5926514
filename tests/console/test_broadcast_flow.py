"""A marketer's broadcast in a real browser: from the empty form to sent mail without a file, with hostile texts too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.server import Server
from tests.console.browser import serious
from tests.console.flows import Visit, post, running

DEFINITIONS = """
segments:
  pros: {when: {field: traits.plan, equals: pro}}
mail:
  senders: {shop: {from: shop@shop.example}}
  templates:
    sale:
      subject: "{{ percent }} % off"
      html: "<p>Hello, {{ percent }} % off until Sunday.</p>"
      variables: {percent: {default: 10, description: How much cheaper it is.}}
    note: {subject: A note, text: "{{ until }}", variables: {until: {}}}
settings: {public_url: "https://shop.example"}
"""
PEOPLE = 12
"""Of each form factor's own plan; one of four has no address."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("broadcast"), DEFINITIONS) as served:
        people = [
            {"plan": "pro", "city": "Rome" if n % 2 else "Oslo", **({"email": f"p{n}@example.com"} if n % 4 else {})}
            for n in range(PEOPLE)
        ]
        events = [
            {"type": "identify", "key": f"i{n}", "identifiers": {"user_id": f"p{n}"}, "properties": traits}
            for n, traits in enumerate(people)
        ]
        post(served.url, "/v1/events", {"events": events})
        yield served


def _settled(page: Any) -> None:
    page.wait_for_timeout(350)  # what was typed is sent after a pause
    page.wait_for_selector("[aria-busy=true]", state="detached")


def _fits(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1_440, "light"), (390, "dark")])
def test_a_broadcast_is_written_counted_tested_and_sent_without_a_file(
    browser: Any, server: Server, width: int, scheme: str
) -> None:
    visit = Visit(browser, server.url, width, scheme)
    page, name = visit.page, f"spring-{scheme}"
    visit.open("/broadcasts")
    page.click("text=New broadcast" if page.locator("text=New broadcast").count() else "text=Write the first one")
    page.wait_for_selector("#count .numbers")
    people, reached = map(int, page.locator("#count .numbers dd").all_inner_texts())
    assert people - reached == PEOPLE // 4
    assert f"no address {PEOPLE // 4}" in " ".join(page.inner_text("#count").split())
    page.fill("[name=id]", name)
    page.select_option("[name=template]", "sale")
    _settled(page)
    page.select_option("[name='audience.segment']", "pros")
    page.fill("[name='_when.0.field']", "traits.city")
    page.keyboard.press("Tab")
    _settled(page)
    page.fill("[name='_when.0.value']", "Rome")
    page.fill("[name=subject]", "Until Sunday: {{ percent }} %")
    page.fill("[name='variables.percent:json']", "25")
    _settled(page)
    page.wait_for_selector("#checked dd:has-text('Until Sunday: 25 %')")
    assert page.locator("#count .numbers dd").all_inner_texts() == ["6", "6"]
    page.locator("#checked iframe").scroll_into_view_if_needed()
    assert "25 % off until Sunday" in page.frame_locator("#checked iframe").locator("p").inner_text()
    # Variants: two at once, because one alone would be sent to everybody, and each can be removed.
    page.click("button:has-text('Test two variants')")
    _settled(page)
    page.fill("[name='arms.0.subject']", "Only today")
    page.click("button:has-text('Add a variant')")
    _settled(page)
    assert page.locator(".variant").count() == 3
    assert page.input_value("[name='arms.0.subject']") == "Only today"
    page.click("[aria-label='Remove variant 3']")
    _settled(page)
    assert page.locator(".variant").count() == 2
    page.fill("[name=_holdout]", "10")
    page.select_option("[name=_send]", "own")
    _settled(page)
    assert page.locator("[name=per_hour]").count() == 0
    page.select_option("[name=_send]", "now")
    _settled(page)
    assert page.locator("[name=at]").count() == 0
    assert "45.0%" in page.inner_text("#count")
    assert _fits(page)
    assert serious(page) == []
    page.click("button:has-text('Save as a draft')")
    page.wait_for_url(re.compile(f"/broadcasts/{name}$"))
    page.wait_for_selector("#preview .numbers")
    assert _fits(page)
    assert serious(page) == []
    # A test, which no count has.
    page.fill("[name=address]", "tester@example.com")
    page.click("button:has-text('Send the test')")
    page.wait_for_selector(".toast")
    # The draft is changed.
    page.click("a:has-text('Edit')")
    page.wait_for_selector("#count .numbers")
    assert page.input_value("[name=subject]") == "Until Sunday: {{ percent }} %"
    assert page.locator(".variant").count() == 2
    page.fill("[name=_holdout]", "")
    page.click("button:has-text('Save the draft')")
    page.wait_for_url(re.compile(f"/broadcasts/{name}$"))
    # The confirmation names the number.
    page.click("button:has-text('Send it to 6 people')")
    assert page.locator("dialog p").first.inner_text() == "Send it to 6 people now?"
    page.keyboard.press("Tab")
    page.locator("dialog button[value=yes]").press("Enter")
    page.wait_for_selector("#state .badge:has-text('done')", timeout=60_000)
    for _ in range(40):
        visit.open(f"/broadcasts/{name}")
        page.wait_for_selector("#results table")
        row = page.locator("#results tr:has(th:text-is('all variants')) td").first.inner_text()
        if row.startswith("6"):
            break
        page.wait_for_timeout(250)
    assert row.startswith("6")
    assert _fits(page)
    assert serious(page) == []
    visit.open("/inbox")
    tests = page.locator("text=[Test]").all_inner_texts()
    assert len([text for text in tests if "tester" in text or "[Test]" in text]) >= 2
    # What was sent is the beginning of the next one.
    visit.open(f"/broadcasts/{name}")
    page.click("a:has-text('Duplicate')")
    page.wait_for_selector("#count .numbers")
    assert page.input_value("[name=id]") == ""
    assert page.input_value("[name='_when.0.value']") == "Rome"
    visit.open("/broadcasts")
    assert _fits(page)
    assert page.evaluate("[...document.querySelectorAll('.table')].every((e) => e.scrollWidth <= e.clientWidth + 1)")
    assert visit.faults == []
    page.context.close()
