"""What commands ask of the Iceberg tables."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from threadline.engine.engine import Engine
from threadline.engine.erasure.erased_ids import erased_since
from threadline.exports.iceberg.catalog import open_catalog
from threadline.exports.iceberg.sync import Standing, Synced, Tables
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.storage import open_storage
from threadline.exports.lake.sync import sync
from threadline.kernel.errors import Forbidden, InvalidSetting, NotFound, StoreFull, Unavailable


class IcebergCommands:
    """The tables of a lake, in a catalogue; below the lake and in a SQLite file where no setting says otherwise."""

    def __init__(self, lake: str, catalog: str, warehouse: str) -> None:
        if not lake:
            raise InvalidSetting("no lake is set", hint="set THREADLINE_LAKE to a path or to s3://bucket/prefix")
        self._lake = Lake(open_storage(lake))
        with explained():
            self._tables = Tables(open_catalog(catalog, warehouse or self._lake.storage.url("iceberg")), self._lake)

    def sync(self, engine: Engine) -> list[Synced]:
        """Bring the lake up to the end of the log, and the tables up to the lake."""
        sync(engine, self._lake)
        with explained():
            return self._tables.sync(partial(erased_since, engine.store))

    def compact(self, keep_seconds: float) -> list[Synced]:
        """Join small files, and delete those that have been replaced for longer than this."""
        with explained():
            return self._tables.compact(keep_seconds)

    def standing(self) -> list[Standing]:
        """How far each table has come."""
        with explained():
            return self._tables.standing()


@contextmanager
def explained() -> Iterator[None]:
    """Errors of files and objects as errors that say what to do. Nothing was committed when one is raised."""
    try:
        yield
    except OSError as error:
        # Arrow names the action of S3 in the text alone: "AWS Error ACCESS_DENIED during PutObject operation".
        text = str(error)
        if isinstance(error, PermissionError) or "ACCESS_DENIED" in text:
            hint = "Allow the action that the message names, on the bucket or the folder of the tables."
            raise Forbidden(f"the Iceberg tables cannot be reached: {text}", hint=hint) from error
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(f"the Iceberg tables: {text}", hint="Make room, then sync again.") from error
        if "NO_SUCH_BUCKET" in text:
            hint = "Create the bucket, or name another with THREADLINE_ICEBERG_WAREHOUSE."
            raise NotFound(f"the Iceberg tables: {text}", hint=hint) from error
        raise Unavailable(f"the Iceberg tables: {text}", hint="Nothing was committed; sync again.") from error
