"""Events of several threads, read page by page, come in occurred order, however many share an instant."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, cast

import pytest

from threadline.engine.folding import history
from threadline.engine.folding.history import in_occurred_order
from threadline.engine.folding.packing import encode_event, log_entry
from threadline.kernel.event import Event, Identifier, Recorded, event_id
from threadline.kernel.store import LogEntry, Span, Store


class Threads:
    """The part of a store that is asked, in a few lines of its own; counts the entries that were read."""

    def __init__(self, entries: list[LogEntry]) -> None:
        self.entries = sorted(entries, key=lambda entry: (entry.occurred_at, entry.sequence))
        self.read = 0

    def spans(self, threads: Sequence[str], span: Span) -> dict[str, list[LogEntry]]:
        found = {}
        for thread in threads:
            wanted = [
                entry
                for entry in self.entries
                if entry.thread == thread
                and (span.start is None or entry.occurred_at >= span.start)
                and (span.stop is None or entry.occurred_at < span.stop)
                and (span.after is None or (entry.occurred_at, entry.sequence) > span.after)
            ][: span.limit]
            self.read += len(wanted)
            if wanted:
                found[thread] = wanted
        return found


def entry(thread: int, sequence: int, at: int) -> LogEntry:
    key = f"{thread}/{sequence}"
    event = Event(type="seen", identifiers=(Identifier("user_id", "ada"),), occurred_at=at, key=key)
    id = event_id("default", "direct", key)
    return log_entry(Recorded(event, id, f"{thread:032x}", sequence, at), encode_event(event), 0)


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_pages_of_any_size_give_what_one_sort_gives(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "Span", lambda start, stop: Span(start, stop, limit=limit))
    for seed in range(40):
        assert_one_order(random.Random(f"{seed} {limit}"), f"seed {seed}")


def assert_one_order(source: random.Random, about: str) -> None:
    """Drawn entries come in the order that sorting all of them gives."""
    instants = source.choice((1, 4, 30))
    entries = [
        entry(thread, sequence, source.randrange(instants))
        for thread in range(source.randint(1, 4))
        for sequence in range(1, source.randint(1, 20))
    ]
    heads = {f"{thread:032x}": source.randint(0, 20) for thread in range(5)}
    start, stop = source.choice(((None, None), (1, None), (None, 3), (1, 3)))
    expected = sorted(
        (each.occurred_at, each.id)
        for each in entries
        if each.sequence <= heads[each.thread]
        and (start is None or each.occurred_at >= start)
        and (stop is None or each.occurred_at < stop)
    )
    found = in_occurred_order(cast(Store, Threads(entries)), heads, start, stop)
    assert [(each.event.occurred_at, each.id) for each in found] == expected, about


def test_no_more_is_read_than_a_page_of_each_thread_before_the_first_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "Span", lambda start, stop: Span(start, stop, limit=10))
    store: Any = Threads([entry(thread, number, 3 * number + thread) for thread in range(2) for number in range(1, 90)])
    events = in_occurred_order(store, {f"{thread:032x}": 90 for thread in range(2)})
    next(events)
    assert store.read == 20
