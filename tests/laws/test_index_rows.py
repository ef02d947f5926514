"""Law: after a refold index rows are those that people's states ask for, whatever was declared before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

import pytest
from hypothesis import given

from tests.laws import staging
from threadline.engine.engine import Engine
from threadline.engine.folding.person_packing import index_rows
from threadline.engine.maintenance.rebuild import refold_everybody
from threadline.kernel.event import Recorded
from threadline.kernel.projection import Index, Projection, Row
from threadline.kernel.store import Batch, Delete, Key, Put, Store, scan_pages
from threadline.stores.memory import MemoryStore
from threadline.testing import scenarios

COLOURS = ("red", "green", "blue")
TABLES = ("liked0", "liked1")


def liked(version: int, table: str) -> Projection:
    """Who likes which colours; each version finds people in a way of its own."""

    def fold(state: dict[str, int], recorded: Recorded) -> dict[str, int]:
        colour = str(recorded.event.properties.get("colour"))
        state[colour] = state.get(colour, 0) + 1
        return state

    def rows(state: dict[str, int], workspace: str, person: str) -> Iterable[Row]:
        for colour, times in state.items():
            if version == 4:
                yield Row(table, f"{workspace}/{('even', 'odd')[times % 2]}", person, str(times).encode())
            elif version != 3 or times > 1:
                text = colour.upper() if version == 2 else colour
                yield Row(table, f"{workspace}/{text}", person, str(times).encode() if version == 1 else b"")

    return Projection(
        name=table,
        version=version,
        handles=frozenset({"liked"}),
        empty=dict,
        fold=fold,
        index=Index(rows=rows, tables=(table,)),
        view=lambda state, now, edges: state,
    )


def opened(store: Store, *versions: int) -> Engine:
    values = [liked(version, table) for version, table in zip(versions, TABLES, strict=False)]
    return staging.engine(store, staging.ticking(), values, shipped=False)


def tell(on: Engine, key: str, colour: str, **who: str) -> None:
    """One event; one that names two identifiers joins whom they belong to."""
    (receipt,) = on.recorder.record([staging.event("liked", who, key, properties={"colour": colour})])
    assert receipt.status == "accepted"


def written(on: Engine, *tables: str) -> dict[Key, bytes]:
    """The rows that stand in these tables, in both without names."""
    return {item.key: item.value for table in tables or TABLES for item in scan_pages(on.store, table)}


def wanted(on: Engine, *tables: str) -> dict[Key, bytes]:
    """The rows that people's states ask for."""
    found: dict[Key, bytes] = {}
    for person in on.reader.all_people("default"):
        found |= index_rows(person, on.catalogue)
    return {key: value for key, value in found.items() if key.table in (tables or TABLES)}


@pytest.mark.parametrize("version", [2, 3])
def test_a_refold_leaves_no_row_of_an_older_version(version: int) -> None:
    on = opened(MemoryStore(), 1)
    for number, (who, colour) in enumerate((("ada", "red"), ("bob", "red"), ("bob", "blue"), ("bob", "blue"))):
        tell(on, f"k{number}", colour, user_id=who)
    on = opened(on.store, version)
    tell(on, "later", "green", user_id="ada")
    refold_everybody(on.store, on.catalogue)
    assert written(on) == wanted(on) != {}


ADA = ({"user_id": "ada"}, {"email": "ada@x.example"}, {"user_id": "ada", "email": "ada@x.example"})
PEOPLE = (*ADA, {"user_id": "bob"}, {"user_id": "cleo"})


@given(scenarios.randoms)
def test_a_refold_leaves_the_rows_that_are_asked_for(random: Random) -> None:
    versions = [1, 1]
    on = opened(MemoryStore(), *versions)
    for number in range(random.randrange(1, 25)):
        choice = random.random()
        if choice < 0.2:
            versions = [random.choice((1, 2, 3)) for _ in versions]
            on = opened(on.store, *versions)
        elif choice < 0.3:
            refold_everybody(on.store, on.catalogue)
            assert written(on) == wanted(on)
            assert amiss(on) == set()
        elif choice < 0.4:
            on.maintenance.write_rows("liked0")
            assert written(on, "liked0") == wanted(on, "liked0")
        else:
            tell(on, f"k{number}", random.choice(COLOURS), **random.choice(PEOPLE))
    refold_everybody(on.store, on.catalogue)
    assert written(on) == wanted(on)


