"""Events: recorded each with its own outcome, paged either way, followed, and traced by their message."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.asked import STARTS_AT, Asked
from threadline.engine.recording.recorder import Recorder
from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.event import Event, Identifier
from threadline.kernel.store import Batch, Delete, scan_pages
from threadline.kernel.time import DAY, HOUR, SECOND, format_time


def purchase(key: str, user: str = "ada", **fields: Any) -> dict[str, Any]:
    return {"type": "purchase_completed", "identifiers": {"user_id": user}, "key": key, **fields}


# --- record -----------------------------------------------------------------------------------


def test_each_event_has_its_own_outcome() -> None:
    asked = Asked()
    first = purchase("1", properties={"total": 10})
    answer = asked.ask(
        "record",
        events=[
            first,
            first,
            purchase("1", properties={"total": 11}),
            {"type": "page", "identifiers": {"user_id": "null"}, "key": "2"},
            {"type": "threadline.person_merged", "identifiers": {"user_id": "ada"}, "key": "3"},
            purchase("4"),
        ],
    )
    said = [(each["status"], each.get("code", "")) for each in answer["receipts"]]
    assert said == [
        ("accepted", ""),
        ("duplicate", ""),
        ("conflict", ""),
        ("rejected", "no_identifier"),
        ("rejected", "reserved_type"),
        ("accepted", ""),
    ]
    assert (answer["accepted"], answer["duplicates"], answer["conflicts"], answer["rejected"]) == (2, 1, 1, 2)
    assert asked.ask("person", id="user_id:ada")["position"] == 2


@pytest.mark.parametrize(
    ("broken", "code", "place"),
    [
        (purchase(""), "invalid_key", r"events\[1\]"),
        (purchase("2", occurred_at="yesterday"), "invalid_time", r"events\[1\]\.occurred_at"),
        (purchase("2", properties={"total": 2**64}), "number_out_of_range", r"events\[1\]"),
        (purchase("2", context={"deep": [-(2**63) - 1]}), "number_out_of_range", r"events\[1\]"),
    ],
)
def test_an_event_that_is_ill_formed_is_rejected_and_its_neighbour_recorded(
    broken: dict[str, Any], code: str, place: str
) -> None:
    asked = Asked()
    good, bad = asked.ask("record", events=[purchase("1"), broken])["receipts"]
    assert (good["status"], bad["status"], bad["code"]) == ("accepted", "rejected", code)
    assert re.search(place, bad["message"])


def test_a_misspelt_field_is_named_with_the_one_that_is_near() -> None:
    good, bad = Asked().ask("record", events=[purchase("1"), {**purchase("2"), "propertys": {}}])["receipts"]
    assert (good["status"], bad["code"]) == ("accepted", "invalid_value")
    assert bad["message"] == "events[1]: unknown field 'propertys'; did you mean 'properties'?"


@pytest.mark.parametrize(("version", "text"), [(1, "1"), (2.0, "2"), (2.1, "2.1"), ("v3", "v3")])
def test_a_schema_version_is_a_text_or_a_number(version: object, text: str) -> None:
    asked = Asked()
    (receipt,) = asked.ask("record", events=[purchase("1", schema_version=version)])["receipts"]
    assert asked.ask("events_show", id=receipt["id"])["schema_version"] == text


def test_a_retry_without_a_time_of_its_own_is_a_duplicate() -> None:
    asked = Asked()
    assert asked.tell("page", user_id="ada", key="1")["status"] == "accepted"
    asked.now += HOUR
    assert asked.tell("page", user_id="ada", key="1")["status"] == "duplicate"


def test_the_caller_is_the_source_so_keys_of_two_callers_do_not_meet() -> None:
    asked = Asked()
    statuses = [
        asked.ask("record", source=source, events=[purchase("1")])["receipts"][0]["status"]
        for source in ("shop", "till")
    ]
    assert statuses == ["accepted", "accepted"]


def test_an_event_may_be_tied_to_a_position() -> None:
    asked = Asked()
    asked.tell("page", user_id="ada")
    at = asked.ask("person", id="user_id:ada")["position"]
    answer = asked.ask(
        "record",
        events=[purchase("a", expected=at), purchase("b", expected=at), purchase("c"), purchase("d", expected=at + 2)],
    )
    said = [(each["status"], each.get("code", "")) for each in answer["receipts"]]
    assert said == [("accepted", ""), ("rejected", "position_conflict"), ("accepted", ""), ("accepted", "")]


def test_one_person_may_be_named_in_several_ways() -> None:
    asked = Asked()
    asked.tell("identify", user_id="ada", email=["ada@example.com", "ADA@work.example"])
    person = asked.ask("person", id="email:ada@work.example")
    assert [f"{i['kind']}:{i['value']}" for i in person["identifiers"]] == [
        "user_id:ada",
        "email:ada@example.com",
        "email:ada@work.example",
    ]


# --- pages ------------------------------------------------------------------------------------


def pages(asked: Asked, **params: Any) -> list[list[dict[str, Any]]]:
    found, cursor = [], ""
    while True:
        page = asked.ask("events_of", id="user_id:ada", cursor=cursor, **params)
        found.append(page["events"])
        cursor = page["next"]
        if not cursor:
            return found


# Few instants, so that many events fall on one; two threads, so that pages merge them.
@given(
    told=st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=24),
    limit=st.integers(1, 9),
    order=st.sampled_from(["asc", "desc"]),
)
def test_pages_in_either_direction_visit_each_event_once(told: list[tuple[int, bool]], limit: int, order: str) -> None:
    asked = Asked()
    asked.tell("identify", at=STARTS_AT, user_id="ada", anonymous_id="phone")
    expected = []
    for place, (second, known) in enumerate(told):
        at = STARTS_AT - second * SECOND
        who = {"user_id": "ada"} if known else {"anonymous_id": "phone"}
        expected.append((format_time(at), asked.tell("page", at=at, key=f"{place}", **who)["id"]))
    found = pages(asked, type="page", limit=limit, order=order)
    seen = [(event["occurred_at"], event["id"]) for page in found for event in page]
    assert seen == sorted(expected, reverse=order == "desc")
    assert all(len(page) == limit for page in found[:-1])


def test_time_is_half_open_and_types_are_a_list() -> None:
    asked = Asked()
    for hour, kind in enumerate(["a", "b", "c", "a"]):
        asked.tell(kind, at=STARTS_AT - (4 - hour) * HOUR, user_id="ada")
    between = {"start": format_time(STARTS_AT - 4 * HOUR), "stop": format_time(STARTS_AT - HOUR), "order": "asc"}
    assert [e["type"] for e in asked.ask("events_of", id="user_id:ada", **between)["events"]] == ["a", "b", "c"]
    assert [e["type"] for e in asked.ask("events_of", id="user_id:ada", type="a, c")["events"]] == ["a", "c", "a"]


def test_a_cursor_does_not_widen_the_range() -> None:
    asked = Asked()
    for hour in range(6):
        asked.tell("page", at=STARTS_AT - (6 - hour) * HOUR, user_id="ada", properties={"hour": hour})

    def told(**params: Any) -> list[int]:
        return [each["properties"]["hour"] for each in asked.ask("events_of", id="user_id:ada", **params)["events"]]

    newest = asked.ask("person", id="user_id:ada", timeline=1)["timeline"]["next"]
    oldest = asked.ask("events_of", id="user_id:ada", order="asc", limit=1)["next"]
    assert told(cursor=newest, stop=format_time(STARTS_AT - 3 * HOUR)) == [2, 1, 0]
    assert told(cursor=oldest, order="asc", start=format_time(STARTS_AT - 3 * HOUR)) == [3, 4, 5]


@pytest.mark.parametrize("cursor", ["x", "é", "AAAA", "LTk5OTk5", "=" * 8, "MTIzLjAw"])
def test_a_cursor_that_is_not_ours_is_refused(cursor: str) -> None:
    asked = Asked()
    asked.tell("page", user_id="ada")
    with pytest.raises(InvalidValue, match="not a cursor"):
        asked.ask("events_of", id="user_id:ada", cursor=cursor)


def test_the_timeline_of_a_person_goes_on_in_the_events() -> None:
    asked = Asked()
    ids = [asked.tell("page", at=STARTS_AT - place, user_id="ada")["id"] for place in range(7)]
    timeline = asked.ask("person", id="user_id:ada", timeline=3)["timeline"]
    rest = asked.ask("events_of", id="user_id:ada", cursor=timeline["next"])["events"]
    assert [event["id"] for event in timeline["events"] + rest] == ids


# --- one event, the feed ----------------------------------------------------------------------


def test_an_event_is_shown_whole() -> None:
    asked = Asked()
    receipt = asked.tell(
        "group",
        at=STARTS_AT - DAY,
        user_id="ada",
        key="g",
        object_ref="acme",
        properties={"plan": "gold"},
        historical=True,
    )
    event = asked.ask("events_show", id=receipt["id"])
    told = {
        name: event[name] for name in ("type", "key", "source", "source_type", "object_ref", "historical", "properties")
    }
    assert told == {
        "type": "group",
        "key": "g",
        "source": "shop",
        "source_type": "external",
        "object_ref": "acme",
        "historical": True,
        "properties": {"plan": "gold"},
    }
    assert (event["occurred_at"], event["original_time"]) == ("2025-12-31T00:00:00.000000Z",) * 2
    assert (event["person"], event["sequence"], event["thread"]) == (receipt["person"], 1, receipt["thread"])


@pytest.mark.parametrize("id", ["0" * 32, "nothing", "\x00", "G" * 32])
def test_an_event_that_is_not_there_is_not_found(id: str) -> None:
    with pytest.raises(NotFound):
        Asked().ask("events_show", id=id)


def test_events_of_other_workspaces_are_not_there() -> None:
    asked = Asked()
    receipt = asked.tell("page", user_id="ada", workspace="theirs")
    for operation, params in [
        ("events_show", {"id": receipt["id"]}),
        ("events_of", {"id": receipt["person"]}),
        ("person", {"id": "user_id:ada"}),
        ("messages_show", {"message_id": "key-1"}),
    ]:
        with pytest.raises(NotFound):
            asked.ask(operation, **params)
    assert asked.ask("events_feed")["events"] == []
    assert asked.ask("people_list")["people"] == []


def test_the_feed_tells_each_event_of_the_workspace_once_in_order() -> None:
    asked = Asked()
    ours = []
    for place in range(17):
        asked.tell("page", user_id=f"them-{place}", workspace="theirs")
        ours.append(asked.tell("page", at=STARTS_AT - place, user_id=f"us-{place % 3}")["id"])
    seen, cursor, more = [], "", True
    while more:
        page = asked.ask("events_feed", cursor=cursor, limit=4)
        seen += [event["id"] for event in page["events"]]
        cursor, more = page["next"], page["more"]
    assert seen == ours
    later = asked.tell("page", user_id="us-1")["id"]
    assert [event["id"] for event in asked.ask("events_feed", cursor=cursor)["events"]] == [later]


def test_the_catalogue_names_what_is_in_force() -> None:
    catalogue = Asked({"loyalty": {"shared": True, "priority": 5}}).ask("catalogue")
    assert {"profile", "features"} <= {each["name"] for each in catalogue["projections"]}
    assert "campaign_ignored" in {each["name"] for each in catalogue["policies"]}
    assert {
        "name": "loyalty",
        "priority": 5,
        "limit": 5,
        "normalise": "strip",
        "identifying": True,
        "joins": True,
        "shared": True,
    } in catalogue["identifiers"]
    assert "purchase_completed" in catalogue["event_types"]


TYPES = ["Signed, sealed", "Signed", "sealed", " page", "page ", "page", ",", " "]


@pytest.mark.parametrize("type", TYPES)
def test_events_of_any_type_can_be_listed(type: str) -> None:
    asked = Asked()
    for name in TYPES:
        asked.tell(name, user_id="ada")
    assert [e["type"] for e in asked.ask("events_of", id="user_id:ada", types=[type])["events"]] == [type]
    assert type in [e["type"] for e in asked.ask("events_of", id="user_id:ada", type=type)["events"]]
    both = asked.ask("events_of", id="user_id:ada", types=["page ", type])["events"]
    assert {e["type"] for e in both} == {"page ", type}


def test_types_are_listed_with_commas_and_blanks_between_them() -> None:
    asked = Asked()
    for name in ("a", "b", "c"):
        asked.tell(name, user_id="ada")
    for type in ("a,c", "a, c", " a ,c,"):
        assert [e["type"] for e in asked.ask("events_of", id="user_id:ada", type=type)["events"]] == ["c", "a"]
    assert len(asked.ask("events_of", id="user_id:ada", type="", types=[])["events"]) == 3


# --- what became of a message -----------------------------------------------------------------


def test_an_accepted_message_names_its_person_and_what_it_touched() -> None:
    asked = Asked()
    receipt = asked.tell("purchase_completed", user_id="ada", key="order-1", properties={"total": 5})
    said = asked.ask("messages_show", message_id="order-1")
    assert (said["outcome"], said["person"], said["position"]) == ("accepted", receipt["person"], 1)
    assert said["event"]["id"] == receipt["id"]
    assert "features" in said["touched"]
    assert "profile" not in said["touched"]


def test_a_message_tells_what_it_caused() -> None:
    asked = Asked()
    asked.tell("page", user_id="ada")
    asked.tell("page", anonymous_id="phone")
    asked.now += DAY
    # History, so that the merge it causes lies far from when it occurred.
    asked.tell(
        "identify", at=STARTS_AT - 400 * DAY, user_id="ada", anonymous_id="phone", key="sign-in", historical=True
    )
    asked.tell("page", user_id="ada")
    said = asked.ask("messages_show", message_id="sign-in")
    assert [event["type"] for event in said["caused"]] == ["threadline.person_merged"]
    assert said["caused"][0]["cause"] == said["event"]["id"]
    assert asked.ask("messages_show", message_id="key-1")["caused"] == []


def test_a_message_is_found_under_the_credential_it_came_through() -> None:
    asked = Asked()
    asked.engine.credentials.create("default", "write_key", "web")
    asked.ask("record", source="web", events=[purchase("from-the-web")])
    assert asked.ask("messages_show", source="operator", message_id="from-the-web")["event"]["source"] == "web"


def test_a_message_is_found_after_its_credential_is_gone() -> None:
    asked = Asked()
    credential, _ = asked.engine.credentials.create("default", "write_key", "web")
    asked.ask("record", source="web", events=[purchase("from-the-web")])
    asked.ask("record", source="web", events=[purchase("another")])
    asked.engine.credentials.revoke("default", credential.id)
    assert asked.ask("messages_show", source="operator", message_id="from-the-web")["event"]["source"] == "web"
    with pytest.raises(NotFound):
        asked.ask("messages_show", workspace="theirs", source="operator", message_id="from-the-web")


def test_a_message_is_found_whatever_its_source_is_called() -> None:
    asked = Asked()
    for source in ("", "a/b", "\n", "é" * 2_000):
        (receipt,) = asked.engine.recorder.record(
            [
                Event(
                    type="page",
                    identifiers=(Identifier("user_id", "ada"),),
                    occurred_at=STARTS_AT,
                    key=f"by {source[:9]}",
                    source=source,
                )
            ]
        )
        assert receipt.status == "accepted"
        assert asked.ask("messages_show", message_id=f"by {source[:9]}")["event"]["id"] == receipt.id


def test_a_source_is_known_although_the_engine_died_before_its_row_was_written() -> None:
    asked = Asked()
    asked.ask("record", source="web", events=[purchase("a")])
    (row,) = scan_pages(asked.engine.store, "source")
    asked.engine.store.commit([Batch(writes=[Delete(row.key)])])
    asked.engine.recorder = Recorder(asked.engine.store, asked.engine.catalogue, asked.engine.clock)
    # The producer had no answer, and sends it again.
    assert asked.ask("record", source="web", events=[purchase("a")])["duplicates"] == 1
    assert asked.ask("messages_show", source="operator", message_id="a")["outcome"] == "accepted"


def test_a_rejected_message_says_why() -> None:
    asked = Asked()
    asked.tell("page", user_id="undefined", key="nobody")
    said = asked.ask("messages_show", message_id="nobody")
    assert (said["outcome"], said["event"], said["rejected"][0]["code"]) == ("rejected", None, "no_identifier")


def test_a_conflict_shows_both_payloads() -> None:
    asked = Asked()
    asked.tell("page", user_id="ada", key="1", properties={"path": "/a"})
    asked.tell("page", user_id="ada", key="1", properties={"path": "/b"})
    said = asked.ask("messages_show", message_id="1")
    assert said["outcome"] == "conflict"
    assert said["event"]["properties"] == {"path": "/a"}
    assert said["rejected"][0]["payload"]["properties"] == {"path": "/b"}
    assert said["rejected"][0]["event_id"] == said["event"]["id"]


def test_an_unknown_message_is_not_found() -> None:
    with pytest.raises(NotFound):
        Asked().ask("messages_show", message_id="never sent")
