"""Asks the name servers of this machine for the texts of a name."""

from __future__ import annotations

import re
import secrets
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from threadline.kernel.errors import Unavailable
from threadline.outgoing.dns import NoAnswer, Truncated, question, texts

TIMEOUT_SECONDS = 2.0
SERVERS_MAX = 3
PORT = 53
_RESOLVERS = Path("/etc/resolv.conf")
_BYTES_MAX = 65_535

Address = tuple[str, int]


def texts_of(name: str, servers: Sequence[Address] | None = None) -> list[str]:
    """The texts of a name; none where there is no such name, or a text is no name. Raises `Unavailable` if no server
    answers."""
    asked = known_servers() if servers is None else servers
    why = "this machine has no name server"
    try:
        question(0, name)
    except ValueError:
        return []
    for server in asked[:SERVERS_MAX]:
        try:
            return sorted(_asked(server, name))  # servers give them in any order
        except (OSError, NoAnswer) as error:
            why = f"{server[0]}: {str(error) or type(error).__name__}"
    raise Unavailable(f"DNS cannot be asked from here: {why}")


def known_servers() -> list[Address]:
    """The name servers that the system goes by."""
    text = ""
    with suppress(OSError):
        text = _RESOLVERS.read_text(encoding="utf-8", errors="replace")
    return [(address, PORT) for address in re.findall(r"^\s*nameserver\s+(\S+)", text, re.MULTILINE)]


def _asked(server: Address, name: str) -> list[str]:
    id = secrets.randbelow(1 << 16)
    packet = question(id, name)
    family = socket.AF_INET6 if ":" in server[0] else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as datagram:
        datagram.settimeout(TIMEOUT_SECONDS)
        datagram.connect(server)  # answers of others are not received
        datagram.send(packet)
        with suppress(Truncated):
            return texts(datagram.recv(_BYTES_MAX), id)
    with socket.create_connection(server, TIMEOUT_SECONDS) as stream:
        stream.sendall(struct.pack("!H", len(packet)) + packet)
        (length,) = struct.unpack("!H", _exactly(stream, 2))
        return texts(_exactly(stream, length), id)


def _exactly(stream: socket.socket, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        part = stream.recv(size - len(parts))
        if not part:
            raise NoAnswer("the answer is cut off")
        parts += part
    return parts
