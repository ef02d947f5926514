"""What real clients sent, what Segment's specification shows and hostile text: all of it comes back equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.wire.segment_cases import one, refused, send, track
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import parse_time
from threadline.wire import segment

DATA = Path(__file__).parents[1] / "data"
SPEC = json.loads((DATA / "segment_spec" / "spec_examples.json").read_text("utf-8"))
CALLS = json.loads((DATA / "segment_spec" / "analytics_js_calls.json").read_text("utf-8"))
NAUGHTY = json.loads((DATA / "naughty_strings" / "strings.json").read_text("utf-8"))
SINGLE_CALLS = {"/api/s/identify": "identify", "/api/s/track": "track", "/api/s/page": "page", "/api/s/group": "group"}

VALID = [example["json"] for example in SPEC if example["valid_json"]]
BROKEN = [example["raw"] for example in SPEC if not example["valid_json"]]


def recorded(client: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / "wire" / f"{client}.jsonl").read_text("utf-8").splitlines()]


def named(message: dict[str, Any]) -> bool:
    return any(message.get(field) for field in ("userId", "anonymousId", "user_id"))


def test_the_examples_are_all_there() -> None:
    assert (len(VALID), len(BROKEN), len(CALLS)) == (75, 7, 48)


@pytest.mark.parametrize("message", VALID, ids=lambda message: message.get("event") or message.get("type"))
def test_every_example_of_the_specification_comes_back_equal(message: dict[str, Any]) -> None:
    if not named(message):
        # Four of the examples show the syntax only and leave out whose event it is.
        assert refused(message).code == "no_identifier"
        message = {**message, "anonymousId": "a1"}
    assert segment.encode(one(message)) == message
    (single,) = send(message, kind=message.get("type") or message["action"]).results
    assert isinstance(single, Event)
    assert segment.encode(single) == message


def test_just_four_examples_say_nobody() -> None:
    assert sum(not named(message) for message in VALID) == 4


@pytest.mark.parametrize("raw", BROKEN, ids=range(len(BROKEN)))
def test_what_the_specification_prints_wrongly_is_no_message(raw: str) -> None:
    with pytest.raises(segment.MalformedBody):
        send(raw.encode(), kind="track")


def message_of(call: dict[str, Any]) -> dict[str, Any]:
    """What analytics.js makes of a call: a leading text is the id or the name, the first object the properties."""
    kind, args = call["call"], call["args"]
    message: dict[str, Any] = {"type": kind, "anonymousId": "a1", "messageId": "m1"}
    texts = [arg for arg in args if isinstance(arg, str)]
    objects = [arg for arg in args if isinstance(arg, dict)]
    if texts:
        message |= {
            "identify": {"userId": texts[0]},
            "track": {"event": texts[0]},
            "page": {"name": texts[-1]},
            "group": {"groupId": texts[0]},
            "alias": {"userId": texts[0], "previousId": "a1"},
        }[kind]
    if objects and kind != "alias":
        message["traits" if kind in ("identify", "group") else "properties"] = objects[0]
    return message


@pytest.mark.parametrize("call", CALLS, ids=[f"{n}-{call['call']}" for n, call in enumerate(CALLS)])
def test_every_call_of_analytics_js_in_the_specification_comes_back_equal(call: dict[str, Any]) -> None:
    message = message_of(call)
    assert segment.encode(one(message)) == message


@pytest.mark.parametrize("client", ["segment-python", "segment-node", "rudder-python", "jitsu-js-node"])
def test_what_real_clients_send_comes_back_equal(client: str) -> None:
    requests = recorded(client)
    assert requests
    for request in requests:
        body = request["body_text"].encode()
        assert len(body) == request["body_len"]
        kind = SINGLE_CALLS.get(request["path"])
        received_at = parse_time(json.loads(body)["sentAt"])
        decoded = send(body, kind, received_at)
        sent = [json.loads(body)] if kind else json.loads(body)["batch"]
        for message in sent:
            message.pop("writeKey", None)
        events = [result for result in decoded.results if isinstance(result, Event)]
        assert [segment.encode(event) for event in events] == sent
        assert decoded.write_key == (json.loads(body).get("writeKey") or "")
        assert [event.occurred_at for event in events] == [parse_time(message["timestamp"]) for message in sent]
        assert not any(event.marks for event in events)


@pytest.mark.parametrize("client", ["segment-python", "segment-node", "rudder-python"])
def test_what_real_clients_send_means_the_same_from_each(client: str) -> None:
    (request,) = recorded(client)
    received_at = parse_time(request["body_json"]["sentAt"])
    decoded = send(request["body_text"].encode(), received_at=received_at)
    events = [result for result in decoded.results if isinstance(result, Event)]
    user, visitor = Identifier("user_id", "user-001"), Identifier("anonymous_id", "anon-xyz")
    assert [(event.type, event.identifiers) for event in events] == [
        ("identify", (user, Identifier("email", "Ana@Example.com"))),
        ("purchase_completed", (user,)),
        ("product_viewed", (visitor,)),
        ("page", (user,)),
        ("screen", (user,)),
        ("group", (user,)),
        ("alias", (user, visitor)),
    ]
    assert events[1].properties["total"] == 27.5
    assert events[1].occurred_at in (parse_time("2024-03-01T02:30:00.123Z"), parse_time("2024-03-01T02:30:00.123456Z"))
    assert events[5].object_ref == "group-9"


@pytest.mark.parametrize("text", NAUGHTY, ids=range(len(NAUGHTY)))
def test_hostile_text_comes_back_equal_from_every_place(text: str) -> None:
    message = track(
        userId="u1",
        properties={text: text, "list": [text]},
        context={"page": {"title": text}},
        integrations={text: True},
    )
    assert segment.encode(one(message)) == message
    identify = {
        "type": "identify",
        "anonymousId": text or "a",
        "traits": {"email": text, "name": text},
        "messageId": "m",
    }
    event = one(identify)
    assert segment.encode(event) == identify
    assert Identifier("anonymous_id", text or "a") in event.identifiers