@given(scenarios.randoms)
def test_rows_that_are_not_asked_for_are_told_and_put_right(random: Random) -> None:
    on = opened(MemoryStore(), 1, 1)
    for number in range(random.randrange(1, 25)):
        tell(on, f"k{number}", random.choice(COLOURS), **random.choice(PEOPLE))
    right = written(on)
    assert amiss(on) == set()
    told = set()
    for key in random.sample(sorted(right), random.randrange(len(right) + 1)):
        # A row that is lost, that says something else, that is somebody's who asks for another, that is nobody's.
        what = random.choice(("is missing", "says something else", "is asked for by nobody", "is asked for by nobody"))
        if what == "is asked for by nobody":
            key = random.choice((key._replace(partition="default/black"), key._replace(sort="nobody")))
        on.store.commit([Batch(writes=[Delete(key) if what == "is missing" else Put(key, b"else")])])
        told.add(f"{key.table} {key.partition} {key.sort} {what}")
    assert amiss(on) == told
    refold_everybody(on.store, on.catalogue)
    assert written(on) == wanted(on) == right
    assert amiss(on) == set()


def amiss(on: Engine) -> set[str]:
    """What verification tells of rows."""
    faults = refold_everybody(on.store, on.catalogue, write=False).rows_amiss
    problem = {fault.problem for fault in faults}
    assert len(problem) == len(faults)
    return problem


def test_rows_that_change_while_they_are_looked_at_are_no_faults() -> None:
    store = MemoryStore()
    busy: list[Iterator[int]] = []

    def and_then(found: Any) -> Any:
        if busy:
            told = busy.pop()
            tell(on, f"meanwhile{next(told)}", "red", user_id="ada")
            busy.append(told)
        return found

    get, scan = store.get, store.scan
    store.get = lambda keys: and_then(get(keys))  # type: ignore[method-assign]
    store.scan = lambda *given, **named: and_then(scan(*given, **named))  # type: ignore[method-assign]
    on = opened(store, 4)
    for who in ("ada", "bob"):
        tell(on, who, "red", user_id=who)
    told = count()
    for _ in range(10):
        busy.append(told)
        assert amiss(on) == set()
        busy.clear()
        tell(on, f"between{next(told)}", "red", user_id="ada")
    assert next(told) > 50


def test_a_refold_of_what_has_not_changed_writes_nothing() -> None:
    on = opened(MemoryStore(), 1)
    tell(on, "k", "red", user_id="ada")
    before = staging.whole(on)
    refold_everybody(on.store, on.catalogue)
    assert staging.whole(on) == before


def test_no_row_that_is_asked_for_is_missing_while_others_are_written_anew() -> None:
    """Who belongs on a list stands there all the time, also while it is refolded by another definition."""
    store = MemoryStore()
    for number, on in enumerate((opened(store, 1), opened(store, 1))):
        for who in ("ada", "bob", "cleo"):
            tell(on, f"{who}{number}", "red", user_id=who)
    right, commit = written(on), store.commit
    lost, *others = sorted(right)

    def and_look(batches: Sequence[Batch]) -> Any:
        refusals = commit(batches)
        assert {key: right[key] for key in others}.items() <= written(on).items()
        return refusals

    for fingerprint in ("", "another"):
        changed = replace(liked(1, "liked0"), fingerprint=fingerprint)
        on = staging.engine(store, staging.ticking(), [changed], shipped=False)
        stray = Put(Key("liked0", "default/black", lost.sort), b"1")
        store.commit([Batch(writes=[Delete(lost), stray])])
        store.commit = and_look  # type: ignore[method-assign]
        refold_everybody(on.store, on.catalogue)
        store.commit = commit  # type: ignore[method-assign]
        assert written(on) == right


@given(scenarios.randoms)
def test_rows_are_right_after_a_refold_beside_which_people_change(random: Random) -> None:
    store = MemoryStore()
    on = opened(store, random.choice((1, 2, 4)))
    for number in range(random.randrange(1, 12)):
        tell(on, f"k{number}", random.choice(COLOURS), **random.choice(PEOPLE))
    on = opened(store, random.choice((1, 2, 3, 4)))
    for key in random.sample(sorted(written(on)), random.randrange(2)):
        store.commit([Batch(writes=[Delete(key), Put(key._replace(partition="default/black"), b"else")])])
    numbers, busy, commit = iter(range(30)), [False], store.commit

    def after_somebody_else(batches: Sequence[Batch]) -> Any:
        if not busy[0] and random.random() < 0.5 and (number := next(numbers, None)) is not None:
            busy[0] = True
            tell(on, f"meanwhile{number}", random.choice(COLOURS), **random.choice(PEOPLE))
            busy[0] = False
        return commit(batches)

    store.commit = after_somebody_else  # type: ignore[method-assign]
    refold_everybody(on.store, on.catalogue)
    store.commit = commit  # type: ignore[method-assign]
    assert written(on) == wanted(on)
