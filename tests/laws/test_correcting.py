"""What was rejected is decided about once: of all who put it right or dismiss it, together or in turn, one is heard."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import staging
from tests.laws.staging import CATALOGUE, Crash, CrashingStore, event
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.kernel.errors import Conflict, InvalidValue
from threadline.kernel.event import Event, Identifier
from threadline.kernel.rejected import StoredEntry
from threadline.stores.memory import MemoryStore
from threadline.testing.scenarios import NOW

WHO = {"user_id": "u"}


def with_an_entry(on: Engine) -> StoredEntry:
    """The entry of one event that was rejected, as everybody reads it."""
    on.recorder.record([event("page", {"user_id": "null"}, "k")])
    [(_, entry)] = on.rejected.page("default")
    return on.rejected.entry("default", entry.id)


def correction(key: str) -> Event:
    return event("page", WHO, key)


def log(on: Engine) -> list[str]:
    return [on.log.read(each).event.key for each in on.log.feed()]


def decide(on: Engine, stored: StoredEntry, key: str) -> str:
    """What became of a decision: a correction under this key, or, for none, to dismiss."""
    try:
        if not key:
            on.rejected.dismiss(stored, "a test of ours")
            return "dismissed"
        return on.rejected.resubmit(stored, correction(key))[0].status
    except Conflict:
        return "too late"


@given(keys=st.lists(st.sampled_from(["", "k", "a", "b"]), min_size=1, max_size=5))
def test_whoever_has_read_an_entry_only_the_first_decides(keys: list[str]) -> None:
    on = staging.engine(clock=staging.ticking())
    stored = with_an_entry(on)
    said = [decide(on, stored, key) for key in keys]
    assert said == ["accepted" if keys[0] else "dismissed", *["too late"] * (len(keys) - 1)]
    assert log(on) == [key for key in keys[:1] if key]
    entry = on.rejected.entry("default", stored.entry.id).entry
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
    whole.recorder.record([event("page", WHO, "before")])
    dying = staging.engine(CrashingStore(store, 1, when), clock=staging.ticking())  # type: ignore[arg-type]
    dying.store.at = dying.store.commits + 1  # type: ignore[attr-defined]
    with pytest.raises(Crash):
        dying.rejected.resubmit(stored, correction("k"))
    recorded = "k" in log(whole)
    assert recorded == (when == "after")
    assert whole.rejected.entry("default", stored.entry.id).entry.status == ("resubmitted" if recorded else "open")


def test_a_correction_that_is_in_the_log_already_settles_the_entry() -> None:
    on = staging.engine(clock=staging.ticking())
    stored = with_an_entry(on)
    on.recorder.record([correction("k")])
    receipt, entry = on.rejected.resubmit(stored, correction("k"))
    assert (receipt.status, entry.status, entry.resolution) == ("duplicate", "resubmitted", receipt.id)
    assert log(on) == ["k"]


@pytest.mark.parametrize("unfit", [event("page", {"user_id": "null"}, "k"), event("page", {"user_id": "v"}, "taken")])
def test_a_correction_that_is_refused_or_in_conflict_leaves_the_entry_open(unfit: Event) -> None:
    on = staging.engine(clock=staging.ticking())
    stored = with_an_entry(on)
    on.recorder.record([correction("taken")])
    receipt, entry = on.rejected.resubmit(stored, unfit)
    assert receipt.status in ("rejected", "conflict")
    assert entry == stored.entry == on.rejected.entry("default", entry.id).entry
    assert decide(on, stored, "k") == "accepted"


def test_a_correction_may_ask_for_a_position() -> None:
    on = staging.engine(clock=staging.ticking())
    stored = with_an_entry(on)
    on.recorder.record([correction("first")])
    receipt, entry = on.rejected.resubmit(stored, correction("k"), expected=0)
    assert (receipt.code, entry.status) == ("position_conflict", "open")
    assert on.rejected.resubmit(stored, correction("k"), expected=1)[1].status == "resubmitted"


# --- what is kept of it ------------------------------------------------------------------------

texts = st.text(max_size=5)
values = st.dictionaries(texts, st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | texts, max_size=3)
rejected_events = st.builds(
    Event,
    type=st.sampled_from(["page", "group", "purchase_completed"]),
    identifiers=st.just((Identifier("user_id", "null"), Identifier("email", "null"))),
    occurred_at=st.integers(NOW - 10**12, NOW),
    key=st.just("k"),
    source=st.sampled_from(["shop", "direct"]),
    source_type=st.sampled_from(["external", "direct"]),
    properties=values,
    context=values,
    received_at=st.integers(NOW - 10**12, NOW),
    sent_time=st.none() | st.integers(NOW - 10**12, NOW),
    marks=st.sampled_from([(), ("clock_corrected",)]),
    historical=st.booleans(),
    schema_version=texts,
    object_id=texts,
    object_ref=texts,
    wire=st.dictionaries(texts, values, max_size=2),
)


def asked(on: Engine, name: str, **params: Any) -> Any:
    operation = next(each for each in CATALOGUE.operations if each.name == name)
    return operation.run(Context(on, "default", on.clock()), msgspec.convert(params, operation.params))


@given(told=rejected_events)
def test_an_event_is_recorded_after_all_as_it_would_have_been(told: Event) -> None:
    fit = msgspec.structs.replace(told, identifiers=(Identifier("user_id", "u"),))
    straight = staging.engine()
    straight.recorder.record([fit])
    on = staging.engine()
    assert on.recorder.record([told])[0].code == "no_identifier"
    [(_, entry)] = on.rejected.page("default")
    again = asked(on, "rejected_resubmit", id=entry.id, payload={**entry.payload, "identifiers": [["user_id", "u"]]})
    assert again.receipt.status == "accepted"
    assert on.log.read(on.log.feed()[0]) == straight.log.read(straight.log.feed()[0])
    # A retry of the producer's, put right there as well, is known.
    assert staging.statuses(on.recorder.record([fit])) == ["duplicate"]


def test_a_retry_of_what_was_resubmitted_as_it_is_is_a_duplicate() -> None:
    on = staging.engine()
    late = event("page", WHO, "k", sent_time=None)
    assert staging.statuses(on.recorder.record([late], expected=5)) == ["position_conflict"]
    [(_, entry)] = on.rejected.page("default")
    assert asked(on, "rejected_resubmit", id=entry.id).receipt.status == "accepted"
    assert staging.statuses(on.recorder.record([late])) == ["duplicate"]


def test_an_event_of_threadlines_own_keeps_its_name_and_lends_it_to_no_other() -> None:
    on = staging.engine()
    own = event("threadline.note", {"user_id": "null"}, "k", source_type="internal")
    on.recorder.record([own])
    [(_, entry)] = on.rejected.page("default")
    fit = {**entry.payload, "identifiers": [["user_id", "u"]]}
    made_up = asked(on, "rejected_resubmit", id=entry.id, payload={**fit, "type": "threadline.merged"})
    assert made_up.receipt.code == "reserved_type"
    assert asked(on, "rejected_resubmit", id=entry.id, payload=fit).receipt.status == "accepted"


def test_the_same_event_again_is_the_same_entry_whenever_it_comes() -> None:
    on = staging.engine(clock=staging.ticking())
    for at in (NOW - 5, NOW - 3):
        on.recorder.record([event("page", {"user_id": "null"}, "k", at, received_at=at)])
    assert len(on.rejected.page("default")) == 1


@pytest.mark.parametrize(
    "unfit",
    [
        event("page", WHO, "k", properties={"text": "x" * 1_000_000}),
        event("page", WHO, "k", properties={"text": "\x01" * 1_000_000}),
        event("page", WHO, "k", properties={"a": float("nan"), "b": b"\xff", "c": object()}),
        event("page", WHO, "k", source="\ud800"),
    ],
    ids=["large", "escaped", "no JSON", "half a character"],
)
def test_what_no_entry_can_hold_is_kept_in_part_and_stops_no_neighbour(unfit: Event) -> None:
    on = staging.engine()
    said = staging.statuses(on.recorder.record([unfit, event("page", WHO, "neighbour")]))
    assert said[1:] == ["accepted"]
    assert said[0] in ("too_large", "invalid_value")
    [(_, entry)] = on.rejected.page("default")
    assert (entry.code, entry.form) == (said[0], "text")
    with pytest.raises(InvalidValue, match="give the correction as `event`"):
        asked(on, "rejected_resubmit", id=entry.id)


@given(steps=st.lists(st.sampled_from(["again", "dismiss", "resubmit"]), max_size=8), conflict=st.booleans())
def test_an_entry_stands_once_at_its_last_time_whatever_comes_again(steps: list[str], conflict: bool) -> None:
    """The model: dismissed and sent again is open; re-submitted it is settled for good."""
    on = staging.engine(clock=staging.ticking())
    if conflict:
        on.recorder.record([event("page", WHO, "k", properties={"n": 1})])
    unfit = event("page", WHO if conflict else {"user_id": "null"}, "k")
    on.recorder.record([unfit])
    status = "open"
    for step in steps:
        [(_, entry)] = on.rejected.page("default")
        assert entry.status == status
        if step == "again":
            on.recorder.record([unfit])
            status = "open" if status == "dismissed" else status
        elif status == "open":
            status = {"dismissed": "dismissed", "accepted": "resubmitted"}[
                decide(on, on.rejected.entry("default", entry.id), "" if step == "dismiss" else "put right")
            ]
    [(_, entry)] = on.rejected.page("default")
    assert entry.status == status
