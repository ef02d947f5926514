"""People × label times from a lake: DuckDB brings the events of each together, the folds of the engine do the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec

from threadline.capabilities.profile.features.training import OK, Label, Row
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.interpreter import gc_deferred
from threadline.exports import duck
from threadline.exports.lake.lake import EVENTS, IDENTITIES, Lake, Manifest, partition_of
from threadline.exports.spark.events import COLUMNS, NO_TIME, TIMES, events_of
from threadline.exports.training.vectors import CHANGES, Components, KnownBy, vectors_of
from threadline.kernel.errors import NotFound
from threadline.kernel.event import Recorded, identifier_named, is_thread_id
from threadline.wire.arrow import arrow

# Only our own texts are put into statements.
# ruff: noqa: S608

pa = arrow("writing", "lake")

BATCH_ROWS = 10_000
_NUMBERS = frozenset(
    {"count", "sum", "average", "min", "max", "distinct", "days_since", "preferred_hour", "preferred_day", "ratio",
     "score"}
)  # fmt: skip

_READ = "read_parquet($files, union_by_name = true, hive_partitioning = false)"
_OWNERS = f"""
CREATE TABLE owners AS SELECT thread, arg_max(person, position) AS person FROM {_READ} GROUP BY thread
"""
_LABELS = """
CREATE TABLE asked AS
SELECT component, list(place ORDER BY place) AS places, list(ref ORDER BY place) AS refs,
    list(instant ORDER BY place) AS instants
