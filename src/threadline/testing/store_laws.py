"""The laws that every store obeys, as one test class that a backend's test file only has to point at its store.

class TestMyStore(StoreLaws):
    durable = True

    def open(self, folder):
        return MyStore(folder / "store")
"""

# ruff: noqa: D102 - a law is said by its name

from __future__ import annotations

from pathlib import Path

import pytest

from threadline.kernel.errors import InvalidValue, LimitExceeded, Unavailable
from threadline.kernel.limits import (
    BATCH_BYTES_MAX,
    BATCH_WRITES_MAX,
    ERASED_IDS_MAX,
    ITEM_BEGINS_MAX,
    ITEM_BYTES_MAX,
    KEY_BYTES_MAX,
    PAGE_ITEMS_MAX,
)
from threadline.kernel.store import (
    ERASED_THREAD,
    Batch,
    Check,
    Delete,
    Item,
    Key,
    Put,
    Range,
    Span,
    Store,
    feed_pages,
    thread_page,
)
from threadline.testing.store_cases import KEY, SORTS, THREAD, StoreOpening, at_once, entry, put, record, refusals
from threadline.testing.store_erasure_laws import ErasureLaws
from threadline.testing.store_item_laws import ItemLaws
from threadline.testing.store_log_laws import LogLaws
from threadline.testing.store_scripts import StoreScripts

