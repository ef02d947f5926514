"""Messages of a queue to the log, a batch at a time, with an outcome for each: done, poison, or to come again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from threadline.capabilities.foundation.events.recording import Draft
from threadline.engine.engine import Engine
from threadline.engine.recording.validation import BEING_ERASED, RecordRequest
from threadline.kernel.errors import LimitExceeded, NotFound, ThreadlineError, Unavailable
from threadline.kernel.event import Receipt
from threadline.kernel.limits import REQUEST_BYTES_MAX
from threadline.kernel.rejected import RejectedEntry
from threadline.surfaces.queues.bodies import Pointer, Way, pointer_in, read, refused, unwrapped
from threadline.wire.cloudevents_event import person_kinds

log = logging.getLogger("threadline.queues")

Payload = Callable[[Pointer], bytes]
"""Fetches a payload. Raises `NotFound` or `LimitExceeded` for one that never can be had."""


Content = list[Draft | RejectedEntry] | ThreadlineError
"""What a message says; or why that cannot be known now."""


class QueueMessage(NamedTuple):
    """A message as a queue delivers it."""

    id: str
    body: str
    sent_at: int = 0
    """When the queue got it, microseconds; 0: unknown. A producer's clock is judged by it: the message may have waited
    in the queue for days since."""


class Taken(NamedTuple):
    """The outcome of a message."""

    id: str
    status: Literal["done", "poison", "later"]
    """``done``: all its events are recorded. ``poison``: one of them never can be; the others are recorded, and the
    rejected log has the reason. ``later``: it has to come again."""
    code: str = ""
    message: str = ""


def no_payloads(pointer: Pointer) -> bytes:
    """In place of S3 where no bucket is named by the settings."""
    raise NotFound(f"no bucket is named whose payloads are read, and this is one of {pointer.bucket!r:.100}")


class EventIntake:
    """Records the events of a queue's messages. Thread-safe."""

    def __init__(self, engine: Engine, workspace: str, source: str, payload: Payload = no_payloads) -> None:
        self.engine = engine
        self._workspace = workspace
        self._source = source
        self._payload = payload
        self._kinds = person_kinds(engine.catalogue.rules.kinds)

    def take(self, messages: Sequence[QueueMessage]) -> list[Taken]:
        """What became of each message, in order; what is done is durable.

        Raises `Unavailable` if the store can take none of them now; taking them again is safe.
        """
        taken: list[Taken] = []
        contents: list[Content] = []
        size = 0
        for number, message in enumerate(messages, 1):
            content, read_bytes = self._read(message)
            contents.append(content)
            size += read_bytes
            # Not all payloads together: a hundred of them would take as much memory as a small machine has.
            if size >= REQUEST_BYTES_MAX or number == len(messages):
                taken += self._recorded(messages[len(taken) : number], contents)
                contents, size = [], 0
        return taken

    def _recorded(self, messages: Sequence[QueueMessage], contents: Sequence[Content]) -> list[Taken]:
        try:
            return self._record(messages, contents)
        except Unavailable:
            raise
        except Exception:
            if len(messages) == 1:
                log.exception("message %s cannot be taken; it comes again", messages[0].id)
                return [Taken(messages[0].id, "later", "internal", "see the log of the process")]
            # One message must not hold up those that came with it.
            pairs = zip(messages, contents, strict=True)
            return [taken for message, content in pairs for taken in self._recorded([message], [content])]

    def _read(self, message: QueueMessage) -> tuple[Content, int]:
        """What a message says, and how many bytes that are."""
        sent_at = message.sent_at or self.engine.clock()
        way = Way(self._workspace, self._source, self._kinds, sent_at, message.id)
        body = unwrapped(message.body.encode("utf-8", "surrogatepass"))
        pointer = pointer_in(body)
        if pointer is not None:
            try:
                body = self._payload(pointer)
            except NotFound as error:
                return refused(way, "payload_missing", str(error)), 0
            except LimitExceeded as error:
                return refused(way, "too_large", str(error)), 0
            except ThreadlineError as error:
                log.warning("the payload of message %s: %s. %s", message.id, error, error.hint)
                return error, 0
        return read(body, way), len(body)

    def _record(self, messages: Sequence[QueueMessage], results: Sequence[Content]) -> list[Taken]:
        contents = [content for content in results if isinstance(content, list)]
        entries = [item for content in contents for item in content if isinstance(item, RejectedEntry)]
        if entries:
            self.engine.rejected.add(entries)
        drafts = [item for content in contents for item in content if isinstance(item, Draft)]
        requests = [RecordRequest(draft.event, expected=draft.expected) for draft in drafts]
        receipts = iter(self.engine.recorder.record_requests(requests))
        taken = []
        for message, content in zip(messages, results, strict=True):
            if isinstance(content, ThreadlineError):
                taken.append(Taken(message.id, "later", content.code, str(content)))
                continue
            outcomes = [item.receipt if isinstance(item, RejectedEntry) else next(receipts) for item in content]
            taken.append(_taken(message.id, outcomes))
        return taken


def _taken(id: str, outcomes: Sequence[Receipt]) -> Taken:
    rejected = [outcome for outcome in outcomes if outcome.status == "rejected"]
    erasing = [outcome for outcome in rejected if outcome.code == BEING_ERASED]
    if erasing:
        return Taken(id, "later", erasing[0].code, erasing[0].message)
    return Taken(id, "poison", rejected[0].code, rejected[0].message) if rejected else Taken(id, "done")


def failed(taken: Sequence[Taken]) -> list[str]:
    """The ids of the messages that must not leave the queue: `batchItemFailures` of a Lambda function.

    Poison is among them, so that the queue's own redrive policy takes it to the dead-letter queue.
    """
    return [item.id for item in taken if item.status != "done"]
