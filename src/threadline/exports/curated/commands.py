"""What commands ask of the lake and its curated zone, in plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

from threadline.engine.engine import Engine
from threadline.exports.curated.reading import opened
from threadline.exports.curated.warehouse import Dialect, Target
from threadline.exports.curated.writing import curate, dbt, fold_and_keep, warehouse_sql
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.log_copy import LogCopy
from threadline.exports.lake.status import status
from threadline.exports.lake.storage import open_storage
from threadline.exports.spark.recipe import MakeCatalogue, recipe
from threadline.kernel.errors import Forbidden, InvalidSetting, InvalidValue
from threadline.kernel.time import format_time, from_datetime

COMPACTED_FROM = 250_000
"""Events of one sync from which on files are put together after it: each of its ranges wrote one for every type."""


class LakeCommands:
    """The commands on a lake; where there is none, queries read a copy of the log in ``columns``, if that is set."""

    def __init__(self, lake: str, columns: Path | None, workspace: str, make: MakeCatalogue) -> None:
        self._lake = Lake(open_storage(lake)) if lake else None
        self._columns = columns
        self._workspace = workspace
        self._make = make

    @contextmanager
    def query(
        self, engine: Engine, query: str, on_progress: Callable[[int, int], None] = lambda done, total: None
    ) -> Iterator[tuple[list[str], Iterator[list[Any]]]]:
        """The names of the columns of a query's result, and its rows. ``on_progress`` is called while the log is read
        that no query has read before."""
        copy = None if self._lake else self._copied(engine, on_progress)
        lake = self._lake or copy
        with ExitStack() as stack:
            reading = stack.enter_context(opened(engine, lake, self._workspace))
            if copy is not None and reading.has_to_fold(query) and fold_and_keep(reading):
                stack.close()
                reading = stack.enter_context(opened(engine, lake, self._workspace))
            reader = reading.run(query)
            yield reader.schema.names, _rows(reader)

    def _copied(self, engine: Engine, on_progress: Callable[[int, int], None]) -> Lake | None:
        """The copy of the log, brought up to date; None where the whole log is read quickly."""
        if self._columns is None:
            return None
        copy = LogCopy(engine, self._columns)
        if not copy.is_needed:
            return None
        try:
            copy.grow(on_progress)
        except (Forbidden, OSError):  # beside a store that may only be read, nothing can be kept
            return copy.lake if copy.is_ours() else None
        return copy.lake

    def curate(self, engine: Engine) -> Sequence[tuple[str, int, int]]:
        """Write the curated tables: name, rows and bytes of each."""
        return curate(engine, self._needed(), self._workspace)

    def warehouse(self, engine: Engine, kind: str, target: Sequence[tuple[str, str]]) -> str:
        """What loads the tables into a warehouse, as SQL; for ``dbt`` its sources file. ``target`` names what differs
        from a `Target`."""
        lake = self._needed()
        at = Target(**{"location": lake.storage.url(), **dict(target)})
        if kind == "dbt":
            return dbt(engine, at)
        dialect: Dialect | None = next((arg for arg in get_args(Dialect) if arg == kind), None)
        if dialect is None:
            raise InvalidValue(f"{kind!r} is none of {', '.join(get_args(Dialect))} and dbt")
        return "".join(f"{statement};\n" for statement in warehouse_sql(engine, lake, self._workspace, dialect, at))

    def sync(
        self, engine: Engine, limit: int | None, on_progress: Callable[[int, int], None] = lambda done, total: None
    ) -> Mapping[str, Any]:
        """Bring the lake up to the end of the log; ``compacted`` is how many of the new files were put together."""
        from threadline.exports.lake.compaction import compact
        from threadline.exports.lake.sync import sync

        lake = self._needed()
        done = sync(engine, lake, limit=limit, on_progress=on_progress)
        compacted = compact(engine, lake).before if done.events >= COMPACTED_FROM else 0
        return {**done._asdict(), "compacted": compacted}

    def status(self, engine: Engine) -> Mapping[str, Any]:
        """How far the lake has come."""
        return status(engine, self._needed(), engine.now())._asdict()

    def compact(self, engine: Engine) -> Mapping[str, Any]:
        """Put small files of the lake together."""
        from threadline.exports.lake.compaction import compact

        return compact(engine, self._needed())._asdict()

    def verify(self, engine: Engine) -> Mapping[str, Any]:
        """Compare the lake with the log."""
        from threadline.exports.lake.verification import verify

        return verify(engine, self._needed())._asdict()

    def refold(self, texts: Sequence[tuple[str, str]], workspace: str | None, spark: str | None) -> Mapping[str, Any]:
        """Fold everybody again from the lake, by these definitions."""
        from threadline.exports.spark import job, single

        made = recipe(self._make, texts)
        if spark is None:
            return single.refold(self._needed(), made, workspace)._asdict()
        return job.refold(job.open_session(spark), self._needed(), made, workspace)._asdict()

    def check_states(self, engine: Engine) -> Mapping[str, Any]:
        """Compare the states of the lake with those of the store."""
        from threadline.exports.spark.checking import check_states

        return check_states(engine.store, engine.catalogue, self._needed())._asdict()

    def _needed(self) -> Lake:
        if self._lake is None:
            raise InvalidSetting("no lake is set", hint="set THREADLINE_LAKE to a path or to s3://bucket/prefix")
        return self._lake


def plain(value: Any) -> Any:
    """A value of DuckDB's as JSON can say it: instants as text, whole decimals as integers."""
    match value:
        case datetime():
            return format_time(from_datetime(value)) if value.tzinfo is not None else value.isoformat()
        case date():
            return value.isoformat()
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case list() | tuple():
            return [plain(item) for item in value]
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case bytes():
            return value.hex()
        case None | bool() | int() | float() | str():
            return value
    return str(value)


def _rows(reader: Any) -> Iterator[list[Any]]:
    while True:
        try:
            batch = next(reader, None)
        except OSError as error:  # so Arrow passes on an error of DuckDB's in the middle of an answer
            raise InvalidValue(f"DuckDB: {error}") from None
        if batch is None:
            return
        yield from ([plain(item) for item in row] for row in zip(*map(_values, batch), strict=True))


def _values(column: Any) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return values
