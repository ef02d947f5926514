"""One bad message never loses its neighbours, and every refusal has a documented code."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.segment_cases import one, refused, send, track
from threadline.kernel.errors import LimitExceeded, MalformedBody
from threadline.kernel.event import Event
from threadline.kernel.limits import BATCH_EVENTS_MAX, EVENT_BYTES_MAX, JSON_DEPTH_MAX
from threadline.wire import message as message_module
from threadline.wire.message import depth, split_array
from threadline.wire.rejection import CODES, RAW_BYTES_MAX, Rejection
from threadline.wire.segment import encode


def nested(levels: int) -> bytes:
    """A track call that is so many levels deep."""
    return (
        json.dumps(track())[:-1].encode() + b',"properties":{"a":' + b"[" * (levels - 2) + b"]" * (levels - 2) + b"}}"
    )


def with_property(raw: bytes) -> bytes:
    """A track call with this raw text as the value of a property."""
    return json.dumps(track())[:-1].encode() + b',"properties":{"x":' + raw + b"}}"


BAD = {
    "invalid_json": [
        with_property(b"NaN"), with_property(b"-Infinity"), with_property(b'"\xff"'), with_property(b'"\xed\xa0\x80"'),
        with_property(b'"\\ud800"'), with_property(b'"\\udc00x"'), with_property(b'"a\x01b"'), with_property(b"01"),
        with_property(b"'x'"), b"{1:2}", b"nope", b'{"type":"track",}', b'{"a" "b"}', b'{"a":}',
    ],
    "not_an_object": [b"null", b"5", b'"text"', b"[]", b"true"],
    "too_deep": [nested(JSON_DEPTH_MAX + 1), nested(1_000), nested(15_000)],
    "too_large": [json.dumps(track(properties={"x": "y" * EVENT_BYTES_MAX})).encode(), b'"' + b"x" * 100_000 + b'"'],
    "number_out_of_range": [
        with_property(b"1e400"), with_property(b"18446744073709551616"), with_property(b"-9223372036854775809"),
        with_property(b"9" * 5_000), with_property(b'{"a":[1' + b"0" * 30 + b"]}"),
    ],
    "wrong_type": [
        track(userId={}), track(userId=[1]), track(userId=True), track(anonymousId={}), track(messageId=[]),
        track(event=5),
        track(event={}), track(properties=[]), track(properties="x"), track(context=[]), track(context=3),
        track(integrations=[]), track(context={"externalIds": {}}), track(context={"externalIds": [5]}),
        track(context={"externalIds": [{"id": {}, "type": "x"}]}),
        track(context={"externalIds": [{"id": "1", "type": []}]}),
        {"type": "identify", "userId": "u", "traits": []}, {"type": "page", "userId": "u", "name": {}},
        {"type": "group", "userId": "u", "groupId": {}}, {"type": "group", "userId": "u", "groupId": "g", "traits": 1},
        {"type": "alias", "userId": "u", "previousId": []},
    ],
    "unknown_type": [track(type=...), track(type=None), track(type="charge"), track(type=5), track(type=["track"]), {}],
    "no_event_name": [track(event=...), track(event=None), track(event="")],
    "invalid_type": [track(event="e" * 201)],
    "reserved_type": [track(event="threadline.person_merged"), track(event="threadline.")],
    "no_identifier": [track(userId=...), track(userId=None), track(userId="", anonymousId=""),
                      {"type": "group", "groupId": "g", "traits": {"email": "office@initech.com"}},
                      {"type": "identify", "traits": {"email": 5}}],
    "too_many_identifiers": [track(context={"externalIds": [{"type": f"k{n}", "id": "1"} for n in range(16)]})],
    "invalid_identifier": [
        track(context={"externalIds": [{"type": kind, "id": "1"}]}) for kind in ("", "a\0b", "a:b", "k" * 65)
    ],
    "no_group_id": [{"type": "group", "userId": "u"}, {"type": "group", "userId": "u", "groupId": ""}],
    "no_previous_id": [{"type": "alias", "userId": "u"}],
    "no_user_id": [{"type": "alias", "previousId": "a", "anonymousId": "b"}],
}  # fmt: skip

CASES = [(code, case) for code, cases in BAD.items() for case in cases]


def raw_of(case: Any) -> bytes:
    return case if isinstance(case, bytes) else json.dumps(case).encode()


@pytest.mark.parametrize(("code", "case"), CASES, ids=[f"{code}-{n}" for n, (code, _) in enumerate(CASES)])
def test_a_bad_message_is_answered_with_its_code_and_its_neighbours_are_taken(code: str, case: Any) -> None:
    raw = raw_of(case)
    good = json.dumps(track(messageId="before")).encode(), json.dumps(track(messageId="after")).encode()
    decoded = send(b'{"batch":[' + good[0] + b" , " + raw + b"," + good[1] + b'],"writeKey":"k"}')
    before, bad, after = decoded.results
    assert isinstance(before, Event)
    assert isinstance(after, Event)
    assert (before.key, after.key, decoded.write_key) == ("before", "after", "k")
    assert isinstance(bad, Rejection)
    assert (bad.index, bad.code, bad.raw) == (1, code, raw[:RAW_BYTES_MAX])
    assert bad.message


@pytest.mark.parametrize(("code", "case"), CASES, ids=[f"{code}-{n}" for n, (code, _) in enumerate(CASES)])
def test_a_bad_single_call_is_answered_alike(code: str, case: Any) -> None:
    if code == "unknown_type":
        return  # The path of a single call says what it is.
    kind = case.get("type") if isinstance(case, dict) else "track"
    if code in ("invalid_json", "not_an_object"):
        with pytest.raises(MalformedBody):
            send(raw_of(case), kind=kind)
    else:
        (result,) = send(raw_of(case), kind=kind).results
        assert isinstance(result, Rejection)
        assert result.code == code


def test_the_cases_cover_every_code_of_this_format() -> None:
    others = {
        "invalid_attribute",
        "invalid_data",
        "invalid_key",
        "invalid_time",
        "invalid_value",
        "missing_attribute",
        "missing_column",
        "payload_missing",
        "unsupported_specversion",
    }
    assert set(BAD) == set(CODES) - others


def test_the_rejection_names_the_message() -> None:
    assert refused(track(event="", messageId="m7")).key == "m7"
    assert refused(track(event="", messageId=7)).key == "7"
    assert refused(track(event="", messageId=[7])).key == ""


def test_the_limits_are_inclusive() -> None:
    assert isinstance(one(track(messageId="m" * 100, event="e" * 200)), Event)
    room = EVENT_BYTES_MAX - len(json.dumps(track(properties={"x": ""})))
    assert isinstance(one(track(properties={"x": "y" * room})), Event)
    assert refused(track(properties={"x": "y" * (room + 1)})).code == "too_large"
    (result,) = send(b'{"batch":[' + nested(JSON_DEPTH_MAX) + b"]}").results
    assert isinstance(result, Event)
    for number in (b"18446744073709551615", b"-9223372036854775808", b"9223372036854775808", b"1.7976931348623157e308"):
        (result,) = send(b'{"batch":[' + with_property(number) + b"]}").results
        assert isinstance(result, Event)
        assert encode(result)["properties"]["x"] == json.loads(number)


def test_brackets_within_text_are_no_depth() -> None:
    text = "[{" * 500 + '\\"[['
    assert one(track(properties={"x": text})).properties == {"x": text}


@pytest.mark.parametrize("last", [json.dumps(track()), "NaN"])
def test_a_batch_over_the_limit_is_refused_whole(last: str) -> None:
    messages = ",".join([json.dumps(track())] * BATCH_EVENTS_MAX)
    assert len(send(f'{{"batch":[{messages}]}}'.encode()).results) == BATCH_EVENTS_MAX
    with pytest.raises(LimitExceeded):
        send(f'{{"batch":[{messages},{last}]}}'.encode())


@pytest.mark.parametrize(
    ("envelope", "code"),
    [
        ({"context": []}, "wrong_type"),
        ({"context": "x"}, "wrong_type"),
        ({"integrations": 5}, "wrong_type"),
        ({"context": {"a": "x" * EVENT_BYTES_MAX}}, "too_large"),
    ],
)
def test_what_is_wrong_for_all_rejects_each_and_keeps_each(envelope: Any, code: str) -> None:
    results = send({"batch": [track(messageId="m1"), track(messageId="m2")], **envelope}).results
    expected = code if code != "wrong_type" else "not_an_object"
    assert [(result.code, result.key) for result in results if isinstance(result, Rejection)] == [
        (expected, "m1"),
        (expected, "m2"),
    ]


@pytest.mark.parametrize("blank", [b"\x0c", b"\x0b", b"\xa0", b"\x0c, \x0b"])
def test_what_json_has_no_blanks_for_is_a_message_that_is_none(blank: bytes) -> None:
    results = send(b'{"batch":[' + blank + b"]}").results
    assert [result.code for result in results if isinstance(result, Rejection)] == ["invalid_json"] * len(
        blank.split(b",")
    )


@pytest.mark.parametrize(
    "message",
    [track(messageId="m", properties={"x": "y" * EVENT_BYTES_MAX}), track(messageId="m", properties={"x": 2**64})],
    ids=["too_large", "number_out_of_range"],
)
@pytest.mark.parametrize("kind", ["track", None])
def test_a_message_that_is_not_read_is_named_by_its_id_all_the_same(message: dict[str, Any], kind: str | None) -> None:
    (result,) = send(message if kind else {"batch": [message]}, kind=kind).results
    assert isinstance(result, Rejection)
    assert result.key == "m"


# --- anything at all -------------------------------------------------------------------------------------------------

anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(), max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = [
    "type",
    "event",
    "userId",
    "anonymousId",
    "messageId",
    "properties",
    "traits",
    "context",
    "timestamp",
    "sentAt",
    "previousId",
    "groupId",
    "name",
    "integrations",
    "user_id",
    "receivedAt",
    "historical",
]
plausible = st.sampled_from(
    ["track", "identify", "page", "group", "alias", "u1", "2026-03-01T12:00:00Z", "Order Completed"]
)
messages = st.dictionaries(st.sampled_from(FIELDS), plausible | anything) | anything


@given(st.lists(messages, max_size=5), st.dictionaries(st.sampled_from(["context", "sentAt", "writeKey"]), anything))
def test_any_batch_gives_one_answer_per_message_and_what_is_taken_comes_back(batch: list[Any], envelope: Any) -> None:
    body = json.dumps({"batch": batch, **envelope}).encode()
    try:
        results = send(body).results
    except MalformedBody:
        # Only what stands around the messages can spoil them all: NaN, a lone surrogate, a number out of range.
        assert envelope
        return
    assert len(results) == len(batch)
    for message, result in zip(batch, results, strict=True):
        if isinstance(result, Rejection):
            assert result.code in CODES
        elif "context" not in envelope:
            message.pop("writeKey", None)
            assert encode(result) == json.loads(json.dumps(message))


@given(st.binary(max_size=200))
def test_any_bytes_are_answered_or_declared_malformed(body: bytes) -> None:
    for kind, text in ((None, body), ("track", body), (None, b'{"batch":[' + body + b"]}")):
        try:
            results = send(text, kind=kind).results
        except MalformedBody:
            continue
        assert all(isinstance(result, Event) or result.code in CODES for result in results)


@given(st.lists(messages, min_size=1, max_size=5))
def test_the_scanner_finds_what_a_parser_finds(batch: list[Any]) -> None:
    text = json.dumps({"a": [1, {"batch": [2]}], "b": 'x\\"[', "batch": batch, "c": {"d": [], "e": [1, 2]}}).encode()
    elements, rest = split_array(text, b"batch")
    assert [json.dumps(json.loads(element)) for element in elements] == [json.dumps(message) for message in batch]
    assert json.loads(rest) == {"a": [1, {"batch": [2]}], "b": 'x\\"[', "batch": [], "c": {"d": [], "e": [1, 2]}}
    assert depth(text) >= 2
    assert depth(json.dumps(batch).encode()) == _depth(batch)


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def test_a_megabyte_of_hostile_quotes_is_scanned_in_linear_time() -> None:
    # Were each quote tried as the beginning of a string, this would take minutes.
    with pytest.raises(MalformedBody):
        split_array(b'{"batch":["' + b'\\"' * 500_000, b"batch")


def test_hostile_text_is_passed_over_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    # A step for each quote took seconds for the four megabytes that a request may have.
    steps: list[int] = []

    def counted(text: bytes, position: int) -> Any:
        steps.append(position)
        return to_bracket(text, position)

    to_bracket = message_module._to_bracket
    monkeypatch.setattr(message_module, "_to_bracket", counted)
    for hostile in (b'"' * 500_000, b"[" + b'"",' * 100_000, b"[" * 500_000, b"[" + b"[]," * 200_000, b":" * 500_000):
        steps.clear()
        with pytest.raises(MalformedBody):
            split_array(b'{"batch":[' + hostile, b"batch")
        assert len(steps) <= message_module._BRACKETS_MAX + 1
    assert len(steps) < 10


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"batch" : [NaN]}', [b"NaN"]),
        (b'{"a\\"batch":[NaN]}', None),
        (b'{"x":{"batch":[NaN]}}', None),
        (b'[{"batch":[NaN]}]', None),
        (b'{"x":"\\"batch\\":[1","batch":[[1,2],"],",{}]}', [b"[1,2]", b'"],"', b"{}"]),
    ],
)
def test_the_batch_is_the_member_of_that_name(body: bytes, found: list[bytes] | None) -> None:
    if found is None:
        with pytest.raises(MalformedBody):
            split_array(body, b"batch")
    else:
        assert split_array(body, b"batch")[0] == found
