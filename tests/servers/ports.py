"""Ports for servers that are killed and started again on the same one, or that have to be told which to take."""

from __future__ import annotations

import random
import socket

PORTS = range(20_000, 32_000)
"""Below those that systems give to outgoing connections, so that none of these takes the place of a server that is
down, and no client that calls it meanwhile is connected to itself."""


def free_port() -> int:
    """One that nobody listens on, another one each time, whatever seeds the tests set."""
    draw = random.SystemRandom()
    while True:
        port = draw.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
