"""Queues: messages of SQS received, recorded and deleted by one process, beside the same over botocore."""

from __future__ import annotations

import json
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.contest import in_child
from bench.row import Goal, Row
from bench.stage import Stage
from tests.servers.aws import aws
from threadline.app import open_engine
from threadline.settings import load
from threadline.surfaces.queues.intake import EventIntake, Taken
from threadline.surfaces.queues.sqs import SqsQueue
from threadline.surfaces.queues.worker import QueueWorker

THREADS = 4
WAITING_MAX = 500
"""Messages in the queue at a time: the emulator looks through all of them for every call."""
MESSAGES_PER_SECOND = 400
EVENTS_OF_A_MESSAGE = (1, 10)
GOAL, AIM = Goal("ours", least=800), Goal("ours", least=2_000)


class Nothing(EventIntake):
    """Takes every message and does nothing: what is left are the calls and the emulator."""

    def take(self, messages: Any) -> list[Taken]:
        """Done."""
        return [Taken(message.id, "done") for message in messages]


def measure(stage: Stage) -> list[Row]:
    """Events in a second from the queue to the commit, and the CPU of one."""
    return in_child(_measure, stage.folder, int(MESSAGES_PER_SECOND * stage.seconds))


def _measure(folder: Path, messages: int) -> list[Row]:
    rows = []
    client = aws().client("sqs")
    for size in EVENTS_OF_A_MESSAGE:
        ours, cpu = _recorded(folder, client, aws().queue_calls(), messages, size)
        theirs, their_cpu = _recorded(folder, client, client, messages, size)
        bare = _bare(folder, client, aws().queue_calls(), messages, size)
        note = (
            f"theirs: the same over botocore; CPU of an event {cpu / size:.0f} µs, {bare / size:.0f} of it receiving "
            f"and deleting, over botocore {their_cpu / size:.0f}"
        )
        name = f"SQS to committed, messages of {size} event{'s' if size > 1 else ''}, SQLite"
        goal, aim = (GOAL, AIM) if size == 1 else (None, None)
        rows.append(Row(name, size * ours, "events/s", size * theirs, goal, note, aim))
    return rows


def _recorded(folder: Path, client: Any, calls: Any, messages: int, size: int) -> tuple[float, float]:
    """Messages in a second, and microseconds of CPU of one."""
    with TemporaryDirectory(dir=folder) as own:
        engine = open_engine(None, load({"store": f"{own}/queue.db", "scrub_days": 0}))
        url = client.create_queue(QueueName=f"bench-{secrets.token_hex(8)}")["QueueUrl"]
        intake = EventIntake(engine, "default", "bench")
        seconds, cpu = _seconds(client, SqsQueue(url, calls), intake, messages, size)
        assert engine.store.stats()["log_entries"] >= messages * size
        engine.close()
        return messages / seconds, 1e6 * cpu / messages


def _bare(folder: Path, client: Any, calls: Any, messages: int, size: int) -> float:
    """Microseconds of CPU of a message that is received and deleted only."""
    with TemporaryDirectory(dir=folder) as own:
        engine = open_engine(None, load({"store": f"{own}/queue.db", "scrub_days": 0}))
        url = client.create_queue(QueueName=f"bench-{secrets.token_hex(8)}")["QueueUrl"]
        _, cpu = _seconds(client, SqsQueue(url, calls), Nothing(engine, "default", "bench"), messages, size)
        engine.close()
        return 1e6 * cpu / messages


def _seconds(client: Any, queue: SqsQueue, intake: EventIntake, messages: int, size: int) -> tuple[float, float]:
    """The time that one process takes for so many messages, and its CPU; filling the queue is not counted."""
    worker = QueueWorker(queue, intake, THREADS)
    seconds = cpu = 0.0
    with ThreadPoolExecutor(THREADS) as threads:
        for start in range(0, messages, WAITING_MAX):
            count = min(WAITING_MAX, messages - start)
            _send(client, queue.url, start, count, size)
            began, cpu_began = time.perf_counter(), time.process_time()
            for done in [threads.submit(_drain, worker) for _ in range(THREADS)]:
                done.result()
            seconds += time.perf_counter() - began
            cpu += time.process_time() - cpu_began
    return seconds, cpu


def _drain(worker: QueueWorker) -> None:
    while worker.take_some(0):
        pass


def _send(client: Any, url: str, start: int, count: int, size: int) -> None:
    for first in range(start, start + count, 10):
        entries = [
            {"Id": str(number % 10), "MessageBody": _body(number, size)}
            for number in range(first, min(first + 10, start + count))
        ]
        client.send_message_batch(QueueUrl=url, Entries=entries)


def _body(number: int, size: int) -> str:
    events = [
        {
            "type": "purchase_completed",
            "identifiers": {"user_id": f"u{(number * size + place) % 2_000}"},
            "key": f"{size}-{number}-{place}",
            "properties": {"total": 29.33, "currency": "EUR"},
        }
        for place in range(size)
    ]
    return json.dumps({"events": events})
