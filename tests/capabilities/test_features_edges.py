"""What features cost: however much somebody does in a day, a window that cuts the day reads little of the log."""

from __future__ import annotations

import pytest

from tests.laws.staging import CountingStore, engine, event
from threadline.kernel.time import DAY, HOUR, MINUTE
from threadline.stores.memory import MemoryStore
from threadline.testing.scenarios import NOW

TODAY = NOW // DAY * DAY
WINDOW = 90 * DAY


@pytest.mark.parametrize("hour", [0, 7, 12, 21])
def test_a_window_that_cuts_a_busy_day_reads_what_feeds_it_and_no_more_than_two_eighths(hour: int) -> None:
    store = CountingStore(MemoryStore())
    on = engine(store)
    day = TODAY - WINDOW
    # A purchase each half an hour, and a page every ten minutes.
    told = [event("purchase_completed", {"user_id": "ada"}, f"buy {n}", day + n * 30 * MINUTE) for n in range(48)]
    told += [event("page_viewed", {"user_id": "ada"}, f"page {n}", day + n * 10 * MINUTE) for n in range(24 * 6)]
    on.recorder.record(told)
    person = on.reader.person("default", "user_id:ada")
    store.entries = 0
    now = day + WINDOW + hour * HOUR + 10 * MINUTE
    shown = on.reader.views(person, now, names=("features",))["features"]
    assert shown["frequency_purchases_90d"]["value"] == 48 - 2 * hour - 1
    assert 0 < store.entries <= 2 * 48 // 8
