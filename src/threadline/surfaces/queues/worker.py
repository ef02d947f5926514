"""A process that works a queue off: it receives, records and deletes, in a few threads."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from threadline.kernel.errors import ThreadlineError, Unavailable
from threadline.surfaces.queues.intake import EventIntake
from threadline.surfaces.queues.sqs import AT_ONCE, Received, SqsQueue

WAIT_SECONDS = 5
"""How long a request waits for messages; the process can be stopped in between."""
MESSAGES_MAX = 100
"""Messages that one thread records at once: they share a commit."""
FAILED_SECONDS = 10.0
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 1.0, 30.0
BYTES_MAX = 1_000_000
"""Of their bodies, after which no more are received before these are recorded."""
RENEW_SHARE = 3
"""Messages in hand are kept from others anew after this part of the queue's visibility timeout. Otherwise a slow store
would let them come again before they are deleted, for ever."""

log = logging.getLogger("threadline.queues")


@dataclass
class _InHand:
    """Messages that a thread has received and not deleted yet, and since when they are kept from others."""

    received: Sequence[Received]
    since: float


class QueueWorker:
    """Works one queue off. Any number of processes may do so, beside a Lambda function as well."""

    def __init__(self, queue: SqsQueue, intake: EventIntake, threads: int = 4) -> None:
        self._queue = queue
        self._intake = intake
        self._threads = [
            threading.Thread(target=self._work, name=f"threadline-queue-{number}", daemon=True)
            for number in range(threads)
        ]
        self._stopping = threading.Event()
        self._in_hand: dict[int, _InHand] = {}
        self._renewing = threading.Thread(target=self._renew, name="threadline-queue-renew", daemon=True)
        self._finished = threading.Event()

    def start(self, stopping: threading.Event) -> None:
        """Start the threads; they end once ``stopping`` is set."""
        self._stopping = stopping
        for thread in (*self._threads, self._renewing):
            thread.start()

    def finish(self) -> None:
        """Wait for what is being recorded."""
        for thread in self._threads:
            thread.join()
        self._finished.set()
        self._renewing.join()

    def take_some(self, wait_seconds: int) -> int:
        """Record what is there, at most `MESSAGES_MAX` messages; how many there were."""
        received = page = self._queue.receive(wait_seconds)
        number = threading.get_ident()
        self._in_hand[number] = in_hand = _InHand(received, time.monotonic())
        try:
            while len(page) == AT_ONCE and len(received) < MESSAGES_MAX and _bytes(received) < BYTES_MAX:
                page = self._queue.receive(0)
                received = in_hand.received = received + page
            if received:
                self._take(received)
        finally:
            del self._in_hand[number]
        return len(received)

    def _renew(self) -> None:
        """Keep what is in hand from others for as long as that takes."""
        seconds = self._queue.visibility_seconds
        while not self._finished.wait(min(1.0, seconds / RENEW_SHARE / 2)):
            for batch in list(self._in_hand.values()):
                if time.monotonic() - batch.since >= seconds / RENEW_SHARE:
                    batch.since = time.monotonic()
                    try:
                        self._queue.hold(batch.received, seconds)
                    except ThreadlineError as error:
                        log.warning("messages of %s may come again: %s. %s", self._queue.name, error, error.hint)

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                self.take_some(WAIT_SECONDS)
            except ThreadlineError as error:
                log.warning("%s. %s", error, error.hint)
                self._stopping.wait(FAILED_SECONDS)
            except Exception:
                log.exception("the queue %s: work failed; it goes on in a while", self._queue.name)
                self._stopping.wait(FAILED_SECONDS)

    def _take(self, received: Sequence[Received]) -> None:
        pause = PAUSE_SECONDS
        while True:
            try:
                taken = self._intake.take([item.message for item in received])
                break
            except Unavailable as error:
                # Each time that a message is received counts: given back while the store is away for an hour, it
                # would go to the dead-letter queue.
                log.warning("%d messages wait for the store: %s", len(received), error)
                if self._stopping.wait(pause):
                    self._queue.hold(received, 0)
                    return
                pause = min(2 * pause, PAUSE_SECONDS_MAX)
        outcomes = list(zip(received, taken, strict=True))
        self._queue.delete([item for item, outcome in outcomes if outcome.status == "done"])
        for item, outcome in outcomes:
            if outcome.status == "poison":
                self._queue.park(item, outcome)
            elif outcome.status == "later":
                log.warning("message %s comes again: %s", outcome.id, outcome.message)


def _bytes(received: Sequence[Received]) -> int:
    return sum(len(item.message.body) for item in received)
