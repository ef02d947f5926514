"""What each call of Segment's API means as an event."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.wire.segment_cases import RECEIVED, one, send, track
from threadline.kernel.errors import MalformedBody
from threadline.kernel.event import Event, Identifier
from threadline.kernel.limits import EVENT_KEY_LENGTH_MAX, SENDING_SECONDS_MAX
from threadline.kernel.time import DAY, HOUR, SECOND, format_time, parse_time
from threadline.wire import segment
from threadline.wire.segment import encode

USER = Identifier("user_id", "u1")


def test_a_track_call() -> None:
    properties = {"plan": "pro", "seats": 5}
    event = one(track(properties=properties, context={"locale": "de-DE"}, timestamp="2026-11-21T00:46:25.5Z"))
    assert event == Event(
        type="Signed Up",
        identifiers=(USER,),
        occurred_at=RECEIVED - SECOND // 2,
        key="m1",
        source="shop",
        source_type="external",
        workspace="acme",
        properties=properties,
        context={"locale": "de-DE"},
        received_at=RECEIVED,
        sent_time=RECEIVED - SECOND // 2,
        wire={"segment": {"userId": "u1", "timestamp": "2026-11-21T00:46:25.5Z"}},
    )


def test_an_identify_call_says_traits() -> None:
    event = one(
        {"type": "identify", "userId": "u1", "traits": {"plan": "pro", "email": "Ana@Example.com", "phone": 441}}
    )
    assert event.type == "identify"
    assert event.properties == {"plan": "pro", "email": "Ana@Example.com", "phone": 441}
    assert event.identifiers == (USER, Identifier("email", "Ana@Example.com"), Identifier("phone", "441"))


@pytest.mark.parametrize("beside", [{}, {"traits": {}}, {"traits": None}])
def test_traits_of_identify_that_stand_in_the_context_alone_count(beside: dict[str, Any]) -> None:
    context = {"traits": {"email": "a@b.c"}}
    message = {"type": "identify", "userId": "u1", "context": context, "messageId": "m", **beside}
    event = one(message)
    assert event.properties == {"email": "a@b.c"}
    assert event.identifiers == (USER, Identifier("email", "a@b.c"))
    assert encode(event) == message


@pytest.mark.parametrize("kind", ["page", "screen"])
def test_page_and_screen_calls_are_about_their_name(kind: str) -> None:
    event = one({"type": kind, "userId": "u1", "name": "Docs", "category": "Help", "properties": {"url": "/docs"}})
    assert (event.type, event.object_ref, event.properties) == (kind, "Docs", {"url": "/docs"})


def test_a_group_call_is_about_its_group_whose_address_is_not_the_persons() -> None:
    event = one({"type": "group", "userId": "u1", "groupId": 7, "traits": {"email": "office@initech.com"}})
    assert (event.type, event.object_ref, event.properties) == ("group", "7", {"email": "office@initech.com"})
    assert event.identifiers == (USER,)


@pytest.mark.parametrize(("previous", "kind"), [("anon-xyz", "anonymous_id"), ("jen@email.com", "email")])
def test_an_alias_links_what_the_user_was_called_before(previous: str, kind: str) -> None:
    event = one({"type": "alias", "userId": "u1", "previousId": previous})
    assert (event.type, event.object_ref) == ("alias", previous)
    assert event.identifiers == (USER, Identifier(kind, previous))


def test_identifiers_from_everywhere_once_each() -> None:
    traits = {"email": "a@b.c", "phone": "+44 1"}
    external = [
        {"id": "123", "type": "crm_id", "collection": "users", "encoding": "none"},
        {"id": 55, "type": "shop_id"},
        {"id": "123", "type": "crm_id"},
        {"id": "acct", "type": "crm_id", "collection": "accounts"},
        {"id": "", "type": "empty"},
    ]
    event = one(track(anonymousId="a1", context={"traits": traits, "externalIds": external}))
    assert event.identifiers == (
        USER,
        Identifier("anonymous_id", "a1"),
        Identifier("email", "a@b.c"),
        Identifier("phone", "+44 1"),
        Identifier("crm_id", "123"),
        Identifier("shop_id", "55"),
    )


@pytest.mark.parametrize(("given", "value"), [(507, "507"), (12.0, "12"), (1.5, "1.5"), (-3, "-3"), ("507", "507")])
def test_a_user_id_may_come_as_a_number(given: Any, value: str) -> None:
    message = track(userId=given)
    event = one(message)
    assert event.identifiers == (Identifier("user_id", value),)
    assert encode(event) == message


@pytest.mark.parametrize("length", [1, EVENT_KEY_LENGTH_MAX, EVENT_KEY_LENGTH_MAX + 1, 3_000])
def test_a_message_id_of_any_length_names_its_event_and_comes_back(length: int) -> None:
    first, again, other = (track(messageId=end.rjust(length, "k")) for end in "aab")
    key = one(first).key
    assert (len(key) <= EVENT_KEY_LENGTH_MAX, one(again).key == key, one(other).key == key) == (True, True, False)
    assert encode(one(first)) == first


def test_null_and_empty_ids_are_absent_and_junk_is_left_to_the_rules() -> None:
    assert one(track(userId=None, anonymousId="a1")).identifiers == (Identifier("anonymous_id", "a1"),)
    assert one(track(userId="", anonymousId="a1")).identifiers == (Identifier("anonymous_id", "a1"),)
    assert one(track(userId="null")).identifiers == (Identifier("user_id", "null"),)


def test_snake_case_ids_of_older_pages_are_understood() -> None:
    message = track(userId=..., user_id="u1", anonymous_id="a1")
    assert one(message).identifiers == (USER, Identifier("anonymous_id", "a1"))
    assert encode(one(message)) == message


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("properties", "total"),
    [
        ({"total": 27.5, "revenue": 25}, 27.5),
        ({"revenue": 25, "value": 1}, 25),
        ({"value": "9.90"}, "9.90"),
        ({}, ...),
        ({"total": None, "revenue": 25}, None),
        ({"revenue": None, "value": 3}, 3),
    ],
)
@pytest.mark.parametrize(
    ("name", "type_"), [("Order Completed", "purchase_completed"), ("Order Refunded", "purchase_refunded")]
)
def test_an_order_has_a_total_and_keeps_what_it_said(name: str, type_: str, properties: Any, total: Any) -> None:
    message = track(event=name, **({"properties": properties} if properties else {}))
    event = one(message)
    assert event.type == type_
    assert event.properties.get("total", ...) == total
    assert {**event.properties, **properties} == event.properties
    assert encode(event) == message


@pytest.mark.parametrize(("name", "action"), [("Email Opened", "open"), ("Email Link Clicked", "click")])
def test_an_email_that_was_acted_on_engaged_a_campaign(name: str, action: str) -> None:
    message = track(event=name, properties={"email_id": "e9", "campaign_name": "Spring"})
    event = one(message)
    assert event.type == "campaign_engaged"
    assert event.properties == {"email_id": "e9", "campaign_name": "Spring", "campaign_id": "Spring", "action": action}
    assert encode(event) == message


def test_what_the_producer_says_itself_is_never_overwritten() -> None:
    properties = {"campaign_id": "c1", "campaign_name": "Spring", "action": "replied"}
    assert one(track(event="Email Opened", properties=properties)).properties == properties


@pytest.mark.parametrize("name", ["identify", "page", "screen", "group", "alias"])
def test_a_producers_event_by_the_name_of_a_call_is_not_that_call(name: str) -> None:
    message = track(event=name, properties={"email": "x@y.z"})
    assert one(message).type == f"track.{name}"
    assert encode(one(message)) == message


# --- time ------------------------------------------------------------------------------------------------------------


def test_a_right_clock_leaves_the_time_alone() -> None:
    said = parse_time("2024-02-29T23:30:00.123-03:00")
    event = one(track(timestamp="2024-02-29T23:30:00.123-03:00"), sentAt=format_time(RECEIVED - SECOND))
    assert (event.occurred_at, event.sent_time, event.marks) == (said, said, ())


@pytest.mark.parametrize("off", [-3 * 365 * DAY, -HOUR, -SENDING_SECONDS_MAX * SECOND - 1, SECOND + 1, 9 * HOUR])
@pytest.mark.parametrize("field", ["timestamp", "originalTimestamp"])
@pytest.mark.parametrize("place", ["message", "batch"])
def test_a_wrong_clock_is_corrected_by_the_age_of_the_event(off: int, field: str, place: str) -> None:
    happened = RECEIVED - 5 * SECOND
    times = {field: format_time(happened + off)}
    sent = {"sentAt": format_time(RECEIVED + off)}
    event = one(track(**times, **sent)) if place == "message" else one(track(**times), **sent)
    assert event.occurred_at == happened
    assert event.sent_time == happened + off
    assert event.marks == ("clock_corrected",)


def test_a_retry_of_the_same_message_keeps_its_place_in_time() -> None:
    """On a retry the messageId and the timestamp stay and sentAt is new: both sides' clocks moved on alike."""
    said = format_time(RECEIVED - 5 * SECOND)
    first = one(track(timestamp=said), sentAt=format_time(RECEIVED))
    (later,) = send(
        {"batch": [track(timestamp=said)], "sentAt": format_time(RECEIVED + HOUR)}, received_at=RECEIVED + HOUR
    ).results
    assert isinstance(later, Event)
    assert (later.key, later.occurred_at, later.sent_time) == (first.key, first.occurred_at, first.sent_time)
    assert later.wire == first.wire


