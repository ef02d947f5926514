"""CloudEvents in their three modes: what real clients send, what the specification allows and what it does not."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.engine.folding.packing import payload_digest
from threadline.kernel.errors import LimitExceeded, MalformedBody
from threadline.kernel.event import Event, Identifier
from threadline.kernel.limits import BATCH_EVENTS_MAX, CLOUDEVENT_BYTES_MAX
from threadline.kernel.time import DAY, format_time, parse_time
from threadline.wire import cloudevents
from threadline.wire.rejection import CODES, Decoded, Rejection

RECEIVED = parse_time("2026-11-21T00:46:26Z")
RECORDINGS = Path(__file__).parents[1] / "data" / "wire"
STRUCTURED, BATCH = "application/cloudevents+json", "application/cloudevents-batch+json"
USER = Identifier("user_id", "user-001")


def send(body: Any, content_type: str = STRUCTURED, **headers: str) -> Decoded:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return cloudevents.decode(
        raw, {"content-type": content_type, **sent}, source="orders", workspace="acme", received_at=RECEIVED
    )


def ce(**fields: Any) -> dict[str, Any]:
    """A valid event, with some attributes as given; a value of ``...`` leaves one out."""
    event = {"specversion": "1.0", "id": "e1", "source": "/shop", "type": "order.done", "subject": "user-001", **fields}
    return {name: value for name, value in event.items() if value is not ...}


def one(event: Any) -> Event:
    (result,) = send(event).results
    assert isinstance(result, Event), result
    return result


def binary(body: bytes = b"", content_type: str = "", **attributes: str) -> Event | Rejection:
    headers = {f"ce_{name}": value for name, value in ce(**attributes).items()}
    (result,) = send(body, content_type, **headers).results
    return result


# --- real clients ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", ["cloudevents-node", "cloudevents-python"])
def test_what_real_clients_send_comes_back_equal_in_every_mode(client: str) -> None:
    for line in (RECORDINGS / f"{client}.jsonl").read_text("utf-8").splitlines():
        request = json.loads(line)
        headers = {name.lower(): value for name, value in request["headers"]}
        body = request["body_text"].encode()
        decoded = cloudevents.decode(body, headers, source="orders", workspace="acme", received_at=RECEIVED)
        expected = request["body_json"]
        if "ce-id" in headers:
            expected = {name[3:]: value for name, value in headers.items() if name.startswith("ce-")}
            expected |= {"datacontenttype": headers["content-type"], "data": request["body_json"]}
        events = [result for result in decoded.results if isinstance(result, Event)]
        assert [cloudevents.encode(event) for event in events] == (
            expected if isinstance(expected, list) else [expected]
        )
        for event in events:
            assert (event.type, event.key, event.identifiers) == ("com.acme.order.completed", "/shop evt-1", (USER,))
            assert (event.source, event.workspace, event.properties) == ("orders", "acme", {"total": 27.5})
            assert event.occurred_at // 1_000_000 == parse_time("2024-03-01T02:30:00Z") // 1_000_000


# --- meaning ---------------------------------------------------------------------------------------------------------


def test_every_attribute_finds_its_place() -> None:
    message = ce(
        time="2026-11-20T10:00:00.123456789+01:00",
        dataschema="https://acme.com/order/2",
        datacontenttype="application/json",
        data={"total": 27.5},
        traceparent="00-4bf92f-00f067-01",
        sequence=7,
        sampled=True,
    )
    event = one(message)
    assert event.occurred_at == event.sent_time == parse_time("2026-11-20T09:00:00.123456Z")
    assert event.schema_version == "https://acme.com/order/2"
    assert event.context == {"traceparent": "00-4bf92f-00f067-01", "sequence": "7", "sampled": "true"}
    assert (event.properties, event.source_type, event.received_at) == ({"total": 27.5}, "external", RECEIVED)
    assert cloudevents.encode(event) == message


@pytest.mark.parametrize(
    ("attributes", "identifiers", "about"),
    [
        ({"subject": "user-001"}, [("user_id", "user-001")], ""),
        ({"subject": "email:a@b.c"}, [("email", "a@b.c")], ""),
        ({"subject": "urn:person:7"}, [("user_id", "urn:person:7")], ""),
        ({"subject": "email:"}, [("user_id", "email:")], ""),
        ({"userid": "u7", "subject": "invoice-9"}, [("user_id", "u7")], "invoice-9"),
        ({"userid": 7}, [("user_id", "7")], "user-001"),
        ({"personid": "phone:+44", "subject": ...}, [("phone", "+44")], ""),
        (
            {"anonymousid": "a1", "email": "a@b.c", "userid": ""},
            [("anonymous_id", "a1"), ("email", "a@b.c")],
            "user-001",
        ),
    ],
)
def test_whose_event_it_is(attributes: Any, identifiers: Any, about: str) -> None:
    event = one(ce(**attributes))
    assert [(identifier.kind, identifier.value) for identifier in event.identifiers] == identifiers
    assert event.object_ref == about
    assert cloudevents.encode(event) == ce(**attributes)


@pytest.mark.parametrize(
    ("data", "properties"),
    [
        ({}, {}),
        ({"data": {}}, {}),
        ({"data": {"a": 1}}, {"a": 1}),
        ({"data": {"data": 1}}, {"data": 1}),
        ({"data": 5}, {"data": 5}),
        ({"data": None}, {"data": None}),
        ({"data": [1, 2]}, {"data": [1, 2]}),
        ({"data": "<x/>", "datacontenttype": "text/xml"}, {"data": "<x/>"}),
        ({"data_base64": "AAEC"}, {"data_base64": "AAEC"}),
        ({"data_base64": None, "data": {"a": 1}}, {"a": 1}),
    ],
)
def test_data_of_every_kind_comes_back_as_it_was(data: Any, properties: Any) -> None:
    event = one(ce(**data))
    assert event.properties == properties
    assert cloudevents.encode(event) == ce(**data)


def test_the_pair_of_source_and_id_is_the_key_however_long() -> None:
    keys = {
        one(ce(source=source, id=id)).key
        for source in ("/a", "/a/b", "/" + "s" * 99, "/" + "s" * 2_000)
        for id in ("1", "1 2", "i" * 2_000, "2")
    }
    assert len(keys) == 16
    assert max(map(len, keys)) <= 100
    # A pair holds a blank and a hash does not, so that neither is taken for the other.
    assert {key for key in keys if " " in key} == {"/a 1", "/a 1 2", "/a 2", "/a/b 1", "/a/b 1 2", "/a/b 2"}


def test_null_attributes_are_not_set_and_come_back() -> None:
    message = ce(time=None, dataschema=None, userid=None, traceparent=None, datacontenttype=None)
    event = one(message)
    assert (event.occurred_at, event.sent_time, event.schema_version, event.context) == (RECEIVED, None, "", {})
    assert cloudevents.encode(event) == message


def test_a_time_far_ahead_is_clamped() -> None:
    far = RECEIVED + DAY + 1
    event = one(ce(time=format_time(far)))
    assert (event.occurred_at, event.sent_time, event.marks) == (RECEIVED, far, ("clamped",))


@pytest.mark.parametrize(("value", "historical"), [(True, True), ("true", True), (False, False), (1, False)])
def test_an_extension_says_that_it_is_history(value: Any, historical: bool) -> None:
    assert one(ce(historical=value)).historical is historical


def test_any_event_can_be_told_as_a_cloudevent_and_means_the_same() -> None:
    event = Event(
        type="purchase_completed",
        identifiers=(Identifier("email", "a@b.c"),),
        occurred_at=parse_time("1997-01-01"),
        key="row 1",
        source="shop",
        properties={"total": 11.77},
        context={"traceparent": "00-1", "page": {"url": "/"}, "userAgent": "x"},
        historical=True,
    )
    told = cloudevents.encode(event)
    assert (told["id"], told["source"]) == ("row 1", "/shop")
    again = one(told)
    assert (again.type, again.identifiers, again.occurred_at) == (event.type, event.identifiers, event.occurred_at)
    assert (again.properties, again.historical) == (event.properties, True)
    assert again.context == {"traceparent": "00-1", "historical": "true"}


# --- binary mode -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "content_type", "data"),
    [
        (b'{"a":1}', "application/json; charset=utf-8", {"data": {"a": 1}}),
        (b'{"a":1}', "application/vnd.acme+json", {"data": {"a": 1}}),
        (b"5", "application/json", {"data": 5}),
        (b'{"a":1}', "", {"data": {"a": 1}}),
        ("grüß".encode(), "text/plain", {"data": "grüß"}),
        (b"\xff\xfe", "text/plain", {"data_base64": "//4="}),
        (b"\0\1", "application/octet-stream", {"data_base64": "AAE="}),
        (b"", "", {}),
    ],
)
def test_a_body_is_the_data_in_its_content_type(body: bytes, content_type: str, data: Any) -> None:
    event = binary(body, content_type)
    assert isinstance(event, Event)
    assert cloudevents.encode(event) == ce(**data, **({"datacontenttype": content_type} if content_type else {}))


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro € 😀"),
        ("%41%62c", "Abc"),
        ('"quoted \\"text\\" \\\\ %22"', 'quoted "text" \\ "'),
        ("100%", "100%"),
        ("%2541", "%41"),
        ("a+b", "a+b"),
        ("Euro \u00e2\u0082\u00ac", "Euro €"),
    ],
)
def test_headers_are_unquoted_then_percent_decoded_once(header: str, value: str) -> None:
    event = binary(subject=header)
    assert isinstance(event, Event)
    assert event.identifiers == (Identifier("user_id", value),)


@given(st.text(st.characters(blacklist_categories=["Cs", "Cc", "Cn"]), min_size=1))
def test_any_text_survives_the_encoding_that_the_binding_asks_for(text: str) -> None:
    event = binary(subject=quote(text, safe="!#$&'()*+,-./:;<=>?@[\\]^_`{|}~"))
    assert isinstance(event, Event)
    assert event.identifiers == (Identifier("user_id", text),)


@pytest.mark.parametrize(
    ("attributes", "body", "code"),
    [
        ({"subject": "a\x01"}, b"", "invalid_attribute"),
        ({"dataschema": "a b"}, b"", "invalid_attribute"),
        ({"datacontenttype": "text/plain"}, b"x", "invalid_attribute"),
        ({"data": "x"}, b"", "invalid_attribute"),
        ({"id": ...}, b"", "missing_attribute"),
        ({"specversion": "0.3"}, b"", "unsupported_specversion"),
        ({}, b"{", "invalid_data"),
        ({}, b"[" * 70 + b"]" * 70, "too_deep"),
        ({}, b'"' + b"x" * CLOUDEVENT_BYTES_MAX + b'"', "too_large"),
    ],
)
def test_a_bad_binary_event_is_rejected_and_kept_in_the_structured_form(
    attributes: Any, body: bytes, code: str
) -> None:
    result = binary(body, "application/json", **attributes)
    assert isinstance(result, Rejection)
    assert result.code == code
    if code != "too_large":
        kept = json.loads(result.raw)
        assert {name: kept.get(name, ...) for name in ("type", "source")} == {"type": "order.done", "source": "/shop"}
        assert code != "invalid_data" or kept["data_base64"] == b64encode(body).decode()


# What the SDK for JavaScript writes into headers as it is, and sends as data: the binding asks for other text.
UNESCAPED: list[dict[str, Any]] = [
    {"id": "100%FF"},
    {"id": "a%0Ab"},
    {"source": "/shop%20x"},
    {"subject": "%C0%A0"},
    {"dataschema": "https://shop.example/order%20x"},
    {"type": "order\xe9"},
    {"sequence": 7},
    {"sampled": True},
    {"off": False, "comment": "50 % off"},
    {"userid": 42},
    {"historical": True},
    {"data": "hello"},
    {"data": "50 %"},
    {"data": 'say "x"'},
    {"data": 27.5},
    {"data": True},
    {"data": {"a": [None]}},
    {"data_base64": "gIGC/w=="},
]


@pytest.mark.parametrize("fields", UNESCAPED, ids=str)
def test_an_event_is_the_same_in_both_modes_of_an_sdk_that_escapes_nothing(fields: dict[str, Any]) -> None:
    event = ce(**fields)
    structured = one(event)
    data = event.pop("data", ...)
    body = data if isinstance(data, str) else "" if data is ... else json.dumps(data)
    raw = b64decode(event.pop("data_base64", "")) or body.encode()
    attributes = {name: value if isinstance(value, str) else json.dumps(value) for name, value in event.items()}
    found = binary(raw, "application/json; charset=utf-8", **attributes)
    assert isinstance(found, Event), found
    assert (found.key, payload_digest(found)) == (structured.key, payload_digest(structured))
    assert cloudevents.encode(structured) == ce(**fields)


# --- what the specification does not allow ---------------------------------------------------------------------------

BAD = {
    "missing_attribute": [ce(id=...), ce(id=""), ce(id=None), ce(source=...), ce(type=""), ce(specversion=...), {}],
    "unsupported_specversion": [ce(specversion="0.3"), ce(specversion="1.1"), ce(specversion="1")],
    "invalid_attribute": [
        ce(id=5), ce(type=[]), ce(source="a b"), ce(source="/ü"), ce(source="/%zz"), ce(source="<x>"), ce(subject=""),
        ce(subject=5), ce(subject="a\nb"), ce(subject="a\ufffeb"), ce(time=5), ce(dataschema="/relative"),
        ce(dataschema=""), ce(datacontenttype="json"), ce(datacontenttype=""), ce(Extension="x"), ce(my_ext="x"),
        ce(**{"my-ext": "x"}), ce(ext={"a": 1}), ce(ext=[1]), ce(ext=1.5), ce(ext=2**31), ce(userid=True),
        ce(**{"": "x"}),
        ce(extension="\u0000"),
    ],
    "invalid_time": [ce(time=""), ce(time="2026-03-01"), ce(time="2026-03-01 12:00:00Z"),
                     ce(time="2026-03-01T12:00:00"),
                     ce(time="2026-02-30T12:00:00Z"), ce(time="2026-03-01T12:00Z")],
    "invalid_data": [ce(data=1, data_base64="AAEC"), ce(data_base64="%"), ce(data_base64=5), ce(data_base64="AAE")],
    "no_identifier": [ce(subject=...), ce(subject=None, userid="")],
    "reserved_type": [ce(type="threadline.person_merged")],
    "invalid_type": [ce(type="t" * 201)],
    "not_an_object": [5, None, "x", []],
    "too_large": [ce(data={"x": "y" * CLOUDEVENT_BYTES_MAX})],
    "number_out_of_range": [ce(data={"x": 2**64})],
    "too_deep": [ce(data=json.loads("[" * 70 + "]" * 70))],
    "invalid_json": [b'{"id":NaN}', b'{"id":"\\ud800"}', b'{"id":"\xff"}', b"nope", b'{"id":"a\x01"}'],
}  # fmt: skip
CASES = [(code, case) for code, cases in BAD.items() for case in cases]


@pytest.mark.parametrize(("code", "case"), CASES, ids=[f"{code}-{n}" for n, (code, _) in enumerate(CASES)])
def test_a_bad_event_is_answered_with_its_code_and_its_neighbours_are_taken(code: str, case: Any) -> None:
    raw = case if isinstance(case, bytes) else json.dumps(case).encode()
    first, last = json.dumps(ce(id="first")).encode(), json.dumps(ce(id="last")).encode()
    before, bad, after = send(b"[" + first + b"," + raw + b", " + last + b"]", BATCH).results
    assert isinstance(before, Event)
    assert isinstance(after, Event)
    assert (before.key, after.key) == ("/shop first", "/shop last")
    assert isinstance(bad, Rejection)
    assert (bad.index, bad.code) == (1, code)
    if code in ("invalid_json", "not_an_object"):
        with pytest.raises(MalformedBody):
            send(raw)
    else:
        (alone,) = send(raw).results
        assert isinstance(alone, Rejection)
        assert (alone.code, alone.key) == (code, bad.key)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", STRUCTURED),
        (b"[]", STRUCTURED),
        (b"{", STRUCTURED),
        (b"{}", BATCH),
        (b"[", BATCH),
        (b"[1]x", BATCH),
        (b"[NaN]]", BATCH),
        (b"[NaN]x", BATCH),
        (b"\x01", "application/cloudevents+avro"),
        (b"{}", "application/cloudevents+json; charset=utf-16"),
        (b"[" * 100_000, BATCH),
    ],
)
def test_a_body_in_which_no_event_can_be_made_out_is_malformed(body: bytes, content_type: str) -> None:
    with pytest.raises(MalformedBody):
        send(body, content_type)


@pytest.mark.parametrize("content_type", ["Application/CloudEvents+JSON; charset=UTF-8", "application/cloudevents"])
def test_the_content_type_is_read_as_media_types_are(content_type: str) -> None:
    assert isinstance(send(ce(), content_type).results[0], Event)


def test_a_batch_over_the_limit_is_refused_whole() -> None:
    assert len(send([ce()] * BATCH_EVENTS_MAX, BATCH).results) == BATCH_EVENTS_MAX
    with pytest.raises(LimitExceeded):
        send([ce()] * (BATCH_EVENTS_MAX + 1), BATCH)
    assert send([], BATCH).results == []


def test_an_event_that_is_too_large_is_named_by_its_key_all_the_same() -> None:
    (refusal,) = send(ce(data="x" * CLOUDEVENT_BYTES_MAX)).results
    assert isinstance(refusal, Rejection)
    assert (refusal.code, refusal.key) == ("too_large", "/shop e1")


def test_a_form_feed_is_no_blank_but_an_event_that_is_none() -> None:
    (refusal,) = send(b"[\x0c]", BATCH).results
    assert isinstance(refusal, Rejection)
    assert refusal.code == "invalid_json"


@pytest.mark.parametrize("source", ["/shop", "/" + "s" * 300])
def test_what_is_rejected_has_the_key_that_it_would_have_had(source: str) -> None:
    event = one(ce(source=source))
    (refusal,) = send(ce(source=source, time="soon")).results
    assert isinstance(refusal, Rejection)
    assert refusal.key == event.key
    headers = {name: str(value) for name, value in ce(source=source, time="soon").items() if name != "data"}
    (binary,) = send(b"{}", "application/json", **{f"ce-{name}": value for name, value in headers.items()}).results
    assert isinstance(binary, Rejection)
    assert binary.key == event.key


# --- anything at all -------------------------------------------------------------------------------------------------

anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = ["id", "source", "type", "specversion", "subject", "time", "data", "data_base64", "dataschema", "userid", "ext"]
plausible = st.sampled_from(["1.0", "/shop", "user-001", "2026-03-01T12:00:00Z", "AAEC", "https://a.b/c"])
wild = st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), plausible | anything)


@given(st.lists(st.builds(lambda extra: {**ce(), **extra}, wild) | wild | anything, max_size=4))
def test_any_batch_gives_one_answer_per_event_and_what_is_taken_comes_back(batch: list[Any]) -> None:
    results = send(json.dumps(batch).encode(), BATCH).results
    assert len(results) == len(batch)
    for sent, result in zip(batch, results, strict=True):
        if isinstance(result, Event):
            assert cloudevents.encode(result) == sent
        else:
            assert result.code in CODES


@given(
    st.binary(max_size=100),
    st.dictionaries(st.from_regex(r"\Ace-[a-z]{1,8}\Z"), st.text(st.characters(max_codepoint=255))),
)
def test_any_binary_request_has_an_answer(body: bytes, headers: dict[str, str]) -> None:
    (result,) = send(body, "application/json", **headers).results
    assert isinstance(result, Event) or result.code in CODES


@pytest.mark.parametrize("events", [0, 1, 5])
def test_who_decodes_may_pause_before_each_event(events: int) -> None:
    paused: list[int] = []
    body, headers = json.dumps([ce()] * events).encode(), {"content-type": BATCH}
    decoded = cloudevents.decode(
        body, headers, source="orders", workspace="acme", received_at=RECEIVED, pause=lambda: paused.append(1)
    )
    assert len(paused) == len(decoded.results) == events
