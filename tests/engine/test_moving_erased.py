"""Moving a store of which events are erased: before the move, while a copy follows, between an attempt and the next."""

from __future__ import annotations

import threading
import time
from random import Random

import pytest

from tests.engine.test_moving import assert_equal, move, told
from tests.laws import staging
from threadline.engine.engine import Engine
from threadline.engine.folding.person import person_key, snapshot_key, thread_key
from threadline.kernel.errors import Conflict
from threadline.kernel.store import Batch, Delete, Store, event_pages, feed_pages, is_erased
from threadline.stores.memory import MemoryStore


def remove(on: Engine, name: str) -> list[str]:
    """Take a person out of the store; the ids of their events."""
    person = on.reader.person("default", name)
    ids = [entry.id for thread in person.heads for entry in event_pages(on.store, thread)]
    keys = [person_key(person.id), snapshot_key(person.id), *map(thread_key, person.heads)]
    assert on.store.commit([Batch(writes=[Delete(key) for key in keys])]) == [None]
    assert on.store.erase(ids) == len(ids) > 0
    return ids


def erased_ids(store: Store) -> list[str]:
    return [each.entry.id for each in feed_pages(store) if is_erased(each.entry)]


def test_erased_entries_move_and_their_events_stay_duplicates() -> None:
    source, target = MemoryStore(), MemoryStore()
    on = told(Random(1), source)
    ids = remove(on, "anonymous_id:lone-3")
    moved = move(source, target).run()
    assert_equal(source, target)
    assert erased_ids(target) == ids
    assert moved.events == len(list(feed_pages(source)))
    [receipt] = Engine(target, on.catalogue, staging.ticking()).recorder.record(
        [staging.event("page", {"anonymous_id": "lone-3"}, "lone-3")]
    )
    assert (receipt.status, receipt.code) == ("duplicate", "erased")


@pytest.mark.parametrize("copied", ["log", "all"])
def test_what_is_erased_after_it_was_copied_is_erased_in_the_copy(copied: str) -> None:
    source, target = MemoryStore(), MemoryStore()
    on = told(Random(2), source)
    first = move(source, target)
    first.copy_log() if copied == "log" else first.copy()
    ids = remove(on, "anonymous_id:lone-3")
    assert erased_ids(target) == []
    move(source, target).run()
    assert_equal(source, target)
    assert erased_ids(target) == ids


def test_a_copy_that_lost_its_checkpoint_over_an_event_erases_it() -> None:
    source, target = MemoryStore(), MemoryStore()
    on = told(Random(2), source)
    attempt = move(source, target)
    attempt._write([Batch([each.entry]) for each in feed_pages(source)])
    ids = remove(on, "anonymous_id:lone-3")
    move(source, target).run()
    assert erased_ids(target) == ids
    assert_equal(source, target)


def test_a_shadow_forgets_a_person_with_the_source() -> None:
    source, target = MemoryStore(), MemoryStore()
    on = told(Random(3), source)
    stopping = threading.Event()
    follower = move(source, target)
    thread = threading.Thread(
        target=follower.follow, args=(stopping, time.monotonic), kwargs={"idle_seconds": 0.01, "level_seconds": 0.01}
    )
    thread.start()
    while len(list(feed_pages(target))) < len(list(feed_pages(source))):
        time.sleep(0.01)
    ids = remove(on, "anonymous_id:lone-3")
    deadline = time.monotonic() + 60
    while erased_ids(target) != ids and time.monotonic() < deadline:
        time.sleep(0.01)
    stopping.set()
    thread.join(60)
    assert erased_ids(target) == ids


def test_a_target_that_has_erased_what_the_source_has_is_no_copy() -> None:
    source, target = MemoryStore(), MemoryStore()
    told(Random(3), source)
    attempt = move(source, target)
    attempt._write([Batch([each.entry]) for each in feed_pages(source)])
    target.erase([source.feed()[0].entry.id])
    with pytest.raises(Conflict, match="another payload"):
        attempt.run()
