"""Events taken out of the log: the page of an event is replaced, and whatever names the page names the new ones.

A page never changes under its key, because readers and the stream remember pages by it. So the page is deleted; what is
left of its erased events goes on a page of the zero thread, its other events, if there are any, on a page with a new
count. The journal's entry and the items of all its ids follow in the same transaction: 50 events are the most that a
batch has, so it is one.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from threadline.kernel.store import ERASED_THREAD, LogEntry, erased
from threadline.stores.dynamodb.client import Body, Client, Refused
from threadline.stores.dynamodb.layout import (
    DEAD,
    DEFLATED,
    PK,
    ROW,
    Attributes,
    PageKey,
    id_item,
    journal_key,
    pack_journal,
    pack_page,
    page_key,
    time_text,
    unpack_journal,
    unpack_page,
)
from threadline.stores.dynamodb.reading import get_many, name_of

Run = Callable[[Callable[[list[PageKey]], set[str]], Iterable[list[PageKey]]], Iterable[set[str]]]
"""As `map`, perhaps several at once."""


def erase(client: Client, places: Mapping[str, PageKey], run: Run) -> set[str]:
    """Erase events of which the pages are known; the ids of those that are erased now.

    The rest were on pages that have been replaced meanwhile: their places have to be looked up again.
    """
    entries: defaultdict[str, list[PageKey]] = defaultdict(list)
    for key in dict.fromkeys(places.values()):
        entries[key.position].append(key)
    # Pages that one entry of the journal names go one after the other, for each of them changes the entry.
    done = run(partial(_replace_all, client, frozenset(places)), entries.values())
    return set().union(*done)


def _replace_all(client: Client, ids: frozenset[str], keys: Sequence[PageKey]) -> set[str]:
    done: set[str] = set()
    for key in keys:
        done |= _replace(client, ids, key)
    return done


def _replace(client: Client, ids: frozenset[str], key: PageKey) -> set[str]:
    """Erase those events of a page that have one of the ids; empty if the page is another by now."""
    named, entry_key = page_key(key), journal_key(key.position)
    items = get_many(client, [named, entry_key])
    page, entry = items.get(name_of(named)), items.get(name_of(entry_key))
    if page is None or entry is None or DEAD in page:
        return set()
    gone = [(number, erased(event.id)) for number, event in unpack_page(page) if event.id in ids]
    rest = [(number, event) for number, event in unpack_page(page) if event.id not in ids]
    batches = unpack_journal(entry)
    keys = batches[key.number]
    keys[key.ordinal] = key.sibling(ERASED_THREAD, time_text(0), key.ordinal)
    laid = [(keys[key.ordinal], gone)]
    if rest:
        keys.append(key.sibling(key.thread, key.sort[:16], len(keys)))
        laid.append((keys[-1], rest))
    was = next(name for name in (ROW, DEFLATED) if name in entry)
    changed = {**entry_key, **pack_journal(batches)}
    actions: list[Body] = [
        # The two are not read at one instant: the entry may be that of somebody who has replaced the page since.
        {"Delete": {"Key": named, "ConditionExpression": f"attribute_exists({PK})"}},
        # Whoever replaces a page changes the entry that names it, so this condition is enough for all others.
        {"Put": {"Item": changed, **_unchanged(was, entry[was])}},
    ]
    for there, chunk in laid:
        actions.append({"Put": {"Item": {**page_key(there), **pack_page(chunk)}}})
        actions += [_pointer(event, there) for _, event in chunk]
    for action in actions:
        for body in action.values():
            body["TableName"] = client.address.table
    request = {"TransactItems": actions, "ClientRequestToken": secrets.token_hex(16)}
    try:
        client.call("TransactWriteItems", {**request, "ReturnConsumedCapacity": "TOTAL"})
    except Refused:
        return set()
    return {event.id for _, event in gone}


def _unchanged(name: str, value: Attributes) -> Body:
    return {
        "ConditionExpression": "#v = :v",
        "ExpressionAttributeNames": {"#v": name},
        "ExpressionAttributeValues": {":v": value},
    }


def _pointer(event: LogEntry, there: PageKey) -> Body:
    return {"Put": {"Item": id_item(event, there)}}
