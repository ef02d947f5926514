"""The collector comes seldom while anybody works, and as often as before when the last of them is done."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from threadline.engine import interpreter as collecting
from threadline.engine.interpreter import gc_deferred

USUAL = 700


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(USUAL, *before[1:])
    yield
    gc.set_threshold(*before)


def threshold() -> int:
    return gc.get_threshold()[0]


@contextmanager
def collections() -> Iterator[list[int]]:
    """The generations that the collector looks through meanwhile."""
    found: list[int] = []

    def note(phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            found.append(info["generation"])

    gc.callbacks.append(note)
    try:
        yield found
    finally:
        gc.callbacks.remove(note)


def test_it_looks_at_nothing_that_is_made_and_dropped() -> None:
    gc.collect()
    with collections() as found:
        with gc_deferred():
            made: list[list[int]] | None = [[] for _ in range(20 * USUAL)]
        # What was made is still held, as an answer is by who asked for it.
        assert found == []
        del made
        again = [[] for _ in range(USUAL // 2)]
        assert found == []
    del again


def test_it_comes_after_as_many_further_objects_as_usual() -> None:
    gc.collect()
    with collections() as found:
        with gc_deferred():
            made: list[list[int]] = [[] for _ in range(20 * USUAL)]
        more: list[list[int]] = [[] for _ in range(2 * USUAL)]
        assert len(found) >= 1
    del made, more


def test_it_comes_to_long_work_too() -> None:
    gc.collect()
    with collections() as found, gc_deferred():
        made: list[list[int]] = [[] for _ in range(2 * collecting._DEFERRED_OBJECTS)]
        assert 1 <= len(found) <= 3
    del made


def test_it_is_back_when_the_last_is_done_however_they_overlap() -> None:
    first, second = gc_deferred(), gc_deferred()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert threshold() == collecting._DEFERRED_OBJECTS, "somebody is still at work"
    second.__exit__(None, None, None)
    assert USUAL <= threshold() < collecting._DEFERRED_OBJECTS


def test_what_the_process_chooses_is_kept() -> None:
    with gc_deferred(), gc_deferred():
        pass
    gc.set_threshold(5_000)
    with gc_deferred():
        pass
    assert 5_000 <= threshold() < 5_000 + USUAL
    for off in (0, 10 * collecting._DEFERRED_OBJECTS):
        gc.set_threshold(off)
        with gc_deferred():
            assert threshold() == off
    gc.set_threshold(0)
    with gc_deferred():
        pass
    assert threshold() == 0, "it was sent away for good"
    gc.disable()
    try:
        with gc_deferred():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_comes_when_answer_after_answer_is_held() -> None:
    gc.collect()
    held = []
    with collections() as found:
        for _ in range(2 * collecting._DEFERRED_OBJECTS // USUAL):
            with gc_deferred():
                held.append([[] for _ in range(USUAL)])
    assert 1 <= len(found) <= 3
    del held


def test_it_is_back_after_many_at_once() -> None:
    def work() -> None:
        for _ in range(2_000):
            with gc_deferred():
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert USUAL <= threshold() < collecting._DEFERRED_OBJECTS
