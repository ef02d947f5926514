"""Reads of the table: many keys at once, ranges of a partition, whole tables; consistent by default."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence

from threadline.kernel.errors import Unavailable
from threadline.kernel.store import LogEntry, Span
from threadline.stores.dynamodb.client import BACKOFF_SECONDS_FIRST, BACKOFF_SECONDS_MAX, Body, Client
from threadline.stores.dynamodb.layout import PAGE_SPAN, PK, SK, Attributes, time_text, unpack_page

KEYS_MAX = 100
"""Keys of one BatchGetItem."""
ROUNDS_MAX = 12

Name = tuple[str, str]
"""Partition and sort key of an item."""


def name_of(key: Attributes) -> Name:
    """The primary key of an item, or of a request for it, as plain text."""
    return key[PK]["S"], key[SK]["S"]


def get_many(client: Client, keys: Sequence[Attributes], *, consistent: bool = True) -> dict[Name, Attributes]:
    """The items under these keys as they are now; those that are not there are left out.

    As they were a moment ago if it need not be ``consistent``, for half the price.
    """
    wanted = list({name_of(key): key for key in keys}.values())
    items: dict[Name, Attributes] = {}
    for start in range(0, len(wanted), KEYS_MAX):
        items.update({name_of(item): item for item in _get_some(client, wanted[start : start + KEYS_MAX], consistent)})
    return items


def _get_some(client: Client, keys: list[Attributes], consistent: bool) -> Iterator[Attributes]:
    table = client.address.table
    rest = keys
    for number in range(ROUNDS_MAX):
        request = {table: {"Keys": rest, "ConsistentRead": consistent}}
        answer = client.call("BatchGetItem", {"RequestItems": request, "ReturnConsumedCapacity": "TOTAL"})
        yield from answer["Responses"].get(table, ())
        # What is left over did not fit into one answer of 16 MB, or was throttled.
        left = answer.get("UnprocessedKeys") or {}
        if not left:
            return
        if len(left[table]["Keys"]) == len(rest):
            time.sleep(random.uniform(0, min(BACKOFF_SECONDS_MAX, BACKOFF_SECONDS_FIRST * 2**number)))
        rest = left[table]["Keys"]
    raise Unavailable(f"DynamoDB throttles reads of {table}")


def query_pages(
    client: Client, pk: str, low: str, high: str | None, *, reverse: bool = False, limit: int | None = None
) -> Iterator[list[Attributes]]:
    """Items of a partition with low <= sk <= high in order, an answer of at most ``limit`` at a time."""
    values: Body = {":p": {"S": pk}}
    condition = "pk = :p"
    if low and high is not None:
        condition += " AND sk BETWEEN :a AND :b"
        values |= {":a": {"S": low}, ":b": {"S": high}}
    elif low or high is not None:
        condition += " AND sk >= :a" if low else " AND sk <= :a"
        values[":a"] = {"S": low or high}
    request: Body = {
        "TableName": client.address.table,
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": values,
        "ConsistentRead": True,
        "ScanIndexForward": not reverse,
        "ReturnConsumedCapacity": "TOTAL",
    }
    if limit is not None:
        request["Limit"] = limit
    while True:
        answer = client.call("Query", request)
        yield answer["Items"]
        if not answer.get("LastEvaluatedKey"):
            return
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def scan_pages(
    client: Client, prefix: str, shard: int, shards: int, after: Attributes | None, *, keys_only: bool = False
) -> Iterator[list[Attributes]]:
    """Items whose partition key begins with a prefix, in the table's own order, an answer at a time."""
    request: Body = {
        "TableName": client.address.table,
        "Segment": shard,
        "TotalSegments": shards,
        "ConsistentRead": True,
        "FilterExpression": "begins_with(pk, :t)",
        "ExpressionAttributeValues": {":t": {"S": prefix}},
        "ReturnConsumedCapacity": "TOTAL",
    }
    if keys_only:
        request["ProjectionExpression"] = "pk"
    if after is not None:
        request["ExclusiveStartKey"] = after
    while True:
        answer = client.call("Scan", request)
        yield answer["Items"]
        if not answer.get("LastEvaluatedKey"):
            return
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def read_thread(client: Client, thread: str, span: Span) -> list[LogEntry]:
    """Events of one thread in occurred order; see `Span`.

    Pages come by their earliest event and reach at most `PAGE_SPAN` beyond it, so an event is in its final place
    as soon as no page to come can hold one before it.
    """
    start, stop = _bounds(span)
    low = "" if start is None else time_text(start - PAGE_SPAN)
    high = None if stop is None else time_text(stop)
    waiting: list[LogEntry] = []
    final: list[LogEntry] = []
    for answer in query_pages(client, "t" + thread, low, high, reverse=span.reverse, limit=span.limit + 1):
        for item in answer:
            waiting += [entry for _, entry in unpack_page(item) if _within(entry, span, start, stop)]
        if not answer:
            continue
        edge = answer[-1][SK]["S"][:16]
        settled = [entry for entry in waiting if _settled(entry, edge, reverse=span.reverse)]
        waiting = [entry for entry in waiting if not _settled(entry, edge, reverse=span.reverse)]
        final += sorted(settled, key=_order, reverse=span.reverse)
        if len(final) >= span.limit:
            return final[: span.limit]
    return [*final, *sorted(waiting, key=_order, reverse=span.reverse)][: span.limit]


def _order(entry: LogEntry) -> tuple[int, int]:
    return entry.occurred_at, entry.sequence


def _settled(entry: LogEntry, edge: str, *, reverse: bool) -> bool:
    # Later pages begin at the edge or after it; read backwards, at the edge or before it, and may reach beyond.
    if reverse:
        return time_text(entry.occurred_at - PAGE_SPAN) > edge
    return time_text(entry.occurred_at) < edge


def _bounds(span: Span) -> tuple[int | None, int | None]:
    start, stop = span.start, span.stop
    if span.after is not None and span.reverse:
        last = span.after[0] + 1
        stop = last if stop is None else min(stop, last)
    elif span.after is not None:
        start = span.after[0] if start is None else max(start, span.after[0])
    return start, stop


def _within(entry: LogEntry, span: Span, start: int | None, stop: int | None) -> bool:
    if (start is not None and entry.occurred_at < start) or (stop is not None and entry.occurred_at >= stop):
        return False
    if span.types and entry.type not in span.types:
        return False
    return span.after is None or (_order(entry) < span.after if span.reverse else _order(entry) > span.after)
