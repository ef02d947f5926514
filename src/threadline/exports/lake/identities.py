"""Whose the threads are: rows for those that a range has begun, named, merged or parted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from threadline.engine.reading.lookup import owners
from threadline.exports.lake.part import Part
from threadline.exports.lake.reading import Range
from threadline.exports.lake.schema import IDENTITIES, pa
from threadline.kernel.event import Identifier
from threadline.kernel.identity import MERGED, SPLIT, IdentityRules
from threadline.kernel.store import Store

_REMEMBERED_MAX = 200_000
_SEVERAL = "],["
"""Stands in every list of several identifiers."""
_identifiers = msgspec.json.Decoder(tuple[Identifier, ...])


class Identities:
    """Makes the rows of one sync. A thread whose row says already whose it is gets no other."""

    def __init__(self, store: Store, rules: IdentityRules) -> None:
        self._store = store
        self._rules = rules
        self._written: dict[str, str] = {}
        """Thread -> person of the last row; a part of them, so that memory stays flat."""

    def parts(self, read: Range, events: Sequence[Part], people: Mapping[str, str]) -> Iterator[Part]:
        """The rows of a range by workspace: of its ``events``, as they go into files, and the ``people`` of their
        threads."""
        threads: dict[str, str] = {}
        for part in events:
            threads |= dict.fromkeys(self._threads(part, gaps=read.manifest.gaps), part.workspace)
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

    def _threads(self, part: Part, *, gaps: bool) -> Iterator[str]:
        table = part.table
        # Each thread begins with its first event, unless that was erased before it came here.
        first = table if gaps else table.filter(pa.compute.equal(table["sequence"], 1))
        yield from pa.compute.unique(first["thread"]).to_pylist()
        # One of several identifiers may be linked by this event and never have one of its own.
        several = table["identifiers"].filter(pa.compute.match_substring(table["identifiers"], _SEVERAL))
        for text in pa.compute.unique(several).to_pylist():
            for identifier in _identifiers.decode(text):
                yield from self._rules.threads(part.workspace, identifier)
        changed = table.filter(pa.compute.is_in(table["type"].cast(pa.string()), pa.array([MERGED, SPLIT])))
        for thread, text in zip(changed["thread"].to_pylist(), changed["properties"].to_pylist(), strict=True):
            noted: Mapping[str, Any] = msgspec.json.decode(text)
            yield from (thread, *noted.get("threads", ()))
            yield from (noted[name] for name in ("survivor", "merged", "person", "split") if name in noted)


def identity_table(rows: Iterable[tuple[str, str, str, int]]) -> Any:
    """Rows (workspace, thread, person, position) as Arrow."""
    listed = list(rows)
    arrays = [pa.array([row[at] for row in listed], field.type) for at, field in enumerate(IDENTITIES)]
    return pa.Table.from_arrays(arrays, schema=IDENTITIES)
