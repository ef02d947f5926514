"""The development inbox: mail is written to a table of the store and leaves the machine nowhere."""

from __future__ import annotations

import threading

import msgspec

from threadline.kernel.effect import Effect
from threadline.kernel.errors import Unavailable
from threadline.kernel.inbox import (
    INBOX,
    MESSAGE_BYTES_MAX,
    MESSAGES_MAX,
    InboxMessage,
    body_key,
    summaries,
    summary_key,
)
from threadline.kernel.sender import EFFECT_RETRIED, Outcome
from threadline.kernel.store import Batch, Delete, Put, Store, query_pages
from threadline.kernel.time import Clock
from threadline.senders.smtp import MAIL_SENT

PROVIDER = "inbox"
PRUNED_EVERY = 50
"""Messages of a process after which the oldest ones are removed."""


class InboxSender:
    """Stores mail for the page ``/dev/inbox``, the newest messages of each workspace. Thread-safe."""

    kind = "mail"

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._count = 0

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """See `Sender`. A message that is sent again under the same effect shows twice: the inbox hides nothing."""
        data = effect.data
        workspace, message = str(data.get("workspace") or "default"), bytes(data["message"])
        record = data["record"]
        summary = InboxMessage(
            id=f"{self._clock():016x}.{effect_id}",
            message=effect_id,
            to=data["to"],
            sender=data["from"],
            subject=str(record.get("subject", "")),
            template=str(record.get("template", "")),
            at=self._clock(),
            size=len(message),
        )
        writes = [
            Put(summary_key(workspace, summary.id), msgspec.msgpack.encode(summary)),
            Put(body_key(workspace, summary.id), message[:MESSAGE_BYTES_MAX] or b"\r\n"),
        ]
        try:
            self._prune(workspace)
            self._store.commit([Batch(writes=writes)])
        except Unavailable as error:
            return Outcome(type=EFFECT_RETRIED, properties={"error": str(error)}, retry_after_seconds=0.0)
        return Outcome(type=MAIL_SENT, properties={**record, "provider": PROVIDER, "provider_id": summary.id})

    def _prune(self, workspace: str) -> None:
        with self._lock:
            self._count += 1
            if self._count % PRUNED_EVERY != 1:
                return
        ids = [item.key.sort for item in query_pages(self._store, INBOX, summaries(workspace))]
        for id in ids[:-MESSAGES_MAX]:
            self._store.commit([Batch(writes=[Delete(summary_key(workspace, id)), Delete(body_key(workspace, id))])])
