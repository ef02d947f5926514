"""The feed of a DynamoDB table: several processes and their clocks, pauses and ends; by the stream and without it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.servers.dynamodb import ministack
from tests.stores.dynamodb_stage import EXPIRY_SECONDS, Answer, Gate, Opening, ids, opening, spy, told
from threadline.capabilities.foundation.events.operations.feed import FeedPage, FeedParams, feed
from threadline.engine.damage import DamagedEvents
from threadline.engine.reading.event_log import EventLog
from threadline.kernel.errors import Unavailable
from threadline.kernel.store import Batch, Put, feed_pages
from threadline.kernel.time import DAY, HOUR, system_clock
from threadline.stores.dynamodb import journal as dynamodb_journal
from threadline.stores.dynamodb.store import DynamoStore
from threadline.testing.store_cases import KEY, OTHER_THREAD, entry, put, record


@pytest.fixture
def url(tmp_path: Path) -> str:
    return ministack().made(tmp_path)


@pytest.fixture
def stores(url: str) -> Iterator[Opening]:
    with opening(url) as opened:
        yield opened


@pytest.mark.parametrize("operation", ["PutItem", "TransactWriteItems"])
def test_a_writer_that_stood_still_is_passed_and_comes_after(
    stores: Opening, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It stands still before its entry in the journal is written, or between its entry and its transaction.
    still, other = stores(), stores()
    record(still, entry(1))
    gate = Gate(operation)
    spy(still).before = gate
    monkeypatch.setattr(still._journal, "beat", lambda: None)  # a process that stands still does not beat either
    task = threading.Thread(target=record, args=(still, entry(2)))
    task.start()
    assert gate.reached.wait(60)
    record(other, entry(3, OTHER_THREAD))
    found = told(other, 2)
    assert ids(found) == [entry(1).id, entry(3).id]
    gate.opened.set()
    task.join(60)
    assert still.seen([entry(2).id])
    assert ids(told(other, 1, found[-1].cursor)) == [entry(2).id]
    assert ids(list(feed_pages(other))) == [entry(1).id, entry(3).id, entry(2).id]


def test_the_feed_waits_for_a_writer_that_is_at_work(url: str, stores: Opening) -> None:
    slow = stores()
    patient = DynamoStore(url, system_clock)
    gate = Gate("TransactWriteItems")
    spy(slow).before = gate
    task = threading.Thread(target=record, args=(slow, entry(1)))
    task.start()
    assert gate.reached.wait(60)
    record(patient, entry(2, OTHER_THREAD))
    assert patient.feed() == []
    assert patient.feed_waits()
    page = asked(patient)
    assert (page.events, page.more, page.waiting) == ([], True, True), "an acknowledged event is still to come"
    gate.opened.set()
    task.join(60)
    found = told(patient, 2)
    assert ids(found) == [entry(1).id, entry(2).id]
    assert not patient.feed_waits(found[-1].cursor)
    page = asked(patient, found[-1].cursor)
    assert (page.next, page.more, page.waiting) == (found[-1].cursor, False, False)
    patient.close()


def test_a_writer_that_left_before_it_was_frozen_is_waited_for_by_nobody(
    stores: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As a function of Lambda is after its answer: it stays registered, does not beat, and has nothing to say.
    frozen, reader = stores(), stores()
    monkeypatch.setattr(frozen._journal, "beat", lambda: None)
    record(frozen, entry(1))
    frozen.leave_journal()
    assert ids(reader.feed()) == [entry(1).id]
    record(frozen, entry(2))
    frozen.leave_journal()
    assert (ids(reader.feed()), reader.feed_waits()) == ([entry(1).id, entry(2).id], False)
    open_position = frozen._journal.begin()
    frozen.leave_journal()
    assert reader.feed_waits() is False
    frozen._journal.enter(open_position, [])
    assert frozen._journal._registered, "who is at work stays"
    frozen._journal.end(open_position, answered=True)


def asked(store: DynamoStore, cursor: str = "") -> FeedPage:
    """The answer of the operation."""
    engine = SimpleNamespace(log=EventLog(store, None, DamagedEvents(store, system_clock)))  # type: ignore[arg-type]
    context = SimpleNamespace(engine=engine, workspace="default")
    return feed.run(context, FeedParams(cursor=cursor))  # type: ignore[arg-type, return-value]


def test_a_page_is_full_as_long_as_there_is_more_whatever_was_announced_and_refused(stores: Opening) -> None:
    store = stores()
    refused = [Batch([entry(number)], [Put(KEY, b"x", 7)]) for number in range(10, 14)]
    outcomes = store.commit([Batch([entry(1)]), *refused, Batch([entry(2, OTHER_THREAD)])])
    assert [outcome is None for outcome in outcomes] == [True, *[False] * 4, True]
    told(store, 2)
    assert ids(store.feed(limit=2)) == [entry(1).id, entry(2, OTHER_THREAD).id]


def test_a_thread_is_in_order_in_the_feed_whatever_the_clocks_say(stores: Opening) -> None:
    ahead, behind = stores(lambda: system_clock() + HOUR), stores(lambda: system_clock() - HOUR)
    for number, store in enumerate((ahead, behind, ahead, behind), 1):
        item = store.get([KEY])[0]
        version = item.version if item else 0
        assert store.commit([Batch([entry(number)], [Put(KEY, b"head", version)])]) == [None]
    for store in (ahead, behind):
        assert [page.entry.sequence for page in told(store, 4)] == [1, 2, 3, 4]


def test_a_writer_who_comes_later_with_a_slow_clock_is_not_skipped(stores: Opening) -> None:
    first, slow = stores(), stores(lambda: system_clock() - DAY)
    record(first, entry(1))
    cursor = first.feed()[-1].cursor
    record(slow, entry(2, OTHER_THREAD))
    assert ids(told(first, 1, cursor)) == [entry(2).id]


def test_a_writer_who_registers_while_a_reader_reads_is_not_skipped(stores: Opening) -> None:
    reader, fast, slow = stores(), stores(), stores(lambda: system_clock() - DAY)
    begun: list[str] = []

    def meanwhile(name: str, body: dict[str, Any], go: Callable[..., Answer]) -> Answer:
        if name == "Query" and not begun:
            begun.append(slow._journal.begin())
            record(fast, entry(1))
        return go()

    spy(reader).before = meanwhile
    assert reader.feed() == [], "the slow one may still come in before"
    slow._journal.end(begun[0], answered=True)
    assert ids(told(reader, 1)) == [entry(1).id]


def test_a_writer_that_beats_is_waited_for_however_long_its_call_takes(
    stores: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(dynamodb_journal, "time", SimpleNamespace(monotonic=lambda: now[0]))
    reader, slow = stores(), stores()
    position = slow._journal.begin()
    for _ in range(4):
        words = reader._journal.settled().words
        assert list(words) == [position[16:]]
        patience = time.monotonic() + 60
        while reader._journal.register().words == words:
            assert time.monotonic() < patience, "it beats no more"
            time.sleep(0.05)
        now[0] += 0.9 * EXPIRY_SECONDS
    slow._journal.end(position, answered=True)


def test_a_reader_only_reads(url: str) -> None:
    writer, reader = DynamoStore(url, system_clock), DynamoStore(url, system_clock, readonly=True)
    record(writer, entry(1))
    put(writer, KEY)
    assert reader.get([KEY]) == writer.get([KEY])
    assert reader.seen([entry(1).id]) == {entry(1).id: entry(1).digest}
    with pytest.raises(Unavailable, match="reading only"):
        reader.commit([Batch(writes=[Put(KEY, b"")])])
    writer.close()
    assert [page.entry for page in reader.feed()] == [entry(1)]
    reader.close()


# --- the stream ---------------------------------------------------------------------------------


def test_the_tail_of_the_feed_comes_by_the_stream(stores: Opening) -> None:
    writer, reader = stores(), stores()
    record(writer, entry(1))
    cursor = ""
    for number in range(2, 8):
        page = told(reader, 1, cursor)
        assert [each.entry for each in page] == [entry(number - 1)]
        cursor = page[-1].cursor
        spy(reader).requests.clear()
        record(writer, entry(number))
    told(reader, 1, cursor)
    names = [name for name, _ in spy(reader).requests]
    assert "GetRecords" in names
    assert "BatchGetItem" not in names


@pytest.mark.parametrize("options", [{"streams": "off"}, {"streams": "on"}])
def test_without_a_stream_the_table_has_it_all(tmp_path: Path, options: dict[str, str]) -> None:
    store = ministack().open(tmp_path, **options)
    store.client.call(
        "UpdateTable", {"TableName": store.address.table, "StreamSpecification": {"StreamEnabled": False}}
    )
    cursor = ""
    for number in range(1, 6):
        record(store, entry(number))
        [page] = store.feed(cursor)
        assert page.entry == entry(number)
        cursor = page.cursor
    store.close()
