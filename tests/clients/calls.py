"""What the tests have every client say, and what must then be in the thread."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tests.clients.server import Server
from threadline.kernel.identity import MERGED
from threadline.kernel.time import parse_time

Call = dict[str, Any]
"""A message in Segment's form: ``type`` names the method of the client, the rest are its arguments."""

TRAITS = {
    "plan": "pro",
    "logins": 3,
    "ratio": 0.1,
    "newsletter": False,
    "address": {"city": "São Paulo", "lines": ["Rua A", "4º andar"]},
    "motto": 'Zoë said: „so what?“ \U0001f9f5\u0000\u2028\\"',
}
ORDER = {
    "order_id": "50314b8e",
    "total": 29.33,
    "currency": "EUR",
    "products": [{"sku": "45790-32", "price": 19, "quantity": 1}, {"sku": "46493-32", "price": 5.165, "quantity": 2}],
    "largest_safe_integer": 2**53 - 1,
    "tiny": 5e-324,
    "nothing": None,
    "empty": ["", {}, []],
}
GROUP = {"name": "Acme", "employees": 12, "email": "office@acme.example"}
ORDERED_AT = "2026-01-05T10:00:00.123Z"


class Who(NamedTuple):
    """One test's own person, under all of the names that occur."""

    user: str
    anonymous: str
    before: str
    email: str

    @classmethod
    def of(cls, name: str) -> Who:
        """The person of a test."""
        # In an address a name has 64 characters at most.
        return cls(f"user {name}", f"anonymous {name}", f"before {name}", f"{name[-64:].lower()}@shop.example")

    @property
    def identifiers(self) -> set[tuple[str, str]]:
        """All names, as kind and value."""
        kinds = ("user_id", "anonymous_id", "anonymous_id", "email")
        return set(zip(kinds, self, strict=True))


def all_calls(who: Who) -> list[Call]:
    """Each call of the API, by somebody who is anonymous first, then known, then linked with an older name."""
    calls: list[Call] = [
        {
            "type": "page",
            "anonymousId": who.anonymous,
            "name": "Home",
            "category": "Shop",
            "properties": {"url": "https://shop.example/?q=ñ&r=1", "title": "Home"},
        },
        {
            "type": "track",
            "anonymousId": who.anonymous,
            "event": "Product Viewed",
            "properties": {"sku": "45790-32"},
            "context": {"ip": "192.0.2.7", "timezone": "Europe/Berlin", "page": {"path": "/p/1"}},
        },
        {"type": "screen", "anonymousId": who.before, "name": "Welcome", "properties": {"tab": 2}},
        {
            "type": "identify",
            "userId": who.user,
            "anonymousId": who.anonymous,
            "traits": {**TRAITS, "email": who.email},
        },
        {
            "type": "track",
            "userId": who.user,
            "event": "Order Completed",
            "properties": ORDER,
            "timestamp": ORDERED_AT,
            "integrations": {"All": False, "Warehouse": True},
        },
        {"type": "track", "userId": who.user, "event": "a name of its own — ümlaut", "properties": {"n": 1}},
        {"type": "group", "userId": who.user, "groupId": "acme", "traits": GROUP},
        {"type": "alias", "userId": who.user, "previousId": who.before},
    ]
    return [{**call, "messageId": f"{who.user} {index}"} for index, call in enumerate(calls)]


TYPES = {"Product Viewed": "product_viewed", "Order Completed": "purchase_completed"}
"""Names of track calls that the catalogue knows under another name."""
OBJECTS = {"page": "name", "screen": "name", "group": "groupId", "alias": "previousId"}
IDENTIFIERS = {"userId": "user_id", "anonymousId": "anonymous_id"}


REPEATS_CATEGORY = {"@segment/analytics-node", "@customerio/cdp-analytics-node", "analytics.js"}
"""Libraries that put the category of a page among its properties as well, before they send it."""


def check_event(event: dict[str, Any], call: Call, library: str) -> None:
    """The event says what the call said, property by property, and adds nothing."""
    kind = call["type"]
    said = call.get("traits", call.get("properties", {}))
    if library in REPEATS_CATEGORY and "category" in call:
        said = {**said, "category": call["category"]}
    assert event["type"] == (TYPES.get(call["event"], call["event"]) if kind == "track" else kind)
    assert event["properties"] == said, call["type"]
    assert event["context"]["library"]["name"] == library
    assert event.get("object_ref", "") == call.get(OBJECTS.get(kind, ""), "")
    assert includes(event["context"], call.get("context", {}))
    names = {(each["kind"], each["value"]) for each in event["identifiers"]}
    assert {(IDENTIFIERS[name], call[name]) for name in IDENTIFIERS if name in call} <= names
    kept = event["wire"]["segment"]
    for field in ("category", "integrations"):
        assert field not in call or kept.get(field) == call[field]
    if "timestamp" in call:
        assert parse_time(event["original_time"]) == parse_time(call["timestamp"])
    if "clock_corrected" not in event.get("marks", []):
        assert event["occurred_at"] == event["original_time"]


def includes(whole: Any, part: Any) -> bool:
    """Whether everything in a part is in the whole; of lists and plain values the whole of it."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and includes(whole[name], value) for name, value in part.items())
    return bool(whole == part)


def check_thread(server: Server, who: Who, calls: Iterable[Call], library: str) -> None:
    """What the client was told to send is what is there: every message once, in one person, with all its names."""
    calls = list(calls)
    person = server.person(f"user_id:{who.user}")
    everything = server.events(f"user_id:{who.user}")
    events = [event for event in everything if event["source_type"] == "external"]
    by_key = {event["key"]: event for event in events}
    assert sorted(by_key) == sorted(call["messageId"] for call in calls)
    assert len(events) == len(calls)
    # The identify call and the alias each joined an older thread to the user's.
    own = [event["type"] for event in everything if event["source_type"] != "external"]
    assert own == [MERGED] * (person["position"] - len(calls)) != []
    for call in calls:
        event = by_key[call["messageId"]]
        check_event(event, call, library)
        message = server.message(call["messageId"])
        assert (message["outcome"], message["person"]) == ("accepted", person["id"])
        assert message["event"]["id"] == event["id"]
    assert {(each["kind"], each["value"]) for each in person["identifiers"] if each["linked"]} == who.identifiers
    for kind, value in who.identifiers:
        assert server.person(f"{kind}:{value}")["id"] == person["id"]
    assert person["traits"] == {**TRAITS, "email": who.email}
    assert person["groups"] == {"acme": GROUP}
    assert server.rejected(who.user) == []
