"""The demo's chapter about journeys: one is tried on the history, switched on, and its first mail can be read."""

from __future__ import annotations

import time
from importlib.resources import files
from typing import Any

import msgspec
from rich.console import Console

from threadline.capabilities.reach.journeys.operations.what_if import JourneysWhatIfResult
from threadline.kernel.errors import Unavailable
from threadline.surfaces.cli.demo import report
from threadline.surfaces.cli.demo.mail import VISITOR
from threadline.surfaces.cli.demo.server import Client, Server
from threadline.surfaces.cli.journeys import print_what_if

NAME = "come_back"
_FIRST_MAIL = "tell_us"
_BEGINS, _ENDS = "1997-01-01", "1998-07-01"
_SECONDS_MAX = 20
_POLL_SECONDS = 0.1


def show(console: Console, server: Server, writer: Client, reader: Client) -> None:
    """What it would have sent to the shop's customers; then somebody orders under it."""
    candidate = files(__package__).joinpath("journeys.yaml").read_text(encoding="utf-8")
    asked = {"definitions": candidate, "start": _BEGINS, "stop": _ENDS, "samples": 1}
    tried = reader.post("/v1/journeys/what-if", asked)
    print_what_if(console, msgspec.convert(tried, JourneysWhatIfResult))
    with server.file.with_name("threadline.yaml").open("a", encoding="utf-8") as file:
        file.write(candidate)
    reader.post("/v1/definitions/reload", {})
    properties = {"total": 14.99, "currency": "USD", "cds": 1}
    order = {"type": "track", "event": "Order Completed", "userId": VISITOR, "messageId": "visitor-order-2"}
    writer.post("/v1/batch", {"batch": [{**order, "properties": properties}]})
    mail = _arrived(reader)
    shown = reader.get(f"/v1/journeys/{NAME}")
    console.print()
    console.print(shown["drawing"], highlight=False, markup=False)
    report.say(console, f"Switched on; somebody has ordered, and got: {mail['subject']}", "green")
    report.say(console, f"The next step waits until {_until(reader)}. `threadline journeys history` tells more.", "dim")


def _until(reader: Client) -> str:
    (execution,) = reader.get(f"/v1/people/user_id:{VISITOR}/journeys")["executions"]
    return str(execution["until"])[:10]


def _arrived(reader: Client) -> Any:
    until = time.monotonic() + _SECONDS_MAX
    while time.monotonic() < until:
        messages = reader.get("/v1/dev/inbox")["messages"]
        if mail := next((message for message in messages if message.get("template") == _FIRST_MAIL), None):
            return mail
        time.sleep(_POLL_SECONDS)
    raise Unavailable("the mail of the demo's journey has not arrived")
