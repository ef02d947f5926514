"""The demo's course: start, send, look at one and at the best, send everything again, stay up."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from threadline.capabilities.decide.whatif.views import WhatIfView
from threadline.kernel.errors import InvalidValue, Unavailable
from threadline.kernel.extra import from_source
from threadline.settings import PREFIX
from threadline.surfaces.cli.demo import journeys, mail, report
from threadline.surfaces.cli.demo.history import AFTERWARDS, Order, definitions, has_mail, message, orders
from threadline.surfaces.cli.demo.server import Client, Server, free
from threadline.surfaces.cli.session import Session
from threadline.surfaces.cli.what_if import print_what_if

BATCH_ORDERS = 100
"""As many as a Segment client puts into one request."""
PERSON = "user_id:cdnow-0232"
"""A customer of eight orders, the last of them a week before the history ends."""
BEST = "/v1/features/monetary_total/top?limit=10"
SEGMENT = f"/v1/people/{PERSON}/segments/good_customers"
STREAKS = f"/v1/people/{PERSON}/streaks"
CANDIDATE = "rules: {large-order: {conditions: {field: event.properties.total, greater_than: 80}}}"
_ON_DISK = Path("/var/tmp")
"""Unlike the usual folder for such files it is on a disk everywhere: a synced write to memory would prove nothing."""


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8787,
    show_default=True,
    envvar=f"{PREFIX}PORT",
    help=f"0 takes a free one; default: {PREFIX}PORT.",
)
@click.option(
    "--file",
    "-f",
    "file",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Keep the store in this file, which must not exist yet. Otherwise it is removed in the end.",
)
@click.option(
    "--exit", "exit_", is_flag=True, help="End after printing, as it always does without a terminal or in CI."
)
@click.pass_obj
def command(session: Session, port: int, file: Path | None, exit_: bool) -> None:
    """Start a server on an empty file, send it a shop's real history, and show what is known then.

    6,919 orders of 2,357 customers of an online music shop, 1997 and 1998, sent as Segment clients send them. Nothing
    leaves this machine. The server stays up, with addresses to try, until Ctrl-C.
    """
    if file is not None and file.exists():
        raise InvalidValue(f"{file} already exists, and the demo needs an empty file", hint="name another one")
    console = session.console
    stay = not exit_ and console.is_terminal and sys.stdin.isatty() and not os.environ.get("CI")
    with _folder() as folder:
        store = (file or folder / "demo.db").absolute()
        _write_definitions(store.with_name("threadline.yaml"))
        chosen = port if port == 0 or free(port) else 0
        with Server(store, folder / "server.log", chosen) as server:
            report.heading(console, "Threadline, on a shop's real history")
            if chosen != port:
                report.say(console, f"Port {port} is taken by another program; a free one is used instead.", "yellow")
            report.say(console, f"A server of its own, {server.url}, on an empty file, {server.file}")
            _show(console, server)
            if stay:
                _stay(console, server)
            else:
                _leave(console, server)


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="threadline-demo-", dir=_ON_DISK if _ON_DISK.is_dir() else None) as name:
        yield Path(name)


def _show(console: Console, server: Server) -> None:
    history = orders()
    writer, reader = server.writer(), server.reader()

    report.heading(console, "1  Eighteen months of orders, over HTTP")
    outcome, seconds = _send(console, writer, history)
    _expect(outcome, accepted=len(history))
    people = len({order.customer for order in history})
    rate = f"{len(history) / seconds:,.0f} events/s"
    report.say(console, f"{len(history):,} orders of {people:,} customers in {seconds:.1f} s: {rate}.", "bold green")
    report.say(
        console,
        f"One connection, {BATCH_ORDERS} orders a request, one after the other. Each request was answered after its "
        "events were synced to disk and folded into what is known of their customers.",
    )

    report.heading(console, "2  One customer, whole")
    person, seconds = _timed(reader, f"/v1/people/{PERSON}")
    report.request(console, f"/v1/people/{PERSON}", seconds)
    then_path = f"/v1/people/{PERSON}/features?as_of={AFTERWARDS}"
    then, seconds = _timed(reader, then_path)
    report.request(console, then_path, seconds)
    console.print(report.customer(person, then))
    report.say(
        console,
        "Both columns are one state read at two instants. The file has no hours, so every order is at midnight.",
        "dim",
    )

    report.heading(console, "3  The best customers")
    top, seconds = _timed(reader, BEST)
    report.request(console, BEST, seconds)
    console.print(report.best(top))
    report.say(console, f"Ranked at this instant, by reading all {top['people_read']:,} people.", "dim")

    _show_declared(console, reader)

    report.heading(console, "6  Everything a second time")
    outcome, seconds = _send(console, writer, history)
    _expect(outcome, duplicates=len(history))
    again, _ = _timed(reader, then_path)
    ranking, _ = _timed(reader, BEST)
    assert (again["position"], again["features"]) == (then["position"], then["features"]), "a customer has changed"
    assert ranking["top"] == top["top"], "the best customers have changed"
    report.say(console, f"{len(history):,} duplicates in {seconds:.1f} s, and nothing was recorded.", "bold green")
    report.say(console, "Asked again, the customer and the ten best are the same, to the cent.")

    _show_mails(console, server, writer, reader)


def _show_declared(console: Console, reader: Client) -> None:
    """What the definitions of the demo add."""
    report.heading(console, "4  A segment and a streak")
    for path, shown in ((SEGMENT, report.segment), (STREAKS, report.streak)):
        answer, seconds = _timed(reader, path)
        report.request(console, path, seconds)
        report.say(console, shown(answer))

    report.heading(console, "5  A rule, and what another threshold would have changed")
    report.say(console, f"`threadline rules diff` with this instead: {CANDIDATE}", "dim")
    tried = reader.post("/v1/whatif", {"definitions": CANDIDATE, "samples": 3, "wait": True})
    print_what_if(console, msgspec.convert(tried, WhatIfView))


def _show_mails(console: Console, server: Server, writer: Client, reader: Client) -> None:
    report.heading(console, "7  A mail")
    if has_mail():
        mail.show(console, server, writer, reader)
        report.heading(console, "8  A journey, tried on eighteen months before it is switched on")
        journeys.show(console, server, writer, reader)
    else:
        report.say(console, f"Left out: it needs the extra `mail`; {from_source('mail')}.", "yellow")


def _send(console: Console, writer: Client, history: Sequence[Order]) -> tuple[dict[str, int], float]:
    """Send all orders and answer what became of them, and the seconds from the first request to the last answer."""
    outcome = {"accepted": 0, "duplicates": 0, "conflicts": 0, "rejected": 0}
    with report.sending(console) as progress:
        task = progress.add_task("sending", total=len(history), day="")
        began = time.perf_counter()
        for start in range(0, len(history), BATCH_ORDERS):
            batch = history[start : start + BATCH_ORDERS]
            answer = writer.post("/v1/batch", {"batch": [message(order) for order in batch]})
            for name in ("accepted", "duplicates", "conflicts"):
                outcome[name] += answer[name]
            outcome["rejected"] += len(answer["rejected"])
            progress.update(task, advance=len(batch), day=str(batch[-1].day))
        seconds = time.perf_counter() - began
    return outcome, seconds


def _expect(outcome: dict[str, int], **expected: int) -> None:
    if outcome != dict.fromkeys(outcome, 0) | expected:
        raise Unavailable(f"the server did not answer the orders as it should: {outcome}")


def _timed(client: Client, path: str) -> tuple[Any, float]:
    began = time.perf_counter()
    answer = client.get(path)
    return answer, time.perf_counter() - began


def _write_definitions(path: Path) -> None:
    """What the demo declares, beside its store: the commands that it names read it there."""
    if path.exists():
        raise InvalidValue(f"{path} would change what the demo shows", hint="name a file in another folder")
    path.write_text(definitions(), encoding="utf-8")


def _leave(console: Console, server: Server) -> None:
    report.heading(console, "9  The end, for there is no terminal to stay in")
    report.say(console, f"Its addresses were {server.url}/docs for all of the API and {server.url}/v1/people/{PERSON}.")
    report.say(console, "The server ends now. In a terminal `threadline demo` keeps it up; --file keeps the store.")


def _stay(console: Console, server: Server) -> None:
    report.heading(console, "9  The server is yours now")
    report.to_try(console, server, PERSON)
    console.print()
    report.say(console, "Ctrl-C ends the server.", "bold")
    try:
        server.wait()
    except KeyboardInterrupt:
        console.print()
        report.say(console, "Ending the server.", "dim")
