"""A server that others wrote: what it receives from us is the message, line by line, whatever stands in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.senders.test_smtp import kind_of, sender_of, sent
from tests.servers.ports import free_port

LINES = st.lists(
    st.one_of(st.sampled_from(["", ".", "..", ".a", "QUIT", "RSET", "x" * 900]), st.text("ab.é ", max_size=20)),
    max_size=10,
)


class Box:
    """Keeps every envelope."""

    def __init__(self) -> None:
        self.envelopes: list[Any] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 — aiosmtpd looks for it
        self.envelopes.append(envelope)
        return "250 2.0.0 Message accepted for delivery"


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Box, int]]:
    box = Box()
    controller = Controller(box, "127.0.0.1", free_port(), enable_SMTPUTF8=True)
    controller.start()
    yield box, controller.port
    controller.stop()


@settings(max_examples=20, deadline=None)
@given(LINES, st.sampled_from(["\r\n", "\n", "\r"]))
def test_a_message_arrives_line_by_line(server: tuple[Box, int], lines: list[str], end: str) -> None:
    box, port = server
    sender = sender_of(f"smtp://127.0.0.1:{port}?tls=off")
    message = "".join(f"{line}{end}" for line in ["Subject: x", "", *lines])
    assert kind_of(sent(sender, "grün@b.example", message=message.encode()))[0] == "mail_sent"
    sender.close()
    envelope = box.envelopes.pop()
    assert envelope.content.decode().split("\r\n") == ["Subject: x", "", *lines, ""]
    assert (envelope.mail_from, envelope.rcpt_tos) == ("news@shop.example", ["grün@b.example"])
    assert box.envelopes == []
