"""The Parquet files of a lake: written under a name that says what is in them, and read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from threadline.exports.lake.lake import EVENTS, SCHEMA_VERSION, File, Lake
from threadline.exports.lake.part import Part
from threadline.exports.lake.schema import pa
from threadline.kernel.errors import StoreDamaged
from threadline.kernel.object_storage import path_name

_LEVEL = 3
"""Of zstd."""
_UNLIKE = ("id", "key", "identifiers", "properties", "context", "wire")
"""Columns whose values hardly ever repeat in a row group: a dictionary would be built and thrown away."""
_COUNTED = ("position", "thread", "person", "sequence", "type", "occurred_at", "received_at", "recorded_at")
"""Columns by whose least and greatest value engines pass over files."""


def write_part(lake: Lake, part: Part, table: str, first: int, last: int) -> File:
    """Write a file. Its name says of which positions it is and, in the end, what is in it: what is written twice has
    one name, and nobody writes over a file that a manifest names."""
    content = parquet(part.table, first, last)
    digest = hashlib.sha256(content).hexdigest()
    below = f"dt={part.dt}/event={part.event}/" if table == EVENTS else ""
    name = f"raw/{path_name(part.workspace)}/{table}/{below}part-{first:020}-{last:020}-{digest[:8]}.parquet"
    lake.storage.write(name, content)
    return File(
        name=name,
        workspace=part.workspace,
        table=table,
        event=part.event,
        dt=part.dt,
        first=first,
        last=last,
        rows=part.table.num_rows,
        bytes=len(content),
        sha256=digest,
    )


def parquet(table: Any, first: int, last: int) -> bytes:
    """The bytes of a file, with what it says of itself."""
    metadata = {"log_from": str(first), "log_to": str(last), "schema_version": str(SCHEMA_VERSION)}
    if "id" in table.column_names:
        metadata["ids_sha256"] = ids_digest(table["id"].to_pylist())
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(
        _own_dictionaries(table).replace_schema_metadata(metadata),
        sink,
        compression="zstd",
        compression_level=_LEVEL,
        use_dictionary=[name for name in table.column_names if name not in _UNLIKE],
        write_statistics=[name for name in table.column_names if name in _COUNTED or name.startswith("p_")],
    )
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _own_dictionaries(table: Any) -> Any:
    """The table with no value in the dictionary of a column that none of its rows has.

    Rows that were cut out of others share the dictionary of all of them, and Parquet writes it whole: the type of an
    event that is erased would stay in files that never had the event.
    """
    for index, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            column = table[index].cast(field.type.value_type).dictionary_encode().cast(field.type)
            table = table.set_column(index, field, column)
    return table


def read_table(lake: Lake, file: File, columns: Sequence[str] | None = None) -> Any:
    """The rows of a file, or some of their columns. Raises `NotFound`, and `StoreDamaged` for one that cannot be
    read."""
    content = lake.storage.read(file.name)
    try:
        # One of Arrow's threads may let go of bytes of Python's only after it has delivered; where the process ends in
        # that instant, it aborts.
        return pa.parquet.ParquetFile(pa.BufferReader(content)).read(columns=columns, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise StoreDamaged(f"{lake.storage.url(file.name)} cannot be read: {error}") from None


def ids_digest(ids: Iterable[str]) -> str:
    """SHA-256 of ids, sorted, 32 hex digits each, without anything between them; as in a certificate of an erasure."""
    return hashlib.sha256("".join(sorted(ids)).encode()).hexdigest()
