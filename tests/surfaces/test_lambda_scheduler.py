"""Functions that are woken: what is due happens once, however often and late they are, and the next wake-up is made."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from tests.engine.test_dispatch import NOW, Clock, tell, types
from tests.engine.test_dispatch import engine as engine  # noqa: PLC0414 — a fixture
from tests.servers.aws import aws
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.event import Event, Identifier
from threadline.kernel.policy import TIMER_FIRED
from threadline.kernel.time import DAY, MINUTE, SECOND, parse_time, system_clock
from threadline.settings import Settings
from threadline.surfaces.lambda_.schedules import WakeUps
from threadline.surfaces.lambda_.working import STUCK, work, work_and_wake

LATE = 7 * DAY


@pytest.fixture
def clock() -> Clock:
    return Clock()


class _Asked:
    """Instead of EventBridge Scheduler: what it was asked for."""

    def __init__(self, error: Exception | None = None) -> None:
        self.made: list[dict[str, Any]] = []
        self.error = error

    def create_schedule(self, **request: Any) -> None:
        if self.error is not None:
            raise self.error
        self.made.append(request)

    @property
    def expressions(self) -> list[str]:
        return [each["ScheduleExpression"] for each in self.made]


TARGET = Settings(schedule_target="arn:aws:lambda:eu-west-1:1:function:f", schedule_role="arn:aws:iam::1:role/r")


def runtime_of(engine: Engine, owner: str = "one", **senders: Any) -> Any:
    return SimpleNamespace(engine=engine, dispatcher=Dispatcher(engine, senders, owner))


def remind(engine: Engine, person: str, at: int = NOW) -> None:
    """Set a timer for a day after an instant."""
    event = Event(type="remind", identifiers=(Identifier("user_id", person),), occurred_at=at, key=f"{person} {at}")
    assert engine.recorder.record([event])[0].status == "accepted"


def soon() -> float:
    return time.monotonic() + 30


def test_a_timer_fires_once_whether_its_function_is_called_twice_at_once_or_days_late(
    engine: Engine, clock: Clock
) -> None:
    people = [f"p{number}" for number in range(40)]
    for person in people:
        remind(engine, person)
    clock.now += LATE
    done: list[int] = []
    functions = [
        threading.Thread(target=lambda name=name: done.append(work(runtime_of(engine, name), soon()).done))
        for name in ("one", "two", "three")
    ]
    for each in functions:
        each.start()
    for each in functions:
        each.join()
    work(runtime_of(engine, "last"), soon())
    assert {tuple(types(engine, person)) for person in people} == {("remind", TIMER_FIRED, "reminded")}
    assert sum(done) <= len(people)


def test_the_next_wake_up_is_at_the_next_due_instant_of_any_shard(engine: Engine, clock: Clock) -> None:
    asked = _Asked()
    wake_ups = WakeUps(TARGET, lambda: asked)
    work_and_wake(runtime_of(engine), wake_ups, soon())
    assert asked.made == [], "nothing waits, so nothing is to be paid for"
    for hours, person in ((3, "ada"), (1, "bob"), (2, "eve")):
        clock.now = NOW + hours * 3_600 * SECOND
        remind(engine, person, clock.now)
    for _ in range(2):
        work_and_wake(runtime_of(engine), wake_ups, soon())
    clock.now = NOW + DAY + 3_600 * SECOND
    work_and_wake(runtime_of(engine), wake_ups, soon())
    # 2027-01-15T08:00:00Z is NOW. The second look asks for nothing new.
    assert asked.expressions == ["at(2027-01-16T09:00:00)", "at(2027-01-16T10:00:00)"]
    first = asked.made[0]
    assert (first["ActionAfterCompletion"], first["ScheduleExpressionTimezone"]) == ("DELETE", "UTC")
    assert first["Target"]["Arn"] == TARGET.schedule_target


def test_an_instant_within_a_minute_or_in_the_past_wakes_at_the_next_minute_that_can_still_be_made() -> None:
    asked = _Asked()
    wake_ups = WakeUps(TARGET, lambda: asked)
    minute = NOW // MINUTE * MINUTE
    for at, now in (
        (minute + MINUTE, minute),
        (minute + 61 * SECOND, minute),
        (minute - DAY, minute + 5 * SECOND),
        (minute + 3 * MINUTE + 1, minute + 4 * MINUTE - SECOND),
    ):
        wake_ups.wake_at(at, now)
    assert asked.expressions == [f"at(2027-01-15T08:0{number}:00)" for number in (1, 2, 5)]


def test_what_is_due_within_seconds_is_waited_for_and_needs_no_wake_up(engine: Engine, clock: Clock) -> None:
    asked = _Asked()
    remind(engine, "ada")
    clock.now += DAY - 2 * SECOND
    real = clock.now - int(time.time() * SECOND)
    engine.clock = engine.recorder.clock = lambda: int(time.time() * SECOND) + real  # type: ignore[method-assign]
    work_and_wake(runtime_of(engine), WakeUps(TARGET, lambda: asked), soon())
    assert types(engine) == ["remind", TIMER_FIRED, "reminded"]
    assert asked.made == []


def test_what_is_due_and_stuck_is_looked_at_again_later_and_what_had_no_time_at_once(
    engine: Engine, clock: Clock
) -> None:
    tell(engine, "fax")  # there is no sender for it here
    assert work(runtime_of(engine), soon()).wake_at == clock.now + STUCK
    remind(engine, "bob")
    clock.now += DAY - MINUTE
    assert work(runtime_of(engine), soon()).wake_at == clock.now + MINUTE, "a timer that comes sooner"
    clock.now += MINUTE
    worked = work(runtime_of(engine), time.monotonic())
    assert (worked.wake_at, worked.is_in_time) == (clock.now, False)


def test_leases_are_given_back_so_that_a_frozen_process_keeps_nobody_out(engine: Engine, clock: Clock) -> None:
    remind(engine, "ada")
    clock.now += DAY
    assert work(runtime_of(engine, "frozen"), soon()).done == 1
    remind(engine, "ada", clock.now - DAY - 1)  # in the same shard, and due
    assert work(runtime_of(engine, "other"), soon()).done == 1


class _ClientError(Exception):
    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code}}


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("AccessDeniedException", "iam:PassRole"),
        ("ResourceNotFoundException", "schedule group 'default'"),
        ("ThrottlingException", "ThrottlingException"),
    ],
)
def test_a_schedule_that_cannot_be_made_is_an_error_that_names_what_is_missing(code: str, named: str) -> None:
    wake_ups = WakeUps(TARGET, lambda: _Asked(_ClientError(code)))
    for _ in range(2):  # it counts as made only once it is
        with pytest.raises(ThreadlineError) as raised:
            wake_ups.wake_at(NOW, NOW)
        assert named in f"{raised.value} {raised.value.hint}"


def test_a_schedule_that_somebody_else_has_made_is_as_good() -> None:
    WakeUps(TARGET, lambda: _Asked(_ClientError("ConflictException"))).wake_at(NOW, NOW)


def test_without_a_target_nothing_is_asked_for() -> None:
    def never() -> Any:
        raise AssertionError("no client is needed")

    WakeUps(Settings(), never).wake_at(NOW, NOW)


def test_the_emulated_scheduler_takes_each_schedule_once() -> None:
    client = aws().client("scheduler")
    for _ in range(2):  # the second stands for another process: it has not made any yet
        wake_ups = WakeUps(TARGET, lambda: client)
        wake_ups.wake_at(system_clock() + DAY, system_clock())
    [made] = [
        each
        for each in client.list_schedules(GroupName="default")["Schedules"]
        if each["Name"].startswith("threadline-")
    ]
    schedule = client.get_schedule(Name=made["Name"])
    at = parse_time(schedule["ScheduleExpression"][3:-1])
    assert 0 <= at - (system_clock() + DAY) + MINUTE <= 2 * MINUTE
    assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
