"""Index rows by address, of words and suppressions: they reach across people, whoever is merged or imported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from threadline.capabilities.consent.addresses import address_hash
from threadline.capabilities.consent.events import WORDS, Kind, statement_of, suppressed_of
from threadline.capabilities.consent.remaining import SUPPRESSED, Remaining, remaining_about, unsubscribed_since
from threadline.kernel.event import Recorded
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.projection import Row
from threadline.kernel.store import Store, query_pages
from threadline.kernel.time import EARLIEST, LATEST, format_time, newest_first_key
from threadline.kernel.typed import prepared

STATEMENTS_TABLE = "consent"
SUPPRESSION_TABLE = "suppression"
SHARDS = "0123456789abcdef"
"""The first digits of hashes. The addresses of a workspace lie in so many partitions."""
_ALL = "*"
_KINDS: Mapping[Kind, str] = {"confirmed": "c", "subscribed": "s", "unsubscribed": "u"}
_WORDS_READ = 64
"""Rows of an address that are read at once. Whoever toggles a switch a thousand times has more."""


@prepared
class Suppression(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The newest word on an address: that it is suppressed, or that this was lifted."""

    address: str
    reason: str
    at: str
    by: str = ""
    note: str = ""
    event: str = ""
    """Empty: who said so was erased, and only this is kept."""
    lifted: bool = False


_suppression = msgspec.json.Decoder(Suppression)


def _shown(at: int) -> str:
    return format_time(min(max(at, EARLIEST), LATEST))


def _partition(workspace: str, hash: str) -> str:
    return f"{workspace}/{hash[0]}"


# --- suppression --------------------------------------------------------------------------------


def suppression_rows(recorded: Recorded) -> Iterable[Row]:
    """The row of an event: the first one under an address is the newest. Of one instant, suppressing comes first."""
    event = recorded.event
    if (verdict := suppressed_of(event)) is not None:
        hash = address_hash(event.workspace, verdict.address)
        value = Suppression(
            address=verdict.address,
            reason=verdict.reason,
            at=_shown(event.occurred_at),
            by=verdict.by,
            note=verdict.note,
            event=recorded.id,
            lifted=verdict.lifted,
        )
        sort = f"{hash} {newest_first_key(recorded.event.occurred_at)}{int(verdict.lifted)}{recorded.id}"
        yield Row(SUPPRESSION_TABLE, _partition(event.workspace, hash), sort, msgspec.json.encode(value))


def newest_suppression(store: Store, workspace: str, address: str) -> Suppression | None:
    """The newest word on an address, None if there never was one: a query, and one more
    of a store in which somebody was erased."""
    hash = address_hash(workspace, address)
    found = store.query(SUPPRESSION_TABLE, _partition(workspace, hash), f"{hash} ", f"{hash}!", 1)
    newest = _suppression.decode(found[0].value) if found else None
    remaining = remaining_about(store, workspace, address).get(SUPPRESSED)
    if remaining is not None and (newest is None or newest.at < _shown(remaining.at)):
        return Suppression(address=address, reason=remaining.reason, at=_shown(remaining.at))
    return newest


def suppression_of(store: Store, workspace: str, address: str) -> Suppression | None:
    """Why an address is suppressed; None if it is not."""
    newest = newest_suppression(store, workspace, address)
    return None if newest is None or newest.lifted else newest


def suppressions(store: Store, workspace: str, after: str = "") -> Iterator[tuple[str, Suppression]]:
    """Every suppressed address of a workspace after a hash, by hash."""
    for shard in SHARDS[SHARDS.find(after[:1]) if after else 0 :]:
        before = after
        for item in query_pages(
            store, SUPPRESSION_TABLE, f"{workspace}/{shard}", f"{after}!" if after else "", size=PAGE_ITEMS_MAX
        ):
            hash = item.key.sort.partition(" ")[0]
            if hash != before:
                before = hash
                found = _suppression.decode(item.value)
                if not found.lifted:
                    yield hash, found


# --- words --------------------------------------------------------------------------------------


class Statements(NamedTuple):
    """When something was last said about a topic, as text that sorts; empty: never."""

    unsubscribed: str = ""
    confirmed: str = ""
    subscribed: str = ""
    """Confirmed or not."""

    def newest(self, other: Statements) -> Statements:
        """The later of each."""
        return Statements(*map(max, self, other))


def statement_rows(recorded: Recorded) -> Iterable[Row]:
    """The row of an event that counts for whoever has the address."""
    event = recorded.event
    statement = statement_of(event) if event.type in WORDS else None
    if statement is not None and statement.across:
        hash = address_hash(event.workspace, statement.address)
        at = newest_first_key(event.occurred_at)
        sort = f"{hash} {statement.topic or _ALL} {_KINDS[statement.kind]} {at}{recorded.id}"
        yield Row(STATEMENTS_TABLE, _partition(event.workspace, hash), sort, str(event.occurred_at).encode())


def statements_about(store: Store, workspace: str, address: str, topics: Iterable[str]) -> dict[str, Statements]:
    """What was said of an address about these topics, whoever has it: one query, unless somebody said very much."""
    hash = address_hash(workspace, address)
    partition = _partition(workspace, hash)
    items = store.query(STATEMENTS_TABLE, partition, f"{hash} ", f"{hash}!", _WORDS_READ)
    if len(items) == _WORDS_READ:
        items = [
            item
            for topic in (_ALL, *topics)
            for kind in _KINDS.values()
            for item in store.query(
                STATEMENTS_TABLE, partition, f"{hash} {topic} {kind} ", f"{hash} {topic} {kind}!", 1
            )
        ]
    newest: dict[tuple[str, str], str] = {}
    for item in items:
        _, topic, kind, _ = item.key.sort.split(" ")
        newest.setdefault((topic, kind), _shown(int(item.value)))
    every = newest.get((_ALL, "u"), "")
    remaining = remaining_about(store, workspace, address)
    return {topic: _statements(newest, topic, max(every, _since(remaining, topic))) for topic in topics}


def _since(remaining: Mapping[str, Remaining], topic: str) -> str:
    at = unsubscribed_since(remaining, topic)
    return "" if at is None else _shown(at)


def _statements(newest: Mapping[tuple[str, str], str], topic: str, every: str) -> Statements:
    confirmed, subscribed, unsubscribed = (newest.get((topic, kind), "") for kind in _KINDS.values())
    return Statements(max(unsubscribed, every), confirmed, max(confirmed, subscribed))
