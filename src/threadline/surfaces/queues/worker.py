"""A process that works a queue off: it receives, records and deletes, in a few threads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from threadline.kernel.errors import ThreadlineError, Unavailable
from threadline.surfaces.queues.intake import EventIntake
from threadline.surfaces.queues.sqs import AT_ONCE, Received, SqsQueue

WAIT_SECONDS = 5
"""How long a request waits for messages; the process can be stopped in between."""
MESSAGES_MAX = 100
"""Messages that one thread records at once: they share a commit."""
FAILED_SECONDS = 10.0
PAUSE_SECONDS, PAUSE_SECONDS_MAX = 1.0, 30.0
HELD_SECONDS = 120
"""How long messages in hand are kept from others while the store is away; renewed before each attempt."""

log = logging.getLogger("threadline.queues")


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

    def start(self, stopping: threading.Event) -> None:
        """Start the threads; they end once ``stopping`` is set."""
        self._stopping = stopping
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Wait for what is being recorded."""
        for thread in self._threads:
            thread.join()

    def take_some(self, wait_seconds: int = WAIT_SECONDS) -> int:
        """Record what is there, at most `MESSAGES_MAX` messages; how many there were."""
        received = page = self._queue.receive(wait_seconds)
        while len(page) == AT_ONCE and len(received) < MESSAGES_MAX:
            page = self._queue.receive(0)
            received = received + page
        if received:
            self._take(received)
        return len(received)

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                self.take_some()
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
                taken = self._intake.take([each.message for each in received])
                break
            except Unavailable as error:
                # Each time that a message is received counts: given back while the store is away for an hour, it
                # would go to the dead-letter queue.
                log.warning("%d messages wait for the store: %s", len(received), error)
                self._queue.hold(received, HELD_SECONDS)
                if self._stopping.wait(pause):
                    self._queue.hold(received, 0)
                    return
                pause = min(2 * pause, PAUSE_SECONDS_MAX)
        outcomes = list(zip(received, taken, strict=True))
        self._queue.delete([one for one, outcome in outcomes if outcome.status == "done"])
        for one, outcome in outcomes:
            if outcome.status == "poison":
                self._queue.park(one, outcome)
            elif outcome.status == "later":
                log.warning("message %s comes again: %s", outcome.id, outcome.message)
