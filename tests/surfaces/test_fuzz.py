"""Hostile bodies over HTTP: never a 500, never a lost neighbour, and what is taken comes back as it was."""

from __future__ import annotations

import gzip
import itertools
import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tests.surfaces.conftest import Clock, client_of
from threadline.app import open_engine
from threadline.engine.engine import Engine
from threadline.kernel.limits import EVENT_BYTES_MAX, EVENT_KEY_LENGTH_MAX, JSON_DEPTH_MAX
from threadline.kernel.time import SECOND
from threadline.settings import Settings
from threadline.wire.segment import KINDS, SEMANTIC

NAUGHTY: list[str] = json.loads(
    (Path(__file__).parents[1] / "data" / "naughty_strings" / "strings.json").read_text("utf-8")
)
CALM = {200, 400, 401, 413, 415}
"""The statuses that a body alone can bring about."""


class Shop(NamedTuple):
    """An application in memory, with the keys to it."""

    client: TestClient
    engine: Engine
    write_key: str
    token: str
    clock: Clock
    numbers: Iterator[int]

    def post(self, path: str, body: bytes, **headers: str) -> httpx.Response:
        given = {"Authorization": f"Bearer {self.write_key}", **headers}
        answer: httpx.Response = self.client.post(path, content=body, headers=given)
        assert answer.status_code in CALM, (answer.status_code, answer.text, body[:500])
        return answer

    def get(self, path: str) -> Any:
        answer = self.client.get(path, headers={"Authorization": f"Bearer {self.token}"})
        assert answer.status_code == 200, (path, answer.text)
        return answer.json()

    def good(self, kind: str = "segment") -> tuple[str, bytes]:
        """A message that nobody can find fault with, and its key."""
        key = f"good-{next(self.numbers)}"
        if kind == "segment":
            return key, json.dumps({"type": "track", "userId": "ada", "event": "click", "messageId": key}).encode()
        event = {"id": key, "source": "/s", "specversion": "1.0", "type": "click", "subject": "ada", "data": {"n": 1}}
        return f"/s {key}", json.dumps(event).encode()

    def between(self, raw: bytes, kind: str = "segment") -> dict[str, Any]:
        """Send something between two good messages, see that both are recorded, and give the outcome of all."""
        before, after = self.good(kind), self.good(kind)
        batch = b"[" + b",".join((before[1], raw, after[1])) + b"]"
        if kind == "segment":
            answer = self.post("/v1/batch", b'{"batch":' + batch + b"}")
        else:
            answer = self.post(
                "/v1/cloudevents", batch, **{"Content-Type": "application/cloudevents-batch+json; charset=UTF-8"}
            )
        assert answer.status_code == 200, (answer.text, raw[:500])
        for key in (before[0], after[0]):
            assert self.engine.log.of_key("default", "shop", key) is not None, (raw[:500], answer.text)
        outcome: dict[str, Any] = answer.json()
        return outcome


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    clock = Clock()
    engine = open_engine("memory:", Settings(), clock)
    write_key = engine.credentials.create("default", "write_key", "shop")[1]
    token = engine.credentials.create("default", "token", "reader", ["admin"])[1]
    with client_of(engine) as client:
        yield Shop(client, engine, write_key, token, clock, itertools.count())
    engine.close()


# --- by hand --------------------------------------------------------------------------------------------------------


def with_property(raw: bytes) -> bytes:
    """A track call with this raw text as the value of a property."""
    return b'{"type":"track","userId":"eve","event":"e","properties":{"x":' + raw + b"}}"


def with_field(name: str, raw: bytes) -> bytes:
    """A track call with this raw text as the value of a field."""
    fields = {"type": b'"track"', "userId": b'"eve"', "event": b'"e"', name: raw}
    return b"{" + b",".join(json.dumps(field).encode() + b":" + value for field, value in fields.items()) + b"}"