TOO_LARGE = (
    Batch(writes=[Put(Key("", "p", "s"), b"")]),
    Batch(writes=[Put(Key("t", "", "s"), b"")]),
    Batch(writes=[Delete(Key("t", "p", ""))]),
    Batch(writes=[Check(Key("t", "p", "é" * (KEY_BYTES_MAX // 2) + "x"), 0)]),
    Batch(writes=[Put(Key("t", "p", "s"), b"x" * ITEM_BYTES_MAX)]),
    Batch([entry(2, body=b"x" * ITEM_BYTES_MAX)]),
    Batch([entry(2, type="")]),
    Batch([entry(2, type="x" * (KEY_BYTES_MAX + 1))]),
    Batch(writes=[Put(Key("t", f"p{n}"), b"") for n in range(BATCH_WRITES_MAX + 1)]),
    Batch([entry(n) for n in range(2, BATCH_WRITES_MAX // 2 + 2)], [Delete(KEY)]),
    Batch(writes=[Put(Key("t", f"p{n}"), b"x" * (BATCH_BYTES_MAX // 10)) for n in range(11)]),
)

NOT_STORABLE = (
    Batch(writes=[Put(Key("t", "p", "\ud800"), b"")]),
    Batch([entry(2, type="\udfff")]),
    Batch([entry(2)._replace(id="XY" * 16)]),
    Batch([entry(2)._replace(id="ab")]),
    Batch([entry(2)._replace(thread="AB" * 16)]),
    Batch([entry(2)._replace(digest=2**63)]),
    Batch([entry(2)._replace(occurred_at=-(2**63) - 1)]),
    Batch([entry(2)._replace(thread=ERASED_THREAD)]),
    Batch(writes=[Put(Key("t", "p"), b"", 0, 0)]),
    Batch(writes=[Put(Key("t", "p"), b"", 0, ITEM_BEGINS_MAX + 1)]),
    Batch(writes=[Put(Key("t", "p"), b""), Check(Key("t", "p"), 0)]),
)


class BoundLaws(StoreOpening):
    """What is refused before anything is written, and what happens at the end."""

    def test_what_is_too_large_is_refused_before_anything_is_written(self, store: Store) -> None:
        for number, batch in enumerate(TOO_LARGE):
            with pytest.raises(LimitExceeded):
                store.commit([Batch([entry(1)], [Put(KEY, b"")]), batch])
            assert (store.get([KEY]), store.feed(), store.scan("t")) == ([None], [], []), number

    def test_what_is_just_small_enough_is_taken(self, store: Store) -> None:
        longest = Key("t", "é" * (KEY_BYTES_MAX // 2), "x" * KEY_BYTES_MAX)
        full = [Put(longest._replace(sort=f"{n}"), b"x" * (ITEM_BYTES_MAX - 1_100)) for n in range(10)]
        events = [entry(n) for n in range(1, BATCH_WRITES_MAX // 2 + 1)]
        assert store.commit([Batch(writes=[Put(longest, b"v")]), Batch(writes=full), Batch(events)]) == [None] * 3
        assert len(store.query(*longest[:2])) == 11

    def test_what_cannot_be_stored_is_refused_before_anything_is_written(self, store: Store) -> None:
        for number, batch in enumerate(NOT_STORABLE):
            with pytest.raises(InvalidValue):
                store.commit([Batch([entry(1)], [Put(KEY, b"")]), batch])
            assert (store.get([KEY]), store.feed(), store.scan("t")) == ([None], [], []), number

    def test_questions_that_make_no_sense_are_refused(self, store: Store) -> None:
        for limit in (0, -1, PAGE_ITEMS_MAX + 1):
            for ask in (
                lambda limit=limit: store.query("t", "p", limit=limit),
                lambda limit=limit: store.ranges([Range("t", "p", limit=limit)]),
                lambda limit=limit: store.scan("t", limit=limit),
                lambda limit=limit: thread_page(store, THREAD, Span(limit=limit)),
                lambda limit=limit: store.feed(limit=limit),
            ):
                with pytest.raises(LimitExceeded):
                    ask()
        with pytest.raises(LimitExceeded):
            store.erase(["00" * 16] * (ERASED_IDS_MAX + 1))
        for wrong in (
            lambda: store.feed("no cursor"),
            lambda: store.scan("t", 2, 2),
            lambda: store.get([Key("t", "\ud800")]),
            lambda: store.query("t", "p", "\ud800"),
            lambda: store.ranges([Range("t", "p", "\ud800")]),
        ):
            with pytest.raises(InvalidValue):
                wrong()

    def test_a_lock_keeps_nobody_from_a_commit(self, store: Store) -> None:
        with store.advisory_lock([KEY, KEY, Key("t", "é")]):
            at_once(lambda: put(store, KEY))
            assert refusals(store, Batch(writes=[Put(KEY, b"2", 1)])) == [None]
            with store.advisory_lock([Key("t", "another")]):
                assert store.get([KEY]) == [Item(KEY, 2, b"2")]

    def test_a_store_knows_how_large_it_is_and_that_it_is_whole(self, store: Store) -> None:
        record(store, *(entry(number) for number in range(1, 4)))
        put(store, KEY)
        stats = store.stats()
        assert stats.get("log_entries", 3) == 3
        assert all(count >= 0 for count in stats.values())
        assert store.integrity() == []

    def test_a_closed_store_answers_no_more(self, tmp_path: Path) -> None:
        store = self.open(tmp_path)
        put(store, KEY)
        store.close()
        store.close()
        for ask in (
            lambda: store.get([KEY]),
            lambda: store.query("t", "p"),
            store.feed,
            store.stats,
            store.integrity,
            lambda: store.commit([Batch(writes=[Put(KEY, b"")])]),
            lambda: store.erase([entry(1).id]),
            store.purge,
        ):
            with pytest.raises(Unavailable):
                ask()

    def test_a_durable_store_has_everything_again(self, tmp_path: Path) -> None:
        store = self.open(tmp_path)
        entries = [entry(number, at=-number, type=f"type{number % 3}") for number in range(1, 21)]
        record(store, *entries)
        for sort in SORTS:
            put(store, Key("t", "p", sort), sort.encode())
        cursor = store.feed(limit=5)[-1].cursor
        seen = (store.query("t", "p"), list(feed_pages(store)), thread_page(store, THREAD), store.feed(cursor))
        store.close()
        store = self.open(tmp_path)
        again = (store.query("t", "p"), list(feed_pages(store)), thread_page(store, THREAD), store.feed(cursor))
        assert again == (seen if self.durable else ([], [], [], []))
        assert refusals(store, Batch([entry(1)])) == (["event_exists"] if self.durable else [None])
        store.close()


class StoreLaws(ItemLaws, LogLaws, ErasureLaws, BoundLaws, StoreScripts):
    """All of them, and random scripts played to this store and to the memory store alike."""
