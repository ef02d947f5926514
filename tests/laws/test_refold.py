"""Law: what is folded again from the log is what was folded as it came, for every projection."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given

from tests.laws import staging
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.packing import pack, unpack
from threadline.engine.folding.person import PERSON, SNAPSHOT
from threadline.engine.maintenance.rebuild import refold_everybody, refold_shard
from threadline.kernel.event import Event, Recorded
from threadline.kernel.policy import TIMER_FIRED
from threadline.kernel.projection import Projection
from threadline.kernel.store import Batch, Item, Key, Put
from threadline.stores.memory import MemoryStore
from threadline.testing import scenarios


def _diary(state: list[Any], recorded: Recorded) -> list[Any]:
    return [*state, [recorded.event.occurred_at, recorded.id]]


def diary(handles: frozenset[str] | None = None, version: int = 1) -> Projection:
    """An ordered projection that shows every mistake of order: the events as they came to it."""
    return Projection(
        name="diary",
        version=version,
        handles=handles,
        empty=list,
        fold=_diary,
        view=lambda state, now, edges: state,
        ordered=True,
    )


@given(scenarios.histories(), scenarios.randoms)
def test_a_refold_writes_nothing_new(history: list[Event], random: Random) -> None:
    on = staging.tell(MemoryStore(), scenarios.telling(scenarios.shuffled, random, history), staging.ticking())
    staging.assert_refold_changes_nothing(on)
    before = staging.whole(on)
    shards = random.randint(1, 4)
    found = [each for shard in range(shards) for each in refold_shard(on.store, on.catalogue, shard, shards)]
    assert sum(one.events for one in found) == len(list(on.log.feed()))
    assert [one.item.key for one in found if one.differs] == []
    assert staging.whole(on) == before


@given(scenarios.histories(people=2), scenarios.randoms)
def test_an_ordered_projection_sees_occurred_order_however_late_events_are(
    history: list[Event], random: Random
) -> None:
    on = staging.engine(values=[diary()])
    for call in scenarios.telling(scenarios.shuffled, random, history):
        on.recorder.record(call)
    staging.assert_refold_changes_nothing(on)
    index = on.catalogue.index["diary"]
    seen = [entry for person in on.reader.all_people("default") for entry in person.states[index]]
    assert len(seen) == sum(not each.entry.type.startswith("threadline.") for each in on.log.feed())
    for person in on.reader.all_people("default"):
        assert person.states[index] == sorted(person.states[index])


def test_an_ordered_projection_of_system_events_sees_occurred_order_too() -> None:
    on = staging.engine(values=[diary(frozenset({"page", TIMER_FIRED}))])
    told = [("page", 10), (TIMER_FIRED, 30), ("page", 20), (TIMER_FIRED, 15), ("page", 40)]
    for number, (type, at) in enumerate(told):
        properties = {"policy": "p", "key": "k", "data": {}} if type == TIMER_FIRED else {}
        made = staging.event(type, {"user_id": "u"}, f"k{number}", at, properties=properties, source_type="internal")
        assert staging.statuses(on.recorder.record([made])) == ["accepted"]
        state = on.reader.person("default", "user_id:u").states[on.catalogue.index["diary"]]
        assert [entry[0] for entry in state] == sorted(at for _, at in told[: number + 1])
        staging.assert_refold_changes_nothing(on)


@given(scenarios.histories(people=2), scenarios.randoms)
def test_a_changed_definition_is_caught_up_before_anything_is_added(history: list[Event], random: Random) -> None:
    store = MemoryStore()
    half = len(history) // 2
    staging.tell(store, [history[:half]])
    on = Engine(
        store, Catalogue([*staging.CATALOGUE.projections, diary(version=2)], staging.CATALOGUE.rules), staging.frozen
    )
    for call in scenarios.batched(random, history[half:]):
        on.recorder.record(call)
    from_the_start = staging.engine(values=[diary(version=2)])
    from_the_start.recorder.record(history)
    # People who were not touched since are caught up when they are read.
    assert staging.timeless(on) == staging.timeless(from_the_start)


@pytest.mark.parametrize(
    "value",
    [b"bytes", (1, (2, 3)), {"a", "b"} - {"b"}, 2**64 - 1, -(2**63), "\x00", -0.0],
    ids=repr,
)
def test_whatever_python_hands_over_folds_as_the_log_will_read_it(value: Any) -> None:
    on = staging.engine()
    given_ = {"x": value, "seats": value}
    told = [
        staging.event("identify", {"user_id": "u"}, "1", properties=given_),
        staging.event("group", {"user_id": "u"}, "2", properties=given_, object_ref="acme"),
        staging.event("purchase_completed", {"user_id": "u"}, "3", properties={"total": value}),
    ]
    assert set(staging.statuses(on.recorder.record(told))) == {"accepted"}
    staging.assert_refold_changes_nothing(on)
    assert len(staging.whole(on)) == 1
    assert staging.statuses(on.recorder.record(told)) == ["duplicate"] * 3


def test_what_a_caller_does_with_its_dict_afterwards_is_its_own_affair() -> None:
    on = staging.engine()
    properties = {"plan": {"name": "pro"}}
    on.recorder.record([staging.event("identify", {"user_id": "u"}, "1", properties=properties)])
    properties["plan"]["name"] = "changed"
    on.recorder.record([staging.event("page", {"user_id": "u"}, "2")])
    staging.assert_refold_changes_nothing(on)
    views = on.reader.views(on.reader.person("default", "user_id:u"), scenarios.NOW)
    assert views["profile"]["traits"] == {"plan": {"name": "pro"}}


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize("levels", [70, 900, 990, 5_000])
def test_what_could_not_be_read_again_is_refused(levels: int) -> None:
    on = staging.engine()
    told = [
        staging.event("identify", {"user_id": "u"}, "1", properties={"x": deep(levels)}),
        staging.event("identify", {"user_id": "u"}, "2", properties={"x": 2**64}),
        staging.event("identify", {"user_id": "u"}, "3", properties={"x": "\ud800"}),
        staging.event("identify", {"user_id": "u"}, "4", properties={"x": deep(60)}),
    ]
    codes = staging.statuses(on.recorder.record(told))
    assert codes[0] in ("too_deep", "invalid_value")
    assert codes[1:] == ["invalid_value", "invalid_value", "accepted"]
    staging.assert_refold_changes_nothing(on)
    assert msgspec.json.encode(on.reader.views(on.reader.person("default", "user_id:u"), scenarios.NOW))


def _damaged(item: Item, place: int, change: Callable[[Any], Any]) -> Put:
    fields = unpack(item.value)
    fields[place] = change(fields[place])
    return Put(item.key, pack(fields), item.version)


@pytest.mark.parametrize(
    ("table", "place", "change"),
    [
        (SNAPSHOT, 3, lambda states: [states[1], *states[1:]]),
        (PERSON, 6, lambda tail: tail[:-16]),
        (PERSON, 6, lambda tail: tail[16:32] + tail[:16] + tail[32:]),
        (PERSON, 4, lambda latest: [latest[0] - 1, latest[1]]),
    ],
    ids=["a state of the snapshot", "an event missing in the tail", "the order of the tail", "the newest event"],
)
def test_a_refold_finds_and_mends_a_damaged_snapshot_or_head(
    table: str, place: int, change: Callable[[Any], Any]
) -> None:
    on = staging.engine(values=[diary()])
    for number in range(100):
        on.recorder.record([staging.event("page", {"user_id": "u"}, f"k{number}", scenarios.NOW - 1_000 + number)])
        [person] = on.reader.all_people("default")
        if len(person.tail or ()) > 2:
            break
    id = person.id
    before = staging.whole(on)
    [item] = [each for each in on.store.get([Key(table, id)]) if each is not None]
    assert on.store.commit([Batch(writes=[_damaged(item, place, change)])]) == [None]
    [one] = list(refold_shard(on.store, on.catalogue))
    assert one.differs
    refold_everybody(on.store, on.catalogue)
    staging.assert_refold_changes_nothing(on)
    assert staging.whole(on) == before
