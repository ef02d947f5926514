"""What commands ask of the Iceberg tables."""

from __future__ import annotations

from functools import partial

from threadline.engine.engine import Engine
from threadline.engine.erasure.erased_ids import erased_since
from threadline.exports.iceberg.catalog import open_catalog
from threadline.exports.iceberg.sync import Standing, Synced, Tables
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.storage import open_storage
from threadline.exports.lake.sync import sync
from threadline.kernel.errors import InvalidSetting


class IcebergCommands:
    """The tables of a lake, in a catalogue; below the lake and in a SQLite file where no setting says otherwise."""

    def __init__(self, lake: str, catalog: str, warehouse: str) -> None:
        if not lake:
            raise InvalidSetting("no lake is set", hint="set THREADLINE_LAKE to a path or to s3://bucket/prefix")
        self._lake = Lake(open_storage(lake))
        self._tables = Tables(open_catalog(catalog, warehouse or self._lake.storage.url("iceberg")), self._lake)

    def sync(self, engine: Engine) -> list[Synced]:
        """Bring the lake up to the end of the log, and the tables up to the lake."""
        sync(engine, self._lake)
        return self._tables.sync(partial(erased_since, engine.store))

    def compact(self, keep_seconds: float) -> list[Synced]:
        """Join small files, and delete those that have been replaced for longer than this."""
        return self._tables.compact(keep_seconds)

    def standing(self) -> list[Standing]:
        """How far each table has come."""
        return self._tables.standing()
