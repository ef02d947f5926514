"""Law: rows of single events, and what leads from a thread to its person, are missed if lost, and put right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

from hypothesis import given

from tests.laws import staging
from tests.laws.test_index_rows import PEOPLE, amiss, liked, tell, written
from threadline.engine.engine import Engine
from threadline.engine.folding.person import PERSON, THREAD
from threadline.engine.maintenance.rebuild import refold_everybody
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.event import Recorded
from threadline.kernel.projection import Index, Row
from threadline.kernel.store import Batch, Delete, Key, Put, Store
from threadline.stores.memory import MemoryStore
from threadline.testing import scenarios

MARKS = "liking"


def marks(recorded: Recorded) -> Iterable[Row]:
    yield Row(MARKS, recorded.event.workspace, recorded.id, recorded.event.key.encode())


def opened(store: Store) -> Engine:
    values = [replace(liked(1, "liked0"), index=Index(event_rows=marks))]
    return staging.engine(store, staging.ticking(), values, shipped=False)


@given(scenarios.randoms)
def test_what_is_lost_is_told_and_put_right(random: Random) -> None:
    on = opened(MemoryStore())
    for number in range(random.randrange(1, 25)):
        tell(on, f"k{number}", "red", **random.choice(PEOPLE))
    tables = (MARKS, THREAD, "liked0")
    right = written(on, *tables)
    assert amiss(on) == set()
    told = set()
    for key in random.sample(sorted(right), random.randrange(len(right) + 1)):
        is_lost = key.table != MARKS or random.random() < 0.5
        on.store.commit([Batch(writes=[Delete(key) if is_lost else Put(key, b"else")])])
        where = f"thread {key.partition}" if key.table == THREAD else " ".join(key)
        told.add((where, "missing" if is_lost else "something else"))
    said = amiss(on)
    assert len(said) == len(told)
    for where, what in told:
        assert any(line.startswith(where) and what in line for line in said)
    refold_everybody(on.store, on.catalogue)
    assert written(on, *tables) == right
    assert amiss(on) == set()


def test_a_thread_that_leads_astray_is_told_and_left_to_somebody_who_looks() -> None:
    on = opened(MemoryStore())
    for number, who in enumerate(("ada", "bob")):
        tell(on, f"k{number}", "red", user_id=who)
    ada, bob = (on.reader.person("default", f"user_id:{who}") for who in ("ada", "bob"))
    (thread,) = ada.heads
    stray = Key(THREAD, "ab" * 16)
    on.store.commit([Batch(writes=[Put(Key(THREAD, thread), bob.id.encode()), Put(stray, bob.id.encode())])])
    found = {
        f"thread {thread} leads to somebody else than {ada.id}, who has its events",
        f"thread {thread} leads to nobody who has it",
        f"thread {stray.partition} leads to nobody who has it",
    }
    assert amiss(on) == found
    refold_everybody(on.store, on.catalogue)
    assert amiss(on) == found


def test_people_who_are_joined_and_parted_while_they_are_looked_at_are_no_faults(seed: int) -> None:
    """One at a time, between any two reads."""
    random, store, looking = Random(seed), MemoryStore(), [False]
    merged: list[str] = []

    def change(number: int) -> None:
        try:
            if merged and random.random() < 0.5:
                on.identity.unmerge("default", merged.pop(), request=f"u{number}")
            elif random.random() < 0.5:
                on.identity.merge("default", "user_id:ada", "user_id:bob", request=f"m{number}")
                merged.extend(each.entry.id for each in store.feed(limit=1_000) if "merged" in each.entry.type)
            else:
                tell(on, f"meanwhile{number}", "red", **random.choice(PEOPLE))
        except ThreadlineError:
            return  # they are one already, or two

    number = count()

    def and_then(found: Any) -> Any:
        if looking[0]:
            looking[0] = False
            change(next(number))
            looking[0] = True
        return found

    get, scan = store.get, store.scan
    store.get = lambda keys: and_then(get(keys))  # type: ignore[method-assign]
    store.scan = lambda *given, **named: and_then(scan(*given, **named))  # type: ignore[method-assign]
    on = opened(store)
    for who in ("ada", "bob", "cleo"):
        tell(on, who, "red", user_id=who)
    for _ in range(15):
        looking[0] = True
        assert amiss(on) == set()
        looking[0] = False
    assert next(number) > 60
    assert len(store.scan(PERSON)) > 2
