"""analytics.js in a real browser, unmodified, told no more than where to send and not to download its settings."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Set
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from tests.chromium import launched
from tests.clients.calls import GROUP, ORDER, ORDERED_AT, TRAITS, Call, Who, check_event, includes
from tests.clients.network import LOSE, PASS, REFUSE, RESET, Network
from tests.clients.server import Server, wait_until
from threadline.kernel.identity import MERGED

pytestmark = pytest.mark.browser

HERE = Path(__file__).parent
LIBRARY = HERE / "node_modules" / "@segment" / "analytics-next" / "dist" / "umd"
RUDDER = HERE / "node_modules" / "@rudderstack" / "analytics-js" / "dist" / "npm" / "modern" / "bundled" / "umd"
CUSTOMERIO = HERE / "node_modules" / "@customerio" / "cdp-analytics-browser" / "dist" / "umd"
HIGHTOUCH = HERE / "node_modules" / "@ht-sdks" / "events-sdk-js-browser" / "dist" / "umd"
FOLDERS = {
    "/analytics": LIBRARY,
    "/rudder": RUDDER,
    "/customerio": CUSTOMERIO,
    "/hightouch": HIGHTOUCH,
    "/page": HERE / "page",
}
BATCHING = {"strategy": "batching", "config": {"size": 3, "timeout": 300}}
NEVER = {"strategy": "batching", "config": {"size": 1_000, "timeout": 600_000}}
"""Sends nothing by itself: what arrives was sent because the page went away."""


class Pages(SimpleHTTPRequestHandler):
    """Serves the shop's pages, and the libraries as they are published."""

    def translate_path(self, path: str) -> str:
        folder, _, name = unquote(path.partition("?")[0]).rpartition("/")
        return str(FOLDERS[folder] / Path(name).name)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    serving = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield f"http://localhost:{serving.server_address[1]}"
    serving.shutdown()
    serving.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not all(folder.is_dir() for folder in FOLDERS.values()):
        pytest.skip("the browser clients are missing; `make setup` installs them with the node clients")
    # A library that asked any other host for anything would not be told "no", but would find nobody.
    with launched("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1") as made:
        yield made


class Shop:
    """A visitor's tab on the shop's page."""

    def __init__(self, tab: Any, address: str) -> None:
        self.tab = tab
        self.address = address
        self.asked: list[str] = []
        self.problems: list[str] = []
        tab.on("request", lambda request: self.asked.append(request.url))
        tab.on("pageerror", lambda error: self.problems.append(str(error)))
        self.open()

    def open(self) -> None:
        # From another page, so that this is no jump within the same one.
        self.tab.goto("about:blank")
        self.tab.goto(self.address)

    def leave(self) -> None:
        self.tab.goto("about:blank")

    def call(self, method: str, *arguments: Any) -> Call:
        """Make a call and wait until the library holds it for sent; gives the message as it holds it."""
        script = "async ([method, given]) => (await analytics[method](...given)).event"
        message: Call = self.tab.evaluate(script, [method, list(arguments)])
        return message

    def call_in_passing(self, method: str, *arguments: Any) -> None:
        """Make a call and wait for nothing."""
        script = "async ([method, given]) => { await analytics.ready(); analytics[method](...given) }"
        self.tab.evaluate(script, [method, list(arguments)])

    @property
    def anonymous(self) -> str:
        return str(self.tab.evaluate("async () => (await analytics.ready(), analytics.instance.user().anonymousId())"))


@pytest.fixture
def visit(browser: Any, origin: str, network: Network, server: Server) -> Iterator[Any]:
    """Opens the shop as a visitor who never was there."""
    contexts = []

    def open_shop(strategy: dict[str, Any] | None = None) -> Shop:
        given = {"writeKey": server.write_key, "apiHost": f"{network.host}/v1"}
        given |= {"strategy": strategy} if strategy else {}
        contexts.append(browser.new_context())
        return Shop(contexts[-1].new_page(), f"{origin}/page/index.html#{quote(json.dumps(given))}")

    yield open_shop
    for context in contexts:
        context.close()


