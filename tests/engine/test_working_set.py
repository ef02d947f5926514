"""Whoever is read anew in the middle of an attempt is one person in it, whichever thread names them."""

from __future__ import annotations

from tests.laws import staging
from threadline.stores.memory import MemoryStore


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
