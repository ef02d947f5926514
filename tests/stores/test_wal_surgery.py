"""A damaged write-ahead log: all that was acknowledged is there, or the store refuses and says how much is gone."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

from tests.stores.sqlite_stage import FILE
from tests.stores.wal_stage import HARMFUL, HARMLESS, Killed, Surgery, copied, killed, reckoned
from threadline.kernel.errors import StoreDamaged
from threadline.kernel.store import Key, feed_pages
from threadline.stores.sqlite.loss import Loss, accept_loss, find_loss
from threadline.stores.sqlite.store import SqliteStore
from threadline.testing.store_cases import entry, record

KILLS = int(os.environ.get("THREADLINE_TEST_WAL_KILLS", "3"))
SURGERIES = int(os.environ.get("THREADLINE_TEST_WAL_SURGERIES", "2"))
"""Of each kind, after each kill."""


def test_a_damaged_log_is_whole_or_refused_with_the_right_number(tmp_path: Path, seed: int) -> None:
    draw, refused, operations = Random(seed), 0, 0
    for kill in range(KILLS):
        store = killed(tmp_path / f"{kill}", draw)
        for surgery in [*HARMLESS, *HARMFUL * SURGERIES]:
            operations += 1
            about = f"seed {seed}, kill {kill}, operation {operations}: {surgery.name}"
            refused += operate(store, surgery, tmp_path / f"{kill}-{operations}", draw, about)
    # Otherwise nothing was attacked.
    assert refused > operations / 10


def operate(store: Killed, surgery: Surgery, folder: Path, draw: Random, about: str) -> bool:
    """Damage a copy and open it; whether it refused."""
    path = copied(store, folder)
    log = path.with_name(FILE + "-wal")
    before = reckoned(log.read_bytes())
    surgery.do(path, store, draw)
    after = reckoned(log.read_bytes() if log.exists() else b"")
    readonly = draw.random() < 0.3
    try:
        opened = SqliteStore(path, readonly=readonly)
    except StoreDamaged:
        assert surgery in HARMFUL, about
        assert after != before, f"{about}: refused, with a log that is whole"
        check_refusal(store, path, about)
        return True
    check_whole(opened, store, about)
    opened.close()
    return False


def check_whole(opened: SqliteStore, store: Killed, about: str) -> None:
    """All that was acknowledged is there, and all of that call or nothing which was not."""
    assert opened.integrity() == [], about
    item = opened.get([Key("t", "calls")])[0]
    positions = [page.entry.sequence for page in feed_pages(opened)]
    assert item is not None, about
    assert (item.version, len(positions)) in {(store.calls, store.events), (store.calls + 1, store.events_max)}, (
        f"{about}: {item.version, len(positions)} of {store.calls, store.events}"
    )
    assert positions == list(range(1, len(positions) + 1)), about


def check_refusal(store: Killed, path: Path, about: str) -> None:
    """The number is right, and the operator's word opens what is left."""
    loss = find_loss(path)
    assert loss is not None, about
    accepted = accept_loss(path)
    assert accepted is not None, about
    assert accepted.loss == loss, about
    if accepted.faults:
        # Only where a copy into the file was under way: then a backup is needed, and nobody knows the number.
        assert not loss.is_exact, f"{about}: {accepted.faults}"
        return
    opened = SqliteStore(path)
    check_number(loss, len(list(feed_pages(opened))), store, about)
    record(opened, entry(1_000_000))
    opened.close()
    assert find_loss(path) is None, about


def check_number(loss: Loss, left: int, store: Killed, about: str) -> None:
    """The mark may speak of a call that was killed before its answer was read."""
    if loss.gone is not None and loss.is_exact:
        assert loss.gone + left in {store.events, store.events_max}, f"{about}: {loss}, {left} left of {store.events}"
        assert loss.since <= loss.until, about
    elif loss.gone is not None:
        assert loss.gone <= store.events_max, about