def browse(shop: Shop, who: Who) -> list[tuple[Call, Call]]:
    """Every call that a page makes, as (what was said, what the library made of it)."""
    traits, plain = {**TRAITS, "email": who.email}, {"sku": "45790-32"}
    said: list[tuple[Call, tuple[Any, ...]]] = [
        ({"type": "page", "name": "Home", "category": "Shop", "properties": {"tab": 2}}, ("Shop", "Home", {"tab": 2})),
        ({"type": "track", "event": "Product Viewed", "properties": plain}, ("Product Viewed", plain)),
        ({"type": "identify", "userId": who.user, "traits": traits}, (who.user, traits)),
        (
            {
                "type": "track",
                "userId": who.user,
                "event": "Order Completed",
                "properties": ORDER,
                "timestamp": ORDERED_AT,
            },
            ("Order Completed", ORDER, {"timestamp": ORDERED_AT}),
        ),
        ({"type": "screen", "userId": who.user, "name": "Welcome", "properties": plain}, (None, "Welcome", plain)),
        ({"type": "group", "userId": who.user, "groupId": "acme", "traits": GROUP}, ("acme", GROUP)),
        ({"type": "alias", "userId": who.user, "previousId": who.before}, (who.user, who.before)),
    ]
    return [(call, shop.call(call["type"], *given)) for call, given in said]


def changed_on_the_way(network: Network) -> set[str]:
    """The ids of messages that the library sent twice as two: a repeated one names whoever has signed in meanwhile."""
    named: dict[str, set[str | None]] = {}
    for request in network.taken:
        said = request.json()
        for each in said.get("batch", [said]):
            named.setdefault(each["messageId"], set()).add(each.get("userId"))
    return {id for id, users in named.items() if len(users) > 1}


def check_visit(
    server: Server, who: Who, anonymous: str, calls: list[tuple[Call, Call]], changed: Set[str] = frozenset()
) -> None:
    def all_there() -> bool:
        return sum(event["source_type"] == "external" for event in server.events(f"user_id:{who.user}")) >= len(calls)

    wait_until(all_there, "every call is in the thread")
    person = server.person(f"user_id:{who.user}")
    events = {event["key"]: event for event in server.events(f"user_id:{who.user}") if event["type"] != MERGED}
    assert sorted(events) == sorted(message["messageId"] for _, message in calls)
    for said, message in calls:
        event = events[message["messageId"]]
        made = message.get("traits" if said["type"] in ("identify", "group") else "properties", {})
        # The library adds what it knows of the page; `made` is all of it, and holds what was said.
        assert includes(made, said.get("traits", said.get("properties", {})))
        check_event(event, {**said, "anonymousId": anonymous, **_body(said, made)}, "analytics.js")
        assert event["context"]["page"]["title"] == "A shop"
        told = {"accepted", "conflict"} if message["messageId"] in changed else {"accepted"}
        assert server.message(message["messageId"])["outcome"] in told
    names = {("user_id", who.user), ("anonymous_id", anonymous), ("anonymous_id", who.before), ("email", who.email)}
    assert {(each["kind"], each["value"]) for each in person["identifiers"] if each["linked"]} == names
    assert server.person(f"anonymous_id:{anonymous}")["id"] == person["id"]
    assert person["traits"] == {**TRAITS, "email": who.email}
    assert person["groups"] == {"acme": GROUP}
    refused = [*server.rejected(who.user), *server.rejected(anonymous)]
    assert {entry["payload"]["key"] for entry in refused if entry["code"] == "conflict"} <= changed
    assert [entry for entry in refused if entry["code"] != "conflict"] == []


def _body(said: Call, made: Call) -> Call:
    field = "traits" if "traits" in said else "properties"
    return {field: made} if field in said else {}


