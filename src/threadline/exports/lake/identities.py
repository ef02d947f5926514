"""Whose the threads are: rows for those that a range has begun, named, merged or parted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from threadline.engine.folding.person import thread_key
from threadline.exports.lake.part import Part
from threadline.exports.lake.reading import Range
from threadline.exports.lake.schema import IDENTITIES, pa
from threadline.kernel.event import Identifier, thread_id
from threadline.kernel.identity import MERGED, SPLIT, IdentityRules
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.store import Store

_REMEMBERED_MAX = 200_000
_identifiers = msgspec.json.Decoder(tuple[Identifier, ...])


class Identities:
    """Makes the rows of one sync. A thread whose row says already whose it is gets no other."""

    def __init__(self, store: Store, rules: IdentityRules) -> None:
        self._store = store
        self._rules = rules
        self._written: dict[str, str] = {}
        """Thread -> person of the last row; a part of them, so that memory stays flat."""

    def parts(self, read: Range, people: Mapping[str, str]) -> Iterator[Part]:
        """The rows of a range by workspace; ``people`` is by thread, as far as it is known."""
        threads = self._threads(read)
        owned = {**people, **owners(self._store, threads.keys() - people.keys())}
        rows = [
            (workspace, thread, person)
            for thread, workspace in threads.items()
            # Without an owner it was never linked, or its person is being erased.
            if (person := owned.get(thread)) is not None and self._written.get(thread) != person
        ]
        rows.sort()
        for workspace in sorted({row[0] for row in rows}):
            own = [row for row in rows if row[0] == workspace]
            yield Part(workspace, "", "", identity_table([(*row, read.manifest.position) for row in own]))
        self._remember(rows)

    def forget(self) -> None:
        """Forget what was written, because it was not committed."""
        self._written.clear()

    def _remember(self, rows: Iterable[tuple[str, str, str]]) -> None:
        if len(self._written) > _REMEMBERED_MAX:
            self._written.clear()
        self._written.update((thread, person) for _, thread, person in rows)

    def _threads(self, read: Range) -> dict[str, str]:
        """Thread -> workspace."""
        threads: dict[str, str] = {}
        named: set[tuple[str, bytes]] = set()
        for _, entry, body in read.found:
            event = body.event
            # Each thread begins with its first event, unless that was erased before it came here.
            if entry.sequence == 1 or read.manifest.gaps:
                threads[entry.thread] = event.workspace
            if entry.type in (MERGED, SPLIT):
                noted: Mapping[str, Any] = msgspec.json.decode(event.properties)
                own = [noted[name] for name in ("survivor", "merged", "person", "split") if name in noted]
                threads |= dict.fromkeys([entry.thread, *noted.get("threads", ()), *own], event.workspace)
            named.add((event.workspace, bytes(event.identifiers)))
        for workspace, text in named:
            identifiers = _identifiers.decode(text)
            if len(identifiers) > 1:  # one of them may be linked by this and never have an event of its own
                normal = (self._rules.normalise(each) for each in identifiers)
                threads |= dict.fromkeys((thread_id(workspace, each) for each in normal if each), workspace)
        return threads


def identity_table(rows: Iterable[tuple[str, str, str, int]]) -> Any:
    """Rows (workspace, thread, person, position) as Arrow."""
    found = list(rows)
    arrays = [pa.array([row[at] for row in found], field.type) for at, field in enumerate(IDENTITIES)]
    return pa.Table.from_arrays(arrays, schema=IDENTITIES)


def owners(store: Store, threads: Iterable[str]) -> dict[str, str]:
    """Whose each of these threads is now. One that nobody has, because its person is erased, is left out."""
    wanted = sorted(threads)
    found: dict[str, str] = {}
    for start in range(0, len(wanted), PAGE_ITEMS_MAX):
        page = wanted[start : start + PAGE_ITEMS_MAX]
        for thread, item in zip(page, store.get([thread_key(each) for each in page]), strict=True):
            if item is not None:
                found[thread] = item.value.decode()
    return found
