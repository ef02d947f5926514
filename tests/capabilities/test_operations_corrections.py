"""The rejected log: read, corrected, recorded after all or dismissed, and never twice."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capabilities.asked import STARTS_AT, Asked
from threadline.kernel.errors import Conflict, EventRejected, InvalidValue, NotFound
from threadline.kernel.event import Event, Identifier
from threadline.kernel.rejected import RejectedEntry
from threadline.kernel.time import DAY, HOUR, format_time


def rejected_id(asked: Asked) -> str:
    """One event of nobody, rejected; the id of its entry."""
    assert (
        asked.tell("page", at=STARTS_AT - HOUR, user_id="null", key="k", properties={"path": "/"})["status"]
        == "rejected"
    )
    entry: dict[str, Any] = asked.ask("rejected_list")["entries"][0]
    return str(entry["id"])


def test_entries_come_newest_first_page_by_page() -> None:
    asked = Asked()
    for place in range(7):
        asked.tell("page", user_id="null", key=f"k{place}")
    seen, cursor = [], ""
    while True:
        page = asked.ask("rejected_list", cursor=cursor, limit=3)
        seen += [entry["payload"]["key"] for entry in page["entries"]]
        cursor = page["next"]
        if not cursor:
            break
    assert seen == [f"k{place}" for place in reversed(range(7))]
    assert asked.ask("rejected_list", code="too_large")["entries"] == []
    assert asked.ask("rejected_list", workspace="theirs")["entries"] == []


@pytest.mark.parametrize("cursor", ["x", "0", "é", "0000000000000000", "MTIzLjAw"])
def test_a_cursor_that_is_no_cursor_is_refused(cursor: str) -> None:
    asked = Asked()
    asked.tell("page", user_id="null")
    with pytest.raises(InvalidValue, match="not a cursor"):
        asked.ask("rejected_list", cursor=cursor)


def test_an_entry_is_shown_with_its_payload() -> None:
    asked = Asked()
    entry = asked.ask("rejected_show", id=rejected_id(asked))
    assert (entry["code"], entry["status"], entry["source"], entry["form"]) == (
        "no_identifier",
        "open",
        "shop",
        "event",
    )
    assert entry["payload"]["properties"] == {"path": "/"}
    with pytest.raises(NotFound):
        asked.ask("rejected_show", id=entry["id"], workspace="theirs")


def test_a_correction_is_recorded_under_the_key_of_what_it_corrects() -> None:
    asked = Asked()
    id = rejected_id(asked)
    correction = {"type": "page", "identifiers": {"user_id": "ada"}, "properties": {"path": "/"}}
    answer = asked.ask("rejected_resubmit", id=id, event=correction, source="operator")
    assert answer["receipt"]["status"] == "accepted"
    assert (answer["entry"]["status"], answer["entry"]["resolution"]) == ("resubmitted", answer["receipt"]["id"])
    event = asked.ask("events_show", id=answer["receipt"]["id"])
    # The source stays that of the producer: sending the message again, put right, must meet this event.
    assert (event["key"], event["source"]) == ("k", "shop")
    assert asked.ask("rejected_list", status="open")["entries"] == []
    with pytest.raises(Conflict, match="resubmitted already"):
        asked.ask("rejected_resubmit", id=id, event=correction)


def test_a_payload_is_read_again_once_the_rules_allow_it() -> None:
    asked = Asked()
    id = rejected_id(asked)
    again = asked.ask("rejected_resubmit", id=id)
    assert (again["receipt"]["status"], again["receipt"]["code"]) == ("rejected", "no_identifier")
    assert again["entry"]["status"] == "open"
    payload = asked.ask("rejected_show", id=id)["payload"] | {"identifiers": [["user_id", "ada"]]}
    receipt = asked.ask("rejected_resubmit", id=id, payload=payload)["receipt"]
    assert asked.ask("events_show", id=receipt["id"])["occurred_at"] == format_time(STARTS_AT - HOUR)


def test_a_conflict_can_be_kept_beside_the_event_that_came_first() -> None:
    asked = Asked()
    asked.tell("page", user_id="ada", key="1", properties={"path": "/a"})
    asked.tell("page", user_id="ada", key="1", properties={"path": "/b"})
    (entry,) = asked.ask("rejected_list")["entries"]
    assert asked.ask("rejected_resubmit", id=entry["id"])["receipt"]["status"] == "accepted"
    events = asked.ask("events_of", id="user_id:ada", order="asc")["events"]
    assert [event["properties"]["path"] for event in events] == ["/a", "/b"]


def test_a_correction_of_a_correction_that_is_still_wrong_stays_open() -> None:
    asked = Asked()
    id = rejected_id(asked)
    wrong = {"type": "threadline.x", "identifiers": {"user_id": "ada"}, "key": "k"}
    answer = asked.ask("rejected_resubmit", id=id, event=wrong)
    assert (answer["receipt"]["code"], answer["entry"]["status"]) == ("reserved_type", "open")


def kept(asked: Asked, payload: dict[str, Any], form: str) -> str:
    """The id of an entry that a wire has made of a message."""
    entry = RejectedEntry(
        id="1" * 32,
        workspace="default",
        source="web",
        code="no_identifier",
        message="",
        received_at=asked.now,
        payload=payload,
        form=form,
    )
    asked.engine.rejected.add([entry])
    return entry.id


def test_a_form_without_a_reader_asks_for_an_event() -> None:
    asked = Asked()
    id = kept(asked, {"messageId": "m", "userId": "ada"}, "unheard_of")
    with pytest.raises(InvalidValue, match="unheard_of"):
        asked.ask("rejected_resubmit", id=id)


def test_a_wires_payload_is_read_by_the_reader_of_its_form() -> None:
    asked = Asked()

    def read(payload: Any, entry: Any) -> Event:
        if not payload.get("userId"):
            raise EventRejected("no_identifier", "still nobody")
        who = (Identifier("user_id", payload["userId"]),)
        return Event(type=payload["event"], identifiers=who, occurred_at=entry.received_at, key=payload["messageId"])

    asked.engine.rejected.readers = {"made_up": read}
    payload = {"messageId": "m", "event": "Signed Up"}
    id = kept(asked, payload, "made_up")
    with pytest.raises(EventRejected, match="still nobody"):
        asked.ask("rejected_resubmit", id=id)
    receipt = asked.ask("rejected_resubmit", id=id, payload=payload | {"userId": "ada"})["receipt"]
    event = asked.ask("events_show", id=receipt["id"])
    assert (event["key"], event["source"], event["type"]) == ("m", "web", "Signed Up")


def test_a_dismissed_entry_is_settled_and_keeps_everything_else() -> None:
    asked = Asked()
    id = rejected_id(asked)
    before = asked.ask("rejected_show", id=id)
    asked.ask("rejected_dismiss", id=id, reason="a test of ours")
    assert asked.ask("rejected_show", id=id) == before | {"status": "dismissed", "resolution": "a test of ours"}
    with pytest.raises(Conflict):
        asked.ask("rejected_dismiss", id=id)
    with pytest.raises(NotFound):
        asked.ask("rejected_dismiss", id="0" * 32)


def test_only_one_of_two_forms_of_a_correction_is_taken() -> None:
    asked = Asked()
    event = {"type": "page", "identifiers": {"user_id": "ada"}}
    with pytest.raises(InvalidValue, match="at most one of `event` and `payload`"):
        asked.ask("rejected_resubmit", id=rejected_id(asked), event=event, payload={})


def test_a_write_key_that_an_older_version_kept_is_not_shown() -> None:
    asked = Asked()
    id = kept(asked, {"writeKey": "wk_x", "userId": "ada"}, "segment")
    assert asked.ask("rejected_show", id=id)["payload"] == {"userId": "ada"}
    assert asked.ask("rejected_list")["entries"][0]["payload"] == {"userId": "ada"}


@pytest.mark.parametrize("by", ["as it is", "payload", "event"])
def test_history_is_believed_of_whoever_wrote_it(by: str) -> None:
    asked = Asked()
    at = STARTS_AT - 400 * DAY
    asked.tell("tool_used", at=at, user_id="ada", key="k", historical=True)
    # The same key with another payload: who had sent it is not kept, and may have been anybody.
    asked.tell("tool_used", at=at, user_id="bob", key="k", historical=True)
    (entry,) = asked.ask("rejected_list")["entries"]
    event = {"type": "tool_used", "identifiers": {"user_id": "bob"}, "occurred_at": format_time(at), "historical": True}
    written = {"as it is": {}, "payload": {"payload": entry["payload"]}, "event": {"event": event}}
    asked.ask("rejected_resubmit", id=entry["id"], **written[by])
    assert asked.ask("points_of", id="user_id:bob")["earned"] == (0 if by == "as it is" else 5)