@pytest.mark.parametrize("strategy", [None, BATCHING], ids=["standard", "batching"])
def test_every_call(strategy: dict[str, Any] | None, server: Server, network: Network, visit: Any, who: Who) -> None:
    shop = visit(strategy)
    calls = browse(shop, who)
    check_visit(server, who, shop.anonymous, calls)
    paths = [request.path for request in network.taken]
    if strategy is None:
        assert paths == ["/v1/p", "/v1/t", "/v1/i", "/v1/t", "/v1/s", "/v1/g", "/v1/a"]
    else:
        assert set(paths) == {"/v1/b"}
        # How many each holds hangs on the pace of the machine: what is called while one is sent waits for the next.
        assert len(paths) < len(calls)
    assert {request.headers["content-type"].partition(";")[0] for request in network.taken} == {"text/plain"}
    assert {request.headers["origin"] for request in network.taken} == {shop.address.partition("/page/")[0]}
    own = (shop.address.partition("/page/")[0], network.url, "about:")
    assert [url for url in shop.asked if not url.startswith(own)] == []
    assert shop.problems == []


def test_what_is_waiting_is_sent_when_the_page_goes_away(server: Server, network: Network, visit: Any) -> None:
    shop = visit(NEVER)
    sent = [shop.call("track", "click", {"n": n})["messageId"] for n in range(7)]
    anonymous = shop.anonymous
    assert network.taken == []
    shop.leave()
    wait_until(lambda: len(server.events(f"anonymous_id:{anonymous}")) == 7, "what waited has arrived")
    assert sorted(event["key"] for event in server.events(f"anonymous_id:{anonymous}")) == sorted(sent)
    assert [request.path for request in network.taken] == ["/v1/b"]


def test_a_call_made_in_leaving_is_sent(server: Server, visit: Any) -> None:
    shop = visit({"config": {"keepalive": True}})
    anonymous = shop.anonymous
    # It has to have left the library, which takes a turn of the browser's loop; no answer is waited for.
    with shop.tab.expect_request("**/v1/t"):
        shop.call_in_passing("track", "left", {"to": "elsewhere"})
    shop.leave()
    wait_until(lambda: len(server.events(f"anonymous_id:{anonymous}")) == 1, "the last call has arrived")
    (event,) = server.events(f"anonymous_id:{anonymous}")
    assert (event["type"], event["properties"]) == ("left", {"to": "elsewhere"})


@pytest.mark.parametrize("strategy", [None, BATCHING], ids=["standard", "batching"])
def test_a_bad_network_loses_and_doubles_nothing(
    strategy: dict[str, Any] | None, server: Server, network: Network, visit: Any, who: Who
) -> None:
    shop = visit(strategy)
    network.plan([REFUSE, PASS, LOSE, RESET, LOSE] if strategy is None else [REFUSE, LOSE, RESET])
    calls = browse(shop, who)
    # Only then has it sent again what it did not know to be recorded.
    wait_until(lambda: {message["messageId"] for _, message in calls} <= network.answered, "it has all its answers")
    check_visit(server, who, shop.anonymous, calls, changed_on_the_way(network))
    assert {REFUSE, LOSE, RESET} <= {request.fate for request in network.taken}


def test_what_could_not_be_sent_is_sent_by_the_next_page(server: Server, network: Network, visit: Any) -> None:
    shop = visit()
    anonymous = shop.anonymous
    # Without a network the library waits with all it has. With a bad one it would be trying something at any moment,
    # and what it is trying when the page goes away it does not keep.
    shop.tab.context.set_offline(True)
    for n in range(3):
        shop.call("track", "click", {"n": n})
    shop.leave()
    shop.tab.context.set_offline(False)
    assert network.taken == []
    shop.open()
    wait_until(lambda: len(server.events(f"anonymous_id:{anonymous}")) >= 3, "what was kept has arrived")
    assert shop.anonymous == anonymous
    events = server.events(f"anonymous_id:{anonymous}")
    assert sorted(event["properties"]["n"] for event in events) == [0, 1, 2]
