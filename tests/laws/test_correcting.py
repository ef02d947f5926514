"""What was rejected is decided about once: of all who put it right or dismiss it, together or in turn, one is heard."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import staging
from tests.laws.staging import Crash, CrashingStore, event
from threadline.engine.engine import Engine
from threadline.kernel.errors import Conflict
from threadline.kernel.event import Event
from threadline.kernel.rejected import StoredEntry
from threadline.stores.memory import MemoryStore

WHO = {"user_id": "u"}


def with_an_entry(on: Engine) -> StoredEntry:
    """The entry of one event that was rejected, as everybody reads it."""
    on.record([event("page", {"user_id": "null"}, "k")])
    [(_, entry)] = on.rejected_page("default")
    return on.rejected_entry("default", entry.id)


def correction(key: str) -> Event:
    return event("page", WHO, key)


def log(on: Engine) -> list[str]:
    return [on.of_entry(each.entry).event.key for each in on.feed()]


def decide(on: Engine, stored: StoredEntry, key: str) -> str:
    """What became of a decision: a correction under this key, or, for none, to dismiss."""
    try:
        if not key:
            on.dismiss(stored, "a test of ours")
            return "dismissed"
        return on.resubmit(stored, correction(key))[0].status
    except Conflict:
        return "too late"


@given(keys=st.lists(st.sampled_from(["", "k", "a", "b"]), min_size=1, max_size=5))
def test_whoever_has_read_an_entry_only_the_first_decides(keys: list[str]) -> None:
    on = staging.engine(clock=staging.ticking())
    stored = with_an_entry(on)
    said = [decide(on, stored, key) for key in keys]
    assert said == ["accepted" if keys[0] else "dismissed", *["too late"] * (len(keys) - 1)]
    assert log(on) == [key for key in keys[:1] if key]
    entry = on.rejected_entry("default", stored.entry.id).entry
    assert entry.status == ("resubmitted" if keys[0] else "dismissed")


def test_eight_at_once_record_one_event() -> None:
    on = staging.engine(clock=staging.ticking())
    stored = with_an_entry(on)
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda key: decide(on, stored, key), ["a", "b", "", "c", "d", "e", "f", "g"]))
    assert said.count("too late") == 7
    assert len(log(on)) == ("dismissed" not in said)


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_engine_that_dies_on_the_way_leaves_both_or_neither(when: str) -> None:
    whole = staging.engine(store := MemoryStore(), clock=staging.ticking())
    stored = with_an_entry(whole)
    whole.record([event("page", WHO, "before")])
    dying = staging.engine(CrashingStore(store, 1, when), clock=staging.ticking())  # type: ignore[arg-type]
    dying.store.at = dying.store.commits + 1  # type: ignore[attr-defined]
    with pytest.raises(Crash):
        dying.resubmit(stored, correction("k"))
    recorded = "k" in log(whole)
    assert recorded == (when == "after")
    assert whole.rejected_entry("default", stored.entry.id).entry.status == ("resubmitted" if recorded else "open")


def test_a_correction_that_is_in_the_log_already_settles_the_entry() -> None:
    on = staging.engine(clock=staging.ticking())
    stored = with_an_entry(on)
    on.record([correction("k")])
    receipt, entry = on.resubmit(stored, correction("k"))
    assert (receipt.status, entry.status, entry.resolution) == ("duplicate", "resubmitted", receipt.id)
    assert log(on) == ["k"]


@pytest.mark.parametrize("unfit", [event("page", {"user_id": "null"}, "k"), event("page", {"user_id": "v"}, "taken")])
def test_a_correction_that_is_refused_or_in_conflict_leaves_the_entry_open(unfit: Event) -> None:
    on = staging.engine(clock=staging.ticking())
    stored = with_an_entry(on)
    on.record([correction("taken")])
    receipt, entry = on.resubmit(stored, unfit)
    assert receipt.status in ("rejected", "conflict")
    assert entry == stored.entry == on.rejected_entry("default", entry.id).entry
    assert decide(on, stored, "k") == "accepted"


def test_a_correction_may_ask_for_a_position() -> None:
    on = staging.engine(clock=staging.ticking())
    stored = with_an_entry(on)
    on.record([correction("first")])
    receipt, entry = on.resubmit(stored, correction("k"), expected=0)
    assert (receipt.code, entry.status) == ("position_conflict", "open")
    assert on.resubmit(stored, correction("k"), expected=1)[1].status == "resubmitted"
