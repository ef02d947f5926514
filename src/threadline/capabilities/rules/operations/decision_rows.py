"""The index rows of decisions, of one rule or of several, the newest first."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from threadline.capabilities.events.forms import not_a_cursor
from threadline.capabilities.rules.projection import SHARDS, partition
from threadline.kernel.operation import Context
from threadline.kernel.ports import WithStore
from threadline.kernel.store import query_pages
from threadline.kernel.time import newest_first_key

_PAGE_ROWS = 100
"""Read at a time of each shard of one rule; of several rules fewer."""
_CURSOR = re.compile(r"[0-9a-f]{16}\.[0-9a-f]{32}")


class DecisionRow(NamedTuple):
    """A row of a decision."""

    cursor: str
    event: str
    """The id of the decision's event."""
    text: str


def decision_rows(
    context: Context[WithStore], table: str, rules: Sequence[str], start: int | None, stop: int | None, cursor: str = ""
) -> Iterator[DecisionRow]:
    """The rows of decisions recorded in a range of time, behind a cursor. Raises `InvalidValue` for another one."""
    if cursor and not _CURSOR.fullmatch(cursor):
        raise not_a_cursor(cursor)
    store, size = context.engine.store, max(_PAGE_ROWS // max(len(rules), 1), 10)
    # Later decisions have smaller sort keys.
    first, last = (
        cursor or ("" if stop is None else newest_first_key(stop - 1)),
        None if start is None else newest_first_key(start - 1),
    )
    partitions = (partition(context.workspace, rule, shard) for rule in rules for shard in SHARDS)
    shards = (query_pages(store, table, each, first, last, size) for each in partitions)
    for item in heapq.merge(*shards, key=lambda item: item.key.sort):
        yield DecisionRow(item.key.sort, item.key.sort.partition(".")[2], item.value.decode())
