"""A page of events in which one is damaged, written anew with a good copy of it."""

from __future__ import annotations

from threadline.kernel.store import LogEntry
from threadline.stores.dynamodb.client import Client, Refused
from threadline.stores.dynamodb.layout import DEFLATED, ROW, PageKey, pack_page, page_key, unpack_page
from threadline.stores.dynamodb.reading import get_many


def mend_page(client: Client, key: PageKey, damaged: LogEntry, good: LogEntry) -> bool:
    """Write a page with one entry in the place of another; whether the page was still as it was read."""
    for item in get_many(client, [page_key(key)]).values():
        events = unpack_page(item)
        if damaged not in (entry for _, entry in events) or good.thread != key.thread:
            continue
        mended = pack_page([(number, good if entry == damaged else entry) for number, entry in events])
        content = next(name for name in (ROW, DEFLATED) if name in item)
        put = {
            "TableName": client.address.table,
            "Item": {**{name: attribute for name, attribute in item.items() if name != content}, **mended},
            "ConditionExpression": "#c = :c",
            "ExpressionAttributeNames": {"#c": content},
            "ExpressionAttributeValues": {":c": item[content]},
        }
        try:
            client.call("PutItem", put)
        except Refused:
            return False
        return True
    return False
