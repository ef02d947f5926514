"""A process that reads beside the one that erases: what it has in memory of an erased event is not given."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from threadline.kernel.store import Batch, Span, Store, event_pages, feed_pages
from threadline.stores.memory import MemoryStore
from threadline.stores.sqlite.store import SqliteStore
from threadline.testing.store_cases import entry

THREADS = [f"{number:02x}" * 16 for number in range(1, 4)]
IDS = [entry(number).id for number in range(1, 400)]


def everything(store: Store) -> list[object]:
    span = Span(limit=3)
    return [
        store.find(IDS),
        store.seen(IDS),
        store.histories(THREADS),
        store.histories(THREADS, lambda type: type == "t1"),
        {thread: list(event_pages(store, thread, span)) for thread in THREADS},
        {thread: list(event_pages(store, thread, span._replace(reverse=True))) for thread in THREADS},
        {thread: list(event_pages(store, thread, Span(types=frozenset({"t1"}), limit=2))) for thread in THREADS},
        [page.entry for page in feed_pages(store)],
    ]


@pytest.mark.parametrize("tail", [8, 40, 1_000])
def test_a_follower_gives_what_the_writer_gives(tmp_path: Path, tail: int) -> None:
    random = Random(tail)
    store, model = SqliteStore(tmp_path / "store.db", tail_entries_max=tail), MemoryStore()
    follower = SqliteStore(tmp_path / "store.db", readonly=True)
    number = 0
    for _ in range(12):
        for _ in range(random.randint(1, 12)):
            count = random.randint(1, 4)
            events = [
                entry(n, random.choice(THREADS), at=random.randint(0, 9), type=f"t{n % 3}")
                for n in range(number + 1, number + count + 1)
            ]
            number += count
            assert store.commit([Batch(events)]) == model.commit([Batch(events)]) == [None]
        if random.random() < 0.7:
            follower.histories(THREADS)
        gone = [entry(random.randint(1, number)).id for _ in range(random.randint(0, 9))]
        assert store.erase(gone) == model.erase(gone)
        wanted = everything(model)
        assert everything(follower) == wanted
        assert everything(store) == wanted
        assert store.integrity() == []
    follower.close()
    store.close()
    again = SqliteStore(tmp_path / "store.db")
    assert everything(again) == everything(model)
    again.close()


def test_a_short_page_is_not_the_end_where_events_were_erased_in_between(tmp_path: Path) -> None:
    """The follower's memory has ten places, of which eight lead to nothing."""
    store = SqliteStore(tmp_path / "store.db")
    follower = SqliteStore(tmp_path / "store.db", readonly=True)
    entries = [entry(number, THREADS[0]) for number in range(1, 11)]
    store.commit([Batch(entries)])
    assert follower.histories(THREADS) == {THREADS[0]: entries}
    store.erase([one.id for one in entries[:8]])
    assert follower.spans(THREADS, Span(limit=4)) == {THREADS[0]: entries[8:]}
    assert follower.spans(THREADS, Span(limit=1)) == {THREADS[0]: entries[8:9]}
    follower.close()
    store.close()


@pytest.mark.parametrize("where", ["before the commit", "after it"])
def test_memory_is_as_the_disk_where_an_erasure_breaks_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    store = SqliteStore(tmp_path / "store.db")
    entries = [entry(number, THREADS[0]) for number in range(1, 11)]
    store.commit([Batch(entries)])
    erase = store._log.erase

    def break_off(*arguments: object) -> None:
        if where == "before the commit":
            erase(*arguments)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(store._log, "erase" if where == "before the commit" else "forget", break_off)
    with pytest.raises(KeyboardInterrupt):
        store.erase([one.id for one in entries[:8]])
    monkeypatch.undo()
    left = entries if where == "before the commit" else entries[8:]
    assert store.spans(THREADS, Span(limit=2)) == {THREADS[0]: left[:2]}
    more = entry(11, THREADS[0])
    assert store.commit([Batch([more])]) == [None]
    assert store.histories(THREADS) == {THREADS[0]: [*left, more]}
    assert store.seen([entries[0].id]) == {entries[0].id: entries[0].digest if left is entries else 0}
    assert store.erase([one.id for one in entries]) == len(left)
    assert store.histories(THREADS) == {THREADS[0]: [more]}
    assert store.integrity() == []
    store.close()
