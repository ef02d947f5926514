"""Rows of the raw zone as recorded events, many at once: column by column, without an object for each row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from threadline.kernel.event import Event, Identifier, Recorded

NO_TIME = -(1 << 63)
"""In place of a time that an event has not: pandas makes floats of integers with gaps, and floats lose digits."""
TIMES = ("occurred_at", "received_at", "recorded_at", "sent_time")
"""The columns that hold instants: here they are whole microseconds, since pandas knows no year beyond 2262."""
COLUMNS = (
    "type", "identifiers", "occurred_at", "key", "source", "source_type", "workspace", "properties", "context",
    "received_at", "sent_time", "marks", "historical", "schema_version", "object_id", "object_ref", "wire",
    "id", "thread", "sequence", "recorded_at", "cause",
)  # fmt: skip
"""What an event is made of, in the order in which `events_of` reads it."""

_identifiers = msgspec.json.Decoder(tuple[Identifier, ...]).decode
_plain = msgspec.json.Decoder(dict[str, Any]).decode


def events_of(columns: Mapping[str, Sequence[Any]]) -> Iterator[Recorded]:
    """The events of these columns, in the order of the rows; instants as microseconds, `NO_TIME` where there is none.

    Equal to what `recorded_of` of the raw zone makes of each row.
    """
    for row in zip(*(columns[name] for name in COLUMNS), strict=True):
        sent, marks = row[10], row[11]
        event = Event(
            type=row[0],
            identifiers=_identifiers(row[1]),
            occurred_at=row[2],
            key=row[3],
            source=row[4],
            source_type=row[5],
            workspace=row[6],
            properties=_plain(row[7]),
            context=_plain(row[8]),
            received_at=row[9],
            sent_time=None if sent == NO_TIME else sent,
            marks=tuple(marks),
            historical=row[12],
            schema_version=row[13],
            object_id=row[14],
            object_ref=row[15],
            wire=_plain(row[16]),
        )
        yield Recorded(event, row[17], row[18], row[19], row[20], row[21])
