"""Work that ends its process ends nothing else: its neighbours are done, and it is given up on after a second try."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.engine.confined_works import bomb, doubled, wrong
from threadline.engine import confined_process
from threadline.engine.confined_process import ConfinedProcess
from threadline.kernel.confined import Exceeded
from threadline.kernel.errors import Unavailable

WHY = {
    "computes": "it took more than 0.2 seconds of processor time",
    "grows": "it took more memory than it may",
    "aborts": "it took more memory than it may, 128 MB, or a library gave up",
    "nests": "it is nested too deeply for a library, whose process died of it",
    "recurs": "it is nested too deeply",
}


@pytest.fixture
def confined() -> Iterator[ConfinedProcess]:
    made = ConfinedProcess(cpu_seconds=0.2, memory_bytes=128 << 20)
    yield made
    made.close()


def test_results_come_in_the_order_of_the_inputs_from_one_other_process(confined: ConfinedProcess) -> None:
    results = [*confined.run(doubled, range(100)), *confined.run(doubled, [100])]
    assert [number for number, _ in results] == [2 * number for number in range(101)]
    [process] = {process for _, process in results}
    assert process != os.getpid()


def test_no_process_is_started_for_no_work(confined: ConfinedProcess) -> None:
    assert confined.run(doubled, []) == []
    assert confined._running is None


@pytest.mark.parametrize("kind", WHY)
def test_a_bomb_among_others_is_exceeded_and_all_others_have_their_result(kind: str, confined: ConfinedProcess) -> None:
    results = confined.run(bomb, ["a", "b", kind, "c", kind, "d"])
    assert results == ["a", "b", Exceeded(WHY[kind]), "c", Exceeded(WHY[kind]), "d"]


def test_what_ended_with_its_process_once_is_done_by_the_next(tmp_path: Path, confined: ConfinedProcess) -> None:
    once = f"once:{tmp_path / 'mark'}"
    assert confined.run(bomb, ["a", once, "b"]) == ["a", once, "b"]


def test_one_that_waits_is_ended_by_the_clock(confined: ConfinedProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined_process, "SILENT_SECONDS_MAX", 0.1)
    [exceeded] = confined.run(bomb, ["waits"])
    assert isinstance(exceeded, Exceeded)


def test_a_fault_of_the_work_is_raised_with_its_traceback(confined: ConfinedProcess) -> None:
    with pytest.raises(RuntimeError, match=r"confined_works\.py[^$]*ArithmeticError: no 7"):
        confined.run(wrong, [7])
    assert confined.run(doubled, [1])[0][0] == 2


def test_a_process_that_has_ended_is_replaced(confined: ConfinedProcess) -> None:
    [[_, first]] = confined.run(doubled, [1])
    os.kill(first, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(first)], timeout=0.1)
    [[number, second]] = confined.run(doubled, [1])
    assert (number, second == first) == (2, False)


def test_closing_ends_what_is_being_done_and_what_comes_later_is_done(
    tmp_path: Path, confined: ConfinedProcess
) -> None:
    [[_, process]] = confined.run(doubled, [1])
    mark = tmp_path / "mark"
    caught: list[BaseException] = []

    def wait() -> None:
        try:
            confined.run(bomb, [f"waits:{mark}"])
        except Unavailable as error:
            caught.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not mark.exists():
        time.sleep(0.001)
    confined.close()
    waiting.join(60)
    assert [str(error) for error in caught] == ["this process is being stopped"]
    assert not psutil.pid_exists(process)
    assert confined.run(doubled, [4])[0][0] == 8


def test_a_process_that_cannot_start_leaves_the_work_for_later(
    confined: ConfinedProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confined_process, "WORKER", "threadline.no_such_module")
    with pytest.raises(Unavailable, match="does not start"):
        confined.run(doubled, [1])
    monkeypatch.undo()
    assert confined.run(doubled, [1])[0][0] == 2


def test_it_ends_with_whoever_started_it(confined: ConfinedProcess) -> None:
    confined.run(doubled, [1])
    running = confined._running
    assert running is not None
    running.answers.close()  # as if this process were gone
    assert running.process.wait(60) == 0
