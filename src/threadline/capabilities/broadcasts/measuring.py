"""What came of a broadcast for its recipients: who opened, clicked, or had an event afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from threadline.capabilities.broadcasts.projection import STATUS
from threadline.capabilities.broadcasts.repository import Recipient, rows_of
from threadline.kernel.ports import WithReader, WithStore

_STATUS_OF = {"opens": "opened", "clicks": "clicked"}


class Needs(WithReader, WithStore, Protocol):
    """What is needed here of the engine."""


def gained(
    engine: Needs, workspace: str, id: str, recipients: Sequence[Recipient], metric: str, event: str, start: int,
    stop: int,
) -> frozenset[str]:  # fmt: skip
    """Those of a page of recipients, by id, for whom a metric counts: opens, clicks, or an event in a range of time."""
    if metric == "conversions":
        people = engine.reader.by_ids([each.person for each in recipients])
        types = frozenset({event})
        return frozenset(
            id
            for id, person in people.items()
            if engine.reader.events(person, start=start, stop=stop, types=types, limit=1)
        )
    rows = rows_of(engine.store, STATUS, workspace, id, [each.person for each in recipients])
    split = (row.key.sort.partition("/") for row in rows)
    return frozenset(thread for thread, _, status in split if status == _STATUS_OF[metric])
