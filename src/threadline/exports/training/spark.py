"""The same training sets on Spark: who belongs together is found here, the events are read and folded by executors."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any

from threadline.capabilities.profile.features.training import Label
from threadline.exports import duck
from threadline.exports.lake.lake import EVENTS, Lake
from threadline.exports.spark.events import COLUMNS, NO_TIME, TIMES, events_of
from threadline.exports.spark.job import EVENTS_PER_GROUP
from threadline.exports.spark.recipe import Recipe
from threadline.exports.training.historical import GROUPS, Asked, Training
from threadline.exports.training.vectors import vectors_of
from threadline.kernel.errors import NotFound
from threadline.wire.arrow import arrow

_GROUP_COLUMNS = (
    "component string, threads array<string>, people array<string>, places array<bigint>, refs array<string>, "
    "instants array<bigint>"
)
_TYPES = {"int64": "bigint", "double": "double", "bool": "boolean", "string": "string"}


def training_frame(session: Any, recipe: Recipe, lake: Lake, workspace: str, asked: Asked) -> Any:
    """A Spark DataFrame with a row for each label of somebody whom the lake knows: see `Training.vectors`.

    Raises `NotFound` for an unknown feature, and where the lake has no events of the workspace.
    """
    f = import_module("pyspark.sql.functions")
    training, manifest = Training(recipe.catalogue(), lake, workspace), lake.manifest()
    files = [url if "://" in url else f"file://{url}" for url in training.urls(manifest, EVENTS)]
    if not files:
        raise NotFound(f"the lake {lake.storage.url()} has no events of workspace {workspace!r}")
    with (
        TemporaryDirectory(prefix="threadline-training-") as scratch,
        closing(duck.connected(scratch, lake.storage)) as connection,
    ):
        training.prepare(connection, manifest, asked)
        groups = connection.execute(GROUPS).fetchall()
        wanted = connection.execute("SELECT component, thread FROM wanted").fetchall()
    labels = session.createDataFrame(groups, _GROUP_COLUMNS)
    threads = session.createDataFrame(wanted, "component string, thread string")
    times = {name: f.coalesce(f.unix_micros(name), f.lit(NO_TIME)) for name in TIMES}
    events = session.read.option("datetimeRebaseMode", "CORRECTED").parquet(*files).join(threads, "thread")
    events = events.withColumns(times).select("component", *COLUMNS)
    rows = sum(file.rows for file in manifest.files if (file.workspace, file.table) == (workspace, EVENTS))
    bucket = f.pmod(f.xxhash64("component"), f.lit(max(1, rows // EVENTS_PER_GROUP)))
    columns = training.columns(asked.names)
    form = ", ".join(f"`{field.name}` {_TYPES[str(field.type)]}" for field in training.schema(columns))
    together = labels.groupBy(bucket).cogroup(events.groupBy(bucket))
    return together.applyInPandas(
        filling(recipe, lake, workspace, asked._replace(refs=(), ats=(), names=columns)), form
    )


def filling(recipe: Recipe, lake: Lake, workspace: str, asked: Asked) -> Callable[[Any, Any], Any]:
    """The function for `cogroup(…).applyInPandas`: from groups of labels, and the events of their people, to rows."""

    def fill(labels: Any, events: Any) -> Any:
        training = Training(recipe.catalogue(), lake, workspace)
        own: dict[str, list[Any]] = {}
        columns = {name: events[name].tolist() for name in COLUMNS}
        for component, event in zip(events["component"].tolist(), events_of(columns), strict=True):
            own.setdefault(component, []).append(event)
        filled = []
        for name, threads, people, places, refs, instants in labels.itertuples(index=False):
            wanted = [Label(*label) for label in zip(refs, map(int, instants), map(int, places), strict=True)]
            owners = dict(zip(threads, people, strict=True))
            rows = vectors_of(
                recipe.catalogue(), workspace, owners, own.get(name, ()), wanted, asked.names, asked.known
            )
            filled += [training.filled(row.label.value, row) for row in rows]
        pa = arrow("reading", "lake")
        return pa.Table.from_pylist(filled, schema=training.schema(asked.names)).to_pandas()

    return fill
