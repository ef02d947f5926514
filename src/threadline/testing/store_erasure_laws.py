"""The laws of erasure: an event leaves the log for good, and nothing else changes its place."""

# ruff: noqa: D102 - a law is said by its name

from __future__ import annotations

from functools import partial
from pathlib import Path

from threadline.kernel.limits import ERASED_IDS_MAX
from threadline.kernel.store import (
    ERASED_THREAD,
    Batch,
    LogEntry,
    Put,
    Span,
    Store,
    erased,
    event_pages,
    feed_pages,
    is_erased,
    thread_page,
)
from threadline.testing.store_cases import KEY, OTHER_THREAD, THREAD, StoreOpening, at_once, entry, record, refusals


class ErasureLaws(StoreOpening):
    """Erased entries: what every read gives, what stays, what a repetition does."""

    def test_no_read_but_the_feed_gives_an_erased_event(self, store: Store) -> None:
        entries = [entry(n, THREAD if n % 2 else OTHER_THREAD, at=n * 5 % 4, type=f"t{n % 3}") for n in range(1, 41)]
        for first in range(0, 40, 8):
            assert store.commit([Batch(entries[first : first + 8])]) == [None]
        gone = {logged.id for logged in entries if logged.sequence % 5 < 2}
        remaining = [logged for logged in entries if logged.id not in gone]
        assert store.erase([*gone, "00" * 16, "no id", entries[0].id.upper() + " "]) == len(gone)
        assert store.find([logged.id for logged in entries]) == {logged.id: logged for logged in remaining}
        digests = {logged.id: 0 if logged.id in gone else logged.digest for logged in entries}
        assert store.seen([logged.id for logged in entries]) == digests
        ordered = sorted(remaining, key=lambda logged: (logged.occurred_at, logged.sequence))
        histories = {
            thread: [logged for logged in ordered if logged.thread == thread] for thread in (THREAD, OTHER_THREAD)
        }
        assert store.histories([THREAD, OTHER_THREAD, ERASED_THREAD]) == histories
        assert store.spans([THREAD, OTHER_THREAD, ERASED_THREAD], Span()) == histories
        some = [logged for logged in histories[THREAD] if logged.type == "t1"]
        assert store.histories([THREAD], lambda type: type == "t1") == {THREAD: some}
        for limit in (1, 2, 3, 100):
            for reverse in (False, True):
                span = Span(types=frozenset({"t1"}), limit=limit, reverse=reverse)
                assert list(event_pages(store, THREAD, span)) == (some[::-1] if reverse else some)
        assert store.integrity() == []

    def test_erasure_keeps_every_place_in_the_feed(self, store: Store) -> None:
        entries = [entry(number) for number in range(1, 31)]
        for first in (0, 3, 13):
            record(store, *entries[first : 3 if not first else 13 if first == 3 else 14])
        assert store.commit([Batch(entries[14:30])]) == [None]
        before = list(feed_pages(store))
        gone = {entries[number].id for number in (0, 5, 13, 14, 20, 21, 29)}
        assert store.erase(sorted(gone)) == len(gone)
        after = [
            feed_entry._replace(entry=erased(feed_entry.entry.id)) if feed_entry.entry.id in gone else feed_entry
            for feed_entry in before
        ]
        assert list(feed_pages(store)) == after
        for index, page in enumerate(before):
            assert store.feed(page.cursor, limit=4) == after[index + 1 : index + 5]
        record(store, entry(31))
        assert [page.entry for page in store.feed(before[-1].cursor)] == [entry(31)]

    def test_an_erased_event_is_a_duplicate_for_ever(self, store: Store) -> None:
        record(store, entry(1), entry(2))
        assert store.erase([entry(1).id]) == 1
        again = Batch([entry(1)._replace(sequence=9, thread=OTHER_THREAD)], [Put(KEY, b"v")])
        assert refusals(store, again, Batch([entry(3)])) == ["event_exists", None]
        assert (store.get([KEY]), store.find([entry(1).id])) == ([None], {})
        assert thread_page(store, THREAD) == [entry(2), entry(3)]

    def test_erasing_again_changes_nothing(self, store: Store) -> None:
        record(store, *(entry(number) for number in range(1, 6)))
        ids = [entry(number).id for number in (2, 4)]
        assert store.erase(ids[:1]) == 1
        assert store.erase([*ids, *ids]) == 1
        feed = list(feed_pages(store))
        assert (store.erase(ids), store.erase([]), store.erase(["ff" * 16])) == (0, 0, 0)
        assert list(feed_pages(store)) == feed
        store.purge()
        store.purge()
        assert list(feed_pages(store)) == feed

    def test_a_whole_thread_is_erased(self, store: Store) -> None:
        entries = [entry(number, THREAD if number % 3 else OTHER_THREAD) for number in range(1, ERASED_IDS_MAX + 1)]
        for first in range(0, len(entries), 50):
            assert store.commit([Batch(entries[first : first + 50])]) == [None]
        assert store.erase([logged.id for logged in entries if logged.thread == THREAD]) == ERASED_IDS_MAX * 2 // 3 + 1
        assert store.histories([THREAD, OTHER_THREAD]) == {OTHER_THREAD: entries[2::3]}
        assert store.spans([THREAD], Span(limit=1)) == {}
        record(store, entry(5_000))
        assert thread_page(store, THREAD) == [entry(5_000)]

    def test_an_erased_entry_can_be_appended(self, store: Store) -> None:
        """As a move does it."""
        assert (
            refusals(store, Batch([entry(1), erased(entry(2).id), entry(3)]), Batch([erased(entry(4).id)]))
            == [None] * 2
        )
        assert refusals(store, Batch([entry(2)]), Batch([erased(entry(1).id)])) == ["event_exists"] * 2
        assert [page.entry for page in store.feed()] == [entry(1), erased(entry(2).id), entry(3), erased(entry(4).id)]
        assert thread_page(store, THREAD) == [entry(1), entry(3)]
        assert store.find([entry(2).id, entry(3).id]) == {entry(3).id: entry(3)}
        assert store.seen([entry(2).id]) == {entry(2).id: 0}
        assert store.erase([entry(2).id, entry(1).id]) == 1

    def test_erasure_among_commits_and_readers(self, store: Store) -> None:
        record(store, *(entry(number, at=number % 7) for number in range(1, 61)))
        others = [entry(number, OTHER_THREAD) for number in range(1_001, 1_031)]
        done: list[int] = []
        pages: list[list[LogEntry]] = []

        def erase() -> None:
            done.extend(store.erase([entry(number).id, entry(number + 1).id]) for number in range(1, 61, 3))

        def read() -> None:
            while len(done) < 20:
                pages.append(list(event_pages(store, THREAD, Span(limit=2))))
                pages.append(thread_page(store, THREAD, Span(limit=500, reverse=True))[::-1])

        at_once(erase, read, partial(record, store, *others), partial(record, store, *map(entry, range(61, 81))))
        assert done == [2] * 20
        stays = {entry(number, at=number % 7) for number in range(3, 61, 3)}
        for page in pages:
            assert stays <= set(page), "a reader missed what was never erased"
        assert set(thread_page(store, THREAD)) == stays | set(map(entry, range(61, 81)))
        assert thread_page(store, OTHER_THREAD) == others
        assert sum(is_erased(page.entry) for page in feed_pages(store)) == 40
        assert store.integrity() == []

    def test_the_same_event_is_erased_once_by_many(self, store: Store) -> None:
        record(store, *(entry(number) for number in range(1, 21)))
        counts: list[int] = []
        ids = [entry(number).id for number in range(1, 21)]
        at_once(*[lambda: counts.append(store.erase(ids))] * 3)
        assert sum(counts) == 20, counts
        assert all(is_erased(page.entry) for page in store.feed())

    def test_a_durable_store_has_erased_for_good(self, tmp_path: Path) -> None:
        store = self.open(tmp_path)
        entries = [entry(number, at=-number) for number in range(1, 21)]
        record(store, *entries)
        store.erase([logged.id for logged in entries[4:9]])
        record(store, *(erased(entry(number).id) for number in range(100, 110)))
        seen = list(feed_pages(store))
        store.close()
        if not self.durable:
            return
        again = self.open(tmp_path)
        assert list(feed_pages(again)) == seen
        assert thread_page(again, THREAD) == [*entries[:8:-1], *entries[3::-1]]
        assert refusals(again, Batch([entries[4]])) == ["event_exists"]
        assert again.integrity() == []
        again.close()