def test_no_time_means_the_time_of_receipt() -> None:
    event = one(track(), sentAt=format_time(RECEIVED - HOUR))
    assert (event.occurred_at, event.sent_time, event.marks) == (RECEIVED, None, ())


def test_a_time_far_ahead_is_clamped_and_marked() -> None:
    far = RECEIVED + DAY + 1
    event = one(track(timestamp=format_time(far)))
    assert (event.occurred_at, event.sent_time, event.marks) == (RECEIVED, far, ("clamped",))
    near = one(track(timestamp=format_time(RECEIVED + DAY)))
    assert (near.occurred_at, near.marks) == (RECEIVED + DAY, ())


def test_a_message_that_a_server_has_received_before_is_not_corrected_again() -> None:
    event = one(
        track(
            originalTimestamp="2015-12-12T19:11:01.152Z",
            sentAt="2015-12-12T19:11:01.169Z",
            receivedAt="2015-12-12T19:11:01.266Z",
            timestamp="2015-12-12T19:11:01.249Z",
        )
    )
    assert (event.occurred_at, event.marks) == (parse_time("2015-12-12T19:11:01.249Z"), ())


def test_beside_the_clock_of_the_client_the_timestamp_stands() -> None:
    """RudderStack's client for node always adds the time of the call to the time that its caller gave."""
    said, call = "2026-01-05T10:00:00.123Z", format_time(RECEIVED - HOUR)
    event = one(track(timestamp=said, originalTimestamp=call, sentAt=call))
    assert (event.occurred_at, event.sent_time, event.marks) == (parse_time(said), parse_time(said), ())


