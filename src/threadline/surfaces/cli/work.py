"""``threadline work``: timers and the outbox worked off by a process without an HTTP server."""

from __future__ import annotations

import os
import signal
import threading

import click
import msgspec

from threadline.settings import without_secret
from threadline.surfaces.cli.session import Session, store_option
from threadline.surfaces.log_lines import log_lines
from threadline.surfaces.worker_process import at_hang_up, keep_working


@click.command()
@store_option
@click.pass_obj
def work(session: Session) -> None:
    """Fire timers and send what is due until told to stop, beside any number of servers on a shared store.

    A server does this as well. Such a process takes the work off the servers, or does it where none runs. When it has
    opened the store, it prints one line of JSON. SIGTERM, Ctrl-C and the end of its terminal let it finish what it is
    at, and hand its part to others.
    """
    log_lines()
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    at_hang_up(lambda *_: stopping.set())
    with session.engine() as engine:
        dispatcher = session.composition.open_dispatcher(engine, session.settings())
        line = {"ready": True, "store": without_secret(session.settings().store), "pid": os.getpid()}
        click.echo(msgspec.json.encode(line))
        keep_working(dispatcher, stopping)
