"""Trying a destination without sending, tests that are marked, and the destinations that ship ready-made.

The receivers here are stand-ins that refuse what the documentation of each provider says that it refuses.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import textwrap
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.senders.receiver import Answer, Call, Receiver
from tests.senders.test_webhook_written import DONE, PARKED, Serve, Shop, secrets, serve
from threadline.capabilities.foundation.webhooks.presets import presets
from threadline.kernel.errors import NotFound

__all__ = ["secrets", "serve"]

HOSTILE = 'Ada "the <b>first</b>" & \\ Co\r\nX: 1\u2028'


def tickets(receiver: Receiver) -> str:
    return f"""
    url: {receiver.url("/{{ payload.order }}")}
    payload: [order]
    headers: {{X-Key: env:WH_KEY}}
    login: {{bearer: env:WH_TOKEN}}
    body: |
      {{"order": {{{{ payload.order }}}}, "by": {{{{ rule }}}}, "person": {{{{ person }}}}, "test": {{{{ test }}}}}}
"""


def test_a_preview_for_an_event_is_the_request_that_is_then_sent(tmp_path: Path, serve: Serve) -> None:
    receiver = serve()
    shop = Shop(tmp_path, tickets(receiver))
    shop.order(7)
    [event] = shop.asked.events.of("user_id:ada", type="ordered").events
    shown = shop.asked.webhooks.preview(name="crm", event=event.id)
    assert receiver.calls == []
    shop.work()
    [call] = receiver.calls
    assert shown.problem == ""
    assert (shown.method, urlsplit(shown.url).path) == (call.method, call.path)
    assert json.loads(shown.body) == json.loads(call.body)
    assert (shown.payload, shown.withheld) == ({"order": 7, "name": "Ada"}, ["name"])
    assert {"X-Key": "(hidden)", "Authorization": "(hidden)"}.items() <= shown.headers.items()
    assert "canary" not in repr(shown)


def test_a_preview_of_a_payload_is_filled_in_for_the_person(tmp_path: Path, serve: Serve) -> None:
    receiver = serve()
    shop = Shop(tmp_path, tickets(receiver))
    shop.order(1)
    person = shop.asked.person("user_id:ada").id
    shown = shop.asked.webhooks.preview(name="crm", person="user_id:ada", payload={"order": 'A"7'})
    assert json.loads(shown.body)["order"] == 'A"7'
    assert json.loads(shown.body)["person"] == person
    made_up = shop.asked.webhooks.preview(name="crm")
    assert json.loads(made_up.body)["order"] == "[order]"
    assert receiver.calls == []


def test_a_preview_says_why_a_request_cannot_be_made(tmp_path: Path, serve: Serve) -> None:
    shop = Shop(tmp_path, tickets(serve()))
    shown = shop.asked.webhooks.preview(name="crm", payload={})
    assert shown.problem == "`url`, line 1: `payload.order` is undefined"
    assert (shown.url, shown.body) == ("", "")


def test_a_preview_of_the_standard_form_shows_its_body(tmp_path: Path, serve: Serve) -> None:
    shop = Shop(tmp_path, f"    {{url: '{serve().url()}'}}\n")
    shown = shop.asked.webhooks.preview(name="crm", payload={"order": 7})
    assert json.loads(shown.body)["data"] == {"payload": {"order": 7}, "rule": "example", "version": 1}


def test_a_preview_names_what_is_not_there(tmp_path: Path, serve: Serve) -> None:
    shop = Shop(tmp_path, tickets(serve()))
    shop.asked.track("ada", "looked", {}, key="look")
    [event] = shop.asked.events.of("user_id:ada", type="looked").events
    with pytest.raises(NotFound, match="no rule in force calls 'crm' because of this event"):
        shop.asked.webhooks.preview(name="crm", event=event.id)
    with pytest.raises(NotFound, match="did you mean 'crm'"):
        shop.asked.webhooks.preview(name="crn")


def test_a_test_is_sent_marked_and_its_outcome_is_an_event(tmp_path: Path, serve: Serve) -> None:
    receiver = serve()
    shop = Shop(tmp_path, tickets(receiver))
    shop.asked.identify("ada", {"plan": "pro"})
    shop.asked.webhooks.test(name="crm", person="user_id:ada", payload={"order": 9})
    shop.work()
    [call] = receiver.calls
    content = json.loads(call.body)
    assert (content["order"], content["test"], content["by"]) == (9, True, None)
    assert [type for type, _ in shop.outcomes()] == [DONE]


def test_a_test_of_the_standard_form_says_that_it_is_one(tmp_path: Path, serve: Serve) -> None:
    receiver = serve()
    shop = Shop(tmp_path, f"    {{url: '{receiver.url()}'}}\n")
    shop.asked.identify("ada", {"plan": "pro"})
    shop.asked.webhooks.test(name="crm", person="user_id:ada", payload={"order": 9})
    shop.work()
    content = json.loads(receiver.calls[0].body)
    assert (content["type"], content["test"], content["data"]) == ("test", True, {"payload": {"order": 9}})


# --- ready-made destinations ----------------------------------------------------------------------


def slack(call: Call) -> Answer:
    """An incoming webhook: JSON with a text, in which `&`, `<` and `>` are entities unless they are markup."""
    content = json.loads(call.body)
    text = content.get("text")
    if call.path != "/services/T0/B0/secret" or not isinstance(text, str) or not text:
        return 400, {}, b"invalid_payload"
    bare = text.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")
    return (200, {}, b"ok") if not set("&<>") & set(bare) else (400, {}, b"invalid_payload")


def hubspot(call: Call) -> Answer:
    """Contacts, batch, upsert: inputs with an id, the property that it is, and properties; a bearer token."""
    if call.headers.get("authorization") != "Bearer value-of-HUBSPOT_TOKEN":
        return 401, {}, b"{}"
    for item in json.loads(call.body)["inputs"]:
        if item["idProperty"] != "email" or item["id"] != "ada@example.com" or not isinstance(item["properties"], dict):
            return 400, {}, b'{"status": "error"}'
    results = [{"id": "101", "new": True, "properties": {}}]
    return 200, {}, json.dumps({"status": "COMPLETE", "results": results}).encode()


def ga4(call: Call) -> Answer:
    """The Measurement Protocol answers 2xx whatever comes, so the test looks at the request instead."""
    query = parse_qs(urlsplit(call.path).query)
    content = json.loads(call.body)
    assert query == {"measurement_id": ["value-of-GA4_MEASUREMENT_ID"], "api_secret": ["value-of-GA4_SECRET"]}
    assert isinstance(content["client_id"], str)
    assert isinstance(content["user_id"], str)
    assert len(str(content["timestamp_micros"])) == 16
    [event] = content["events"]
    assert event == {"name": "purchase", "params": {"value": 12.5, "currency": "EUR"}}
    return 204, {}, b""


def meta(call: Call) -> Answer:
    """Server events: name, seconds, id, source, and the address of the mail as SHA-256 of its normal form."""
    wanted = hashlib.sha256(b"ada@example.com").hexdigest()
    if parse_qs(urlsplit(call.path).query) != {"access_token": ["value-of-META_TOKEN"]}:
        return 400, {}, b'{"error": {"code": 190}}'
    [event] = json.loads(call.body)["data"]
    is_right = (
        event["user_data"] == {"em": [wanted]}
        and len(str(event["event_time"])) == 10
        and event["action_source"] == "system_generated"
        and event["event_id"] == call.headers["webhook-id"]
        and event["custom_data"] == {"value": 12.5, "currency": "EUR"}
    )
    return (200, {}, b'{"events_received": 1, "fbtrace_id": "T1"}') if is_right else (400, {}, b"{}")


def queue(call: Call) -> Answer:
    """A queue that looks at the signature and takes each key once."""
    signed = hmac.new(b"value-of-QUEUE_KEY", call.body, hashlib.sha256).hexdigest()
    if call.headers["x-signature"] != f"sha256={signed}":
        return 401, {}, b""
    is_right = json.loads(call.body)["id"] == call.headers["idempotency-key"]
    return (409, {}, b"") if is_right else (400, {}, b"")


_SALE = {"event": "purchase", "value": 12.5, "currency": "EUR"}
STANDINS: dict[str, tuple[Any, str, dict[str, Any], dict[str, Any]]] = {
    "slack": (slack, "/services/T0/B0/secret", {"text": HOSTILE}, {}),
    "hubspot": (
        hubspot,
        "/crm/v3/objects/contacts/batch/upsert",
        {"email": " Ada@Example.com ", "properties": {"firstname": HOSTILE}},
        {"contact": "101", "is_new": True},
    ),
    "ga4": (
        ga4,
        "/mp/collect",
        {"client_id": "1.2", "event": "purchase", "params": {"value": 12.5, "currency": "EUR"}},
        {},
    ),
    "meta": (meta, "/v1/77/events", {"email": " Ada@Example.com", **_SALE}, {"trace": "T1"}),
    "queue": (queue, "/topics/a", {"message": {"text": HOSTILE}}, {}),
}


@pytest.mark.parametrize("name", STANDINS)
def test_a_ready_made_destination_is_taken_by_a_stand_in_of_its_receiver(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    answer, path, payload, result = STANDINS[name]
    receiver = serve(answer)
    shown = next(preset for preset in presets() if preset.name == name)
    assert set(shown.needs) == set(payload)
    text = shown.text
    for variable in shown.variables:
        monkeypatch.setenv(variable, receiver.url(path) if variable.endswith("_URL") else f"value-of-{variable}")
    # What goes to the internet goes to the stand-in instead; nothing else of the text is changed.
    for line in text.splitlines():
        if line.startswith("url: https://"):
            assert urlsplit(line.removeprefix("url: ")).path == path
            text = text.replace(line, f"url: {receiver.url(path)}")
    shop = Shop(tmp_path, textwrap.indent(text, "    "))
    shop.asked.identify("ada", {"plan": "pro"})
    shop.asked.webhooks.test(name="crm", person="user_id:ada", payload=payload)
    shop.dispatcher.run_once()
    assert len(receiver.calls) == 1
    [(type, outcome)] = shop.outcomes()
    assert type == DONE, outcome
    assert outcome.get("result", {}) == result
    assert "value-of" not in repr(shop.deliveries())


def test_every_ready_made_destination_has_a_stand_in() -> None:
    assert [preset.name for preset in presets()] == list(STANDINS)


def test_a_ready_made_hash_of_an_address_that_is_not_there_is_not_sent(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = serve(meta)
    monkeypatch.setenv("META_URL", receiver.url("/v1/77/events"))
    monkeypatch.setenv("META_TOKEN", "x")
    text = next(preset.text for preset in presets() if preset.name == "meta")
    shop = Shop(tmp_path, textwrap.indent(text, "    "))
    shop.asked.identify("ada", {"plan": "pro"})
    shop.asked.webhooks.test(name="crm", person="user_id:ada", payload={"email": None, **_SALE})
    shop.work()
    [(type, outcome)] = shop.outcomes()
    assert (type, outcome["why"]) == (PARKED, "its request cannot be made: `body`: there is nothing to hash")
    assert receiver.calls == []