@pytest.mark.parametrize("delay", [2 * SECOND, 10 * 60 * SECOND, SENDING_SECONDS_MAX * SECOND])
@pytest.mark.parametrize("place", ["message", "batch"])
def test_a_client_that_never_renews_sent_at_is_not_shifted_by_its_delay(delay: int, place: str) -> None:
    happened = RECEIVED - delay - SECOND
    sent = {"sentAt": format_time(RECEIVED - delay)}
    message = track(originalTimestamp=format_time(happened))
    event = one({**message, **sent}) if place == "message" else one(message, **sent)
    assert (event.occurred_at, event.marks) == (happened, ())


def test_of_two_clocks_at_sending_the_one_that_was_renewed_counts() -> None:
    happened = RECEIVED - 9 * HOUR
    message = track(originalTimestamp=format_time(happened), sentAt=format_time(happened + SECOND))
    event = one(message, sentAt=format_time(RECEIVED))
    assert (event.occurred_at, event.marks) == (happened, ())


USELESS: list[Any] = [
    "soon",
    "",
    "2026-13-01T00:00:00Z",
    5,
    1_764_000_000_000,
    {},
    [],
    False,
    "0001-01-01T00:00:00+01:00",
]


@pytest.mark.parametrize("useless", USELESS)
@pytest.mark.parametrize("field", ["sentAt", "originalTimestamp", "receivedAt", "batch"])
def test_a_useless_clock_beside_a_good_one_is_left_out_and_marked(useless: Any, field: str) -> None:
    said = RECEIVED - HOUR
    message = track(timestamp=format_time(said))
    event = one(message, sentAt=useless) if field == "batch" else one({**message, field: useless})
    assert (event.occurred_at, event.sent_time, event.marks) == (said, said, ("time_ignored",))


@pytest.mark.parametrize("useless", USELESS)
def test_a_useless_timestamp_gives_way_to_the_clock_of_the_call_else_to_the_receipt(useless: Any) -> None:
    call = RECEIVED - HOUR
    event = one(track(timestamp=useless, originalTimestamp=format_time(call)))
    assert (event.occurred_at, event.sent_time, event.marks) == (call, call, ("time_ignored",))
    alone = one(track(timestamp=useless))
    assert (alone.occurred_at, alone.sent_time, alone.marks) == (RECEIVED, None, ("time_ignored",))
    assert encode(alone)["timestamp"] == useless


