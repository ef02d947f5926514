"""Ids of erased events for copies outside the store: what erasures and retention note, in which order, up to where."""

from __future__ import annotations

from threading import Barrier, Thread

from tests.laws import staging
from threadline.engine.engine import Engine
from threadline.engine.erasure.erased_ids import erased_pages, erased_since, note_erased
from threadline.kernel.store import is_erased
from threadline.kernel.time import DAY
from threadline.stores.memory import MemoryStore


def recorded(on: Engine, who: str, *keys: str, at: int = staging.NOW - 1) -> list[str]:
    """Record an event under each of these keys; their ids."""
    events = [staging.event("page", {"user_id": who}, key, at) for key in keys]
    return [receipt.id for receipt in on.recorder.record(events)]


def erased_in_feed(on: Engine) -> set[str]:
    return {each.entry.id for each in on.store.feed() if is_erased(each.entry)}


def test_an_erased_person_s_events_come_once_after_a_mark() -> None:
    on = staging.engine(MemoryStore())
    ada, bob = recorded(on, "ada", "1", "2"), recorded(on, "bob", "3")
    assert erased_since(on.store) == (frozenset(), "")
    on.erasures.run("default", on.erasures.begin("default", "user_id:ada").id)
    ids, mark = erased_since(on.store)
    assert ids == set(ada) == erased_in_feed(on)
    assert erased_since(on.store, mark) == (frozenset(), mark)
    on.erasures.run("default", on.erasures.begin("default", "user_id:bob").id)
    assert erased_since(on.store, mark)[0] == set(bob)


def test_events_that_are_past_their_time_come_with_the_times_of_their_recording() -> None:
    on = staging.engine(MemoryStore())
    old, _ = recorded(on, "ada", "1", at=staging.NOW - 9 * DAY), recorded(on, "ada", "2")
    assert on.erasures.expiry.expire(on.reader.person("default", "user_id:ada").id, {"page"}, staging.NOW - DAY) == 1
    [page], _ = erased_pages(on.store)
    assert (page.ids, page.recorded) == ({*old}, (staging.NOW, staging.NOW))


def test_an_event_that_is_noted_and_not_yet_erased_is_withheld_and_not_passed_over() -> None:
    on = staging.engine(MemoryStore())
    [first, second, third] = recorded(on, "ada", "1", "2", "3")
    note_erased(on.store, [first])
    note_erased(on.store, [second])
    note_erased(on.store, [third])
    on.store.erase([first, third])
    ids, mark = erased_since(on.store)
    assert ids == {first, third}
    on.store.erase([second])
    assert erased_since(on.store, mark)[0] == {second, third}


def test_a_page_that_is_noted_again_after_a_kill_is_noted_once() -> None:
    store = MemoryStore()
    for _ in range(2):
        note_erased(store, ["ab" * 16], [1])
    assert len(store.scan("erased_log")) == 1


def test_pages_of_writers_at_the_same_time_are_all_there() -> None:
    store, together = MemoryStore(), Barrier(4)

    def note(number: int) -> None:
        together.wait()
        for page in range(5):
            note_erased(store, [f"{number:016x}{page:016x}"])

    threads = [Thread(target=note, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(erased_since(store)[0]) == 20
    assert [int(item.key.sort) for item in store.scan("erased_log")] == list(range(1, 21))
