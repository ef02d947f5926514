"""Index rows by address, of words and suppressions: they reach across people, whoever is merged or imported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from threadline.capabilities.reach.consent.addresses import KnownAddress, address_hash
from threadline.capabilities.reach.consent.events import WORDS, Kind, statement_of, suppressed_of
from threadline.capabilities.reach.consent.remaining import SUPPRESSED, Remaining, remaining_about, unsubscribed_since
from threadline.kernel.address import normal_address
from threadline.kernel.event import Recorded
from threadline.kernel.identity import former_addresses
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.projection import Row
from threadline.kernel.store import Item, Range, Store, query_pages
from threadline.kernel.time import EARLIEST, LATEST, format_time, newest_first_key
from threadline.kernel.typed import prepared

STATEMENTS_TABLE = "consent"
SUPPRESSION_TABLE = "suppression"
SHARDS = "0123456789abcdef"
"""The first digits of hashes. The addresses of a workspace lie in so many partitions."""
_ALL = "*"
_KINDS: Mapping[tuple[Kind, bool], str] = {
    ("confirmed", False): "c",
    ("subscribed", False): "s",
    ("unsubscribed", False): "u",
    ("confirmed", True): "d",
    ("subscribed", True): "t",
    ("unsubscribed", True): "v",
}
"""What was said, and whether it was imported -> its letter."""
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
    """The newest word on an address, None if there never was one."""
    return newest_suppressions(store, [KnownAddress(workspace, address)])[0]


def newest_suppressions(store: Store, addresses: Sequence[KnownAddress]) -> list[Suppression | None]:
    """The newest word on each address, None if there never was one: one reading for all of them, and one more of a
    store in which somebody was erased."""
    forms = [(index, form) for index, address in enumerate(addresses) for form in address.forms()]
    pages = store.ranges([_about(SUPPRESSION_TABLE, form, 1) for _, form in forms])
    newest: list[Suppression | None] = [None] * len(addresses)
    for (index, _), items in zip(forms, pages, strict=True):
        if items:
            newest[index] = _newer(newest[index], _suppression.decode(items[0].value))
    for index, remaining in enumerate(remaining_about(store, addresses)):
        stored, suppressed = newest[index], remaining.get(SUPPRESSED)
        if suppressed is not None and (stored is None or stored.at < _shown(suppressed.at)):
            newest[index] = Suppression(
                address=addresses[index].address, reason=suppressed.reason, at=_shown(suppressed.at)
            )
    return newest


def _newer(first: Suppression | None, second: Suppression) -> Suppression:
    """The newer of what was said of two forms of an address. Of one instant, suppressing comes first."""
    return second if first is None or (first.at, not first.lifted) < (second.at, not second.lifted) else first


def _about(table: str, known: KnownAddress, limit: int) -> Range:
    hash = address_hash(*known)
    return Range(table, _partition(known.workspace, hash), f"{hash} ", f"{hash}!", limit)


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
                suppression = _suppression.decode(item.value)
                if not suppression.lifted and not _repeated(store, workspace, suppression):
                    yield hash, suppression


def _repeated(store: Store, workspace: str, suppression: Suppression) -> bool:
    """Whether something newer was said of another form of this address."""
    address = normal_address(suppression.address)
    if not former_addresses(address):
        return False
    newest = newest_suppression(store, workspace, address)
    return newest is not None and newest.event != suppression.event


# --- words --------------------------------------------------------------------------------------


class Statements(NamedTuple):
    """When something was last said about a topic, as text that sorts; empty: never."""

    unsubscribed: str = ""
    confirmed: str = ""
    subscribed: str = ""
    """Confirmed or not."""
    closed: str = ""
    """By somebody themselves: unsubscribed, and not as it was imported."""
    imported_confirmed: str = ""
    imported: str = ""
    """A subscription that was imported, confirmed or not."""

    def newest(self, other: Statements) -> Statements:
        """The later of each."""
        return Statements(*map(max, self, other))

    @property
    def counted(self) -> Statements:
        """With what was imported, where that opens nothing again that somebody has closed themselves."""
        if self.closed:
            return self
        return self._replace(
            confirmed=max(self.confirmed, self.imported_confirmed), subscribed=max(self.subscribed, self.imported)
        )


def statement_rows(recorded: Recorded) -> Iterable[Row]:
    """The row of an event that counts for whoever has the address."""
    event = recorded.event
    statement = statement_of(event) if event.type in WORDS else None
    if statement is not None and statement.across:
        hash = address_hash(event.workspace, statement.address)
        at = newest_first_key(event.occurred_at)
        sort = f"{hash} {statement.topic or _ALL} {_KINDS[statement.kind, statement.imported]} {at}{recorded.id}"
        yield Row(STATEMENTS_TABLE, _partition(event.workspace, hash), sort, str(event.occurred_at).encode())


def statements_about(store: Store, workspace: str, address: str, topics: Sequence[str]) -> dict[str, Statements]:
    """What was said of an address about these topics, whoever has it."""
    return statements_of_each(store, [(KnownAddress(workspace, address), topics)])[0]


def statements_of_each(
    store: Store, asked: Sequence[tuple[KnownAddress, Sequence[str]]]
) -> list[dict[str, Statements]]:
    """What was said of each address about its topics: one reading for all, unless somebody said very much."""
    wanted = [[_about(STATEMENTS_TABLE, form, _WORDS_READ) for form in known.forms()] for known, _ in asked]
    pages = iter(store.ranges([of_all for forms in wanted for of_all in forms]))
    answers = []
    for (_, topics), forms, remaining in zip(
        asked, wanted, remaining_about(store, [known for known, _ in asked]), strict=True
    ):
        newest: dict[tuple[str, str], str] = {}
        for of_all in forms:
            items = next(pages)
            for item in items if len(items) < _WORDS_READ else _newest_words(store, of_all, topics):
                _, topic, kind, _ = item.key.sort.split(" ")
                newest[topic, kind] = max(_shown(int(item.value)), newest.get((topic, kind), ""))
        answers.append({topic: _statements(newest, topic, _since(remaining, topic)) for topic in topics})
    return answers


def _newest_words(store: Store, of_all: Range, topics: Iterable[str]) -> Iterator[Item]:
    """The newest word of each kind about each topic, of an address about which there is more than is read at once."""
    names = [f"{of_all.start}{topic} {kind}" for topic in (_ALL, *topics) for kind in _KINDS.values()]
    ranges = [of_all._replace(start=f"{name} ", stop=f"{name}!", limit=1) for name in names]
    return (item for items in store.ranges(ranges) for item in items)


def _since(remaining: Mapping[str, Remaining], topic: str) -> str:
    at = unsubscribed_since(remaining, topic)
    return "" if at is None else _shown(at)


def _statements(newest: Mapping[tuple[str, str], str], topic: str, remains: str) -> Statements:
    at = {kind: newest.get((topic, letter), "") for kind, letter in _KINDS.items()}
    closed = max(at["unsubscribed", False], newest.get((_ALL, "u"), ""), remains)
    confirmed, imported_confirmed = at["confirmed", False], at["confirmed", True]
    return Statements(
        unsubscribed=max(closed, at["unsubscribed", True], newest.get((_ALL, "v"), "")),
        confirmed=confirmed,
        subscribed=max(confirmed, at["subscribed", False]),
        closed=closed,
        imported_confirmed=imported_confirmed,
        imported=max(imported_confirmed, at["subscribed", True]),
    )
