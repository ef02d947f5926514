"""What the development inbox has of a person: the mails that were written to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from threadline.kernel.event import Identifier
from threadline.kernel.inbox import INBOX, InboxMessage, body_key, summaries, summary_key
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.personal import PersonFile, StoreTable, Subject, shown_time
from threadline.kernel.store import Key, query_pages


def _messages(subject: Subject) -> Iterator[InboxMessage]:
    sent = set[str]()
    for recorded in subject.events(frozenset({"mail_sent"})):
        sent.add(str(recorded.event.properties.get("provider_id", "")))
    for item in query_pages(subject.engine.store, INBOX, summaries(subject.workspace), size=PAGE_ITEMS_MAX):
        message = msgspec.msgpack.decode(item.value, type=InboxMessage)
        if message.id in sent or subject.has(Identifier("email", message.to)):
            yield message


def _keys(subject: Subject) -> Iterator[Key]:
    for message in _messages(subject):
        yield summary_key(subject.workspace, message.id)
        yield body_key(subject.workspace, message.id)


def _lines(subject: Subject) -> Iterator[dict[str, Any]]:
    for message in _messages(subject):
        body = subject.engine.store.get([body_key(subject.workspace, message.id)])[0]
        yield {
            **msgspec.to_builtins(message),
            "at": shown_time(message.at),
            "raw": "" if body is None else body.value.decode("utf-8", "replace"),
        }


INBOX_TABLE = StoreTable(INBOX, "items", shown_in="inbox", keys=_keys)
INBOX_FILE = PersonFile(
    "inbox", "Mails as they were written", "The mails themselves, where copies of them are kept.", _lines
)
