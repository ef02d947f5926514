"""The refold on Spark: `applyInPandas` over groups of people, each with the events of all their threads."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any
from urllib.parse import unquote, urlsplit

from threadline.engine.interpreter import gc_deferred
from threadline.exports.lake.lake import File, Lake
from threadline.exports.spark.events import COLUMNS, NO_TIME, TIMES, events_of
from threadline.exports.spark.folding import PersonRow, fold_group
from threadline.exports.spark.recipe import Recipe
from threadline.exports.spark.states import Refolded, Source, refold_lake, states_file
from threadline.kernel.errors import InvalidSetting, Unavailable
from threadline.kernel.extra import from_source

EVENTS_PER_GROUP = 20_000
"""People are folded in groups of about so many events: a group for each person costs Spark more than its folds."""
APP = "threadline refold"
_EVENTS = """
position long, id string, workspace string, thread string, person string, sequence long, type string,
occurred_at timestamp, received_at timestamp, recorded_at timestamp, sent_time timestamp, key string, source string,
source_type string, identifiers string, properties string, context string, wire string, cause string,
marks array<string>, historical boolean, schema_version string, object_id string, object_ref string
"""
_RAISED = re.compile(r"(?:Caused by: |: )?((?:(?:\w+\.)+\w+|\w+Error): \S.*)")
_IDENTITIES = "workspace string, thread string, person string, position long"
_ROWS = "workspace string, person string, events long, latest_at long, latest_id string, states string"


def refold(session: Any, lake: Lake, recipe: Recipe, workspace: str | None = None) -> Refolded:
    """Fold everybody again from the lake on a Spark session, and publish the states; see `refold_lake`.

    Every executor needs the same version of Threadline, and reads the lake by itself. Raises `Unavailable` if the job
    fails: then nothing was changed.
    """

    # With settings of its own: by default Spark writes times in a form that it alone has, and that ends in 2262.
    own = session.newSession()
    own.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")

    def fold(source: Source) -> tuple[list[File], int]:
        try:
            _write(own, lake, source, recipe)
            return _written(own, lake, source)
        except (_part("pyspark.errors").PySparkException, _part("py4j.protocol").Py4JError) as error:
            hint = "the states of the refold before stay; the log of Spark says more"
            raise Unavailable(f"the Spark job failed: {_reason(error)}", hint=hint) from error

    return refold_lake(lake, fold, workspace)


def open_session(master: str = "") -> Any:
    """The Spark session of this process, made if there is none; ``master`` as Spark writes it, such as ``local[4]``.

    Raises `InvalidSetting` where PySpark is not installed.
    """
    builder = _part("pyspark.sql").SparkSession.builder.appName(APP)
    session = (builder.master(master) if master else builder).getOrCreate()
    if session.sparkContext.master.startswith("local"):
        # Its workers are processes of this machine; by default they run whatever `python3` is on the path.
        session.sparkContext.pythonExec = sys.executable
    return session


def folding(recipe: Recipe, workspace: str) -> Callable[[Any], Any]:
    """The function for `applyInPandas`: from the events of a group of people to a row for each of them."""

    def fold(events: Any) -> Any:
        columns = {name: events[name].tolist() for name in COLUMNS}
        with gc_deferred():
            people = zip(events["person"].tolist(), events_of(columns), strict=True)
            rows = list(fold_group(recipe.catalogue(), workspace, people))
        frame = _part("pandas").DataFrame(rows, columns=list(PersonRow._fields))
        frame["latest_at"] = [NO_TIME if row.latest_at is None else row.latest_at for row in rows]
        return frame

    return fold


def _write(session: Any, lake: Lake, source: Source, recipe: Recipe) -> None:
    f = _part("pyspark.sql.functions")

    groups = max(1, source.rows // EVENTS_PER_GROUP)
    rows = (
        _people(session, source)
        .groupBy(f.pmod(f.xxhash64("person"), f.lit(groups)))
        .applyInPandas(folding(recipe, source.workspace), _ROWS)
    )
    latest = f.when(f.col("latest_at") != NO_TIME, f.timestamp_micros("latest_at"))
    rows.withColumns({"latest_at": latest, "definitions": f.lit(recipe.definitions)}).write.option(
        "compression", "zstd"
    ).parquet(_url(lake.storage.url(source.run)))


def _people(session: Any, source: Source) -> Any:
    """The events, with whose they are now. Times are integers: pandas knows no year beyond 2262."""
    f = _part("pyspark.sql.functions")

    events = _read(session, _EVENTS, source.events)
    owners = (
        _read(session, _IDENTITIES, source.identities)
        .groupBy("thread")
        .agg(f.max_by("person", "position").alias("owner"))
    )
    times = {name: f.coalesce(f.unix_micros(name), f.lit(NO_TIME)) for name in TIMES}
    whose = f.coalesce("owner", "person")
    return events.join(owners, "thread", "left").withColumns({**times, "person": whose}).select("person", *COLUMNS)


def _read(session: Any, columns: str, files: tuple[str, ...]) -> Any:
    reader = session.read.schema(columns).option("datetimeRebaseMode", "CORRECTED")
    return reader.parquet(*map(_url, files))


def _written(session: Any, lake: Lake, source: Source) -> tuple[list[File], int]:
    """What the job has left, read again by Spark: the files, and the number of events in their rows."""
    f = _part("pyspark.sql.functions")

    folder = _url(lake.storage.url(source.run))
    counted = session.read.parquet(folder).groupBy(f.input_file_name().alias("file"))
    counts = {
        _file_name(row.file): row
        for row in counted.agg(f.count("*").alias("rows"), f.sum("events").alias("events")).collect()
    }
    hashed = session.read.format("binaryFile").option("pathGlobFilter", "*.parquet").load(folder)
    files = [
        states_file(
            source, f"{source.run}/{_file_name(row.path)}", counts[_file_name(row.path)].rows, row.length, row.sha256
        )
        for row in hashed.select("path", "length", f.sha2("content", 256).alias("sha256")).collect()
        if _file_name(row.path) in counts
    ]
    names = {file.name for file in files}
    lake.storage.delete([file.name for file in lake.storage.list(f"{source.run}/") if file.name not in names])
    return sorted(files, key=lambda file: file.name), sum(row.events for row in counts.values())


def _part(name: str) -> Any:
    """A module of Spark or pandas, which ship no types that mypy could read here."""
    try:
        return import_module(name)
    except ImportError:
        hint = from_source("spark")
        raise InvalidSetting(f"{name.partition('.')[0]} is not installed", hint=hint) from None


def _url(path: str) -> str:
    """A path as Spark reads it, whatever its default file system is."""
    return path if "://" in path else f"file://{path}"


def _file_name(url: str) -> str:
    return unquote(urlsplit(url).path).rpartition("/")[2]


def _reason(error: Exception) -> str:
    """The innermost exception with a message: what Python said on an executor, or else Spark's own cause."""
    raised = [match[1] for line in str(error).splitlines() if (match := _RAISED.fullmatch(line))]
    return raised[-1] if raised else str(error).partition("\n")[0]
