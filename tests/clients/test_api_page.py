"""The page of the API in a real browser: what its forms send is answered on the page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.chromium import launched
from tests.clients.server import Server

pytestmark = pytest.mark.browser


@pytest.fixture
def tab(server: Server) -> Iterator[Any]:
    with launched() as browser:
        made = browser.new_page()
        made.problems = []
        made.on("pageerror", lambda error: made.problems.append(str(error)))
        made.goto(f"{server.url}/docs")
        yield made
        assert made.problems == []


def sent(tab: Any, name: str, **values: str) -> tuple[str, Any]:
    """The status and the answer of a form, filled in with these values in place of its example."""
    form = tab.locator(f"h3#{name} ~ details:has(form)").first
    form.locator("summary").click()
    for field, value in values.items():
        form.locator("textarea" if field == "body" else f"input[name={field}]").fill(value)
    form.locator("button").click()
    output = form.locator("output:not(:empty)").inner_text()
    status, _, answer = output.partition("\n")
    return status, json.loads(answer)


def test_an_event_is_recorded_and_its_person_read_by_the_forms_of_the_page(tab: Any, server: Server) -> None:
    assert sent(tab, "person", id="user_id:form")[0].startswith("401")
    tab.reload()
    tab.locator("#token").fill(server.token)
    event = {"type": "click", "identifiers": {"user_id": "form / ä"}, "key": "form-1"}
    status, answer = sent(tab, "record", body=json.dumps({"events": [event]}))
    assert (status.split()[0], answer["accepted"]) == ("200", 1)
    status, answer = sent(tab, "events_of", id="user_id:form / ä", type="", order="asc")
    assert (status.split()[0], [each["type"] for each in answer["events"]]) == ("200", ["click"])
