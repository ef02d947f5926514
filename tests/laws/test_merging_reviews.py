"""Law: what would join too many waits for somebody, with its event recorded, and is decided once."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest

from tests.laws import staging
from tests.laws.staging import Engine, event
from threadline.kernel.errors import Conflict, MergeRefused, NotFound
from threadline.kernel.event import Event
from threadline.kernel.identity import MERGED


def two_users_on_one_device() -> Engine:
    on = staging.engine()
    receipts = on.recorder.record(
        [
            event("identify", {"user_id": "u1", "anonymous_id": "a"}, "1"),
            event("identify", {"user_id": "u2", "anonymous_id": "a"}, "2"),
        ]
    )
    assert staging.statuses(receipts) == ["accepted", "accepted"]
    return on


def test_a_second_user_id_is_set_aside_with_its_event_recorded() -> None:
    on = two_users_on_one_device()
    one, other = on.reader.person("default", "user_id:u1"), on.reader.person("default", "user_id:u2")
    assert one.id != other.id
    assert on.reader.person("default", "anonymous_id:a").id == one.id
    assert [each.event.key for each in on.reader.events(other)] == ["2"]
    [entry] = on.identity.quarantined("default")
    assert (entry["status"], sorted(entry["identifiers"])) == ("open", ["anonymous_id:a", "user_id:u2"])
    on.recorder.record([event("identify", {"user_id": "u2", "anonymous_id": "a"}, "3")])
    assert len(on.identity.quarantined("default")) == 1
    with pytest.raises(MergeRefused):
        on.identity.merge("default", "user_id:u1", "user_id:u2", request="m")
    staging.assert_refold_changes_nothing(on)


@pytest.mark.parametrize(("join", "people"), [(True, 1), (False, 2)])
def test_a_review_decides_once(join: bool, people: int) -> None:
    on = two_users_on_one_device()
    id = on.identity.quarantined("default")[0]["id"]
    on.identity.review("default", id, join=join)
    assert len(list(on.reader.all_people("default"))) == people
    with pytest.raises(Conflict):
        on.identity.review("default", id, join=join)
    on.recorder.record([event("page", {"user_id": "u2", "anonymous_id": "a"}, "4")])
    assert len(list(on.reader.all_people("default"))) == people
    assert on.identity.quarantined("default")[0]["status"] == ("joined" if join else "dismissed")


def test_an_identifier_beyond_the_limit_is_nobodys_until_a_review() -> None:
    on = staging.engine()
    emails = [f"e{n}@example.com" for n in range(6)]
    told = [event("identify", {"user_id": "u", "email": email}, email) for email in emails]
    assert set(staging.statuses(on.recorder.record(told))) == {"accepted"}
    with pytest.raises(NotFound):
        on.reader.person("default", f"email:{emails[5]}")
    [entry] = on.identity.quarantined("default")
    on.identity.review("default", entry["id"], join=True)
    assert on.reader.person("default", f"email:{emails[5]}").id == on.reader.person("default", "user_id:u").id
    staging.assert_refold_changes_nothing(on)


def test_what_a_review_has_linked_is_told_and_can_be_undone() -> None:
    on = staging.engine()
    emails = [f"e{n}@example.com" for n in range(6)]
    on.recorder.record([event("identify", {"user_id": "u", "email": email}, email) for email in emails])
    on.identity.review("default", on.identity.quarantined("default")[0]["id"], join=True, by="ada")
    [merge] = on.reader.events(on.reader.person("default", "user_id:u"), types=frozenset({MERGED}))
    assert (merge.event.properties["reason"], merge.event.properties["by"]) == ("review", "ada")
    on.identity.unmerge("default", merge.id, request="u")
    assert on.reader.person("default", "email:e5@example.com").id != on.reader.person("default", "user_id:u").id
    on.recorder.record([event("page", {"user_id": "u", "email": "e5@example.com"}, "again")])
    assert on.reader.person("default", "email:e5@example.com").id != on.reader.person("default", "user_id:u").id
    staging.assert_log_is_whole(on)
    staging.assert_refold_changes_nothing(on)


@pytest.mark.parametrize("known", [False, True], ids=["nobody's", "somebody's"])
def test_who_is_left_apart_stays_apart_although_there_is_room_later(known: bool) -> None:
    on = staging.engine()
    emails = [f"e{n}@example.com" for n in range(6)]
    on.recorder.record([event("identify", {"email": emails[5]}, "first")] if known else [])
    on.recorder.record([event("identify", {"user_id": "u", "email": email}, email) for email in emails])
    [entry] = on.identity.quarantined("default")
    on.identity.review("default", entry["id"], join=False)
    on.identity.split("default", "user_id:u", ["email:e0@example.com"], request="s")
    for number in range(2):
        told = event("identify", {"user_id": "u", "email": emails[5]}, f"again {number}")
        assert staging.statuses(on.recorder.record([told])) == ["accepted"]
        # Alone it may be somebody.
        on.recorder.record([event("identify", {"email": emails[5]}, f"alone {number}")])
        assert on.reader.person("default", f"email:{emails[5]}").id != on.reader.person("default", "user_id:u").id
    on.identity.merge("default", f"email:{emails[5]}", "user_id:u", request="m")
    staging.assert_log_is_whole(on)
    staging.assert_refold_changes_nothing(on)


def test_whom_another_process_has_split_is_joined_and_not_set_aside() -> None:
    on = staging.engine()
    on.recorder.record([event("identify", {"user_id": "u1", "anonymous_id": "a"}, "1")])
    other = staging.engine(on.store)
    other.identity.split("default", "user_id:u1", ["anonymous_id:a"], request="s")
    told = event("identify", {"user_id": "u2", "anonymous_id": "a"}, "2")
    assert staging.statuses(on.recorder.record([told])) == ["accepted"]
    assert on.reader.person("default", "anonymous_id:a").id == on.reader.person("default", "user_id:u2").id
    assert on.identity.quarantined("default") == []
    staging.assert_log_is_whole(on)
    staging.assert_refold_changes_nothing(on)


@pytest.mark.parametrize("at", range(1, 5))
@pytest.mark.parametrize("when", ["before", "half", "apart", "after"])
def test_what_is_set_aside_is_in_the_commit_of_its_event(at: int, when: str) -> None:
    """SentEvent again the event is a duplicate, and would set nothing aside."""
    on = staging.engine()
    on.recorder.record([event("identify", {"user_id": "u1", "anonymous_id": "a"}, "1")])
    told = [event("identify", {"user_id": "u2", "anonymous_id": "a"}, "2"), event("page", {"user_id": "u1"}, "1")]
    dying = staging.engine(staging.CrashingStore(on.store, at, when))  # type: ignore[arg-type]
    with suppress(staging.Crash):
        dying.recorder.record(told)
    on = staging.engine(on.store)
    assert staging.statuses(on.recorder.record(told))[0] in ("accepted", "duplicate")
    [entry] = on.identity.quarantined("default")
    assert (entry["status"], sorted(entry["identifiers"])) == ("open", ["anonymous_id:a", "user_id:u2"])
    [(_, conflict)] = on.rejected.page("default")
    assert conflict.code == "conflict"


def test_a_review_goes_through_although_the_engine_died_half_way() -> None:
    on = two_users_on_one_device()
    id = on.identity.quarantined("default")[0]["id"]
    for at in (1, 2, 3):
        fragile = staging.CrashingStore(on.store, at, "before")
        try:
            staging.engine(fragile).identity.review("default", id, join=True)  # type: ignore[arg-type]
        except staging.Crash:
            continue
        break
    else:
        pytest.fail("a review takes more than three commits")
    assert at > 1
    with pytest.raises(Conflict):
        on.identity.review("default", id, join=True)
    assert len(list(on.reader.all_people("default"))) == 1


def alias(user: str, previous: str, key: str) -> Event:
    """As Segment's call is read."""
    told = event("alias", {"user_id": user, "anonymous_id": previous}, key)
    return msgspec.structs.replace(told, object_ref=previous)


