"""The feed: the journal entry by entry, each with the events of those of its pages that are there."""

from __future__ import annotations

import re
from typing import NamedTuple

from threadline.kernel.errors import InvalidValue, Unavailable
from threadline.kernel.store import FeedEntry, LogEntry
from threadline.stores.dynamodb.client import Client
from threadline.stores.dynamodb.journal import END, Journal
from threadline.stores.dynamodb.layout import PageKey, page_key, unpack_page
from threadline.stores.dynamodb.reading import get_many
from threadline.stores.dynamodb.stream import StreamTail

_CURSOR = re.compile(r"([0-9a-f]{24})\.([0-9]{1,9})\.([0-9]{1,3})")
ATTEMPTS_MAX = 20
ENTRIES_MAX = 100
"""Entries of the journal in one answer; each stands for a whole call."""

Numbered = list[tuple[int, LogEntry]]
"""Events of a page with their numbers in the batch."""


class _Cursor(NamedTuple):
    """How far a reader is: before an entry's batch of this number, or after so many of that batch's events."""

    position: str = ""
    number: int = 0
    events: int = 0


class _Announced(NamedTuple):
    """A batch of which the journal says where its pages are, if it was committed."""

    position: str
    number: int
    keys: list[PageKey]


def _parse(text: str) -> _Cursor:
    if not text:
        return _Cursor()
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise InvalidValue(f"{text!r:.80} is not a cursor of this feed", param="cursor")
    return _Cursor(match[1], int(match[2]), int(match[3]))


class Feed:
    """Reads the feed of one table. ``tail`` is where new pages may be had without reading the table."""

    def __init__(self, client: Client, journal: Journal, tail: StreamTail | None) -> None:
        self._client = client
        self._journal = journal
        self._tail = tail

    def read(self, text: str, limit: int) -> list[FeedEntry]:
        """A page of the feed after a cursor, as far as it is settled."""
        cursor = _parse(text)
        entries: list[FeedEntry] = []
        restless = 0
        while restless < ATTEMPTS_MAX:
            register = self._journal.settled()
            announced = self._announced(cursor, register.horizon, limit)
            # Somebody who registered meanwhile may have begun below what was just read: read it again.
            if self._journal.register().generation != register.generation:
                restless += 1
                continue
            entries += self._entries(cursor, announced, limit - len(entries))
            if len(entries) == limit or len(announced) < limit:
                return entries
            # Not all of that was committed, and there may be more behind it: a short page is the last one.
            cursor = _Cursor(announced[-1].position, announced[-1].number + 1)
        if entries:
            return entries
        raise Unavailable("writers come and go too fast for the feed to be read; try again")

    def end(self) -> str:
        """A cursor before the last entry, or before the first one that is not settled."""
        for _ in range(ATTEMPTS_MAX):
            register = self._journal.settled()
            last = min(register.horizon, self._journal.last())
            # As in `read`: who registered meanwhile may have begun below it.
            if self._journal.register().generation == register.generation:
                return f"{last:0>24}.0.0" if last else ""
        raise Unavailable("writers come and go too fast for the end of the feed to be known; try again")

    def waits(self, text: str) -> bool:
        """Whether an entry behind a cursor is not settled yet."""
        horizon = self._journal.settled().horizon
        if horizon >= END:
            return False
        start = max(horizon, _parse(text).position)
        return next(self._journal.entries(f"{int(start, 16) - 1:024x}", END, 1), None) is not None

    def _announced(self, cursor: _Cursor, stop: str, limit: int) -> list[_Announced]:
        """The batches from the cursor on: whole entries, of ``limit`` batches or a little more."""
        # The entry of the cursor may not be finished, so reading begins at it: after the greatest position before.
        after = f"{int(cursor.position, 16) - 1:024x}" if cursor.position else ""
        announced: list[_Announced] = []
        for position, batches in self._journal.entries(after, min(stop, END), ENTRIES_MAX):
            self._journal.observe(position)
            first = cursor.number if position == cursor.position else 0
            announced += [_Announced(position, number, keys) for number, keys in enumerate(batches) if number >= first]
            if len(announced) >= limit:
                break
        return announced

    def _entries(self, cursor: _Cursor, announced: list[_Announced], limit: int) -> list[FeedEntry]:
        entries: list[FeedEntry] = []
        for start in range(0, len(announced), limit):
            some, pages = self._present(announced[start : start + limit])
            for batch in some:
                numbered = sorted((pair for key in batch.keys for pair in pages.get(key, ())), key=lambda pair: pair[0])
                known = cursor.events if batch[:2] == cursor[:2] else 0
                entries += [
                    FeedEntry(_after(batch, count, len(numbered)), entry)
                    for count, (_, entry) in enumerate(numbered, 1)
                    if count > known
                ]
            if len(entries) >= limit:
                break
        return entries[:limit]

    def _present(self, announced: list[_Announced]) -> tuple[list[_Announced], dict[PageKey, Numbered]]:
        """The batches, and those of their pages that are there."""
        while True:
            pages = self._pages([key for batch in announced for key in batch.keys])
            lacking = {batch.position for batch in announced if any(key not in pages for key in batch.keys)}
            # Not committed; or erased since the journal was read, and then it has other pages now, with as many events.
            entries = self._journal.entries_at(lacking)
            now = [
                batch._replace(keys=entries[batch.position][batch.number]) if batch.position in entries else batch
                for batch in announced
            ]
            if now == announced:
                return announced, pages
            announced = now

    def _pages(self, keys: list[PageKey]) -> dict[PageKey, Numbered]:
        pages = self._tail.take(keys) if self._tail is not None else {}
        missing = [key for key in keys if key not in pages]
        items = get_many(self._client, [page_key(key) for key in missing])
        for key in missing:
            item = items.get((key.pk, key.sort))
            if item is not None:
                pages[key] = unpack_page(item)
        return pages


def _after(batch: _Announced, count: int, size: int) -> str:
    """The cursor after so many of a batch's events; past the last it points to the next batch, whose pages are new."""
    return f"{batch.position}.{batch.number + 1}.0" if count == size else f"{batch.position}.{batch.number}.{count}"
