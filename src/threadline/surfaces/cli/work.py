"""``threadline work``: timers and the outbox worked off by a process without an HTTP server."""

from __future__ import annotations

import os
import signal
import threading

import click
import msgspec

from threadline.engine.engine import Engine
from threadline.settings import Settings, without_secret
from threadline.surfaces.by_hand import Follower, look_seconds
from threadline.surfaces.cli.session import Session, store_option, workspace_option
from threadline.surfaces.log_lines import log_lines
from threadline.surfaces.queues.intake import EventIntake
from threadline.surfaces.queues.payloads import payloads
from threadline.surfaces.queues.sqs import SqsQueue
from threadline.surfaces.queues.worker import QueueWorker
from threadline.surfaces.worker_process import at_hang_up, keep_working


@click.command()
@store_option
@workspace_option
@click.option("--queue", metavar="URL", help="Record the messages of this queue of Amazon SQS as well.")
@click.option("--queue-threads", default=4, show_default=True, type=click.IntRange(1, 64), help="Threads that read it.")
@click.pass_obj
def work(session: Session, queue: str | None, queue_threads: int) -> None:
    """Fire timers and send what is due until it is stopped, beside any number of servers on a shared store.

    Servers do this as well; this command relieves them, or does the work if no server runs. When it has opened the
    store, it prints one line of JSON. On SIGTERM, Ctrl-C or the end of its terminal it completes what it has begun, and
    other processes take over. With --queue, events are recorded in the workspace of --workspace; their source is the
    queue's name.
    """
    log_lines()
    stopping, pausing = threading.Event(), threading.Event()

    def stop(*_: object) -> None:
        stopping.set()
        pausing.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    at_hang_up(stop)
    settings, composition = session.settings(), session.composition
    url = queue or settings.ingestion_queue
    with session.engine() as engine:
        current = engine

        def take_in(version: int) -> None:
            nonlocal current
            current = composition.reopen(current, settings)
            pausing.set()

        running = current
        dispatcher = composition.open_dispatcher(running, settings)
        seconds = look_seconds(settings)
        follower = None if seconds is None else Follower(seconds, lambda: current, take_in)
        if follower is not None:
            follower.start()
        line = {"ready": True, "store": without_secret(settings.store), "pid": os.getpid()}
        click.echo(msgspec.json.encode(line))
        while not stopping.is_set():
            worker = _queue_worker(running, settings, url, queue_threads) if url else None
            if worker is not None:
                worker.start(pausing)
            keep_working(dispatcher, pausing)
            if worker is not None:
                worker.finish()
            pausing.clear()
            running = current
            dispatcher = composition.open_dispatcher(running, settings)
            if stopping.is_set():
                pausing.set()
        if follower is not None:
            follower.stop()


def _queue_worker(engine: Engine, settings: Settings, url: str, threads: int) -> QueueWorker:
    queue = SqsQueue(url, connections=threads + 2)
    return QueueWorker(queue, EventIntake(engine, settings.workspace, queue.name, payloads(settings)), threads)
