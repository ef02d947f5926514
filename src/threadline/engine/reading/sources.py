"""The sources that have recorded in a workspace, so that a message is found under any of them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import msgspec

from threadline.kernel.ids import short_hash
from threadline.kernel.store import Key, Put, Store, query_pages

SOURCE = "source"
"""Table of sources: one row for each of a workspace, written with its first event and never again."""
SOURCES_READ_MAX = 10_000
"""Sources of one workspace that are listed."""
_CACHED = 10_000


class Sources:
    """The sources of one store, as one recorder knows them. Not thread-safe: used under the recorder's lock."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.known: set[tuple[str, str]] = set()
        """The (workspace, source) whose row was found in the store."""

    def missing(self, pairs: Iterable[tuple[str, str]]) -> list[Put]:
        """The rows to be written for those (workspace, source) that have none yet."""
        wanted: dict[Key, tuple[str, str]] = {}
        for pair in pairs:
            if pair not in self.known:
                # By its hash: a source may be of any length, and a key may not.
                wanted[Key(SOURCE, pair[0], short_hash(pair[1]))] = pair
        puts = []
        for (key, pair), item in zip(wanted.items(), self._store.get(list(wanted)) if wanted else (), strict=True):
            if item is None:
                puts.append(Put(key, msgspec.json.encode(pair[1])))
            else:
                if len(self.known) >= _CACHED:
                    self.known.clear()
                self.known.add(pair)
        return puts


def sources_of(store: Store, workspace: str) -> list[str]:
    """The names of the sources that have recorded in a workspace, in a stable order."""
    rows = islice(query_pages(store, SOURCE, workspace), SOURCES_READ_MAX)
    return [msgspec.json.decode(row.value, type=str) for row in rows]
