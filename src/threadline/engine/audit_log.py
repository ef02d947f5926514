"""The audit log: who changed what, when, through which surface, and what came of it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from threadline.kernel.audit import AUDIT_LOG, AuditEntry, decode_entry, encode_entry
from threadline.kernel.errors import Unavailable
from threadline.kernel.limits import AUDIT_LOG_READ_MAX, PAGE_ITEMS_MAX
from threadline.kernel.store import Batch, Key, Put, Store
from threadline.kernel.time import Clock, time_key

_TRIES = 1_000


class AuditLog:
    """The audit log of one store. Thread-safe."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._numbering = threading.Lock()
        self._last = (0, 0)

    def note(self, workspace: str, entry: AuditEntry) -> None:
        """Write an entry; it is durable when this returns. Raises what the store raises."""
        value = encode_entry(entry)
        for _ in range(_TRIES):
            key = Key(AUDIT_LOG, workspace, self._fresh())
            # Absent: another process may have written at the same microsecond.
            if self._store.commit([Batch(writes=[Put(key, value, 0)])])[0] is None:
                return
        raise Unavailable("the audit log is written to by too many processes at once; try again")

    def page(
        self,
        workspace: str,
        *,
        start: int | None = None,
        stop: int | None = None,
        before: str = "",
        limit: int = 100,
        wanted: Callable[[AuditEntry], bool] = lambda entry: True,
    ) -> tuple[list[AuditEntry], str]:
        """Entries with start <= at < stop, the newest first, before an id, and the id to go on from ("": that is all).

        At most `AUDIT_LOG_READ_MAX` are read: a page may be short, or empty, and still not be the last.
        """
        first = "" if start is None else time_key(start)
        end = before or (None if stop is None else time_key(stop))
        entries: list[AuditEntry] = []
        read = 0
        while read < AUDIT_LOG_READ_MAX:
            # A page of the store is no larger than what is asked for needs: most ask for the newest few.
            size = min(PAGE_ITEMS_MAX, max(limit + 1, 100))
            items = self._store.query(AUDIT_LOG, workspace, first, end, size, reverse=True)
            for item in items:
                entry = decode_entry(item.value, item.key.sort)
                if wanted(entry):
                    if len(entries) == limit:
                        return entries, entries[-1].id
                    entries.append(entry)
            read += len(items)
            if len(items) < size:
                return entries, ""
            end = items[-1].key.sort
        return entries, end or ""

    def _fresh(self) -> str:
        with self._numbering:
            at = self._clock()
            number = self._last[1] + 1 if self._last[0] == at else 0
            self._last = at, number
        return f"{time_key(at)}.{number:04}"
