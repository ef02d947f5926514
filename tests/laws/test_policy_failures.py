"""Law: a policy that fails loses its own wishes for the event at hand, visibly, and nothing else is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.laws import staging
from tests.laws.staging import Engine, event
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.recording.reactions import FAILURE_LENGTH_MAX
from threadline.kernel.errors import InvalidValue, StoreDamaged, Unavailable
from threadline.kernel.event import Recorded
from threadline.kernel.identity import MERGED
from threadline.kernel.policy import (
    POLICY_FAILED,
    TIMER_FIRED,
    CancelTimer,
    Effect,
    Emit,
    Policy,
    PolicyView,
    Read,
    Timer,
)
from threadline.kernel.projection import Projection
from threadline.kernel.store import scan_pages
from threadline.stores.memory import MemoryStore
from threadline.testing import scenarios

pytestmark = pytest.mark.policies_fail

WHO = {"user_id": "u"}
OTHER = {"user_id": "v"}
GOOD = Emit(type="noted", key="good", occurred_at=scenarios.NOW)
TIMER = Timer(key="good", due_at=scenarios.NOW + 5)


def _raise(*_: object) -> Any:
    raise KeyError("no_such_key")


def _generator(*_: object) -> Iterator[Any]:
    yield GOOD
    _raise()


def _wishes(*wishes: Any) -> Callable[[Recorded, PolicyView], Any]:
    return lambda recorded, known: [GOOD, TIMER, *wishes]


FAILING: dict[str, tuple[Any, str]] = {
    "raises": (_raise, "KeyError('no_such_key')"),
    "raises half-way": (_generator, "KeyError('no_such_key')"),
    "raises an error of the kernel": (
        lambda recorded, known: (_ for _ in ()).throw(InvalidValue("no number")),
        "InvalidValue('no number')",
    ),
    "no wish": (_wishes("noted"), "TypeError"),
    "empty type": (_wishes(Emit(type="", key="k", occurred_at=0)), "1 to"),
    "long type": (_wishes(Emit(type="x" * 300, key="k", occurred_at=0)), "1 to"),
    "undeclared type": (_wishes(Emit(type="x", key="k", occurred_at=0)), "'x', which is not declared in its `emits`"),
    "undeclared effect": (_wishes(Effect(kind="x", key="k")), "'x', which is not declared in its `sends`"),
    "event twice": (_wishes(GOOD), "twice under the key 'good'"),
    "effect twice": (_wishes(*[Effect(kind="send", key="k", due_at=n) for n in (1, 2)]), "twice under the key 'k'"),
    "no time": (_wishes(Emit(type="noted", key="k", occurred_at=1 << 62)), "outside the years"),
    "no instant": (_wishes(Timer(key="k", due_at=1.5)), "1.5"),  # type: ignore[arg-type]
    "unwritable event": (_wishes(Emit(type="noted", key="k", occurred_at=0, properties={"x": object()})), "Error("),
    "large number": (_wishes(Emit(type="noted", key="k", occurred_at=0, properties={"x": 2**70})), "Error("),
    "unwritable effect": (_wishes(Effect(kind="send", key="k", data={"x": object()})), "Error("),
    "unwritable timer": (_wishes(Timer(key="k", due_at=1, data={"x": object()})), "Error("),
}

each_failure = pytest.mark.parametrize(("react", "error"), FAILING.values(), ids=FAILING)


def failing(react: Any, *types: str) -> Policy:
    """A policy that fails about events of a type and stands, by name, between two that do not."""
    return Policy(
        name="m",
        handles=frozenset(types or ("boom",)),
        react=react,
        emits=frozenset({"noted"}),
        sends=frozenset({"send"}),
    )


def sound(name: str) -> Policy:
    def react(recorded: Recorded, known: PolicyView) -> Sequence[Any]:
        return [Emit(type=f"seen by {name}", key="k", occurred_at=scenarios.NOW), Timer(key="t", due_at=scenarios.NOW)]

    return Policy(name=name, handles=frozenset({"boom"}), react=react)


def counting() -> Projection:
    def fold(state: dict[str, int], recorded: Recorded) -> dict[str, int]:
        return {"n": state.get("n", 0) + 1}

    return Projection("counted", 1, frozenset({"boom"}), dict, fold, lambda state, now, edges: state.get("n", 0))


def engine(react: Any, *types: str, store: Any = None) -> Engine:
    values = [counting(), sound("a"), failing(react, *types), sound("z")]
    return staging.engine(store or MemoryStore(), values=values)


def events(on: Engine, who: str = "u", *types: str) -> list[Recorded]:
    found = on.reader.events(on.reader.person("default", f"user_id:{who}"), limit=500)
    return [each for each in found if not types or each.event.type in types]


@each_failure
def test_failing_policy_loses_its_wishes_and_the_event_and_other_policies_stand(react: Any, error: str) -> None:
    on = engine(react)
    (receipt,) = on.recorder.record([event("boom", WHO, "1")])
    assert receipt.status == "accepted"
    assert sorted(each.event.type for each in events(on)) == ["boom", "seen by a", "seen by z", POLICY_FAILED]
    person = on.reader.person("default", "user_id:u")
    assert on.reader.views(person, scenarios.NOW, names=["counted"]) == {"counted": 1}
    assert sorted(name.split("/", 1)[1] for name in person.timers) == ["a/t", "z/t"]
    assert list(scan_pages(on.store, "outbox")) == []
    (failed,) = events(on, "u", POLICY_FAILED)
    assert (failed.cause, failed.event.source) == (receipt.id, "policy:m")
    assert {**failed.event.properties, "error": ""} == {"policy": "m", "event_type": "boom", "error": ""}
    assert error in failed.event.properties["error"]
    staging.assert_log_is_whole(on)
    staging.assert_refold_changes_nothing(on)


@each_failure
def test_batches_and_single_events_give_the_same_failures(react: Any, error: str) -> None:
    told = [event("boom" if n % 3 else "page", WHO if n % 2 else OTHER, str(n)) for n in range(60)]
    together, apart = engine(react), engine(react)
    assert set(staging.statuses(together.recorder.record(told))) == {"accepted"}
    for one in told:
        apart.recorder.record([one])
    assert staging.whole(together) == staging.whole(apart)
    assert set(staging.statuses(together.recorder.record(told))) == {"duplicate"}
    assert staging.whole(together) == staging.whole(apart)
    assert sum(len(events(together, who, POLICY_FAILED)) for who in "uv") == 40


@pytest.mark.parametrize("when", ["before", "after", "half"])
def test_crash_and_retry_record_one_failure_per_cause(when: str) -> None:
    told = [event("boom", who, key) for who, key in ((WHO, "1"), (OTHER, "2"), (WHO, "3"))]
    clean = engine(_raise)
    clean.recorder.record(told)
    for at in range(1, 4):
        store = MemoryStore()
        engine(_raise, store=store)
        on = engine(_raise, store=staging.CrashingStore(store, at, when))
        try:
            on.recorder.record(told)
        except staging.Crash:
            on = engine(_raise, store=store)
            assert set(staging.statuses(on.recorder.record(told))) <= {"accepted", "duplicate"}
        assert staging.timeless(on) == staging.timeless(clean)
        assert len(events(on, "u", POLICY_FAILED)) == 2


@pytest.mark.parametrize("error", [Unavailable("away"), StoreDamaged("torn")])
def test_store_that_fails_under_a_policy_refuses_the_call_and_records_nothing(error: Exception) -> None:
    failures = [error]

    def react(recorded: Recorded, known: PolicyView) -> Sequence[Any]:
        if failures:
            raise failures.pop()
        return [GOOD]

    on = engine(react)
    with pytest.raises(type(error)):
        on.recorder.record([event("boom", WHO, "1")])
    assert staging.statuses(on.recorder.record([event("boom", WHO, "1")])) == ["accepted"]
    assert [each.event.type for each in events(on, "u", "noted", POLICY_FAILED)] == ["noted"]


def test_projection_that_cannot_fold_an_emitted_event_still_refuses_the_event() -> None:
    fragile = Projection("fragile", 1, frozenset({"noted"}), dict, _raise, lambda state, now, edges: 0)
    on = staging.engine(values=[fragile, failing(_wishes())])
    assert staging.statuses(on.recorder.record([event("boom", WHO, "1"), event("page", OTHER, "2")])) == [
        "projection_failed",
        "accepted",
    ]


def test_failure_to_handle_a_failure_adds_no_further_event() -> None:
    on = engine(_raise, "boom", POLICY_FAILED)
    on.recorder.record([event("boom", WHO, "1")])
    assert len(events(on, "u", POLICY_FAILED)) == 1


def test_failure_reaches_policies_that_name_it() -> None:
    def react(recorded: Recorded, known: PolicyView) -> Sequence[Any]:
        return [Effect(kind="page_somebody", key="k", data=recorded.event.properties)]

    watching = Policy(name="watching", handles=frozenset({POLICY_FAILED}), react=react)
    on = staging.engine(values=[failing(_raise), watching])
    on.recorder.record([event("boom", WHO, "1")])
    assert len(list(scan_pages(on.store, "outbox"))) == 1


def test_timer_about_which_its_policy_fails_stays_until_it_can_fire(caplog: pytest.LogCaptureFixture) -> None:
    broken = [True]

    def react(recorded: Recorded, known: PolicyView) -> Sequence[Any]:
        if recorded.event.type == "boom":
            return [TIMER]
        return _raise() if broken else [GOOD]

    now = [scenarios.NOW]
    values = [failing(react, "boom", TIMER_FIRED)]
    on = staging.engine(MemoryStore(), lambda: now[0], values=values)
    on.recorder.record([event("boom", WHO, "1")])
    now[0] += 10
    Dispatcher(on, {}, "test").run_once()
    assert "policy 'm' raised KeyError('no_such_key') on threadline.timer_fired" in caplog.text
    assert events(on, "u", TIMER_FIRED, POLICY_FAILED) == []
    assert len(list(scan_pages(on.store, "timer"))) == 1
    broken.clear()
    Dispatcher(on, {}, "test").run_once()
    assert sorted(each.event.type for each in events(on)) == ["boom", "noted", TIMER_FIRED]
    assert list(scan_pages(on.store, "timer")) == []


def test_merge_stands_although_a_policy_fails_about_it() -> None:
    on = engine(_raise, MERGED)
    on.recorder.record([event("page", WHO, "1"), event("page", OTHER, "2")])
    on.identity.merge("default", "user_id:u", "user_id:v", request="m", force=True)
    assert on.reader.person("default", "user_id:u").id == on.reader.person("default", "user_id:v").id
    (failed,) = events(on, "u", POLICY_FAILED)
    assert failed.event.properties["event_type"] == MERGED


def test_unsettled_that_raises_is_a_failure_of_its_policy() -> None:
    policy = Policy(name="m", handles=None, react=lambda r, k: (), reads=(Read("counted"),), unsettled=_raise)
    on = staging.engine(values=[counting(), policy])
    assert staging.statuses(on.recorder.record([event("page", WHO, "1")])) == ["accepted"]
    assert len(events(on, "u", POLICY_FAILED)) == 1


class _Unshowable(Exception):
    def __repr__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError(_raise), "ValueError(<function _raise>)"),
        (_Unshowable(), "_Unshowable"),
        (ValueError("x" * 9_999), "ValueError('" + "x" * (FAILURE_LENGTH_MAX - 13) + "…"),
        (type("Odd", (Exception,), {"__repr__": lambda self: "\ud800"})(), "\\ud800"),
    ],
    ids=["address", "unshowable", "long", "surrogate"],
)
def test_text_of_an_error_is_bounded_writable_and_the_same_everywhere(error: Exception, text: str) -> None:
    def react(recorded: Recorded, known: PolicyView) -> Sequence[Any]:
        raise error

    on = engine(react)
    on.recorder.record([event("boom", WHO, "1")])
    (failed,) = events(on, "u", POLICY_FAILED)
    assert failed.event.properties["error"] == text


def test_failures_are_logged_once_committed_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    engine(_raise, store=store)
    on = engine(_raise, store=staging.CrashingStore(store, 1, "before"))
    with pytest.raises(staging.Crash):
        on.recorder.record([event("boom", WHO, "1")])
    assert caplog.records == []
    on.recorder.record([event("boom", WHO, "1"), event("boom", OTHER, "2")])
    causes = [recorded.id for who in "uv" for recorded in events(on, who, "boom")]
    assert [each.getMessage() for each in caplog.records] == [
        f"policy_failed: policy 'm' raised KeyError('no_such_key') on boom, event {id}" for id in causes
    ]
    assert [bool(each.exc_info) for each in caplog.records] == [True, False]
    assert on.recorder.policy_failures == {("default", "m"): 2}


def test_cancelled_timer_needs_no_instant() -> None:
    on = engine(lambda recorded, known: [CancelTimer(key="nothing"), GOOD])
    on.recorder.record([event("boom", WHO, "1")])
    assert events(on, "u", POLICY_FAILED) == []
