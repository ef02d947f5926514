"""Law: who does not fit the schema of its type is never in the log, and all others are as if there were no schema."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import staging
from tests.laws.staging import Engine, LaggingStore, event
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.schemas.definition import read_schemas
from threadline.engine.maintenance.rebuild import refold_everybody
from threadline.kernel.errors import EventRejected
from threadline.kernel.event import Event
from threadline.kernel.policy import Emit, Policy
from threadline.kernel.requirement import Requirement
from threadline.kernel.store import Store
from threadline.stores.memory import MemoryStore

WHO = {"user_id": "u"}
AT_LEAST_ONE = "event_schemas: {page: {required: [n], properties: {n: {type: integer, minimum: 1}}}}"
AT_MOST_ONE = "event_schemas: {page: {properties: {n: {maximum: 1}}}}"


def requirements(text: str) -> list[Requirement]:
    definitions = Definitions([("threadline.yaml", text)])
    found = read_schemas(definitions)
    definitions.refuse_unknown()
    return found


def engine(text: str = "", store: Store | None = None, *, values: list[Any] | None = None, **more: Any) -> Engine:
    return staging.engine(store, values=[*requirements(text), *(values or [])], **more)


def page(key: str, n: Any = 1, **fields: Any) -> Event:
    return event("page", WHO, key, properties={"n": n}, **fields)


def log(on: Engine) -> list[str]:
    return [on.log.read(each).event.key for each in on.log.feed()]


def fits(one: Event) -> bool:
    return one.type != "page" or (type(one.properties["n"]) is int and one.properties["n"] >= 1)


told = st.builds(
    lambda type_, name, key, n: event(type_, {"user_id": name}, key, properties={"n": n}),
    st.sampled_from(["page", "page", "click"]),
    st.sampled_from("uv"),
    st.sampled_from("abcdefgh"),
    st.sampled_from([0, 1, 2, "1", None]),
)


@given(calls=st.lists(st.lists(told, max_size=8), max_size=4), lag=st.integers(0, 2**16))
def test_what_fits_is_recorded_as_without_a_schema_and_nothing_else_is(calls: list[list[Event]], lag: int) -> None:
    with_schema = engine(AT_LEAST_ONE, LaggingStore(MemoryStore(), Random(lag)))  # type: ignore[arg-type]
    without = staging.engine()
    known: dict[str, Event] = {}
    for call in calls:
        expected = []
        for one in call:
            first = known.get(one.key)
            if first is None and not fits(one):
                expected.append("schema_violation")
            elif first is None:
                known[one.key] = one
                expected.append("accepted")
            else:
                expected.append("duplicate" if first == one else "conflict")
        receipts = with_schema.recorder.record(call)
        assert staging.statuses(receipts) == expected
        passed = [one for one, code in zip(call, expected, strict=True) if code != "schema_violation"]
        assert without.recorder.record(passed) == [each for each in receipts if each.code != "schema_violation"]
    assert staging.whole(with_schema) == staging.whole(without)
    kept = [entry for _, entry in with_schema.rejected.page("default") if entry.code == "schema_violation"]
    assert all("properties.n: the value " in entry.message for entry in kept)
    assert not any(fits(event("page", WHO, "k", properties=entry.payload["properties"])) for entry in kept)


def test_a_schema_that_came_later_changes_nothing_that_is_recorded() -> None:
    store = MemoryStore()
    before = engine("", store)
    before.recorder.record([page("old", 0), page("older", 0)])
    picture = staging.whole(before)
    on = engine(AT_LEAST_ONE, store)
    again = [page("old", 0), page("older", -1), page("new", 0), page("fit", 1)]
    assert staging.statuses(on.recorder.record(again[:2])) == ["duplicate", "conflict"]
    assert staging.whole(on) == picture
    assert staging.statuses(on.recorder.record(again)) == ["duplicate", "conflict", "schema_violation", "accepted"]
    staging.assert_refold_changes_nothing(on)
    assert refold_everybody(on.store, on.catalogue).events == 3
    staging.assert_log_is_whole(on)


def test_a_store_that_is_behind_rejects_nothing_that_is_recorded() -> None:
    store = MemoryStore()
    engine("", store).recorder.record([page(str(n), 0) for n in range(40)])
    lagging: Any = LaggingStore(store, Random(7))
    assert set(
        staging.statuses(engine(AT_LEAST_ONE, lagging).recorder.record([page(str(n), 0) for n in range(40)]))
    ) == {"duplicate"}


def test_a_key_belongs_to_the_first_event_that_is_recorded() -> None:
    on = engine(AT_LEAST_ONE)
    said = staging.statuses(on.recorder.record([page("k", 0), page("k", 0), page("k", 1), page("k", 1), page("k", 0)]))
    assert said == ["schema_violation", "schema_violation", "accepted", "duplicate", "conflict"]
    assert log(on) == ["k"]


def test_what_was_rejected_is_asked_by_the_schema_of_the_day() -> None:
    store = MemoryStore()
    assert staging.statuses(engine(AT_LEAST_ONE, store).recorder.record([page("k", 0)])) == ["schema_violation"]
    other = engine(AT_MOST_ONE, store)
    [(_, entry)] = other.rejected.page("default")
    stored = other.rejected.entry("default", entry.id)
    refused, entry = other.rejected.resubmit(stored, page("k", 2))
    assert (refused.code, entry.status) == ("schema_violation", "open")
    receipt, entry = other.rejected.resubmit(stored, page("k", 0))
    assert (receipt.status, entry.status) == ("accepted", "resubmitted")
    assert log(other) == ["k"]


def test_a_rejected_event_adds_one_entry_however_often_it_comes() -> None:
    on = engine(AT_LEAST_ONE, clock=staging.ticking())
    for _ in range(3):
        on.recorder.record([page("k", 0)])
    assert len(on.rejected.page("default")) == 1
    assert on.recorder.fresh(on.recorder.check([page("k", 0)])) == [[0]]


def test_what_threadline_adds_itself_is_not_asked() -> None:
    policy = Policy(
        name="p",
        handles=frozenset({"go"}),
        react=lambda recorded, known: [Emit(type="page", key="k", occurred_at=recorded.event.occurred_at)],
    )
    on = engine(AT_LEAST_ONE, values=[policy])
    own = msgspec.structs.replace(page("own", 0), source_type="internal")
    assert staging.statuses(on.recorder.record([event("go", WHO, "1"), own, page("theirs", 0)])) == [
        "accepted",
        "accepted",
        "schema_violation",
    ]
    assert on.reader.person("default", "user_id:u").position == 3


def test_a_rehearsal_asks_too() -> None:
    on = engine(AT_LEAST_ONE)
    with pytest.raises(EventRejected, match=r"properties\.n: the value is less than the minimum of 1"):
        on.recorder.rehearse(page("k", 0), lambda recorded, known: None)


STRANGE = {
    "no number": float("nan"),
    "no JSON": object(),
    "a set": {1},
    "a time": datetime(2026, 1, 1, tzinfo=UTC),
    "huge": 2**70,
}


@pytest.mark.parametrize("n", STRANGE.values(), ids=STRANGE)
@pytest.mark.parametrize("way", ["direct", "external"])
def test_what_python_may_tell_stops_no_neighbour(n: Any, way: str) -> None:
    on = engine(AT_LEAST_ONE)
    said = staging.statuses(on.recorder.record([page("1"), page("2", n, source_type=way), page("3")]))
    assert (said[0], said[2]) == ("accepted", "accepted")
    assert said[1] in ("invalid_value", "number_out_of_range", "schema_violation")
    assert log(on) == ["1", "3"]
