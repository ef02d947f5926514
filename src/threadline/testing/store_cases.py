"""What the store laws share: small entries and keys, and how a backend says what it tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path

import pytest

from threadline.kernel.store import Batch, Key, LogEntry, Put, Store

KEY = Key("table", "partition", "sort")
THREAD, OTHER_THREAD = "aa" * 16, "bb" * 16
SORTS = ("\0", "!", "Z", "a", "a\0", "a\0b", "aa", "z", "ä", "é", "\uffff", "\U00010000", "\U0001f600")
"""In the order of their UTF-8 bytes; UTF-16 would put the last two before U+FFFF."""


def entry(
    number: int, thread: str = THREAD, at: int | None = None, type: str = "seen", body: bytes = b"{}"
) -> LogEntry:
    """A log entry whose id and sequence follow from its number."""
    return LogEntry(thread, number, number if at is None else at, type, f"{number:032x}", number * 7, body)


def record(store: Store, *entries: LogEntry) -> None:
    """Commit each entry in a batch of its own."""
    assert store.commit([Batch([logged]) for logged in entries]) == [None] * len(entries)


def record_in_batches(store: Store, entries: Sequence[LogEntry]) -> None:
    """Commit many entries in few batches: alone, a few together and many, in turn."""
    left, batches = list(entries), list[Batch]()
    for size in cycle((1, 2, 7, 30)):
        if not left:
            break
        batches.append(Batch(left[:size]))
        del left[:size]
    assert store.commit(batches) == [None] * len(batches)


def put(store: Store, key: Key, value: bytes = b"v") -> None:
    """Write one item whatever it is now."""
    assert store.commit([Batch(writes=[Put(key, value)])]) == [None]


def refusals(store: Store, *batches: Batch) -> list[str | None]:
    """Commit and tell only the reasons, for their wording is each store's own."""
    return [refusal and refusal.reason for refusal in store.commit(batches)]


def at_once(*tasks: Callable[[], object]) -> None:
    """Run tasks in threads that start together; the first error of any is raised here."""
    errors: list[BaseException] = []
    gate = threading.Barrier(len(tasks))

    def run(task: Callable[[], object]) -> None:
        try:
            gate.wait()
            task()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is raised again below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(task,), daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a task did not come to its end"
    if errors:
        raise errors[0]


class StoreOpening:
    """How a backend's test class says what it tests."""

    durable = False
    """Whether what was committed is there again when the same folder is opened anew."""

    def open(self, folder: Path) -> Store:
        """A store in this folder, empty if the folder is."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        """An empty store for one test."""
        store = self.open(tmp_path)
        yield store
        store.close()
