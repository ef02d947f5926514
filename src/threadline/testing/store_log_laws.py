"""The laws of a store's log: unique ids, spans of threads, a feed that never skips."""

# ruff: noqa: D102 - a law is said by its name

from __future__ import annotations

from functools import partial
from itertools import product

import pytest

from threadline.kernel.limits import ITEM_BYTES_MAX
from threadline.kernel.store import Batch, FeedEntry, LogEntry, Span, Store, event_pages, feed_pages, thread_page
from threadline.testing.store_cases import (
    OTHER_THREAD,
    THREAD,
    StoreOpening,
    at_once,
    entry,
    record,
    record_in_batches,
    refusals,
)


class LogLaws(StoreOpening):
    """Events: unique ids, spans of threads, the feed."""

    def test_an_id_is_taken_once_whatever_the_thread(self, store: Store) -> None:
        again = entry(1, OTHER_THREAD)._replace(sequence=9, body=b"other")
        assert refusals(store, Batch([entry(1)]), Batch([again])) == [None, "event_exists"]
        assert refusals(store, Batch([again, entry(2)]), Batch([entry(3), entry(3)])) == ["event_exists"] * 2
        assert refusals(store, Batch([entry(4)]), Batch([entry(1)]), Batch([entry(5)])) == [None, "event_exists", None]
        assert store.commit([Batch([entry(5)])]) == [("event_exists", entry(5).id)]
        assert [page.entry for page in store.feed()] == [entry(1), entry(4), entry(5)]

    def test_the_same_event_at_once_is_recorded_once(self, store: Store) -> None:
        outcomes: list[str | None] = []
        for number in range(1, 11):
            at_once(*[lambda number=number: outcomes.extend(refusals(store, Batch([entry(number)])))] * 3)
        assert sorted(outcomes, key=str) == [None] * 10 + ["event_exists"] * 20

    def test_found_by_id(self, store: Store) -> None:
        entries = [entry(number, body=b"%d" % number) for number in range(1, 301)]
        assert store.commit([Batch(entries[first : first + 7]) for first in range(0, 300, 7)]) == [None] * 43
        ids = [logged.id for logged in entries]
        assert store.find([*ids, "00" * 16, "no id"]) == {logged.id: logged for logged in entries}
        assert store.seen([*ids, "00" * 16, "no id"]) == {logged.id: logged.digest for logged in entries}
        # Whoever need not be certain may be told less, and nothing else.
        assert store.seen([*ids, "00" * 16], certain=False).items() <= store.seen(ids).items()
        assert (store.find([]), store.seen([]), store.find([ids[0].upper() + " "])) == ({}, {}, {})

    def test_histories_are_whole_threads(self, store: Store) -> None:
        threads = [f"{number:02x}" * 16 for number in range(1, 8)]
        entries = [
            entry(number, threads[number * number % 7], at=number * 37 % 11, type=f"type{number % 3}")
            for number in range(1, 1_200)
        ]
        for first in range(0, len(entries), 300):
            record_in_batches(store, entries[first : first + 300])
        histories = store.histories([*threads, threads[1], "00" * 16, "no id"])
        assert histories == {thread: history for thread in threads if (history := list(event_pages(store, thread)))}
        assert sum(map(len, histories.values())) == len(entries)
        some = store.histories(threads, lambda type: type != "type1")
        assert some == {
            thread: remaining
            for thread, history in histories.items()
            if (remaining := [logged for logged in history if logged.type != "type1"])
        }
        assert store.histories(threads, lambda type: False) == {}
        assert (store.histories([]), store.histories(["ff" * 16])) == ({}, {})

    def test_spans_of_many_threads_are_those_of_each_thread_alone(self, store: Store) -> None:
        threads = [f"{number:02x}" * 16 for number in range(1, 8)]
        # Some in the store for long and some not, of some threads many and of one none.
        for first in range(1, 400, 100):
            record_in_batches(
                store,
                [
                    entry(number, threads[number * number % 7], at=number * 37 % 11, type=f"type{number % 3}")
                    for number in range(first, first + 100)
                ],
            )
        asked = [threads[3], *threads, threads[1], "00" * 16, "no id"]
        for span in (
            Span(),
            Span(2, 7),
            Span(2, 7, frozenset({"type1", "absent"})),
            Span(types=frozenset({"absent"})),
            Span(limit=3),
            Span(None, 9, frozenset({"type2"}), None, 5, True),
            Span(after=(4, 100), limit=20),
        ):
            expected = {thread: page for thread in threads if (page := thread_page(store, thread, span))}
            assert store.spans(asked, span) == expected
        assert (store.spans([], Span()), store.spans(["ff" * 16], Span())) == ({}, {})

    def test_every_field_of_an_entry_comes_back(self, store: Store) -> None:
        edge = 2**63
        entries = [
            LogEntry("ff" * 16, 1, -edge, "t", "ff" * 16, edge - 1, b""),
            LogEntry("00" * 15 + "01", edge - 1, edge - 1, "größe\0\U0001f600", "00" * 16, -edge, bytes(range(256))),
            LogEntry("ff" * 16, 2, -62_135_596_800_000_000, "t" * 200, "01" * 16, 0, b"x" * (ITEM_BYTES_MAX - 300)),
        ]
        record(store, *entries)
        assert [page.entry for page in store.feed()] == entries
        assert store.find([logged.id for logged in entries]) == {logged.id: logged for logged in entries}
        assert thread_page(store, "ff" * 16) == [entries[0], entries[2]]

    def test_spans_read_a_thread_in_occurred_order(self, store: Store) -> None:
        times = (5, -3, 0, 5, -3, 9, 0, 7, -10, 5, 2, 2)
        entries = [entry(n, at=at, type="even" if n % 2 == 0 else "odd") for n, at in enumerate(times, 1)]
        record(store, *entries, entry(50, OTHER_THREAD, at=1))
        ordered = sorted(entries, key=lambda logged: (logged.occurred_at, logged.sequence))
        for types in (
            frozenset[str](),
            frozenset({"even"}),
            frozenset({"odd", "even", "absent"}),
            frozenset({"absent"}),
        ):
            for start in (None, -10, -3, 1, 5, 10):
                for stop in (None, -10, 0, 5, 10):
                    wanted = [
                        logged
                        for logged in ordered
                        if (start is None or logged.occurred_at >= start)
                        and (stop is None or logged.occurred_at < stop)
                        if not types or logged.type in types
                    ]
                    assert thread_page(store, THREAD, Span(start, stop, types)) == wanted
                    assert thread_page(store, THREAD, Span(start, stop, types, limit=3)) == wanted[:3]
                    assert thread_page(store, THREAD, Span(start, stop, types, reverse=True)) == wanted[::-1]
        assert thread_page(store, "cc" * 16) == thread_page(store, "no id") == []

    @pytest.mark.parametrize("reverse", [False, True])
    def test_pages_visit_every_event_once(self, store: Store, reverse: bool) -> None:
        entries = [entry(n, at=n * 5 % 4 - 2, type="even" if n % 2 == 0 else "odd") for n in range(1, 13)]
        record(store, *entries)
        for types, limit in product((frozenset[str](), frozenset({"odd"})), (1, 2, 5, 100)):
            for start, stop in ((None, None), (-1, 1)):
                span = Span(start, stop, types, None, limit, reverse)
                pages = list(event_pages(store, THREAD, span))
                assert pages == thread_page(store, THREAD, span._replace(limit=100)), span

    def test_the_feed_gives_every_event_once_in_commit_order(self, store: Store) -> None:
        assert store.feed() == []
        entries = [entry(number, at=-number) for number in range(1, 31)]
        record(store, *entries)
        whole = list(feed_pages(store))
        assert [page.entry for page in whole] == entries
        for index, page in enumerate(whole):
            assert store.feed(page.cursor, limit=4) == whole[index + 1 : index + 5]

    def test_what_is_committed_after_the_end_was_asked_for_follows_it(self, store: Store) -> None:
        for first in range(1, 121, 10):
            record(store, *(entry(first + number) for number in range(10)))
        end = store.feed_end()
        record(store, entry(121), entry(122))
        following = [page.entry.sequence for page in feed_pages(store, end)]
        assert following[-2:] == [121, 122]
        assert len(following) < 60, "the end is the beginning"

    def test_the_feed_skips_nothing_behind_its_end_while_others_write(self, store: Store) -> None:
        ends: list[tuple[int, str]] = []

        def write(first: int) -> None:
            for number in range(15):
                record(store, entry(first + number))
                ends.append((first + number, store.feed_end()))

        at_once(partial(write, 1_000), partial(write, 2_000))
        for committed, end in ends:
            following = {page.entry.sequence for page in feed_pages(store, end)}
            assert following >= set(range(committed + 1, committed // 1_000 * 1_000 + 15))

    def test_the_feed_skips_nothing_while_others_write(self, store: Store) -> None:
        followed: list[FeedEntry] = []

        def follow() -> None:
            while len(followed) < 30:
                followed.extend(store.feed(followed[-1].cursor if followed else "", limit=7))

        def write(first: int) -> None:
            for number in range(15):
                record(store, entry(first + number))

        at_once(follow, partial(write, 1_000), partial(write, 2_000))
        assert followed == list(feed_pages(store))
        assert {page.entry.sequence for page in followed} == {*range(1_000, 1_015), *range(2_000, 2_015)}

    def test_one_call_takes_many_full_batches(self, store: Store) -> None:
        batches = [Batch([entry(first * 50 + n + 1) for n in range(50)]) for first in range(12)]
        assert store.commit(batches) == [None] * 12
        assert [page.entry.sequence for page in feed_pages(store)] == list(range(1, 601))
        assert store.commit([]) == []
        assert store.commit([Batch()]) == [None]
