"""``threadline work``: timers and the outbox worked off by a process without an HTTP server."""

from __future__ import annotations

import os
import signal
import threading

import click
import msgspec

from threadline.engine.engine import Engine
from threadline.settings import Settings, without_secret
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
    """Fire timers and send what is due until told to stop, beside any number of servers on a shared store.

    A server does this as well. Such a process takes the work off the servers, or does it where none runs. When it has
    opened the store, it prints one line of JSON. SIGTERM, Ctrl-C and the end of its terminal let it finish what it is
    at, and hand its part to others. The workspace is that of the queue's events; their source is the queue's name.
    """
    log_lines()
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    at_hang_up(lambda *_: stopping.set())
    settings = session.settings()
    with session.engine() as engine:
        dispatcher = session.composition.open_dispatcher(engine, settings)
        url = queue or settings.ingestion_queue
        worker = _queue_worker(engine, settings, url, queue_threads) if url else None
        line = {"ready": True, "store": without_secret(settings.store), "pid": os.getpid()}
        click.echo(msgspec.json.encode(line))
        if worker is not None:
            worker.start(stopping)
        keep_working(dispatcher, stopping)
        if worker is not None:
            worker.finish()


def _queue_worker(engine: Engine, settings: Settings, url: str, threads: int) -> QueueWorker:
    queue = SqsQueue(url, connections=threads + 2)
    return QueueWorker(queue, EventIntake(engine, settings.workspace, queue.name, payloads(settings)), threads)
