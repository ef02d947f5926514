"""The rejected log as its readers see it: its entries, their corrections, and other decisions about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from threadline.engine.recording import rejected_log
from threadline.engine.recording.recorder import Recorder
from threadline.engine.recording.retry import FENCED
from threadline.engine.recording.validation import RecordRequest
from threadline.kernel.errors import NotFound
from threadline.kernel.event import Event, Receipt, event_id
from threadline.kernel.rejected import Reader, RejectedEntry, StoredEntry
from threadline.kernel.store import Key


class RejectedLog:
    """The rejected log of one store."""

    def __init__(self, recorder: Recorder, readers: Mapping[str, Reader]) -> None:
        self._recorder = recorder
        self._store = recorder.store
        self.readers = readers
        """Form of a rejected payload -> how to read it again."""

    def add(self, entries: Iterable[RejectedEntry]) -> None:
        """Keep what could not even be read as an event."""
        rejected_log.keep(self._store, entries)

    def entry(self, workspace: str, id: str) -> StoredEntry:
        """One entry as it is now. Raises `NotFound`."""
        item = self._store.get([Key(rejected_log.REJECTED, workspace, id)])[0] if id else None
        if item is None:
            raise NotFound(f"the rejected log has no entry {id[:64]!r}")
        return StoredEntry(msgspec.json.decode(item.value, type=RejectedEntry), item.version)

    def page(self, workspace: str, before: str = "", limit: int = 100) -> list[tuple[str, RejectedEntry]]:
        """Entries newest first with the cursor after each, from a cursor on ("": the newest)."""
        rows = self._store.query(
            rejected_log.REJECTED_BY_TIME, workspace, stop=before or None, limit=limit, reverse=True
        )
        items = self._store.get([Key(rejected_log.REJECTED, workspace, row.value.decode()) for row in rows])
        return [
            (row.key.sort, msgspec.json.decode(item.value, type=RejectedEntry))
            for row, item in zip(rows, items, strict=True)
            if item is not None
        ]

    def dismiss(self, stored: StoredEntry, reason: str) -> RejectedEntry:
        """Settle an entry without recording anything. Raises `Conflict` if somebody has decided about it."""
        return rejected_log.settle(self._store, stored, "dismissed", reason)

    def resubmit(
        self, stored: StoredEntry, event: Event, *, expected: int | None = None
    ) -> tuple[Receipt, RejectedEntry]:
        """Record a correction: its receipt, and the entry, settled if the event is in the log, else as it was.

        Both are one commit under the version at which the entry was read, so that of several who decide about it at
        once only one is heard, and the others record nothing. Raises `Conflict` for those, and for an entry that is
        settled.
        """
        id = event_id(event.workspace, event.source, event.key)
        decided, put = rejected_log.settled(stored, "resubmitted", id)
        receipt = self._recorder.record_requests([RecordRequest(event, expected=expected, writes=(put,))])[0]
        if receipt.code == FENCED:
            raise rejected_log.already_decided(stored.entry)
        if receipt.status == "accepted":
            return receipt, decided
        if receipt.status == "duplicate":
            # The log has the event already, and nothing was committed: only the entry is left to be settled.
            return receipt, rejected_log.settle(self._store, stored, "resubmitted", receipt.id)
        return receipt, stored.entry
