"""Browser clients of RudderStack, Segment and others as they are published, told no more than where the server is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.clients.calls import TRAITS, Who
from tests.clients.server import Server, wait_until
from tests.clients.test_browser import browser, origin

pytestmark = pytest.mark.browser
__all__ = ["browser", "origin"]

Open = Callable[..., Any]


@pytest.fixture
def visit(browser: Any, origin: str, server: Server) -> Iterator[Open]:
    """Opens a page of the shop; the tab notes the requests to the server, and the page's errors."""
    contexts = []

    def open_page(name: str, **options: Any) -> Any:
        contexts.append(browser.new_context())
        tab = contexts[-1].new_page()
        tab.sent, tab.problems, tab.strangers = [], [], []
        own = (origin, "about:")

        def note(request: Any) -> None:
            if request.url.startswith(server.url):
                tab.sent.append((request.method, request.url.removeprefix(server.url), request.resource_type))
            elif not request.url.startswith(own):
                tab.strangers.append(request.url)

        tab.on("request", note)
        tab.on("pageerror", lambda error: tab.problems.append(str(error)))
        tab.on("console", lambda line: tab.problems.append(line.text) if line.type == "error" else None)
        given = {"writeKey": server.write_key, "url": server.url, "options": options}
        tab.goto(f"{origin}/page/{name}.html#{quote(json.dumps(given))}")
        return tab

    yield open_page
    for context in contexts:
        context.close()


def check(server: Server, who: Who, tab: Any) -> None:
    """What the page said is all there, of one person, and the page asked nobody else."""

    def there() -> bool:
        return {event["type"] for event in server.events(f"user_id:{who.user}")} >= {"page", "identify", "click"}

    wait_until(there, "every call is in the thread")
    events = {event["type"]: event for event in server.events(f"user_id:{who.user}")}
    assert events["click"]["properties"] == {"n": 1, "note": "Zoë"}
    assert not set(events["click"].get("marks", [])) & {"clamped", "time_ignored"}
    assert server.person(f"user_id:{who.user}")["traits"] == {**TRAITS, "email": who.email}
    assert server.rejected(who.user) == []
    tab.evaluate("0")  # what the browser has noted is handed over while it is asked for something
    assert (tab.problems, tab.strangers) == ([], [])


SAY = """([user, traits]) => {
  analytics.page('Home')
  analytics.identify(user, traits)
  analytics.track('click', { n: 1, note: 'Zoë' })
}"""


@pytest.mark.parametrize(
    ("options", "path", "kind"),
    [
        ({}, "/v1/track", "xhr"),
        ({"queueOptions": {"batch": {"enabled": True, "maxItems": 3}}}, "/v1/batch", "xhr"),
        ({"useBeacon": True, "beaconQueueOptions": {"flushQueueInterval": 100}}, "/beacon/v1/batch", "ping"),
    ],
    ids=["xhr", "batches", "beacon"],
)
def test_rudderstack_sends_what_a_page_says(
    options: dict[str, Any], path: str, kind: str, server: Server, visit: Open, who: Who
) -> None:
    tab = visit("rudder", **options)
    tab.evaluate(SAY, [who.user, {**TRAITS, "email": who.email}])
    check(server, who, tab)
    sent = {(method, url.partition("?")[0], kind) for method, url, kind in tab.sent}
    assert {("GET", "/sourceConfig/", "xhr"), ("POST", path, kind)} <= sent


def test_rudderstack_sends_as_a_beacon_what_waits_when_the_page_goes_away(
    server: Server, visit: Open, who: Who
) -> None:
    tab = visit("rudder", useBeacon=True, beaconQueueOptions={"flushQueueInterval": 600_000})
    tab.evaluate("() => new Promise((done) => analytics.ready(done))")
    tab.evaluate(SAY, [who.user, {**TRAITS, "email": who.email}])
    assert [url for _, url, _ in tab.sent if url.startswith("/beacon")] == []
    tab.goto("about:blank")
    check(server, who, tab)


@pytest.mark.parametrize(
    ("library", "prefix"), [("analytics", ""), ("customerio", "/customerio")], ids=["segment", "customerio"]
)
def test_segments_client_and_customerios_find_out_from_the_cdn_url_where_to_send(
    library: str, prefix: str, server: Server, visit: Open, who: Who
) -> None:
    tab = visit("segment", library=library, prefix=prefix)
    say(tab, who)
    check(server, who, tab)
    assert tab.sent[0] == ("GET", f"{prefix}/v1/projects/{server.write_key}/settings", "fetch")
    assert {url for method, url, _ in tab.sent if method == "POST"} == {"/v1/p", "/v1/i", "/v1/t"}


def test_hightouchs_client_sends_to_the_host_that_it_is_given(server: Server, visit: Open, who: Who) -> None:
    tab = visit("segment", library="hightouch", exported="HtEvents", loader="HtEventsBrowser")
    say(tab, who)
    check(server, who, tab)
    assert {(method, url) for method, url, _ in tab.sent} == {
        ("POST", f"/v1/{kind}") for kind in ("page", "identify", "track")
    }


def say(tab: Any, who: Who) -> None:
    """Have the page say something once its library is there."""
    tab.wait_for_function("() => analytics !== undefined")
    tab.evaluate(SAY, [who.user, {**TRAITS, "email": who.email}])
