"""Messages of queues: every form becomes its events once, poison is told with its reason, and its neighbours go in."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import staging
from tests.mortal import Fate
from threadline.engine.engine import Engine
from threadline.engine.folding.packing import unpack_event
from threadline.kernel.errors import Forbidden, LimitExceeded, NotFound, Unavailable
from threadline.kernel.event import CLOCK_CORRECTED, Event
from threadline.kernel.store import feed_pages
from threadline.kernel.time import HOUR, format_time
from threadline.surfaces.queues.bodies import Pointer
from threadline.surfaces.queues.intake import EventIntake, QueueMessage, Taken, failed

AT = format_time(staging.NOW - HOUR)
POINTER = "software.amazon.payloadoffloading.PayloadS3Pointer"


def track(number: int) -> dict[str, Any]:
    return {"type": "track", "event": "seen", "userId": f"p{number % 3}", "messageId": f"k{number}", "timestamp": AT}


def cloudevent(number: int) -> dict[str, Any]:
    return {"specversion": "1.0", "id": f"k{number}", "source": "/shop", "type": "seen", "subject": f"p{number % 3}"}


def native(number: int) -> dict[str, Any]:
    return {"type": "seen", "identifiers": {"user_id": f"p{number % 3}"}, "key": f"k{number}", "occurred_at": AT}


def topic(body: str) -> str:
    return json.dumps({"Type": "Notification", "MessageId": "m", "TopicArn": "arn:aws:sns:x", "Message": body})


FORMS = {
    "segment": lambda n: json.dumps(track(n)),
    "segment batch": lambda n: json.dumps({"batch": [track(n)], "sentAt": AT}),
    "cloudevent": lambda n: json.dumps(cloudevent(n)),
    "cloudevents": lambda n: json.dumps([cloudevent(n)]),
    "native": lambda n: json.dumps(native(n)),
    "native batch": lambda n: json.dumps({"events": [native(n)]}),
    "mixed list": lambda n: json.dumps([native(n)]),
    "of a topic": lambda n: topic(json.dumps(native(n))),
}
POISON = {
    "": "invalid_json",
    "{": "invalid_json",
    "[1": "invalid_json",
    "[7]": "not_an_object",
    '"text"': "not_an_object",
    "{}": "unknown_type",
    '{"type": "track", "event": "seen"}': "no_identifier",
    '{"specversion": "1.0", "type": "seen"}': "missing_attribute",
    '{"identifiers": {"user_id": "a"}, "type": "seen"}': "invalid_key",
    '{"batch": 7}': "invalid_json",
    '{"type": "track", "event": "seen", "userId": "a", "properties": {"n": NaN}}': "invalid_json",
    "\x00\x01": "invalid_json",
}


class Stage:
    def __init__(self) -> None:
        self.engine: Engine = staging.engine(clock=staging.ticking())
        self.payloads: dict[Pointer, Any] = {}
        self.intake = EventIntake(self.engine, "default", "lead-ingestion", self.payload)

    def payload(self, pointer: Pointer) -> bytes:
        found = self.payloads[pointer]
        if isinstance(found, Exception):
            raise found
        assert isinstance(found, bytes)
        return found

    def take(self, *bodies: str) -> list[Taken]:
        return self.intake.take([QueueMessage(f"m{place}", body, staging.NOW) for place, body in enumerate(bodies)])

    @property
    def events(self) -> list[Event]:
        return [unpack_event(each.entry).event for each in feed_pages(self.engine.store)]

    @property
    def rejected(self) -> list[str]:
        return [entry.code for _, entry in self.engine.rejected.page("default")]


@pytest.mark.parametrize("form", FORMS)
def test_each_form_becomes_its_event_once(form: str) -> None:
    on = Stage()
    body = FORMS[form](1)
    assert on.take(body, body) == [Taken("m0", "done"), Taken("m1", "done")]
    (event,) = on.events
    assert (event.type, event.source, event.source_type) == ("seen", "lead-ingestion", "external")
    assert event.received_at == staging.NOW
    assert [(each.kind, each.value) for each in event.identifiers] == [("user_id", "p1")]


@pytest.mark.parametrize(("body", "code"), POISON.items())
def test_poison_has_its_reason_in_the_rejected_log_once_and_stops_no_neighbour(body: str, code: str) -> None:
    on = Stage()
    for _ in range(2):
        done, poison = on.take(FORMS["native"](1), body)
        assert (done.status, poison.status, poison.code) == ("done", "poison", code)
        assert poison.message
    assert len(on.events) == 1
    assert on.rejected == [code]


def test_good_events_of_a_message_with_a_bad_one_are_recorded_and_the_message_is_poison() -> None:
    on = Stage()
    (taken,) = on.take(json.dumps([native(1), {"type": "seen"}, native(2)]))
    assert (taken.status, taken.code) == ("poison", "unknown_type")
    assert [event.key for event in on.events] == ["k1", "k2"]


def test_event_that_the_recorder_refuses_is_poison() -> None:
    on = Stage()
    (taken,) = on.take(json.dumps(native(1) | {"type": "threadline.merged"}))
    assert (taken.status, taken.code) == ("poison", "reserved_type")
    assert on.rejected == ["reserved_type"]


def test_message_without_a_key_is_one_event_however_often_it_is_delivered() -> None:
    on = Stage()
    body = json.dumps({"batch": [{"type": "track", "event": "seen", "userId": "a"}] * 2})
    on.take(body)
    on.take(body)
    assert len(on.events) == 2
    on.intake.take([QueueMessage("other", body, staging.NOW)])
    assert len(on.events) == 4


def test_clock_of_the_producer_is_judged_by_when_the_queue_got_the_message() -> None:
    on = Stage()
    late = json.dumps(track(1) | {"sentAt": AT, "timestamp": AT})
    sent_at = staging.NOW - HOUR
    on.intake.take([QueueMessage("waited for an hour", late, sent_at)])
    (event,) = on.events
    assert event.occurred_at == sent_at
    assert CLOCK_CORRECTED not in event.marks


def test_pointer_leads_to_the_payload_and_missing_ones_are_poison() -> None:
    on = Stage()
    there = json.dumps([POINTER, {"s3BucketName": "b", "s3Key": "there"}])
    on.payloads[Pointer("b", "there")] = json.dumps({"events": [native(n) for n in range(300)]}).encode()
    gone = json.dumps([POINTER, {"s3BucketName": "b", "s3Key": "gone"}])
    on.payloads[Pointer("b", "gone")] = NotFound("it is not there")
    large = json.dumps([POINTER, {"s3BucketName": "b", "s3Key": "large"}])
    on.payloads[Pointer("b", "large")] = LimitExceeded("too many bytes")
    denied = json.dumps([POINTER, {"s3BucketName": "b", "s3Key": "denied"}])
    on.payloads[Pointer("b", "denied")] = Forbidden("s3:GetObject is not permitted")
    taken = on.take(there, gone, large, denied, topic(there))
    assert [(each.status, each.code) for each in taken] == [
        ("done", ""),
        ("poison", "payload_missing"),
        ("poison", "too_large"),
        ("later", "forbidden"),
        ("done", ""),
    ]
    assert len(on.events) == 300
    assert failed(taken) == ["m1", "m2", "m3"]


def test_large_payloads_are_not_all_in_memory_together(monkeypatch: pytest.MonkeyPatch) -> None:
    on, fetched, most = Stage(), [0], [0]
    monkeypatch.setattr("threadline.surfaces.queues.intake.REQUEST_BYTES_MAX", 20_000)
    record = on.engine.recorder.record_requests

    def recording(requests: Any) -> Any:
        most[0], fetched[0] = max(most[0], fetched[0]), 0
        return record(requests)

    def payload(pointer: Pointer) -> bytes:
        fetched[0] += 1
        return json.dumps(native(int(pointer.key)) | {"properties": {"text": "x" * 9_000}}).encode()

    monkeypatch.setattr(on.engine.recorder, "record_requests", recording)
    on.intake = EventIntake(on.engine, "default", "lead-ingestion", payload)
    taken = on.take(*(json.dumps([POINTER, {"s3BucketName": "b", "s3Key": str(n)}]) for n in range(10)))
    assert [(each.id, each.status) for each in taken] == [(f"m{n}", "done") for n in range(10)]
    assert (len(on.events), most[0]) == (10, 3)


def test_store_that_is_away_takes_nothing_and_parks_nothing() -> None:
    on = Stage()
    fate = Fate(on.engine.store)
    fate.unavailable = True
    with pytest.raises(Unavailable):
        on.take(FORMS["native"](1))
    with pytest.raises(Unavailable):
        on.take("poison")
    fate.unavailable = False
    assert [each.status for each in on.take(FORMS["native"](1), "poison")] == ["done", "poison"]


def test_one_message_that_breaks_the_intake_comes_again_and_its_neighbours_are_done(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    on = Stage()
    record = on.engine.recorder.record_requests

    def breaking(requests: Any) -> Any:
        if any(each.event.key == "k2" for each in requests):
            raise ZeroDivisionError
        return record(requests)

    monkeypatch.setattr(on.engine.recorder, "record_requests", breaking)
    taken = on.take(*(FORMS["native"](n) for n in range(4)))
    assert [each.status for each in taken] == ["done", "done", "later", "done"]
    assert failed(taken) == ["m2"]


@given(st.integers(0, 2**32), st.integers(1, 30))
def test_any_order_any_repeats_any_batches_record_every_event_once(seed: int, number: int) -> None:
    on, draw = Stage(), Random(seed)
    good = [QueueMessage(f"g{n}", draw.choice(list(FORMS.values()))(n), staging.NOW) for n in range(number)]
    poison = [QueueMessage(f"b{n}", body, staging.NOW) for n, body in enumerate(draw.sample(list(POISON), number % 5))]
    sent = [*good, *poison, *good, *poison]
    draw.shuffle(sent)
    parked = set()
    while sent:
        size = draw.randint(1, 10)
        batch, sent = sent[:size], sent[size:]
        parked.update(failed(on.intake.take(batch)))
    assert parked == {each.id for each in poison}
    assert sorted(event.key.rpartition(" ")[2] for event in on.events) == sorted(f"k{n}" for n in range(number))
    assert len(on.rejected) == len(poison)
