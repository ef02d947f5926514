"""The refold on one machine: DuckDB brings each person's events together, beyond the memory if need be."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

from threadline.engine.interpreter import gc_deferred
from threadline.exports import duck
from threadline.exports.lake.lake import File, Lake
from threadline.exports.lake.storage import Storage
from threadline.exports.spark.events import COLUMNS, NO_TIME, TIMES, events_of
from threadline.exports.spark.folding import PersonRow, fold_people
from threadline.exports.spark.recipe import Recipe
from threadline.exports.spark.states import Refolded, Source, refold_lake, write_states
from threadline.kernel.event import Recorded

BATCH_ROWS = 10_000

_READ = """
WITH owners AS (
    SELECT thread, arg_max(person, position) AS person
    FROM read_parquet($identities, hive_partitioning = false) GROUP BY thread
)
SELECT coalesce(owners.person, events.person) AS owner, {columns}
FROM read_parquet($events, union_by_name = true, hive_partitioning = false) AS events
LEFT JOIN owners USING (thread)
ORDER BY owner, events.occurred_at, events.id
"""


def refold(lake: Lake, recipe: Recipe, workspace: str | None = None) -> Refolded:
    """Fold everybody again from the lake, in this process, and publish the states; see `refold_lake`."""

    def fold(source: Source) -> tuple[list[File], int]:
        catalogue, folded = recipe.catalogue(), 0

        def rows() -> Iterator[PersonRow]:
            nonlocal folded
            for row in fold_people(catalogue, source.workspace, _events(source, lake.storage)):
                folded += row.events
                yield row

        with gc_deferred():
            files = list(write_states(lake, source, recipe.definitions, rows()))
        return files, folded

    return refold_lake(lake, fold, workspace)


def _events(source: Source, storage: Storage) -> Iterator[tuple[str, Recorded]]:
    """(person, event) of everybody, by person and in occurred order."""
    with tempfile.TemporaryDirectory() as spill, duck.connected(spill, storage) as connection:
        columns = ", ".join(f"{_read_as(name)} AS {name}" for name in COLUMNS)
        files = {"events": list(source.events), "identities": list(source.identities)}
        reader = connection.execute(_READ.format(columns=columns), files).to_arrow_reader(BATCH_ROWS)
        for batch in reader:
            read = {name: column.to_pylist() for name, column in zip(batch.schema.names, batch.columns, strict=True)}
            yield from zip(read["owner"], events_of(read), strict=True)


def _read_as(name: str) -> str:
    if name not in TIMES:
        return f"events.{name}"
    return f"coalesce(epoch_us(events.{name}), {NO_TIME})"