@pytest.mark.parametrize("sent", ["0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "9999-12-31T00:00:00Z"])
def test_a_clock_that_cannot_be_right_corrects_nothing(sent: str) -> None:
    said = RECEIVED - HOUR
    event = one(track(timestamp=format_time(said), sentAt=sent))
    assert (event.occurred_at, event.marks) == (said, ("time_ignored",))


@pytest.mark.parametrize(
    ("message", "envelope"),
    [
        ({}, {"historical": True}),
        ({}, {"historical_migration": True}),
        ({"historical": True}, {}),
        ({"context": {"historical": True}}, {}),
        ({}, {"context": {"historical": True}}),
    ],
)
def test_history_keeps_its_times_whatever_the_clock_of_its_sender(message: Any, envelope: Any) -> None:
    off = format_time(RECEIVED - HOUR)
    event = one(track(timestamp="1997-01-01T00:00:00Z", **message), sentAt=off, **envelope)
    assert event.historical
    assert (event.occurred_at, event.marks) == (parse_time("1997-01-01"), ())
    assert not one(track(timestamp="1997-01-01T00:00:00Z"), sentAt=off).historical


# --- requests --------------------------------------------------------------------------------------------------------


def test_the_path_says_what_a_single_call_is() -> None:
    decoded = send({"event": "Signed Up", "userId": "u1", "messageId": "m1", "writeKey": "k1"}, kind="track")
    (event,) = decoded.results
    assert isinstance(event, Event)
    assert (event.type, decoded.write_key) == ("Signed Up", "k1")
    assert encode(event) == {"event": "Signed Up", "userId": "u1", "messageId": "m1"}


def test_the_write_key_of_a_batch_comes_with_it_and_never_gets_into_the_log() -> None:
    decoded = send({"batch": [track(writeKey="k1")], "writeKey": "k2"})
    assert decoded.write_key == "k2"
    assert "k1" not in repr(decoded.results)
    assert send({"batch": [], "writeKey": 5}).write_key == ""


def test_a_key_is_made_for_a_message_that_has_none() -> None:
    results = send({"batch": [track(messageId=...), track(messageId=None), track(messageId=""), track()]}).results
    assert [result.key for result in results] == ["fresh-1", "fresh-2", "fresh-3", "m1"]
    assert [encode(result) for result in results if isinstance(result, Event)] == [
        track(messageId=...),
        track(messageId=None),
        track(messageId=""),
        track(),
    ]


def test_what_a_batch_says_for_all_lies_under_each_message() -> None:
    shared = {"library": {"name": "lib", "version": "1"}, "locale": "de"}
    context = {"locale": "fr", "library": {"version": "2"}}
    results = send(
        {
            "batch": [track(context=context, integrations={"All": False}), track(messageId="m2")],
            "context": shared,
            "integrations": {"All": True, "X": 1},
        }
    ).results
    first, second = (result for result in results if isinstance(result, Event))
    assert first.context == {"library": {"name": "lib", "version": "2"}, "locale": "fr"}
    assert second.context == shared
    assert encode(first)["integrations"] == {"All": False, "X": 1}
    assert encode(second)["integrations"] == {"All": True, "X": 1}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"5",
        b'"batch"',
        b"{",
        b'{"batch":[}',
        b'{"batch":{}}',
        b'{"batch":null}',
        b'{"x":1}',
        b'{"batch":[]',
        b"\xff",
        b"<html>",
        b'{"batch":[],}',
        b'{"batch":[]}}',
        b'{"batch":["}',
        b'{"y":{"batch":[NaN]}}',
        b'{"batch":[NaN,{"a":[}]]}',
        b'{"batch":[NaN}]',
        b"[" * 100_000,
        b'{"batch":' + b"[" * 100_000,
        b'"' + b'\\"' * 100_000,
    ],
    ids=lambda body: repr(body[:20]),
)
def test_a_body_in_which_no_message_can_be_made_out_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedBody):
        send(body)


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{", b'{"userId":NaN}', b'{"userId":"\xff"}'])
def test_a_single_call_that_is_no_json_object_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedBody):
        send(body, kind="track")


def test_any_event_can_be_told_as_a_message_and_means_the_same() -> None:
    event = Event(
        type="purchase_completed",
        identifiers=(USER, Identifier("user_id", "u2"), Identifier("crm_id", "c1")),
        occurred_at=parse_time("1997-01-01"),
        key="row-1",
        properties={"total": 11.77},
        context={"campaign": {"name": "spring"}},
        historical=True,
    )
    again = one(encode(event))
    assert (again.type, again.key, again.occurred_at, again.historical) == (
        "purchase_completed",
        "row-1",
        event.occurred_at,
        True,
    )
    assert again.properties == event.properties
    assert set(again.identifiers) == set(event.identifiers)
    assert again.context["campaign"] == {"name": "spring"}


@pytest.mark.parametrize("messages", [0, 1, 5])
def test_who_decodes_may_pause_before_each_message(messages: int) -> None:
    paused: list[int] = []
    body = json.dumps({"batch": [track()] * messages}).encode()
    decoded = segment.decode(
        body,
        kind=None,
        source="shop",
        workspace="acme",
        received_at=RECEIVED,
        fresh_key=str,
        pause=lambda: paused.append(1),
    )
    assert len(paused) == len(decoded.results) == messages
