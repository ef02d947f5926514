"""The Python API: recording, every operation as a method, plain answers."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

import threadline
from tests.surfaces.conftest import NOW, Clock
from threadline.engine.maintenance.rebuild import refold_everybody
from threadline.kernel import errors
from threadline.kernel.errors import InvalidValue, NotFound, StoreBusy, Unavailable
from threadline.kernel.event import Event, Identifier
from threadline.kernel.operation import Operation
from threadline.surfaces.operation_calls import field_names, method_name, shown
from threadline.surfaces.python.embedded import Threadline


@pytest.fixture
def tl(clock: Clock) -> Iterator[Threadline]:
    with threadline.open("memory:", clock=clock) as made:
        yield made


def test_what_is_tracked_is_read_back(tl: Threadline, clock: Clock) -> None:
    receipt = tl.track("42", "purchase_completed", {"total": 29.33, "currency": "EUR"}, key="order-1")
    assert receipt.status == "accepted"
    clock.now += 1
    person = tl.person("user_id:42")
    assert person.features["monetary_total"].value == 29.33
    assert person.id == receipt.person
    assert msgspec.json.decode(msgspec.json.encode(person), type=type(person)) == person


def test_a_key_makes_a_retry_harmless(tl: Threadline) -> None:
    first = tl.track("42", "click", key="k")
    again = tl.track("42", "click", key="k")
    assert (first.status, again.status) == ("accepted", "duplicate")
    assert again.id == first.id
    assert tl.track("42", "click").status == tl.track("42", "click").status == "accepted"


def test_identify_joins_the_anonymous(tl: Threadline, clock: Clock) -> None:
    anonymous = tl.record([{"type": "page", "identifiers": {"anonymous_id": "a-1"}}])[0]
    known = tl.identify("42", {"email": "Ana@Example.com", "plan": "pro"}, anonymous_id="a-1")
    clock.now += 1
    assert known.person == anonymous.person
    person = tl.person("email:ana@example.com")
    assert person.traits["plan"] == "pro"
    assert {i.kind for i in person.identifiers} == {"user_id", "anonymous_id", "email"}


@pytest.mark.parametrize(
    "moment", [datetime(2026, 2, 1, 10, tzinfo=UTC), "2026-02-01T10:00:00Z", 1_769_940_000_000_000]
)
def test_times_may_be_told_in_three_ways(tl: Threadline, moment: object) -> None:
    tl.track("42", "click", occurred_at=moment)  # type: ignore[arg-type]  # the parameters are checked one by one
    assert tl.events.of("user_id:42").events[0].occurred_at == "2026-02-01T10:00:00.000000Z"


def test_what_is_folded_now_is_what_the_log_will_say(tl: Threadline, clock: Clock) -> None:
    when = datetime(2026, 2, 1, tzinfo=UTC)
    tl.identify("42", {"born": when, "score": Decimal("1.10"), "pair": (1, 2)})
    clock.now += 1
    traits = tl.person("user_id:42").traits
    assert traits == {"born": "2026-02-01T00:00:00Z", "score": "1.10", "pair": [1, 2]}
    done = refold_everybody(tl.engine.store, tl.engine.catalogue, write=False)
    assert (done.people, done.differing) == (1, ())


def test_what_names_a_source_is_folded_as_the_log_will_say_it_too(tl: Threadline, clock: Clock) -> None:
    said = {"type": "agent_insight", "identifiers": {"user_id": "42"}}
    fact = {"type": "fact", "key": "size", "value": {"now": Decimal("1.10"), "by": {7: "EU"}}}
    told = [{**said, "key": source, "source": source, "properties": fact} for source in ("ann", "bob")]
    assert [each.status for each in tl.record(told) + tl.record(told)] == ["accepted"] * 2 + ["duplicate"] * 2
    traits = {"score": Decimal("1.10"), "born": datetime(2026, 2, 1, tzinfo=UTC)}
    who = (Identifier("user_id", "42"),)
    made = Event(
        type="identify",
        identifiers=who,
        occurred_at=NOW,
        key="i",
        source="crm",
        source_type="external",
        properties=traits,
    )
    tl.record([made])
    clock.now += 1
    (found,) = tl.memory.of("user_id:42").facts
    assert (found.value, found.confidence) == ({"now": "1.10", "by": {"7": "EU"}}, 0.75)
    assert tl.person("user_id:42").traits == {"score": "1.10", "born": "2026-02-01T00:00:00Z"}
    assert refold_everybody(tl.engine.store, tl.engine.catalogue, write=False).differing == ()


def test_an_expected_position_is_held(tl: Threadline) -> None:
    first = {"type": "x", "identifiers": {"user_id": "42"}, "key": "a", "expected": 0}
    late = {"type": "x", "identifiers": {"user_id": "42"}, "key": "b", "expected": 0}
    assert [receipt.status for receipt in tl.record([first])] == ["accepted"]
    refused = tl.record([late, {**late, "key": "c", "expected": 1}])
    assert [(receipt.status, receipt.code) for receipt in refused] == [
        ("rejected", "position_conflict"),
        ("accepted", ""),
    ]


def test_one_kind_may_have_several_values(tl: Threadline) -> None:
    tl.record([{"type": "x", "identifiers": {"user_id": "42", "email": ["a@example.com", "b@example.com"]}}])
    assert tl.person("email:a@example.com").id == tl.person("email:b@example.com").id


def test_without_a_time_it_happened_now(tl: Threadline) -> None:
    receipt = tl.track("42", "click")
    assert tl.engine.log.event("default", receipt.id).event.occurred_at == NOW


def test_a_time_without_a_zone_is_refused(tl: Threadline) -> None:
    receipt = tl.track("42", "click", occurred_at=datetime(2026, 2, 1))  # noqa: DTZ001 — the point of the test
    assert (receipt.status, receipt.code) == ("rejected", "invalid_time")
    assert "time zone" in receipt.message


def test_operations_take_datetimes(tl: Threadline) -> None:
    tl.track("42", "click", occurred_at="2026-02-01T10:00:00Z")
    tl.track("42", "click", occurred_at="2026-02-03T10:00:00Z")
    page = tl.events.of("user_id:42", stop=datetime(2026, 2, 2, tzinfo=UTC))
    assert len(page.events) == 1


def test_every_operation_shown_is_a_method_with_its_words(tl: Threadline) -> None:
    operations = [op for op in tl.engine.catalogue.operations if "python" in op.shown_on]
    assert len(operations) > 10
    for operation in operations:
        group = tl if operation.group is None else getattr(tl, operation.group.name)
        assert method_name(operation) in dir(group)
        if operation.name != "record":
            assert operation.summary in (getattr(group, method_name(operation)).__doc__ or "")


def test_mistakes_are_told_by_name(tl: Threadline) -> None:
    with pytest.raises(AttributeError, match="'persn'"):
        tl.persn("user_id:42")  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="'timelin'"):
        tl.person("user_id:42", timelin=3)  # type: ignore[call-arg]
    with pytest.raises(InvalidValue, match="timeline: expected `int`"):
        tl.person("user_id:42", timeline="3")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="positional"):
        tl.person("user_id:42", 3)  # type: ignore[arg-type, misc]
    with pytest.raises(NotFound):
        tl.person("user_id:nobody")


def test_one_process_writes_and_others_read(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with threadline.open(path) as writer:
        writer.track("42", "click")
        with pytest.raises(StoreBusy):
            threadline.open(path)
        with threadline.open(path, readonly=True) as reader:
            assert reader.person("user_id:42").position == 1
            writer.track("42", "click")
            assert reader.person("user_id:42").position == 2
            with pytest.raises(Unavailable, match="reading only"):
                reader.track("42", "click")
    with threadline.open("memory:", readonly=True) as reader, pytest.raises(Unavailable, match="reading only"):
        reader.track("42", "click")


def test_workspaces_are_apart(tmp_path: Path) -> None:
    with threadline.open(tmp_path / "x.db", workspace="one") as one:
        one.track("42", "click")
    with threadline.open(tmp_path / "x.db", workspace="two") as two, pytest.raises(NotFound):
        two.person("user_id:42")


def test_public_names_are_sorted_and_there() -> None:
    assert threadline.__all__ == sorted(threadline.__all__)
    for name in threadline.__all__:
        assert getattr(threadline, name) is not None
    assert threadline.Operation is Operation
    with pytest.raises(AttributeError):
        _ = threadline.nothing


def test_every_error_that_a_caller_can_meet_is_a_public_name() -> None:
    kinds = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type)}
    assert {name: getattr(threadline, name) for name in kinds} == kinds
    assert set(kinds) <= set(threadline.__all__)


@pytest.mark.parametrize("events", [{"type": "x", "identifiers": {"user_id": "1"}}, "x", b"x"])
def test_what_is_no_list_of_events_is_refused(tl: Threadline, events: Any) -> None:
    with pytest.raises(InvalidValue, match=r"^events: expected"):
        tl.record(events)


def test_a_user_whose_id_is_a_number_is_told_as_text(tl: Threadline) -> None:
    for call in (tl.track, tl.identify):
        with pytest.raises(InvalidValue, match="user_id: expected text, got 42"):
            call(42, "click")  # type: ignore[operator]  # what people write


def test_help_tells_the_parameters_of_every_operation(tl: Threadline) -> None:
    assert "timeline: How many of the newest events to show." in str(tl.person.__doc__)
    for operation in shown(tl.engine.catalogue.operations, "python").values():
        if operation.name == "record":  # written out there, with what Python takes besides
            continue
        method = getattr(tl if operation.group is None else getattr(tl, operation.group.name), method_name(operation))
        signature = inspect.signature(method)
        assert set(signature.parameters) == set(field_names(operation))
        assert method.__doc__.startswith(operation.summary)
        assert method.__name__ == method_name(operation)
        # What the operation must be told is what a call without anything lacks.
        needed = [each for each in signature.parameters.values() if each.default is inspect.Parameter.empty]
        if needed:
            with pytest.raises(TypeError, match="|".join(each.name for each in needed)):
                method()


@pytest.mark.parametrize("place", ["memory:", "x.db"])
def test_a_fork_has_to_open_the_store_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.chdir(tmp_path)
    with threadline.open(place) as parent:
        parent.track("42", "click", key="1")
        assert _said_by_a_fork(parent) == ["Unavailable", "Unavailable", "Unavailable", "closed"]
        # What the fork tried was not done, and the parent goes on as if there had been none.
        assert parent.track("42", "click", key="2").status == "accepted"
        assert parent.person("user_id:42").position == 2
        if place != "memory:":
            with pytest.raises(StoreBusy):
                threadline.open(place)


def _said_by_a_fork(parent: Threadline) -> list[str]:
    """What becomes of a record, a read and another change in a fork, and of closing the store there."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            for attempt in (
                lambda: parent.track("42", "click", key="2"),
                lambda: parent.person("user_id:42"),
                lambda: parent.people.tag("user_id:42", add=["vip"]),
            ):
                try:
                    attempt()
                    os.write(writes, b"done ")
                except Unavailable:
                    os.write(writes, b"Unavailable ")
            parent.close()
            os.write(writes, b"closed ")
        finally:
            os._exit(0)
    os.close(writes)
    with open(reads) as said:
        words = said.read().split()
    os.waitpid(pid, 0)
    return words
