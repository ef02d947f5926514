"""The same generated script on every store: answers, dumps, items, feeds and views are equal bit for bit."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from tests.conformance.backends import FEED_ORDER, MARKS, MODEL, SCAN_ORDER, Backend, marked
from tests.conformance.script import Played, play
from threadline.stores.memory import MemoryStore

SCRIPTS = int(os.environ.get("THREADLINE_TEST_CONFORMANCE_SCRIPTS", "1"))
"""Scripts that each store is played; every one has a seed of its own."""


@cache
def expected(seed: int) -> Played:
    """What the memory store makes of a script."""
    return play(MemoryStore(), seed)


@pytest.mark.parametrize("number", range(SCRIPTS))
def test_a_script_means_the_same_on_every_store(backend: Backend, number: int, seed: int, tmp_path: Path) -> None:
    chosen = seed + number
    wanted = expected(chosen)
    store = backend.open(tmp_path)
    try:
        found = play(store, chosen)
    finally:
        store.close()
    assert found.answers == wanted.answers
    assert found.dump == wanted.dump
    assert found.items == wanted.items
    assert found.threads == wanted.threads
    assert found.views == wanted.views
    for what, one, other in ((FEED_ORDER, found.feed, wanted.feed), (SCAN_ORDER, found.scan, wanted.scan)):
        assert sorted(one) == sorted(other), what
        # A difference that is declared and does not show would hide the day on which another one takes its place.
        assert (one != other) == marked(backend.name, what), what


def test_a_script_is_worth_comparing(seed: int) -> None:
    """It has everything in it that a store could get wrong."""
    played = expected(seed)
    said = str(played.answers)
    for word in ("accepted", "duplicate", "conflict", "rejected", "no_identifier", "NotFound"):
        assert word in said, word
    tables = {item[0] for item in played.items}
    assert tables >= {"person", "thread", "timer", "rejected", "lease", "declared", "decision"}
    text = "\n".join(played.dump)
    for type in ("threadline.timer_fired", "reminded", "mail_sent", "threadline.effect_retried", "decision_made"):
        assert type in text, type


def test_scripts_of_other_seeds_differ_and_of_the_same_seed_do_not(seed: int) -> None:
    assert play(MemoryStore(), seed, events=80) == play(MemoryStore(), seed, events=80)
    assert play(MemoryStore(), seed, events=80).dump != play(MemoryStore(), seed + 1, events=80).dump


def test_marks_are_of_stores_that_there_are() -> None:
    from tests.conformance.backends import BACKENDS

    names = {backend.name for backend in BACKENDS}
    assert {mark.backend for mark in MARKS} <= names - {MODEL}
    assert all(len(mark.why.split()) > 5 for mark in MARKS)
