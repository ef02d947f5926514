"""A message that was rejected and is put right is the event that it would have been in the request it came in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.segment_cases import RECEIVED, refused, send
from threadline.kernel.event import Event
from threadline.kernel.limits import EVENT_BYTES_MAX
from threadline.wire import segment
from threadline.wire.rejection import Rejection

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
plain = st.none() | st.booleans() | st.integers(-9, 9) | texts
objects = st.dictionaries(texts, plain | st.dictionaries(texts, plain, max_size=2), max_size=3)
times = st.sampled_from(["2026-11-21T00:00:00Z", "2026-11-20T21:00:00.5Z", "2026-11-21T00:46:26Z", None])
shared = st.fixed_dictionaries(
    {},
    optional={
        "context": objects | st.none(),
        "integrations": objects | st.none(),
        "sentAt": times,
        "historical": st.booleans() | plain,
        "historical_migration": st.booleans(),
    },
)
messages = st.fixed_dictionaries(
    {"messageId": st.just("m")},
    optional={"context": objects, "integrations": objects, "sentAt": times, "timestamp": times, "properties": objects},
)
FIT: dict[str, dict[str, Any]] = {
    "identify": {"userId": "u"},
    "track": {"userId": "u", "event": "Signed Up"},
    "page": {"userId": "u"},
    "screen": {"userId": "u"},
    "group": {"userId": "u", "groupId": "g"},
    "alias": {"userId": "u", "previousId": "p"},
}


def again(rejection: Any, fix: dict[str, Any]) -> Event | Rejection:
    assert isinstance(rejection, Rejection)
    assert rejection.envelope is not None
    message = json.dumps({**json.loads(rejection.raw), **fix}).encode()
    return segment.reread(
        message, rejection.envelope, source="shop", workspace="acme", received_at=RECEIVED, fresh_key=lambda: "fresh"
    )


@given(
    envelope=shared,
    message=messages,
    kind=st.sampled_from(sorted(FIT)),
    name=st.sampled_from(["type", "action"]),
    neighbours=st.integers(0, 2),
)
def test_a_message_of_a_batch(
    envelope: dict[str, Any], message: dict[str, Any], kind: str, name: str, neighbours: int
) -> None:
    beside = [{"type": "page", "userId": "v"}] * neighbours
    bad, good = {**message, name: kind}, {**message, name: kind, **FIT[kind]}
    (*_, rejection) = send({**envelope, "batch": [*beside, bad]}).results
    (*_, straight) = send({**envelope, "batch": [*beside, good]}).results
    assert again(rejection, FIT[kind]) == straight
    assert isinstance(straight, Event)


@given(message=messages, kind=st.sampled_from(sorted(FIT)), given=st.sampled_from([..., None, "track", "page", 7, ""]))
def test_a_message_of_a_path(message: dict[str, Any], kind: str, given: Any) -> None:
    bad = message if given is ... else {**message, "type": given}
    (rejection,) = send(bad, kind).results
    (straight,) = send({**bad, **FIT[kind]}, kind).results
    assert again(rejection, FIT[kind]) == straight
    assert isinstance(straight, Event)
    assert straight.type == {"track": "Signed Up"}.get(kind, kind)


@pytest.mark.parametrize(
    ("wrong", "rest"),
    [
        ({"context": 7}, {"historical": True}),
        ({"integrations": []}, {}),
        ({"context": {"text": "x" * EVENT_BYTES_MAX}}, {"integrations": {"All": False}}),
    ],
)
def test_what_is_wrong_with_an_envelope_is_left_out_of_it(wrong: dict[str, Any], rest: dict[str, Any]) -> None:
    message = {"type": "page", "userId": "u", "messageId": "m"}
    (straight,) = send({"batch": [message], **rest}).results
    assert again(refused(message, **wrong, **rest), {}) == straight