FROM (
    SELECT coalesce(several.component, owners.person) AS component, labels.*
    FROM labels JOIN owners USING (thread) LEFT JOIN several USING (person)
) GROUP BY component
"""
_WANTED = """
CREATE TABLE wanted AS
SELECT coalesce(several.component, owners.person) AS component, owners.thread, owners.person
FROM owners LEFT JOIN several USING (person)
WHERE coalesce(several.component, owners.person) IN (SELECT component FROM asked)
"""
GROUPS = """
SELECT asked.component, threads, people, places, refs, instants
FROM asked JOIN (
    SELECT component, list(thread) AS threads, list(person) AS people FROM wanted GROUP BY component
) USING (component) ORDER BY asked.component
"""


class Asked(NamedTuple):
    """What is to be known of whom."""

    refs: Sequence[str]
    """People, as ``PersonReader.person`` takes them; a label each."""
    ats: Sequence[int]
    """The instants of the labels, microseconds."""
    names: Sequence[str] = ()
    """Features; empty: all."""
    known: KnownBy = "then"


class Training:
    """Training sets over the log as far as a lake has it, by the definitions of a catalogue."""

    def __init__(self, catalogue: Catalogue, lake: Lake, workspace: str) -> None:
        self._catalogue = catalogue
        self.lake = lake
        self.workspace = workspace
        definitions: Any = catalogue.operation("features_list")
        self._features = {feature.name: feature for feature in definitions.run(None, definitions.params()).features}

    def columns(self, names: Sequence[str]) -> list[str]:
        """The features of these names, or all of them. Raises `NotFound` for an unknown one."""
        for name in names:
            if name not in self._features:
                raise NotFound(f"there is no feature {name[:100]!r}", hint="`features_list` lists them all")
        return list(names or self._features)

    @contextmanager
    def vectors(self, asked: Asked) -> Iterator[tuple[Any, str]]:
        """A connection to DuckDB, and a Parquet file with a row for each label: ``place`` among the labels, ``person``
        (null where nobody is meant), and a column for each feature and its status."""
        columns = self.columns(asked.names)
        schema = self.schema(columns)
        with TemporaryDirectory(prefix="threadline-training-") as scratch:
            file = str(Path(scratch, "vectors.parquet"))
            with closing(duck.connected(scratch, self.lake.storage)) as connection:
                with pa.parquet.ParquetWriter(file, schema) as writer, gc_deferred():
                    for batch in self._batches(connection, asked, columns):
                        writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=schema))
                yield connection, file

    def _batches(self, connection: Any, asked: Asked, columns: Sequence[str]) -> Iterator[list[dict[str, Any]]]:
        waiting: list[dict[str, Any]] = []
        missing = set(range(len(asked.refs)))
        for index, row in self._rows(connection, asked, columns):
            missing.discard(index)
            waiting.append(self.filled(index, row))
            if len(waiting) == BATCH_ROWS:
                yield waiting
                waiting = []
        nobody = {status_of(name): "NOT_FOUND" for name in columns}
        for index in sorted(missing):
            waiting.append({"place": index, **nobody})
        if waiting:
            yield waiting

    def _rows(self, connection: Any, asked: Asked, columns: Sequence[str]) -> Iterator[tuple[int, Row]]:
        """The labels of people whom the lake knows, by their place, in any order."""
        manifest = self.lake.manifest()
        if not self.urls(manifest, EVENTS) or not self.urls(manifest, IDENTITIES):
            return
        self.prepare(connection, manifest, asked)
        groups = connection.cursor().execute(GROUPS)
        events = groupby(self._events(connection.cursor(), manifest), itemgetter(0))
        component, own = next(events, ("", iter(())))
        while group := groups.fetchone():
            name, threads, people, places, refs, ats = group
            while component and component < name:
                component, own = next(events, ("", iter(())))
            known = [event for _, event in own] if component == name else []
            labels = [Label(ref, at, index) for index, ref, at in zip(places, refs, ats, strict=True)]
            owners = dict(zip(threads, people, strict=True))
            for row in vectors_of(self._catalogue, self.workspace, owners, known, labels, columns, asked.known):
                yield row.label.value, row

    def prepare(self, connection: Any, manifest: Manifest, asked: Asked) -> None:
        """Make the tables `asked` (labels by component) and `wanted` (the threads of these components)."""
        connection.execute(_OWNERS, {"files": self.urls(manifest, IDENTITIES)})
        several = self._components(connection, manifest).several()
        connection.register("several", _table(person=list(several), component=list(several.values())))
        threads = self._threads(connection, asked.refs)
        own = [ref for ref in threads if is_thread_id(ref)]
        connection.register("own", _table(ref=own))
        # Of 32 hex digits, a person's id is meant before a user id, as everywhere.
        ids = connection.execute("SELECT ref FROM own JOIN owners ON ref = thread").fetchall()
        threads.update((ref, ref) for (ref,) in ids)
        labels = _table(
            place=list(range(len(asked.refs))),
            ref=list(asked.refs),
            thread=[threads[ref] for ref in asked.refs],
            instant=list(asked.ats),
        )
        connection.register("labels", labels)
        connection.execute(_LABELS)
        connection.execute(_WANTED)

    def _threads(self, connection: Any, refs: Sequence[str]) -> dict[str, str]:
        """By reference, the thread of its identifier: of several forms, the first that somebody has."""
        rules = self._catalogue.rules
        named = {ref: rules.threads(self.workspace, identifier_named(ref)) for ref in dict.fromkeys(refs)}
        several = [thread for threads in named.values() if len(threads) > 1 for thread in threads]
        connection.register("forms", _table(thread=several))
        rows = connection.execute("SELECT thread FROM forms JOIN owners USING (thread)").fetchall()
        known = {thread for (thread,) in rows}
        return {
            ref: next((thread for thread in threads if thread in known), threads[0] if threads else "")
            for ref, threads in named.items()
        }

    def _components(self, connection: Any, manifest: Manifest) -> Components:
        components = Components()
        partitions = {partition_of(change) for change in CHANGES}
        files = [file for file in manifest.files if file.event in partitions]
        urls = [self.lake.storage.url(file.name) for file in files if file.workspace == self.workspace]
        if urls:
            query = f"SELECT properties FROM {_READ} WHERE type IN {CHANGES}"
            changes = [msgspec.json.decode(text) for (text,) in connection.execute(query, {"files": urls}).fetchall()]
            named = _table(
                thread=list({str(id) for change in changes for id in change.values() if isinstance(id, str)})
            )
            connection.register("named", named)
            owners = dict(connection.execute("SELECT thread, person FROM owners JOIN named USING (thread)").fetchall())
            for change in changes:
                components.add(change, owners)
        return components

    def _events(self, connection: Any, manifest: Manifest) -> Iterator[tuple[str, Recorded]]:
        """(component, event) of everybody wanted, by component."""
        columns = ", ".join(f"{_read_as(column)} AS {column}" for column in COLUMNS)
        query = f"SELECT component, {columns} FROM {_READ} AS events JOIN wanted USING (thread) ORDER BY component"
        reader = connection.execute(query, {"files": self.urls(manifest, EVENTS)}).to_arrow_reader(BATCH_ROWS)
        for batch in reader:
            read = {name: column.to_pylist() for name, column in zip(batch.schema.names, batch.columns, strict=True)}
            yield from zip(read["component"], events_of(read), strict=True)

    def urls(self, manifest: Manifest, table: str) -> list[str]:
        """Where the files of a table of the workspace are."""
        own = (file for file in manifest.files if (file.workspace, file.table) == (self.workspace, table))
        return [self.lake.storage.url(file.name) for file in own]

    def schema(self, columns: Sequence[str]) -> Any:
        """The columns of a training set."""
        fields = [("place", pa.int64()), ("person", pa.string())]
        for name in columns:
            fields += [(name, self._type(name)), (status_of(name), pa.string())]
        return pa.schema(fields)

    def _type(self, name: str) -> Any:
        feature = self._features[name]
        if feature.aggregate in _NUMBERS and not isinstance(feature.empty, str | bool):
            return pa.float64()
        return pa.bool_() if feature.aggregate == "any" and isinstance(feature.empty, bool | None) else pa.string()

    def filled(self, index: int, row: Row) -> dict[str, Any]:
        """The columns of one row."""
        result: dict[str, Any] = {"place": index, "person": row.person if row.status == OK else None}
        for name, value in row.values.items():
            result[name] = _as_text(value) if pa.types.is_string(self._type(name)) else value
            result[status_of(name)] = row.statuses[name]
        return result


def _as_text(value: Any) -> Any:
    """A value of a column in which there may be values of several kinds: texts as they are, others as JSON."""
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()


def status_of(name: str) -> str:
    """The column of a feature's status."""
    return f"{name}__status"


def _read_as(name: str) -> str:
    if name not in TIMES:
        return f"events.{name}"
    return f"coalesce(epoch_us(events.{name}), {NO_TIME})"


def _table(**columns: Sequence[Any]) -> Any:
    types: Mapping[str, Any] = {"place": pa.int64(), "instant": pa.int64()}
    return pa.table({name: pa.array(values, types.get(name, pa.string())) for name, values in columns.items()})
