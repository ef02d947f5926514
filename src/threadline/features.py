"""Feature vectors for whoever trains or serves a model, by the names of feature stores: pandas, Arrow, Parquet.

`get_historical_features` makes a training set by a point-in-time join: each row has the vector as it was served at its
own instant, so that nothing of the future leaks in. `get_online_features` answers the same vector as of now.

    >>> import threadline
    >>> from threadline.features import get_online_features
    >>> with threadline.open("memory:") as shop:
    ...     receipt = shop.track("ada", "purchase_completed", {"total": 30, "currency": "EUR"})
    ...     get_online_features(shop, ["monetary_total"], [{"person": "ada"}])
    {'person': ['ada'], 'monetary_total': [30.0]}

Options: ``lake`` (where history is read), ``definitions``, ``workspace``, ``known`` (``"then"``: what was known at the
instant; ``"now"``: with what arrived later), ``person`` and ``timestamp`` (the columns of the entities). A training set
becomes a table by `to_df`, `to_arrow` or `to_parquet`, each with ``statuses``; it needs the extra ``lake``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from threadline.app import composition
from threadline.exports.duck import name, text
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.storage import open_storage
from threadline.exports.training.historical import Asked, Training, status_of
from threadline.exports.training.vectors import KnownBy
from threadline.kernel.errors import InvalidSetting, InvalidValue, NotFound
from threadline.kernel.time import format_time, from_datetime, parse_time, system_clock
from threadline.settings import Settings, load
from threadline.surfaces.python.embedded import Threadline
from threadline.wire.arrow import arrow

PERSON, TIMESTAMP = "person", "event_timestamp"
"""The columns of entities that are read: whose vector, and at which instant."""
_PLACE = "__place"


def get_historical_features(
    entity_df: Any,
    features: Sequence[str] = (),
    *,
    lake: str | os.PathLike[str] = "",
    definitions: str | os.PathLike[str] = "",
    workspace: str = "",
    known: KnownBy = "then",
    person: str = PERSON,
    timestamp: str = TIMESTAMP,
    settings: Settings | None = None,
) -> HistoricalFeatures:
    """The vectors of people at instants, each as it was served then: a training set, read from a lake.

    ``entity_df`` is a table (pandas, Arrow, any that speaks Arrow's C interface, a dict of columns or a list of dicts)
    with a column ``person`` (a user id, ``kind:value`` or a person's id) and a column ``event_timestamp`` (an instant;
    without a zone it is UTC). Other columns, such as labels, are passed through. ``features`` are names, as they are or
    as ``view:name``; none means all. Lake, definitions and workspace are those of the settings where they are not
    given. Nothing is read before the result is asked for its rows.
    """
    given = {"lake": os.fspath(lake), "definitions": os.fspath(definitions), "workspace": workspace}
    chosen = load({key: value for key, value in given.items() if value}, onto=settings)
    if not chosen.lake:
        raise InvalidSetting("training sets are read from a lake", hint="set THREADLINE_LAKE, or hand over lake=…")
    training = Training(composition().in_force(chosen), Lake(open_storage(chosen.lake)), chosen.workspace)
    entities = _table(entity_df)
    for column in (person, timestamp):
        if column not in entities.column_names:
            raise InvalidValue(f"the entities have no column {column!r}; they have {entities.column_names}")
    names = training.columns([feature.rpartition(":")[2] for feature in features])
    if taken := {column for feature in names for column in (feature, status_of(feature))} & set(entities.column_names):
        raise InvalidValue(f"the entities have columns of the names of features: {', '.join(sorted(taken))}")
    refs = [str(value) for value in entities[person].to_pylist()]
    return HistoricalFeatures(training, entities, Asked(refs, _instants(entities[timestamp]), names, known))


class HistoricalFeatures:
    """A training set that is yet to be read: the rows of the entities, in their order, with a column for each feature.

    A value is null where there is none, or nobody of that name was known at that instant. With ``statuses`` there is a
    column ``<feature>__status`` as well: PRESENT, STALE or NOT_FOUND.
    """

    def __init__(self, training: Training, entities: Any, asked: Asked) -> None:
        self._training = training
        self._entities = entities
        self._asked = asked

    def to_arrow(self, *, statuses: bool = False) -> Any:
        """As an Arrow table."""
        pa = arrow("reading", "lake")
        with self._training.vectors(self._asked) as (_, file):
            vectors = pa.parquet.read_table(file).sort_by("place")
        table = self._entities
        for column in self._columns(statuses):
            table = table.append_column(column, vectors[column])
        return table

    def to_df(self, *, statuses: bool = False) -> Any:
        """As a pandas DataFrame."""
        return self.to_arrow(statuses=statuses).to_pandas()

    def to_parquet(self, path: str | os.PathLike[str], *, statuses: bool = False) -> None:
        """Into a Parquet file; the vectors need not fit into memory."""
        pa = arrow("writing", "lake")
        places = pa.array(range(self._entities.num_rows), pa.int64())
        columns = ", ".join(f"vectors.{name(column)}" for column in self._columns(statuses))
        with self._training.vectors(self._asked) as (connection, file):
            connection.register("entities", self._entities.append_column(_PLACE, places))
            connection.execute(
                f"COPY (SELECT entities.* EXCLUDE ({_PLACE}), {columns} FROM entities "  # noqa: S608 — names are quoted
                f"JOIN read_parquet({text(file)}) AS vectors ON vectors.place = entities.{_PLACE} "
                f"ORDER BY vectors.place) TO {text(os.fspath(path))} (FORMAT parquet, COMPRESSION zstd)"
            )

    def _columns(self, statuses: bool) -> list[str]:
        return [
            column
            for feature in self._asked.names
            for column in ((feature, status_of(feature)) if statuses else (feature,))
        ]


def get_online_features(
    store: Threadline, features: Sequence[str], entity_rows: Iterable[Mapping[str, Any]], *, person: str = PERSON
) -> dict[str, list[Any]]:
    """The vectors of people as they are now, column by column; null where nobody is known by that name."""
    names = [feature.rpartition(":")[2] for feature in features]
    columns: dict[str, list[Any]] = {person: [], **{feature: [] for feature in names}}
    for row in entity_rows:
        columns[person].append(row[person])
        try:
            vector = store.features.of(str(row[person]), names=",".join(names)).features
        except NotFound:
            vector = {}
        for feature in names:
            columns[feature].append(vector[feature].value if feature in vector else None)
    return columns


def _table(entities: Any) -> Any:
    pa = arrow("reading", "lake")
    if isinstance(entities, list):
        return pa.Table.from_pylist(entities)
    if isinstance(entities, Mapping) or hasattr(entities, "__arrow_c_stream__"):
        return pa.table(entities)
    return pa.Table.from_pandas(entities, preserve_index=False)


def _instants(column: Any) -> list[int]:
    now = system_clock()
    instants = []
    for index, value in enumerate(column.to_pylist()):
        try:
            at = parse_time(value) if isinstance(value, str) else from_datetime(_aware(value))
        except InvalidValue as error:
            raise InvalidValue(f"the timestamp of row {index}: {error}") from None
        if at > now:
            raise InvalidValue(f"the timestamp of row {index}, {format_time(at)}, is in the future")
        instants.append(at)
    return instants


def _aware(value: Any) -> datetime:
    if not isinstance(value, datetime):
        raise InvalidValue(f"{value!r} is no instant")
    return value if value.tzinfo else value.replace(tzinfo=UTC)
