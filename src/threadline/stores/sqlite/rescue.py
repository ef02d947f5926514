"""What was acknowledged by a store whose file was taken away: copied to where an operator finds it."""

from __future__ import annotations

import logging
import os
from contextlib import closing
from pathlib import Path

from threadline.stores.sqlite.acknowledged import Acknowledged
from threadline.stores.sqlite.driver import Access, Connection, DriverError, checkpoint, connect, copy_database
from threadline.stores.sqlite.file import open_private, sync_folder

PAGES_PER_STEP = 1_000
CACHE_BYTES = 1_000_000

log = logging.getLogger("threadline.store")


def rescue(db: Connection, path: Path, acknowledged: Acknowledged, *, is_removed: bool) -> None:
    """Copy the write-ahead log into the file, wherever that is, and a file without a name into ``<path>.rescued-1``.

    The caller holds the writing lock. The log of a file that was replaced must not be left full: SQLite would write
    it into the file that has come in its place.
    """
    acknowledged.copying()
    try:
        checkpoint(db, "truncate")
    except DriverError:
        checkpoint(db, "passive")  # somebody reads
    else:
        acknowledged.copied()
    acknowledged.sync()
    if not is_removed:
        log.critical("%s: everything that was acknowledged is in the file that was opened, under its new name", path)
        return
    number = 1
    while (copy := path.with_name(f"{path.name}.rescued-{number}")).exists():
        number += 1
    # Under another name until it is whole: half a copy can look like a whole store.
    partial = path.with_name(f"{path.name}.rescuing")
    partial.unlink(missing_ok=True)
    os.close(open_private(partial))
    with closing(connect(partial, Access.WRITE, CACHE_BYTES, 0)) as target:
        copy_database(db, target, PAGES_PER_STEP, lambda done, total: None)
    partial.rename(copy)
    sync_folder(copy.absolute().parent)
    log.critical("%s was removed; everything that was acknowledged is in %s", path, copy)
