"""A range of the log as Arrow tables, one for each file that it becomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from threadline.exports.lake.lake import partition_of
from threadline.exports.lake.schema import RAW, pa

IN_ORDER = (("thread", "ascending"), ("occurred_at", "ascending"), ("sequence", "ascending"))
"""The order of the rows of a file."""


class Part(NamedTuple):
    """The rows of one file."""

    workspace: str
    dt: str
    event: str
    table: Any


def parts_of(table: Any, people: Mapping[str, str]) -> Iterator[Part]:
    """The events by workspace, day and partition, in each by thread and time; ``people`` is by thread."""
    if not table.num_rows:
        return
    threads = _encoded(table["thread"])
    person = pa.array([people.get(thread, thread) for thread in threads.dictionary.to_pylist()], pa.string())
    table = table.set_column(RAW.get_field_index("person"), RAW.field("person"), person.take(threads.indices))
    places, names = _places(table)
    table = table.append_column("place", places)
    table = table.take(pa.compute.sort_indices(table, [("place", "ascending"), *IN_ORDER]))
    counts = {value["values"]: value["counts"] for value in pa.compute.value_counts(places).to_pylist()}
    table, start = table.drop_columns("place"), 0
    for index, (workspace, dt, event) in enumerate(names):
        yield Part(workspace, dt, event, table.slice(start, counts[index]))
        start += counts[index]


def _places(table: Any) -> tuple[Any, list[tuple[str, str, str]]]:
    """Of each row the number of its workspace, day and partition among those that are returned."""
    columns = [_encoded(table["workspace"]), _encoded(table["recorded_at"].cast("date32")), _encoded(table["type"])]
    codes = columns[0].indices.cast(pa.int64())
    for column in columns[1:]:
        codes = pa.compute.add(pa.compute.multiply(codes, len(column.dictionary)), column.indices.cast(pa.int64()))
    # One row of each combination says what it is. Types may share a partition.
    met = pa.compute.unique(codes)
    at = pa.compute.index_in(met, codes)
    combinations = zip(*(column.take(at).to_pylist() for column in columns), strict=True)
    named = [(workspace, day.isoformat(), partition_of(type)) for workspace, day, type in combinations]
    names = sorted(set(named))
    numbers = pa.array([names.index(name) for name in named], pa.int32())
    return numbers.take(pa.compute.index_in(codes, met)), names


def _encoded(column: Any) -> Any:
    column = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
