"""People whom the writer reads: all of a call together, and as one person each, whichever thread names them."""

from __future__ import annotations

import pytest

from tests.laws import staging
from threadline.engine.folding.person_packing import TAIL_UNCACHED_MAX, tail_max
from threadline.kernel.event import Event
from threadline.stores.memory import MemoryStore

NAMES = [f"user-{number}" for number in range(5)]


def detected(name: str, number: int) -> Event:
    """An event that makes somebody's states larger."""
    properties = {"topic": f"topic {number}", "strength": 0.5}
    return staging.event("interest_detected", {"user_id": name}, f"{name} {number}", properties=properties)


def tails(store: MemoryStore) -> list[int | None]:
    reader = staging.engine(store).reader
    found = [reader.person("default", f"user_id:{name}").tail for name in NAMES]
    return [None if tail is None else len(tail) for tail in found]


def test_events_of_two_threads_are_numbered_by_one_head_after_another_process_linked_them() -> None:
    store = MemoryStore()
    one, other = staging.engine(store), staging.engine(store)
    one.recorder.record([staging.event("page", {"user_id": "ada"}, "1")])
    # `one` has ada in memory without the device, and the device has somebody of its own in the store by now.
    other.recorder.record([staging.event("page", {"user_id": "ada", "anonymous_id": "x"}, "2")])
    calls = [staging.event("page", {"anonymous_id": "x"}, "3"), staging.event("page", {"user_id": "ada"}, "4")]
    calls += [staging.event("page", {"user_id": "ada"}, "5"), staging.event("page", {"anonymous_id": "x"}, "6")]
    for order in (calls[:2], calls[:1:-1]):
        assert staging.statuses(one.recorder.record(order)) == ["accepted"] * 2
    staging.assert_log_is_whole(one)
    staging.assert_refold_changes_nothing(one)


@pytest.mark.parametrize("others", [0, TAIL_UNCACHED_MAX - 1, TAIL_UNCACHED_MAX, 10])
def test_people_who_are_not_in_the_cache_are_read_with_their_tails_together_and_a_long_tail_ends(others: int) -> None:
    store = MemoryStore()
    writer = staging.engine(store)
    for number in range(60):
        writer.recorder.record([detected(name, number) for name in NAMES])
    number = 60
    while tails(store) != [0] * len(NAMES):  # by now each has a snapshot; it is due for all at once
        writer.recorder.record([detected(name, number) for name in NAMES])
        number += 1
    for later in range(number, number + others):
        writer.recorder.record([detected(name, later) for name in NAMES])
    assert tails(store) == [others] * len(NAMES)
    counting = staging.CountingStore(store)
    other = staging.engine(counting)
    other.recorder.record([detected(name, 1_000) for name in NAMES])
    assert counting.finds == (1 if others else 0)
    assert tails(store) == [0 if others >= TAIL_UNCACHED_MAX else others + 1] * len(NAMES)
    assert tail_max(staging.engine(store).reader.person("default", f"user_id:{NAMES[0]}").size) > 10
    # Whom it has in its cache by now it need not read again: their tails grow.
    other.recorder.record([detected(name, 1_001) for name in NAMES])
    assert counting.finds == (1 if others else 0)
    assert tails(store) == [1 if others >= TAIL_UNCACHED_MAX else others + 2] * len(NAMES)
    staging.assert_refold_changes_nothing(other)