@pytest.mark.parametrize("together", [True, False])
def test_an_alias_of_two_known_user_ids_waits_for_review(together: bool) -> None:
    on = staging.engine()
    known = [event("page", {"user_id": "41"}, "1"), event("page", {"user_id": "42"}, "2")]
    told = [*known, alias("42", "41", "3")]
    receipts = on.recorder.record(told) if together else [on.recorder.record([each])[0] for each in told]
    assert staging.statuses(receipts) == ["accepted"] * 3
    [entry] = on.identity.quarantined("default")
    assert (entry["status"], sorted(entry["identifiers"])) == ("open", ["user_id:41", "user_id:42"])
    assert entry["reason"] == "an alias says that two user ids are one person"
    on.recorder.record([alias("42", "41", "4"), alias("41", "42", "5")])
    on.identity.review("default", entry["id"], join=True)
    assert on.reader.person("default", "user_id:41").id == on.reader.person("default", "user_id:42").id
    on.recorder.record([alias("42", "41", "6")])
    assert [each["status"] for each in on.identity.quarantined("default")] == ["joined"]
    staging.assert_refold_changes_nothing(on)


@pytest.mark.parametrize("previous", ["a-1", "42", "null"])
def test_an_alias_of_a_name_that_is_nobody_elses_user_id_waits_for_nobody(previous: str) -> None:
    on = staging.engine()
    on.recorder.record([event("page", {"user_id": "42"}, "1"), event("page", {"anonymous_id": "a-1"}, "2")])
    on.recorder.record([alias("42", previous, "3")])
    assert on.identity.quarantined("default") == []
