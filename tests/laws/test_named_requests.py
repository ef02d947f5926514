"""Law: a call that is named by `request` and sent again with other content is a conflict, and changes nothing.

Operations are found by their parameter. What stands in their address says whom and what the name is for.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from tests.capabilities.asked import STARTS_AT, Asked
from threadline.kernel.errors import Conflict
from threadline.kernel.operation import Operation
from threadline.kernel.time import DAY, format_time

DEFINITIONS = """
consent: {topics: {news: {title: News}, sale: {title: Sale}}}
mail:
  senders: {shop: {from: n@shop.example}, other: {from: o@shop.example}}
  templates:
    hello: {sender: shop, subject: a, text: x, variables: {name: {default: z}}}
    bye: {sender: shop, subject: b, text: y, variables: {name: {default: z}}}
journeys: {tour: {trigger: {event: tour_begun}, steps: [{wait: 9d}, {send: hello}]}}
points: {tables: [{version: 2, earn: {page: 5}}]}
rules: {note: {conditions: {field: event.type, exists: true}, actions: [{tag: {tag: seen}}]}}
rule_sets: {noted: {events: [never], rules: [note]}}
"""
DRY = {"dry_run"}
"""Parameters that say that nothing is asked for."""
VALUES: dict[str, tuple[Any, ...]] = {
    "subscribe": (["news"], ["sale"], ["news", "sale"]),
    "unsubscribe": ([], ["sale"]),
    "everything": (False,),
    "address": ("ada@x.example", "two@x.example"),
    "confirmed": (False, True),
    "template": ("hello", "bye"),
    "variables": ({"name": "a"}, {"name": "b"}),
    "sender": ("shop", "other"),
    "topic": ("", "sale"),
    "event": ("",),
    "reason": ("first", "second"),
    "other": ("email:bob@x.example", "email:cy@x.example"),
    "force": (False,),
    "identifiers": (["email:ada@x.example"], ["email:two@x.example"]),
    "add": (["vip"], ["vip", "new"], ["new"]),
    "remove": ([], ["old"]),
    "points": (1, 2),
    "value": ("blue", "red"),
    "source": (None,),
    "confidence": (None,),
    "derived_from": ([],),
    "type": ("preference",),
    "key": ("colour",),
    "name": ("tour",),
    "expires_at": (format_time(STARTS_AT + 90 * DAY), format_time(STARTS_AT + 91 * DAY)),
}
"""By the name of a parameter: what the first call has, and others."""
EVALUATION: dict[str, tuple[Any, ...]] = {
    "event_id": (None,),
    "event": (None,),
    "person": ("user_id:ada", "email:bob@x.example"),
    "rule": (None,),
    "version": (None,),
    "content": (None,),
    "rule_set": (None,),
    "record": (True,),
}


def stage() -> Asked:
    asked = Asked(definitions=DEFINITIONS)
    for who in ("ada", "bob", "cy"):
        asked.tell("page", email=f"{who}@x.example")
    for address in ("ada", "two"):
        asked.tell("page", user_id="ada", email=f"{address}@x.example")
    asked.ask("points_adjust", id="user_id:ada", points=50, request="first", reason="start")
    asked.ask("memory_remember", id="user_id:ada", type="preference", key="colour", value="green")
    return asked


NAMED = [
    operation
    for operation in stage().operations.values()
    if any(field.encode_name == "request" for field in msgspec.structs.fields(operation.params))
]


def tried(asked: Asked, operation: Operation, given: dict[str, Any]) -> str:
    """What became of a call, in short."""
    try:
        answer = asked.ask(operation.name, **given)
    except Conflict:
        return "conflict"
    statuses = {receipt["status"] for receipt in answer.get("receipts", [answer.get("receipt") or {"status": ""}])}
    return "conflict" if "conflict" in statuses else "done"


def events(asked: Asked) -> int:
    return len(asked.engine.log.feed("", 1_000))


def first_call(asked: Asked, operation: Operation) -> tuple[dict[str, Any], dict[str, tuple[Any, ...]]]:
    """The parameters of a call, and what else each of them may be."""
    values = VALUES | (EVALUATION if operation.name == "decisions_evaluate" else {})
    within = set(re.findall(r"{(\w+)}", operation.path))
    given: dict[str, Any] = {"request": "named"}
    others: dict[str, tuple[Any, ...]] = {}
    for field in msgspec.structs.fields(operation.params):
        name = field.encode_name
        if name == "id":
            given[name] = "user_id:ada"
        elif name not in {"request", *DRY}:
            first, *more = values[name]
            given |= {} if first is None else {name: first}
            others |= {name: tuple(more)} if name not in within else {}
    if operation.name == "people_unmerge":
        asked.ask("people_merge", id="user_id:ada", other="email:bob@x.example")
        given["id"] = asked.ask("events_of", id="user_id:ada", type="threadline.person_merged")["events"][0]["id"]
    return given, others


@pytest.mark.parametrize("operation", NAMED, ids=lambda operation: operation.name)
def test_a_named_request_with_other_content_is_a_conflict_and_changes_nothing(operation: Operation) -> None:
    asked = stage()
    given, others = first_call(asked, operation)
    assert tried(asked, operation, given) == "done"
    if operation.name != "people_erase":  # nobody is there any more
        known = events(asked)
        assert tried(asked, operation, given) == "done"
        assert events(asked) == known
        for name, values in others.items():
            for value in values:
                assert tried(asked, operation, given | {name: value}) == "conflict", (name, value)
                assert events(asked) == known, (name, value)
