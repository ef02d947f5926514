"""The Python API: recording, every operation as a method, plain answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

import threadline
from tests.surfaces.conftest import NOW, Clock
from threadline.engine.rebuilding import refold_everybody
from threadline.kernel.errors import InvalidValue, NotFound, StoreBusy
from threadline.kernel.operation import Operation
from threadline.surfaces.python import Threadline


@pytest.fixture
def tl(clock: Clock) -> Iterator[Threadline]:
    with threadline.open("memory:", clock=clock) as made:
        yield made


def test_what_is_tracked_is_read_back(tl: Threadline, clock: Clock) -> None:
    receipt = tl.track("42", "purchase_completed", {"total": 29.33, "currency": "EUR"}, key="order-1")
    assert receipt["status"] == "accepted"
    clock.now += 1
    person = tl.person("user_id:42")
    assert person["features"]["monetary_total"]["value"] == 29.33
    assert person["id"] == receipt["person"]
    assert json.loads(json.dumps(person)) == person


def test_a_key_makes_a_retry_harmless(tl: Threadline) -> None:
    first = tl.track("42", "click", key="k")
    again = tl.track("42", "click", key="k")
    assert (first["status"], again["status"]) == ("accepted", "duplicate")
    assert again["id"] == first["id"]
    assert tl.track("42", "click")["status"] == tl.track("42", "click")["status"] == "accepted"


def test_identify_joins_the_anonymous(tl: Threadline, clock: Clock) -> None:
    anonymous = tl.record([{"type": "page", "identifiers": {"anonymous_id": "a-1"}}])[0]
    known = tl.identify("42", {"email": "Ana@Example.com", "plan": "pro"}, anonymous_id="a-1")
    clock.now += 1
    assert known["person"] == anonymous["person"]
    person = tl.person("email:ana@example.com")
    assert person["traits"]["plan"] == "pro"
    assert {i["kind"] for i in person["identifiers"]} == {"user_id", "anonymous_id", "email"}


@pytest.mark.parametrize(
    "moment", [datetime(2026, 2, 1, 10, tzinfo=UTC), "2026-02-01T10:00:00Z", 1_769_940_000_000_000]
)
def test_times_may_be_told_in_three_ways(tl: Threadline, moment: object) -> None:
    tl.track("42", "click", occurred_at=moment)  # type: ignore[arg-type]  # the parameters are checked one by one
    assert tl.events("user_id:42")["events"][0]["occurred_at"] == "2026-02-01T10:00:00.000000Z"


def test_what_is_folded_now_is_what_the_log_will_say(tl: Threadline, clock: Clock) -> None:
    when = datetime(2026, 2, 1, tzinfo=UTC)
    tl.identify("42", {"born": when, "score": Decimal("1.10"), "pair": (1, 2)})
    clock.now += 1
    traits = tl.person("user_id:42")["traits"]
    assert traits == {"born": "2026-02-01T00:00:00Z", "score": "1.10", "pair": [1, 2]}
    done = refold_everybody(tl.engine.store, tl.engine.catalogue, write=False)
    assert (done.people, done.differing) == (1, ())


def test_an_expected_position_is_held(tl: Threadline) -> None:
    first = {"type": "x", "identifiers": {"user_id": "42"}, "key": "a", "expected": 0}
    late = {"type": "x", "identifiers": {"user_id": "42"}, "key": "b", "expected": 0}
    assert [receipt["status"] for receipt in tl.record([first])] == ["accepted"]
    refused = tl.record([late, {**late, "key": "c", "expected": 1}])
    assert [(receipt["status"], receipt.get("code", "")) for receipt in refused] == [
        ("rejected", "position_conflict"),
        ("accepted", ""),
    ]


def test_one_kind_may_have_several_values(tl: Threadline) -> None:
    tl.record([{"type": "x", "identifiers": {"user_id": "42", "email": ["a@example.com", "b@example.com"]}}])
    assert tl.person("email:a@example.com")["id"] == tl.person("email:b@example.com")["id"]


def test_without_a_time_it_happened_now(tl: Threadline) -> None:
    receipt = tl.track("42", "click")
    assert tl.engine.event("default", receipt["id"]).event.occurred_at == NOW


def test_a_time_without_a_zone_is_refused(tl: Threadline) -> None:
    with pytest.raises(InvalidValue, match="time zone"):
        tl.track("42", "click", occurred_at=datetime(2026, 2, 1))  # noqa: DTZ001 — the point of the test


def test_operations_take_datetimes(tl: Threadline) -> None:
    tl.track("42", "click", occurred_at="2026-02-01T10:00:00Z")
    tl.track("42", "click", occurred_at="2026-02-03T10:00:00Z")
    page = tl.events("user_id:42", stop=datetime(2026, 2, 2, tzinfo=UTC))
    assert len(page["events"]) == 1


def test_every_operation_shown_is_a_method_with_its_words(tl: Threadline) -> None:
    operations = [op for op in tl.engine.catalogue.operations if "python" in op.shown_on]
    assert len(operations) > 10
    for operation in operations:
        assert operation.name in dir(tl)
        if operation.name not in vars(type(tl)):
            assert operation.summary in (getattr(tl, operation.name).__doc__ or "")


def test_mistakes_are_told_by_name(tl: Threadline) -> None:
    with pytest.raises(AttributeError, match="no operation 'persn'"):
        tl.persn("user_id:42")
    with pytest.raises(InvalidValue, match="did you mean 'timeline'"):
        tl.person("user_id:42", timelin=3)
    with pytest.raises(InvalidValue, match="timeline: expected `int`"):
        tl.person("user_id:42", timeline="3")
    with pytest.raises(TypeError, match="1 positional"):
        tl.person("user_id:42", 3)
    with pytest.raises(NotFound):
        tl.person("user_id:nobody")
    good = {"type": "x", "identifiers": {"user_id": "1"}}
    for wrong in ({"type": "x", "identifers": {}}, {"type": 3, "identifiers": {}}, {**good, "occurred_at": "noon"}):
        with pytest.raises(InvalidValue):
            tl.record([good, wrong])
    with pytest.raises(NotFound):
        tl.person("user_id:1")


def test_one_process_writes_and_others_read(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with threadline.open(path) as writer:
        writer.track("42", "click")
        with pytest.raises(StoreBusy):
            threadline.open(path)
        with threadline.open(path, readonly=True) as reader:
            assert reader.person("user_id:42")["position"] == 1
            writer.track("42", "click")
            assert reader.person("user_id:42")["position"] == 2


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
