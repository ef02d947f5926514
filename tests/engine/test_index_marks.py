"""Marks that index rows are complete: found without reading a whole store, and taken back where they are unknown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.engine.maintenance.indexes import write_rows
from threadline.engine.maintenance.marks import MARKS, is_complete
from threadline.kernel.event import Event, Identifier
from threadline.kernel.projection import Index, Projection, Row
from threadline.kernel.store import Batch, Delete, Key, scan_pages
from threadline.stores.memory import MemoryStore

NOW = 1_772_445_600_000_000


def _rows(state: int, workspace: str, person: str) -> Iterable[Row]:
    return [Row("liked", workspace, person)] if state else []


LIKED = Projection(
    name="liked",
    version=1,
    handles=frozenset({"like"}),
    empty=int,
    fold=lambda state, recorded: state + 1,
    view=lambda state, now, edges: state,
    index=Index(rows=_rows, tables=("liked",)),
)
SHIPPED = discover(definitions=Definitions())
WITH, WITHOUT = Catalogue([*SHIPPED, LIKED], rules()), Catalogue(SHIPPED, rules())


def _opened(store: MemoryStore, catalogue: Catalogue) -> Engine:
    return Engine(store, catalogue, lambda: NOW)


def _record(engine: Engine, user: str) -> None:
    event = Event(type="like", identifiers=(Identifier("user_id", user),), occurred_at=NOW, key=user)
    assert engine.recorder.record([event])[0].status == "accepted"


def test_a_store_that_was_opened_before_is_opened_without_a_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    _record(_opened(store, WITH), "ada")

    def scan(*args: Any, **options: Any) -> Any:
        raise AssertionError("DynamoDB would read the whole table")

    monkeypatch.setattr(store, "scan", scan)
    for _ in range(2):
        _opened(store, WITH)


def test_the_mark_of_a_projection_that_a_later_process_does_not_know_is_taken_back() -> None:
    store = MemoryStore()
    _record(_opened(store, WITH), "ada")
    assert is_complete(store, LIKED)
    _record(_opened(store, WITHOUT), "bob")  # whose row of `liked` is missing
    _opened(store, WITH)
    assert not is_complete(store, LIKED)


def test_a_mark_that_a_refold_makes_without_opening_an_engine_is_listed_and_taken_back() -> None:
    store = MemoryStore()
    _record(_opened(store, WITHOUT), "ada")
    assert write_rows(store, WITH, [LIKED]) == 1
    assert is_complete(store, LIKED)
    _record(_opened(store, WITHOUT), "bob")
    assert not is_complete(store, LIKED)


def test_the_marks_of_a_store_that_has_no_list_of_them_yet_are_found_and_listed() -> None:
    store = MemoryStore()
    _record(_opened(store, WITH), "ada")
    names = Key(MARKS, "names of marks")
    assert store.commit([Batch(writes=[Delete(names)])]) == [None]  # as earlier versions left it
    before = {item.key for item in scan_pages(store, MARKS)}
    _opened(store, WITHOUT)
    assert not is_complete(store, LIKED)
    assert {item.key for item in scan_pages(store, MARKS)} == before | {names}
