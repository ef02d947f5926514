"""The demo's chapter about mail: somebody orders, and the mail about it can be read."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console

from threadline.kernel.errors import Unavailable
from threadline.surfaces.cli.demo import report
from threadline.surfaces.cli.demo.server import Client, Server

VISITOR, ADDRESS = "visitor", "visitor@example.com"
_ORDER = {"total": 25.38, "currency": "USD", "cds": 2}
_SECONDS_MAX = 20
_POLL_SECONDS = 0.1


def show(console: Console, server: Server, writer: Client, reader: Client) -> None:
    """Somebody new orders, and gets a mail."""
    traits = {"email": ADDRESS, "first_name": "Ana"}
    known = {"type": "identify", "userId": VISITOR, "messageId": "visitor", "traits": traits}
    order = {"type": "track", "event": "Order Completed", "userId": VISITOR, "messageId": "visitor-order"}
    writer.post("/v1/batch", {"batch": [known, {**order, "properties": _ORDER}]})
    message = reader.get("/v1/messages/visitor-order")
    asked = {"template": "thanks", "event": message["event"]["id"], "request": "thanks-for-visitor-order"}
    sent = [reader.post(f"/v1/people/user_id:{VISITOR}/mail", asked) for _ in range(2)]
    read = _arrived(reader)
    report.say(console, f"Asked for twice: {sent[0]['status']}, {sent[1]['status']}. One mail has arrived:")
    report.say(console, f"To: {read['to']}\nSubject: {read['subject']}\n\n{read['text'].strip()}", "green")
    report.say(console, f"Nothing left this machine. It is read at {server.url}/dev/inbox#token={server.token}", "dim")


def _arrived(reader: Client) -> Any:
    until = time.monotonic() + _SECONDS_MAX
    while time.monotonic() < until:
        if messages := reader.get("/v1/dev/inbox")["messages"]:
            return reader.get(f"/v1/dev/inbox/{messages[0]['id']}")
        time.sleep(_POLL_SECONDS)
    raise Unavailable("the mail of the demo has not arrived")
