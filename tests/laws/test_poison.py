"""Law: what cannot be taken stops nobody else, and what is taken is taken whole, with all that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import msgspec
import pytest

from tests.laws import staging
from tests.laws.staging import Engine, event
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.folding.packing import body_bytes_max, encode_event
from threadline.kernel.errors import LimitExceeded
from threadline.kernel.event import Event, Recorded
from threadline.kernel.limits import (
    CASCADE_EVENTS_MAX,
    EVENT_KEY_LENGTH_MAX,
    LOGGED_EVENT_BYTES_MAX,
    LOGGED_KEY_LENGTH_MAX,
)
from threadline.kernel.policy import CASCADE_CUT, TIMER_FIRED, CancelTimer, Effect, Emit, Policy, Timer, Wish
from threadline.kernel.projection import Index, Projection, Row
from threadline.kernel.store import scan_pages
from threadline.stores.memory import MemoryStore
from threadline.testing import scenarios

WHO = {"user_id": "u"}
OTHER = {"user_id": "v"}


def projection(fold: Callable[[Any, Recorded], Any], rows: Any = None) -> Projection:
    return Projection(
        name="fragile",
        version=1,
        handles=None,
        empty=dict,
        fold=fold,
        view=lambda state, now, edges: state,
        index=Index(rows=rows),
    )


def policy(react: Callable[[Recorded, dict[str, Any]], Sequence[Wish]], *types: str) -> Policy:
    return Policy(name="p", handles=frozenset(types or ("go",)), react=react)


def _raise(*_: object) -> Any:
    raise ZeroDivisionError("boom")


def _raise_at_boom(state: Any, recorded: Recorded) -> Any:
    return _raise() if recorded.event.type == "boom" else {"n": state.get("n", 0) + 1}


def _unpackable_at_boom(state: Any, recorded: Recorded) -> Any:
    return {"n": object()} if recorded.event.type == "boom" else state


def _remember_boom(state: Any, recorded: Recorded) -> Any:
    return {"boom": True} if recorded.event.type == "boom" else state


def _rows_fail_after_boom(state: Any, workspace: str, person: str) -> list[Row]:
    return _raise() if state.get("boom") else []


FRAGILE = {
    "fold": [projection(_raise_at_boom)],
    "packing": [projection(_unpackable_at_boom)],
    "rows": [projection(_remember_boom, _rows_fail_after_boom)],
}


@pytest.mark.parametrize("values", FRAGILE.values(), ids=FRAGILE)
def test_event_that_breaks_a_projection_is_rejected_alone(values: list[object], seed: int) -> None:
    on = staging.engine(values=values)
    told = [event("boom" if n % 3 == 1 else "page", WHO if n % 2 else OTHER, str(n)) for n in range(150)]
    receipts = on.recorder.record(told)
    expected = ["projection_failed" if one.type == "boom" else "accepted" for one in told]
    assert staging.statuses(receipts) == expected
    positions = [on.reader.person("default", f"user_id:{name}").position for name in "uv"]
    assert positions == [50, 50]
    kept = on.rejected.page("default", limit=100)
    assert {entry.code for _, entry in kept} == {"projection_failed"}
    assert len(kept) == 50
    staging.assert_log_is_whole(on)
    if values != FRAGILE["rows"] and values != FRAGILE["packing"]:
        without = staging.engine(values=values)
        without.recorder.record([one for one in told if one.type != "boom"])
        assert staging.timeless(on) == staging.timeless(without)


@pytest.mark.parametrize("when", ["before", "after", "half"])
def test_the_rejected_are_kept_although_the_engine_died_on_the_way(when: str) -> None:
    on = staging.engine(values=FRAGILE["fold"])
    told = [event("page", WHO, "1"), event("boom", WHO, "2"), event("page", OTHER, "3")]
    for at in range(1, 4):
        fragile: Any = staging.CrashingStore(on.store, at, when)
        try:
            staging.engine(fragile, values=FRAGILE["fold"]).recorder.record(told)
        except staging.Crash:
            continue
    assert staging.statuses(on.recorder.record(told)) == ["duplicate", "projection_failed", "duplicate"]
    assert len(on.rejected.page("default", limit=10)) == 1


def test_what_no_log_can_hold_is_rejected_alone() -> None:
    on = staging.engine()
    unfit = {
        "no_identifier": event("page", {"user_id": "null", "email": " "}, "1"),
        "invalid_type": event("", WHO, "2"),
        "reserved_type": event("threadline.person_merged", WHO, "3"),
        "invalid_key": event("page", WHO, ""),
        "invalid_time": event("page", WHO, "5", 2**62),
        "too_large": event("page", WHO, "6", properties={"x": "x" * LOGGED_EVENT_BYTES_MAX}),
        "invalid_value": event("page", WHO, "7", properties={"x": 2**70}),
        "too_many_identifiers": event("page", {f"kind{n}": "x" for n in range(17)}, "8"),
        "invalid_identifier": event("page", {**WHO, "a:b": "c"}, "9"),
    }
    for code, one in unfit.items():
        assert staging.statuses(
            on.recorder.record([event("page", WHO, f"a{code}"), one, event("page", OTHER, f"b{code}")])
        ) == [
            "accepted",
            code,
            "accepted",
        ]
    assert {entry.code for _, entry in on.rejected.page("default", limit=100)} == set(unfit)
    staging.assert_log_is_whole(on)


def test_what_cannot_be_recorded_is_kept_each_for_itself_although_it_bears_one_key() -> None:
    on = staging.engine()
    padding = "x" * LOGGED_EVENT_BYTES_MAX
    unfit = [event("page", WHO, "1", properties={"a": padding, "n": number}) for number in range(3)]
    assert staging.statuses(on.recorder.record([*unfit, *unfit])) == ["too_large"] * 6
    assert len(on.rejected.page("default", limit=10)) == 3


@pytest.mark.parametrize("kind", ["", "user_id\0a", "a:b", "k" * 65])
def test_a_kind_that_cannot_be_asked_for_is_rejected_whatever_is_known(kind: str) -> None:
    on = staging.engine()
    # The first two would lead to one thread, and to one entry of what is remembered of names.
    told = [event("page", {"user_id": "a\0b"}, "1"), event("page", {kind: "b"}, "2"), event("page", WHO, "3")]
    assert staging.statuses(on.recorder.record(told)) == ["accepted", "invalid_identifier", "accepted"]
    assert len(list(on.reader.all_people("default"))) == 2


def test_no_two_sources_and_keys_are_one_event() -> None:
    on = staging.engine()
    told = [event("page", WHO, "b\0c", source="a"), event("page", WHO, "c", source="a\0b"), event("page", WHO, "d")]
    assert staging.statuses(on.recorder.record(told)) == ["accepted", "invalid_value", "accepted"]


# --- bounds ---------------------------------------------------------------------------------


def test_five_hundred_events_of_one_person_in_one_call(seed: int) -> None:
    told = [event("page", WHO, f"p{n}") for n in range(250)]
    told += [event("tag_added", WHO, f"t{n}", scenarios.NOW - 2, properties={"tag": f"tag {n}"}) for n in range(250)]
    Random(seed).shuffle(told)
    on = staging.tell(MemoryStore(), [told])
    assert on.reader.person("default", "user_id:u").position == 500
    assert len(list(scan_pages(on.store, "tag"))) == 250
    clean = staging.tell(MemoryStore(), [[one] for one in told])
    assert staging.whole(on) == staging.whole(clean)
    untagged = [event("tag_removed", WHO, f"r{n}", properties={"tag": f"tag {n}"}) for n in range(250)]
    assert set(staging.statuses(on.recorder.record(untagged))) == {"accepted"}
    assert list(scan_pages(on.store, "tag")) == []
    staging.assert_refold_changes_nothing(on)


def tagged(count: int) -> Engine:
    """Two people with so many tags each, and a third."""
    who = ({"user_id": "u"}, {"anonymous_id": "a"})
    told = [
        event("tag_added", one, f"{n}-{one}", properties={"tag": f"{n} {one}"}) for n in range(count) for one in who
    ]
    return staging.tell(MemoryStore(), [told, [event("page", OTHER, "v")]])


def test_people_with_tags_are_joined() -> None:
    on = tagged(40)
    joining = event("identify", {"user_id": "u", "anonymous_id": "a"}, "j")
    assert (
        staging.statuses(on.recorder.record([event("page", OTHER, "1"), joining, event("page", OTHER, "2")]))
        == ["accepted"] * 3
    )
    person = on.reader.person("default", "anonymous_id:a").id
    assert {row.key.sort.rpartition("\n")[2] for row in scan_pages(on.store, "tag")} == {person}
    assert len(list(scan_pages(on.store, "tag"))) == 80
    staging.assert_refold_changes_nothing(on)


def test_a_join_that_no_batch_can_hold_is_set_aside_and_its_event_recorded() -> None:
    on = tagged(120)
    before = staging.whole(on)
    joining = event("identify", {"user_id": "u", "anonymous_id": "a"}, "j")
    told = [event("page", OTHER, "1"), event("page", WHO, "2"), joining, event("page", {"anonymous_id": "a"}, "3")]
    assert staging.statuses(on.recorder.record(told)) == ["accepted"] * 4
    assert len(list(on.reader.all_people("default"))) == 3
    [entry] = on.identity.quarantined("default")
    assert (entry["identifiers"], "tags" in entry["reason"]) == (["user_id:u", "anonymous_id:a"], True)
    with pytest.raises(LimitExceeded):
        on.identity.review("default", entry["id"], join=True)
    with pytest.raises(LimitExceeded) as refused:
        on.identity.merge("default", "user_id:u", "anonymous_id:a", request="m")
    assert refused.value.hint == "Take some tags off first."
    assert len(staging.whole(on)) == len(before)
    staging.assert_log_is_whole(on)
    staging.assert_refold_changes_nothing(on)


def large(who: dict[str, str], key: str, more: int = 0) -> Event:
    """The largest event that the log takes, or one of so many bytes more."""
    empty = event("page", who, key, received_at=scenarios.NOW, properties={"x": ""})
    room = LOGGED_EVENT_BYTES_MAX - body_bytes_max(encode_event(empty), scenarios.NOW, "")
    return msgspec.structs.replace(empty, properties={"x": "x" * (room + more)})


def test_the_limits_of_size_are_those_that_are_told() -> None:
    on = staging.engine()
    fits, refused = on.recorder.record([large(WHO, "1"), large(WHO, "2", more=1)])
    assert (fits.status, refused.code) == ("accepted", "too_large")
    assert f"{LOGGED_EVENT_BYTES_MAX + 1} bytes" in refused.message
    assert f"at most {LOGGED_EVENT_BYTES_MAX} " in refused.message
    for most, source_type in ((EVENT_KEY_LENGTH_MAX, "external"), (LOGGED_KEY_LENGTH_MAX, "internal")):
        keys = ("k" * most, "k" * (most + 1))
        fits, refused = on.recorder.record([event("page", WHO, key, source_type=source_type) for key in keys])
        assert (fits.status, refused.code) == ("accepted", "invalid_key")
    assert f"1 to {LOGGED_KEY_LENGTH_MAX} characters" in refused.message


@pytest.mark.parametrize("shipped", [True, False], ids=["with policies", "alone"])
def test_any_number_of_the_largest_events_is_taken_at_once(seed: int, shipped: bool) -> None:
    told = [large(who, f"{n}") for who, n in zip([WHO, OTHER] * 60, range(120), strict=True)]
    told.insert(Random(seed).randrange(80, 120), event("page", {**WHO, **OTHER, "email": "u@example.com"}, "joins"))
    on = staging.engine(shipped=shipped)
    assert staging.statuses(on.recorder.record(told)) == ["accepted"] * 121
    staging.assert_log_is_whole(on)


def test_a_person_who_would_grow_too_large_keeps_what_fits() -> None:
    on = staging.engine()
    told = [event("identify", WHO, f"big{n}", properties={f"x{n:02}": "y" * 31_000}) for n in range(20)]
    told += [event("page", who, f"small{n}") for n, who in enumerate((WHO, OTHER))]
    codes = staging.statuses(on.recorder.record(told))
    assert codes == ["accepted"] * 12 + ["person_too_large"] * 8 + ["accepted"] * 2
    staging.assert_refold_changes_nothing(on)
    staging.assert_log_is_whole(on)


@pytest.mark.parametrize("short", [0, 20, 40, 60, 1_100, 1_200])
def test_the_largest_person_is_one_that_the_store_takes(short: int) -> None:
    on = staging.engine()
    on.recorder.record([event("identify", WHO, f"big{n}", properties={f"x{n:02}": "y" * 31_000}) for n in range(12)])
    on.recorder.record([event("identify", WHO, "z", properties={"z": ""})])
    size = len(next(scan_pages(on.store, "person")).value)
    fill = event("identify", WHO, "fill", properties={"z": "y" * (400_000 - size - short)})
    codes = staging.statuses(on.recorder.record([fill, event("page", OTHER, "other")]))
    assert codes in (["accepted", "accepted"], ["person_too_large", "accepted"])
    assert codes[0] == "accepted" or short < 1_200


@pytest.mark.parametrize("letter", ["x", "é", "漢", "🧵"])
@pytest.mark.parametrize("length", [512, 513, 2_000])
def test_no_name_of_a_tag_or_a_group_is_too_long_for_a_row(letter: str, length: int) -> None:
    on = staging.engine()
    name = letter * length
    told = [event("tag_added", WHO, "1", properties={"tag": name}), event("group", WHO, "2", object_ref=name)]
    assert staging.statuses(on.recorder.record([*told, event("page", OTHER, "3")])) == ["accepted"] * 3


# --- what policies wish ---------------------------------------------------------------------


def test_a_cascade_is_cut_and_says_so() -> None:
    chain = policy(lambda recorded, states: [Emit(type="go", key="next", occurred_at=scenarios.NOW - 1)])
    on = staging.engine(values=[chain])
    assert staging.statuses(on.recorder.record([event("go", WHO, "1"), event("page", OTHER, "2")])) == [
        "accepted",
        "accepted",
    ]
    found = on.reader.events(on.reader.person("default", "user_id:u"), limit=100)
    assert len(found) == 1 + CASCADE_EVENTS_MAX
    [cut] = [each for each in found if each.event.type == CASCADE_CUT]
    assert (cut.event.properties["policy"], cut.sequence) == ("p", 1 + CASCADE_EVENTS_MAX)
    causes = {each.id: each.cause for each in found}
    assert sorted(causes.values())[0] == ""
    assert set(causes.values()) - {""} <= set(causes)
    staging.assert_refold_changes_nothing(on)


def test_a_policy_that_wishes_for_too_much_at_once_is_cut_as_well() -> None:
    many = policy(lambda recorded, states: [Timer(key=str(n), due_at=scenarios.NOW + n) for n in range(1, 90)])
    on = staging.engine(values=[many])
    assert staging.statuses(on.recorder.record([event("go", WHO, str(n)) for n in range(5)])) == ["accepted"] * 5
    person = on.reader.person("default", "user_id:u")
    assert len(person.timers) == CASCADE_EVENTS_MAX - 1
    assert {each.event.type for each in on.reader.events(person)} == {"go", CASCADE_CUT}
    assert len(list(scan_pages(on.store, "timer"))) == CASCADE_EVENTS_MAX - 1


def _everything(recorded: Recorded, states: dict[str, Any]) -> Sequence[Wish]:
    if recorded.event.type == "go":
        return [
            Emit(type="gone", key="e", occurred_at=recorded.event.occurred_at),
            Effect(kind="console", key="f", data={"n": 1}),
            Timer(key="t", due_at=scenarios.NOW + 5),
            Timer(key="moved", due_at=scenarios.NOW + 6),
        ]
    if recorded.event.type == "move":
        return [Timer(key="moved", due_at=scenarios.NOW + 9), CancelTimer(key="t"), CancelTimer(key="nothing")]
    return []


@pytest.mark.parametrize("when", ["before", "after", "half"])
def test_what_follows_from_an_event_commits_with_it(when: str) -> None:
    values = [policy(_everything, "go", "move", TIMER_FIRED)]
    calls = [[event("go", WHO, "1"), event("go", OTHER, "2")], [event("move", WHO, "3")]]
    clean = staging.engine(values=values)
    for call in calls:
        clean.recorder.record(call)
    store = MemoryStore()
    staging.engine(store, values=values)  # to open a new store is to mark it; what is to break is what comes after
    fragile: Any = staging.CrashingStore(store, 1, when)
    with pytest.raises(staging.Crash):
        staging.engine(fragile, values=values).recorder.record(calls[0])
    assert_nothing_half(store)
    on = staging.engine(store, values=values)
    for call in calls:
        on.recorder.record(call)
        on.recorder.record(call)
    assert staging.whole(on) == staging.whole(clean)
    assert_nothing_half(store)
    assert sorted(on.reader.person("default", "user_id:u").timers.values()) == [scenarios.NOW + 9]
    assert sorted(on.reader.person("default", "user_id:v").timers.values()) == [scenarios.NOW + 5, scenarios.NOW + 6]


def assert_nothing_half(store: MemoryStore) -> None:
    """For every event that goes there is one that has gone, one effect, and the timers that its person names."""
    types = [each.entry.type for each in store.feed()]
    assert types.count("go") == types.count("gone") == len(list(scan_pages(store, "outbox")))
    named = [due for person in staging.engine(store).reader.all_people("default") for due in person.timers.values()]
    assert len(named) == len(list(scan_pages(store, "timer")))


def test_a_timer_set_again_to_when_it_fired_comes_to_rest() -> None:
    now = [scenarios.NOW]
    again = policy(lambda recorded, states: [Timer(key="t", due_at=scenarios.NOW + 5)], "go", TIMER_FIRED)
    on = staging.engine(clock=lambda: now[0], values=[again])
    on.recorder.record([event("go", WHO, "1")])
    now[0] += 10
    rounds = Dispatcher(on, {}, "test")
    assert [rounds.run_once() for _ in range(4)] == [1, 1, 0, 0]
    assert [each.event.type for each in on.reader.events(on.reader.person("default", "user_id:u"))] == [
        "go",
        TIMER_FIRED,
    ]


def test_a_person_with_many_rows_has_room_for_what_policies_wish() -> None:
    on = staging.engine(values=[policy(_everything, "tag_added")])
    told = [event("tag_added", WHO, f"t{n}", properties={"tag": f"tag {n}"}) for n in range(300)]
    assert set(staging.statuses(on.recorder.record(told[:200]))) == {"accepted"}
    assert set(
        staging.statuses(
            on.recorder.record([one for each in told[200:] for one in (each, event("page", WHO, each.key + "p"))])
        )
    )
    assert len(list(scan_pages(on.store, "tag"))) == 300
    staging.assert_log_is_whole(on)
    staging.assert_refold_changes_nothing(on)
