"""A store of which events are erased is whole: to `verify`, the scrub, a backup and its restore."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.engine.test_moving import CATALOGUE, told
from tests.engine.test_moving_erased import erased_ids, remove
from tests.laws import staging
from threadline.engine.engine import Engine
from threadline.engine.folding.packing import check_entry
from threadline.engine.maintenance.dump import dump
from threadline.engine.maintenance.verification import verify
from threadline.kernel.store import feed_pages
from threadline.stores.memory import MemoryStore
from threadline.stores.sqlite.backup import back_up, restore
from threadline.stores.sqlite.store import SqliteStore


def test_verify_finds_nothing_wrong_where_events_are_erased() -> None:
    on = told(Random(5), MemoryStore())
    before = verify(on)
    ids = remove(on, "anonymous_id:lone-3")
    after = verify(on)
    assert (before.is_whole, after.is_whole) == (True, True)
    assert (after.events, after.people.people) == (before.events, before.people.people - 1)
    assert erased_ids(on.store) == ids
    staging.assert_refold_changes_nothing(on)


def test_a_backup_of_a_store_with_erased_events_is_restored_as_it_was(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    on = told(Random(6), store)
    ids = remove(on, "anonymous_id:lone-3")
    store.purge()
    feed, text = list(feed_pages(store)), dump(store, CATALOGUE)
    copied = back_up(tmp_path / "store.db", tmp_path / "copy.db", lambda done, of: None, check=check_entry)
    store.close()
    assert copied.events == len(feed)
    restore(tmp_path / "copy.db", tmp_path / "again.db", lambda done, of: None, check=check_entry)
    again = SqliteStore(tmp_path / "again.db")
    assert list(feed_pages(again)) == feed
    assert dump(again, CATALOGUE) == text
    assert erased_ids(again) == ids
    [receipt] = Engine(again, CATALOGUE, staging.ticking()).recorder.record(
        [staging.event("page", {"anonymous_id": "lone-3"}, "lone-3")]
    )
    assert (receipt.status, receipt.code) == ("duplicate", "erased")
    again.close()
