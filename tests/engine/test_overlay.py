"""An overlay answers as a store that has everything, and leaves the store below as it is."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from threadline.engine.simulation.overlay import Overlay
from threadline.kernel.store import Batch, Delete, Key, LogEntry, Put, Span, Store
from threadline.stores.memory import MemoryStore

THREADS = ["a" * 32, "b" * 32]
SORTS = [f"s{number}" for number in range(12)]


def batches(random: Random, count: int) -> list[Batch]:
    made = []
    for _ in range(count):
        key = Key("items", random.choice("pq"), random.choice(SORTS))
        expected = random.choice([None, None, 0, 1, 2])
        write = Delete(key, expected) if random.random() < 0.3 else Put(key, b"%d" % random.getrandbits(20), expected)
        number = random.randrange(40)
        thread, type = random.choice(THREADS), random.choice("tu")
        entry = LogEntry(thread, number, random.randrange(5), type, f"{number:032x}", 1, b"x")
        made.append(Batch([entry], [write]))
    return made


def answers(store: Store, random: Random) -> list[object]:
    found: list[object] = [store.get([Key("items", part, sort) for part in "pq" for sort in SORTS])]
    for _ in range(12):
        start, stop = sorted(random.sample(SORTS, 2))
        asked = (random.choice(["", start]), random.choice([None, stop]), random.randint(1, 5), random.random() < 0.5)
        found.append(store.query("items", random.choice("pq"), *asked))
        after = random.choice([None, (random.randrange(5), random.randrange(99))])
        types = random.choice([frozenset(), frozenset("t")])
        span = Span(
            random.choice([None, 1]),
            random.choice([None, 4]),
            types,
            after,
            random.randint(1, 4),
            random.random() < 0.5,
        )
        found.append(store.spans(THREADS, span))
    ids = [f"{number:032x}" for number in range(40)]
    return [*found, store.histories(THREADS, lambda type: type == "t"), store.find(ids), store.seen(ids)]


@given(st.integers(0, 1 << 32))
def test_an_overlay_answers_as_a_store_that_has_everything_and_the_store_below_stays_as_it_was(seed: int) -> None:
    below, whole = MemoryStore(), MemoryStore()
    first, second = batches(Random(seed), 15), batches(Random(seed + 1), 15)
    assert below.commit(first) == whole.commit(first)
    before, overlay = answers(below, Random(seed)), Overlay(below)
    for batch in second:
        refused, expected = overlay.commit([batch]), whole.commit([batch])
        assert [each and each.reason for each in refused] == [each and each.reason for each in expected]
    assert answers(overlay, Random(seed)) == answers(whole, Random(seed))
    assert answers(below, Random(seed)) == before
