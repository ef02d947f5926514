"""The stage of the tests of the refold: an engine, a lake in a folder, and what may happen between the two."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.laws import staging
from threadline.app import catalogue_of
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.schema import pa
from threadline.exports.lake.storage import open_storage
from threadline.exports.lake.sync import sync
from threadline.exports.spark import single
from threadline.exports.spark.folding import PersonRow
from threadline.exports.spark.recipe import Texts, recipe
from threadline.exports.spark.states import STATES
from threadline.kernel.canonical import canonical_json
from threadline.kernel.event import Recorded
from threadline.kernel.projection import Projection

RECIPE = recipe(catalogue_of)


def _noted(state: list[str], recorded: Recorded) -> list[str]:
    return [*state, recorded.id]


DIARY = Projection(
    name="diary", version=1, handles=None, empty=list, fold=_noted, view=lambda state, now, edges: state, ordered=True
)
"""It shows every mistake of order: the events as they came to it. What ships gives the same in any order."""


def with_diary(texts: Texts) -> Catalogue:
    """What ships, and the diary."""
    made = catalogue_of(texts)
    return Catalogue([*made.projections, *made.policies, DIARY], made.rules)


def in_no_order(lake: Lake) -> Engine:
    """A person whose events are recorded in another order than that in which they occurred, two at one instant."""
    on = staging.engine(values=[DIARY])
    for number in (5, 1, 9, 3, 3, 7):
        key = f"{number} {len(list(on.log.feed()))}"
        on.recorder.record([staging.event("page", {"user_id": "ada"}, key, staging.NOW - number)])
    sync(on, lake)
    return on


def lake_in(folder: Path) -> Lake:
    return Lake(open_storage(str(folder)))


def record(on: Engine, start: int, stop: int) -> None:
    """Events of few people, one by one, so that the log has as many as are told and those that follow from them."""
    for number in range(start, stop):
        event = staging.event("page", {"user_id": f"user {number % 5}"}, f"key {number}", staging.NOW - 1 - number)
        on.recorder.record([event])


def filled(lake: Lake, count: int) -> Engine:
    on = staging.engine()
    record(on, 0, count)
    sync(on, lake)
    assert lake.manifest().position == count
    return on


def joined_and_split() -> Engine:
    """Three people: one joined from two, one who was joined and split again, which makes two."""
    on = staging.engine(clock=staging.ticking())
    for name in ("a", "b", "c", "d"):
        for number in range(3):
            on.recorder.record(
                [staging.event("page", {"anonymous_id": name}, f"{name}{number}", staging.NOW - number - 1)]
            )
    on.recorder.record([staging.event("identify", {"user_id": "1", "anonymous_id": "a"}, "one")])
    on.recorder.record([staging.event("identify", {"user_id": "1", "anonymous_id": "b"}, "both")])
    on.recorder.record([staging.event("identify", {"user_id": "2", "anonymous_id": "c"}, "two")])
    on.recorder.record([staging.event("identify", {"user_id": "2", "anonymous_id": "d"}, "again")])
    on.identity.split("default", on.reader.person("default", "user_id:2").id, ["anonymous_id:d"], request="s")
    return on


def canonical(states: str) -> str:
    """States as JSON, without what tells one way of writing them from another."""
    return canonical_json(_as_dumped(msgspec.json.decode(states))).decode()


def _as_dumped(value: Any) -> Any:
    # A dump writes integers beyond 2**53 as text.
    if type(value) is int and not -(1 << 53) < value < 1 << 53:
        return str(value)
    if isinstance(value, dict):
        return {name: _as_dumped(each) for name, each in value.items()}
    return [_as_dumped(each) for each in value] if isinstance(value, list) else value


def names(lake: Lake) -> list[str]:
    return [each.name for each in lake.storage.list()]


def while_folding(monkeypatch: pytest.MonkeyPatch, happen: Callable[[], Any]) -> None:
    """Let something happen once the first person is folded."""
    real = single.fold_people

    def interrupted(*given: Any) -> Iterator[Any]:
        for number, row in enumerate(real(*given)):
            if number == 0:
                happen()
            yield row

    monkeypatch.setattr(single, "fold_people", interrupted)


def forge(lake: Lake, person: str, change: Callable[[PersonRow], PersonRow]) -> None:
    """Write a file of states again with another row for a person."""
    [file] = lake.files("default", STATES)
    table = pa.parquet.read_table(io.BytesIO(lake.storage.read(file.name)))
    rows = table.to_pylist()
    for row in rows:
        if row["person"] == person:
            row["states"] = change(PersonRow(*list(row.values())[:6])).states
    sink = io.BytesIO()
    pa.parquet.write_table(pa.Table.from_pylist(rows, table.schema), sink)
    lake.storage.write(file.name, sink.getvalue())
