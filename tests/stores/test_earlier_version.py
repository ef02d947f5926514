"""A store of the version before snapshots is opened, read, added to and refolded as if this version had written it."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.laws import staging
from threadline.engine.engine import Engine
from threadline.engine.folding.person import SNAPSHOT
from threadline.engine.maintenance.rebuild import refold_everybody, refold_shard
from threadline.kernel.identity import MERGED
from threadline.kernel.store import scan_pages
from threadline.kernel.time import MINUTE
from threadline.stores.sqlite.store import SqliteStore

DATA = Path(__file__).parents[1] / "data" / "stores"


@pytest.fixture
def shown() -> dict[str, Any]:
    """What the earlier version showed."""
    decoded: dict[str, Any] = msgspec.json.decode(gzip.decompress((DATA / "version_1.json.gz").read_bytes()))
    return decoded


@pytest.fixture
def on(tmp_path: Path, shown: dict[str, Any]) -> Iterator[Engine]:
    """An engine on a copy of its store."""
    path = tmp_path / "old.db"
    with gzip.open(DATA / "version_1.db.gz") as packed, path.open("wb") as target:
        shutil.copyfileobj(packed, target)
    opened = Engine(SqliteStore(path), staging.CATALOGUE, lambda: shown["now"])
    yield opened
    opened.close()


def _views(on: Engine, now: int) -> dict[str, Any]:
    views = {person.id: on.reader.views(person, now) for person in on.reader.all_people("default")}
    decoded: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(views))
    return decoded


def _assert_whole(on: Engine) -> None:
    """Nobody's states differ from the log but those that were written for other definitions, and a refold ends that."""
    assert [one.item.key for one in refold_shard(on.store, on.catalogue) if one.differs and not one.is_stale] == []
    refold_everybody(on.store, on.catalogue)
    staging.assert_refold_changes_nothing(on)


def test_an_earlier_store_shows_what_it_showed(on: Engine, shown: dict[str, Any]) -> None:
    assert {person.id: person.heads for person in on.reader.all_people("default")} == shown["heads"]
    # What is known of mail and the like has come since, and nothing of it can be in that store.
    views = {
        person: {name: view for name, view in seen.items() if name in shown["views"][person]}
        for person, seen in _views(on, shown["now"]).items()
    }
    assert views == shown["views"]


def test_an_earlier_store_takes_events_and_writes_snapshots(on: Engine, shown: dict[str, Any]) -> None:
    assert list(scan_pages(on.store, SNAPSHOT)) == []
    for number in range(20):
        calls = [
            staging.event("tool_used", {"user_id": who}, f"new-{number}-{who}", shown["now"] - MINUTE + number)
            for who in ("ada", "bob", "small3")
        ]
        assert staging.statuses(on.recorder.record(calls)) == ["accepted"] * 3
    assert list(scan_pages(on.store, SNAPSHOT))
    _assert_whole(on)


def test_a_merge_of_an_earlier_store_is_undone(on: Engine) -> None:
    person = on.reader.person("default", "user_id:cy")
    merge = on.reader.events(person, types=frozenset({MERGED}), limit=1)[0]
    on.identity.unmerge("default", merge.id, request="undo")
    assert on.reader.person("default", "user_id:cy").id != on.reader.person("default", "user_id:dee").id
    _assert_whole(on)
