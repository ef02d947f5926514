"""Who reads goes first, and never for long: a writer cannot be kept from its work, nor can it deadlock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.laws.staging import engine
from threadline.engine import interpreter as right_of_way
from threadline.engine.interpreter import ReaderPriority
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import parse_time
from threadline.stores.memory import MemoryStore

LONG = 60.0
NOW = parse_time("2026-03-01T12:00:00Z")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads go first for as long as they take: what is tested must not depend on how fast the machine is."""
    monkeypatch.setattr(right_of_way, "SECONDS_MAX", LONG)


def started(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def event(key: str) -> Event:
    return Event(type="page_viewed", identifiers=(Identifier("user_id", "ada"),), occurred_at=NOW, key=key)


def test_nobody_waits_where_nobody_reads(patient: None) -> None:
    way = ReaderPriority()
    way.give()
    with way.reading():
        pass
    way.give()


def test_a_writer_waits_for_all_who_read(patient: None) -> None:
    way, done = ReaderPriority(), threading.Event()
    with way.reading():
        with way.reading():
            writer = started(lambda: (way.give(), done.set()))
            assert not done.wait(0.05)
        assert not done.wait(0.05)
    writer.join(LONG)
    assert done.is_set()


def test_a_read_may_ask_to_go_first_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(right_of_way, "SECONDS_MAX", 0.0)
    way, done = ReaderPriority(), threading.Event()
    with way.reading(), way.reading(LONG):
        writer = started(lambda: (way.give(), done.set()))
        assert not done.wait(0.05)
    writer.join(LONG)
    with way.reading():
        way.give()
    assert done.is_set()


def test_after_a_wait_the_writer_goes_on_for_as_long_whoever_reads(patient: None) -> None:
    way, waited, again = ReaderPriority(), threading.Event(), threading.Event()

    def write() -> None:
        way.give()
        waited.set()
        assert again.wait(LONG)
        way.give()

    with way.reading():
        writer = started(write)
        time.sleep(1)
    assert waited.wait(LONG)
    with way.reading():
        again.set()
        writer.join(LONG / 2)
        assert not writer.is_alive()


def test_a_wait_of_one_thread_lets_no_other_pass_the_readers(patient: None) -> None:
    way, waited = ReaderPriority(), threading.Event()
    with way.reading():
        first = started(way.give)
        time.sleep(1)
    first.join(LONG)
    with way.reading():
        other = started(lambda: (way.give(), waited.set()))
        assert not waited.wait(0.05)
    other.join(LONG)
    assert waited.is_set()


class _LongAgo:
    monotonic = staticmethod(lambda: time.monotonic() - 2 * LONG)


def test_a_writer_waits_for_short_reads_beside_a_long_one_no_longer_than_they_take(
    patient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    way, ended = ReaderPriority(), threading.Event()
    with ExitStack() as long:
        with monkeypatch.context() as patched:
            patched.setattr(right_of_way, "time", _LongAgo)
            long.enter_context(way.reading())
        way.give()
        with way.reading():
            writer = started(lambda: (way.give(), ended.set()))
            assert not ended.wait(0.05)
        writer.join(LONG / 2)
        assert ended.is_set()


def test_a_read_that_fails_gives_the_way_back(patient: None) -> None:
    way = ReaderPriority()
    with pytest.raises(ZeroDivisionError), way.reading():
        _ = 1 // 0
    way.give()


def test_a_long_read_does_not_keep_events_from_being_recorded() -> None:
    """Not even one that records itself: it waits for its own end, but not for ever."""
    on = engine(MemoryStore())
    with on.recorder.readers.reading():
        receipts = on.recorder.record([event(str(number)) for number in range(200)])
    assert {each.status for each in receipts} == {"accepted"}


def test_a_writer_lets_a_read_go_first_between_two_events(patient: None) -> None:
    on = engine(MemoryStore())
    recorded = threading.Event()
    with on.recorder.readers.reading():
        writer = started(lambda: (on.recorder.record([event("1"), event("2")]), recorded.set()))
        assert not recorded.wait(0.1)
        assert on.store.feed() == []
    writer.join(LONG)
    assert len(on.store.feed()) >= 2