REFUSED = {
    "bytes that are no UTF-8": (with_property(b'"\xff\xfe\x80"'), "invalid_json"),
    "a surrogate as UTF-8": (with_property(b'"\xed\xa0\x80"'), "invalid_json"),
    "overlong UTF-8": (with_property(b'"\xc0\xaf"'), "invalid_json"),
    "a lone surrogate": (with_property(b'"\\ud800"'), "invalid_json"),
    "a lone surrogate as a key": (with_property(b'{"\\udfff":1}'), "invalid_json"),
    "a lone surrogate as a user": (with_field("userId", b'"\\ud800"'), "invalid_json"),
    "a lone surrogate as an id": (with_field("messageId", b'"\\ud800"'), "invalid_json"),
    "a raw NUL": (with_property(b'"a\x00b"'), "invalid_json"),
    "NaN": (with_property(b"NaN"), "invalid_json"),
    "Infinity": (with_property(b"Infinity"), "invalid_json"),
    "minus Infinity": (with_property(b"[-Infinity]"), "invalid_json"),
    "2^64": (with_property(b"18446744073709551616"), "number_out_of_range"),
    "2^64 + 1": (with_property(b"18446744073709551617"), "number_out_of_range"),
    "-2^63 - 1": (with_property(b"-9223372036854775809"), "number_out_of_range"),
    "1e400": (with_property(b"1e400"), "number_out_of_range"),
    "five thousand digits": (with_property(b"9" * 5_000), "number_out_of_range"),
    "depth 1,000": (with_property(b"[" * 1_000 + b"]" * 1_000), "too_deep"),
    "depth 1,000 of objects": (with_property(b'{"a":' * 1_000 + b"1" + b"}" * 1_000), "too_deep"),
    "depth 15,000": (with_property(b"[" * 15_000 + b"]" * 15_000), "too_deep"),
    "one level too deep": (with_property(b"[" * (JSON_DEPTH_MAX - 1) + b"]" * (JSON_DEPTH_MAX - 1)), "too_deep"),
    "33 KB": (with_property(b'"' + b"x" * 33 * 1_024 + b'"'), "too_large"),
    "a megabyte": (with_property(b'"' + b"x" * 1_024**2 + b'"'), "too_large"),
    "a megabyte of escapes": (with_property(b'"' + b"\\u0041" * 170_000 + b'"'), "too_large"),
    "an array for a message": (b"[]", "not_an_object"),
    "nothing for a message": (b"null", "not_an_object"),
    "no quotes": (b"{type:track}", "invalid_json"),
}
"""What it is -> (the message, the code of its refusal)."""

