"""The feed and the threads of people have the same events, or `verify` says which thread differs and by what."""

from __future__ import annotations

from typing import Any

import pytest

from tests.laws import staging
from tests.laws.staging import NOW, event, statuses
from threadline.engine.engine import Engine
from threadline.engine.maintenance.thread_tally import SETTLED_AFTER
from threadline.engine.maintenance.verification import verify
from threadline.kernel.store import FeedEntry, LogEntry, Store, feed_pages
from threadline.kernel.time import MINUTE

PEOPLE = ("ada", "bob", "cy")


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


def recorded(clock: Clock) -> Engine:
    """Three people with three pages each, recorded long enough ago to be in every feed."""
    on = staging.engine(clock=clock)
    pages = [event("page", {"user_id": who}, f"{who}-{number}", NOW - number) for number in range(3) for who in PEOPLE]
    assert set(statuses(on.recorder.record(pages))) == {"accepted"}
    clock.now += SETTLED_AFTER + MINUTE
    return on


def without(monkeypatch: pytest.MonkeyPatch, store: Store, lost: LogEntry) -> None:
    """Have the feed of a store lack an event."""
    feed = store.feed

    def lacking(cursor: str = "", limit: int = 1_000) -> list[FeedEntry]:
        return [feed_entry for feed_entry in feed(cursor, limit) if feed_entry.entry.id != lost.id]

    monkeypatch.setattr(store, "feed", lacking)


def test_feed_and_threads_agree_after_joins_and_erased_events() -> None:
    on = recorded(Clock())
    on.recorder.record([event("identify", {"user_id": "ada", "email": "bob@shop.example"}, "join", NOW)])
    on.recorder.record([event("identify", {"user_id": "bob", "email": "bob@shop.example"}, "joined", NOW)])
    on.store.erase([next(iter(feed_pages(on.store))).entry.id])
    assert verify(on).faults == []


def _with_id(feed_entry: FeedEntry, id: str) -> FeedEntry:
    return feed_entry._replace(entry=feed_entry.entry._replace(id=id))


@pytest.mark.parametrize("id", ["", "g" * 32, "\0" * 32])
def test_event_whose_id_is_damaged_is_named_and_the_rest_is_verified(id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    on = recorded(Clock())
    damaged = [feed_entry.entry.id for feed_entry in feed_pages(on.store)][4]
    feed = on.store.feed

    def read(cursor: str = "", limit: int = 1_000) -> list[FeedEntry]:
        entries = feed(cursor, limit)
        return [_with_id(entry, id) if entry.entry.id == damaged else entry for entry in entries]

    monkeypatch.setattr(on.store, "feed", read)
    verified = verify(on)
    assert [damage.feed_entry.entry.id for damage in verified.damaged] == [id]
    assert verified.events == 9
    assert not verified.is_whole


def test_event_that_the_feed_lacks_is_named_with_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    on = recorded(Clock())
    lost = [feed_entry.entry for feed_entry in feed_pages(on.store)][4]
    without(monkeypatch, on.store, lost)
    found = verify(on)
    assert not found.is_whole
    assert found.faults == [f"thread {lost.thread} has 1 event that the feed lacks: {lost.id}"]


def test_event_of_the_feed_that_its_thread_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    on = recorded(Clock())
    stray = [feed_entry.entry for feed_entry in feed_pages(on.store)][4]
    for name in ("spans", "histories"):
        reads = getattr(on.store, name)

        def lacking(threads: Any, *args: Any, reads: Any = reads) -> dict[str, list[LogEntry]]:
            found = reads(threads, *args).items()
            return {thread: [entry for entry in entries if entry.id != stray.id] for thread, entries in found}

        monkeypatch.setattr(on.store, name, lacking)
    assert f"thread {stray.thread} lacks 1 event of the feed: {stray.id}" in verify(on).faults


def test_event_that_was_just_recorded_and_is_not_in_the_feed_yet_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    on = recorded(clock)
    on.recorder.record([event("page", {"user_id": "ada"}, "now", clock.now)])
    without(monkeypatch, on.store, list(feed_pages(on.store))[-1].entry)
    assert verify(on).faults == []