LIMITS = {
    "2^63": (b"9223372036854775808", 2**63),
    "2^64 - 1": (b"18446744073709551615", 2**64 - 1),
    "-2^63": (b"-9223372036854775808", -(2**63)),
    "2^53 + 1": (b"9007199254740993", 2**53 + 1),
    "the largest double": (b"1.7976931348623157e308", 1.7976931348623157e308),
    "the smallest double": (b"5e-324", 5e-324),
    "minus zero": (b"-0.0", -0.0),
    "NUL": (b'"a\\u0000b"', "a\0b"),
    "NUL in a key": (b'{"\\u0000":{"":"\\u0000"}}', {"\0": {"": "\0"}}),
    "a pair of surrogates": (b'"\\ud83e\\uddf5"', "\U0001f9f5"),
    "noncharacters": (b'"\\uffff\\ufdd0"', "\uffff\ufdd0"),
    "as deep as it may be": (b"[" * (JSON_DEPTH_MAX - 2) + b"]" * (JSON_DEPTH_MAX - 2), None),
    "as long as it may be": (
        b'"' + b"x" * (EVENT_BYTES_MAX - len(with_field("messageId", b'"0123456789"')) - 24) + b'"',
        None,
    ),
}
"""What it is -> (the value as text, the value); None: whatever the text says."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_recorded_is_refused_alone(name: str, shop: Shop) -> None:
    raw, code = REFUSED[name]
    outcome = shop.between(raw)
    assert (outcome["accepted"], [each["code"] for each in outcome["rejected"]]) == (2, [code])
    assert outcome["rejected"][0]["index"] == 1
    single = shop.post("/v1/track", raw)
    if single.status_code == 200:
        assert [each["code"] for each in single.json()["rejected"]] == [code]
    else:
        assert single.json()["code"] == "malformed_body"
    # What was refused can be read, whatever was in it.
    assert shop.get("/v1/rejected")["entries"]


@pytest.mark.parametrize("name", LIMITS)
def test_what_lies_just_within_the_limits_comes_back_as_it_was(name: str, shop: Shop) -> None:
    raw, value = LIMITS[name]
    key = f"limit-{next(shop.numbers)}"
    message = with_property(raw)[:-1] + b',"messageId":"' + key.encode() + b'"}'
    assert shop.between(message)["accepted"] == 3
    (event,) = [shop.get(f"/v1/messages/{key}")["event"]]
    expected = json.loads(raw) if value is None else value
    assert event["properties"] == {"x": expected}
    assert repr(event["properties"]["x"]) == repr(expected), "minus zero is equal to zero, but not the same"


CLOUD = {
    "NaN": b'{"id":"1","source":"/s","specversion":"1.0","type":"t","subject":"eve","data":NaN}',
    "a lone surrogate": b'{"id":"1","source":"/s","specversion":"1.0","type":"t","subject":"\\ud800"}',
    "depth 1,000": b'{"id":"1","source":"/s","specversion":"1.0","type":"t","data":'
    + b"[" * 1_000
    + b"]" * 1_000
    + b"}",
    "65 KB": b'{"id":"1","source":"/s","specversion":"1.0","type":"t","data":"' + b"x" * 66_000 + b'"}',
    "2^64 + 1": b'{"id":"1","source":"/s","specversion":"1.0","type":"t","subject":"eve","data":18446744073709551617}',
    "no UTF-8": b'{"id":"1","source":"/s","specversion":"1.0","type":"t","subject":"\xff"}',
    "NUL": b'{"id":"1","source":"/s","specversion":"1.0","type":"t","subject":"a\\u0000b"}',
    "no object": b"7",
}


@pytest.mark.parametrize("name", CLOUD)
def test_a_bad_cloudevent_is_refused_alone(name: str, shop: Shop) -> None:
    outcome = shop.between(CLOUD[name], "cloudevents")
    assert (outcome["accepted"], len(outcome["rejected"])) == (2, 1)


def test_a_packed_body_that_holds_a_packed_body_is_no_message(shop: Shop) -> None:
    twice = gzip.compress(gzip.compress(b"0" * 30_000_000))
    answer = shop.post("/v1/batch", twice, **{"Content-Encoding": "gzip"})
    assert answer.json()["code"] == "malformed_body"


# --- by chance ------------------------------------------------------------------------------------------------------

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(st.characters(), max_size=12)
    | st.sampled_from(
        [*NAUGHTY, "\ud800", "\0", 10**400, 2**63, "1970-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z"]
    )
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
SENSIBLE: dict[str, Any] = {
    "type": "track",
    "event": "click",
    "userId": "eve",
    "anonymousId": "a-eve",
    "user_id": "eve",
    "groupId": "g",
    "previousId": "p-eve",
    "name": "Home",
    "category": "c",
    "action": "track",
    "writeKey": "x",
    "properties": {"total": 1.5, "currency": "EUR", "products": [{"price": 1}]},
    "traits": {"email": "e@shop.example"},
    "context": {"traits": {"phone": "+49 30 1"}, "externalIds": [{"type": "crm", "id": "7"}], "timezone": "UTC"},
    "integrations": {"All": True},
    "timestamp": "2026-02-28T12:00:00Z",
    "originalTimestamp": "2026-02-28T12:00:00Z",
    "sentAt": "2026-02-28T12:00:01Z",
    "receivedAt": "2026-02-28T12:00:02Z",
    "historical": True,
    "version": 2,
}
MESSAGES = st.fixed_dictionaries(
    {"type": st.sampled_from(sorted(KINDS))},
    optional={name: st.just(value) | VALUES for name, value in SENSIBLE.items() if name != "type"},
) | st.fixed_dictionaries({}, optional={name: st.just(value) | VALUES for name, value in SENSIBLE.items()})


@given(message=MESSAGES)
def test_fields_of_any_type_never_fail_and_never_cost_a_neighbour(message: dict[str, Any], shop: Shop) -> None:
    key = f"any-{next(shop.numbers)}"
    outcome = shop.between(json.dumps({**message, "messageId": key}).encode())
    assert outcome["accepted"] + len(outcome["rejected"]) == 3
    told = shop.get(f"/v1/messages/{key}?source=shop") if outcome["accepted"] == 3 else None
    assert told is None or told["outcome"] == "accepted"


@given(value=VALUES, name=st.sampled_from(["batch", "context", "integrations", "sentAt", "writeKey", "historical"]))
def test_an_envelope_of_any_type_never_fails(name: str, value: Any, shop: Shop) -> None:
    key, message = shop.good()
    body = {"batch": [json.loads(message)], name: value}
    answer = shop.post("/v1/batch", json.dumps(body).encode())
    if answer.status_code == 200 and name != "batch":
        assert answer.json()["accepted"] + len(answer.json()["rejected"]) == 1
        recorded = shop.engine.log.of_key("default", "shop", key) is not None
        assert recorded == (answer.json()["accepted"] == 1)


@given(garbage=st.binary(max_size=60).map(lambda raw: bytes(byte for byte in raw if byte not in b'"[]{}\\')))
def test_garbage_between_two_messages_costs_neither(garbage: bytes, shop: Shop) -> None:
    shop.between(b"!" + garbage)


@given(cut=st.integers(0, 400), put=st.binary(max_size=12), drop=st.integers(0, 12))
def test_a_damaged_body_never_fails(cut: int, put: bytes, drop: int, shop: Shop) -> None:
    body = b'{"batch":[' + shop.good()[1] + b"," + shop.good()[1] + b'],"sentAt":"2026-02-28T12:00:01Z"}'
    shop.post("/v1/batch", body[:cut] + put + body[cut + drop :])


@given(body=st.binary(max_size=200), path=st.sampled_from(["/v1/track", "/v1/batch", "/v1/cloudevents", "/b", "/i"]))
def test_bytes_of_no_meaning_never_fail(body: bytes, path: str, shop: Shop) -> None:
    assert shop.post(path, body).status_code in (200, 400)


@given(cut=st.floats(0, 1, exclude_max=True), flip=st.none() | st.integers(0, 255))
def test_a_packed_body_that_is_cut_or_damaged_is_refused_whole(cut: float, flip: int | None, shop: Shop) -> None:
    key, message = shop.good()
    whole = gzip.compress(b'{"batch":[' + message + b"]}")
    at = int(cut * len(whole))
    packed = whole[:at] if flip is None else whole[:at] + bytes([flip]) + whole[at + 1 :]
    answer = shop.post("/v1/batch", packed, **{"Content-Encoding": "gzip"})
    recorded = shop.engine.log.of_key("default", "shop", key) is not None
    # Some bytes of the head of a packed body mean nothing, and a changed one changes nothing.
    assert recorded == (answer.status_code == 200)
    assert not (recorded and flip is None)


ATTRIBUTES = [
    "id",
    "source",
    "specversion",
    "type",
    "subject",
    "time",
    "datacontenttype",
    "dataschema",
    "data",
    "data_base64",
    "email",
    "userid",
    "personid",
    "historical",
    "x",
]


@given(
    event=st.fixed_dictionaries(
        {
            name: st.just(value) | VALUES
            for name, value in {"specversion": "1.0", "id": "i", "source": "/s", "type": "t"}.items()
        },
        optional=dict.fromkeys(ATTRIBUTES[4:], VALUES),
    )
)
def test_a_cloudevent_of_any_form_never_fails_and_never_costs_a_neighbour(event: dict[str, Any], shop: Shop) -> None:
    raw = json.dumps(event).encode()
    shop.between(raw, "cloudevents")
    answer = shop.post("/v1/cloudevents", raw, **{"Content-Type": "application/cloudevents+json"})
    assert answer.status_code in (200, 400)


@given(
    headers=st.dictionaries(
        st.sampled_from([f"ce-{name}" for name in ATTRIBUTES if not name.startswith("data_")]),
        st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=30)
        | st.sampled_from(["1.0", "%", "%ff", "%00", "%ED%A0%80", '"quoted\\"']),
    ),
    content_type=st.sampled_from(["application/json", "text/plain", "application/octet-stream", ";;", "a/b+json"]),
    body=st.binary(max_size=30) | st.sampled_from([b"{}", b"NaN", b"[" * 1_000]),
)
def test_a_binary_cloudevent_of_any_form_never_fails(
    headers: dict[str, str], content_type: str, body: bytes, shop: Shop
) -> None:
    sent = {"ce-specversion": "1.0", "ce-id": "b", "ce-source": "/s", "ce-type": "t", "ce-subject": "eve", **headers}
    raw = {name: value.encode("latin-1") for name, value in sent.items()}
    given = {"Authorization": f"Bearer {shop.write_key}".encode(), "Content-Type": content_type.encode(), **raw}
    answer = shop.client.post("/v1/cloudevents", content=body, headers=given)
    assert answer.status_code in (200, 400), answer.text


@given(
    value=VALUES, name=st.sampled_from(["events", "type", "identifiers", "key", "occurred_at", "properties", "context"])
)
def test_the_native_form_of_any_type_never_fails(name: str, value: Any, shop: Shop) -> None:
    event: dict[str, Any] = {"type": "click", "identifiers": {"user_id": "eve"}, "key": f"native-{next(shop.numbers)}"}
    body = {"events": value} if name == "events" else {"events": [{**event, name: value}]}
    answer = shop.client.post(
        "/v1/events", content=json.dumps(body).encode(), headers={"Authorization": f"Bearer {shop.token}"}
    )
    assert answer.status_code in (200, 400, 413), answer.text


# --- naughty strings ------------------------------------------------------------------------------------------------


def test_naughty_strings_come_back_as_they_were(shop: Shop) -> None:
    messages = [
        {
            "type": "track",
            "userId": "naughty",
            "event": "said",
            "messageId": f"naughty-{index}",
            "properties": {"value": text, "key": {text: index}, "list": [text, [text]]},
            "context": {"locale": text},
        }
        for index, text in enumerate(NAUGHTY)
    ]
    messages.append(
        {"type": "identify", "userId": "naughty", "traits": {f"trait {n}": t for n, t in enumerate(NAUGHTY)}}
    )
    answer = shop.post("/v1/batch", json.dumps({"batch": messages}, ensure_ascii=False).encode())
    assert answer.json()["accepted"] == len(messages)
    for message, text in zip(messages, NAUGHTY, strict=False):
        event = shop.get(f"/v1/messages/{message['messageId']}")["event"]
        assert event["properties"] == message["properties"]
        assert event["properties"]["value"].encode() == text.encode()
        assert event["context"] == message["context"]
    shop.clock.now += SECOND  # what happened at this very instant is not known before the next
    traits = shop.get("/v1/people/user_id:naughty")["traits"]
    assert traits == {f"trait {n}": text for n, text in enumerate(NAUGHTY)}


@pytest.mark.parametrize("text", NAUGHTY)
def test_naughty_strings_as_names_of_everything(text: str, shop: Shop) -> None:
    key = text if 0 < len(text) <= EVENT_KEY_LENGTH_MAX else f"named-{next(shop.numbers)}"
    message = {"type": "track", "userId": text, "anonymousId": "someone", "event": text, "messageId": key}
    outcome = shop.between(json.dumps(message, ensure_ascii=False).encode())
    if not text or len(text) > 200:
        assert outcome["rejected"][0]["code"] in ("no_event_name", "invalid_type")
        return
    assert outcome["accepted"] == 3, outcome
    # A lone dot is no part of an address: clients leave it out before they ask.
    event = shop.get(f"/v1/messages/{quote(key, safe='').replace('.', '%2E')}?source=shop")["event"]
    assert event["key"] == key
    assert event["type"] == (SEMANTIC.get(text) or (f"track.{text}" if text in KINDS else text))
    named = [each["value"] for each in event["identifiers"] if each["kind"] == "user_id"]
    # A name that is junk, such as NULL, names nobody; blanks around one are no part of it.
    assert named in ([], [text.strip()])
    for value in named:
        person = shop.get(f"/v1/people/{quote('user_id:' + value, safe='')}")
        assert text.strip() in [each["value"] for each in person["identifiers"]]


@pytest.mark.parametrize("text", NAUGHTY)
def test_naughty_strings_in_addresses_never_fail(text: str, shop: Shop) -> None:
    part = quote(text, safe="")
    for path in (
        f"/v1/people/{part}",
        f"/v1/people/user_id:{part}/events?cursor={part}",
        f"/v1/messages/{part}",
        f"/v1/people?identifier={part}&cursor={part}",
        f"/v1/rejected?cursor={part}",
        f"/v1/events/{part}",
        f"/v1/people/user_id:ada?timeline={part}",
        f"/v1/features/{part}/top",
    ):
        answer = shop.client.get(path, headers={"Authorization": f"Bearer {shop.token}"})
        assert answer.status_code < 500, (path, answer.text)
    for secret in (text, b64encode(text.encode()).decode()):
        header = {"Authorization": f"Basic {secret}".encode()}
        assert shop.client.get("/v1/people", headers=header).status_code == 401
