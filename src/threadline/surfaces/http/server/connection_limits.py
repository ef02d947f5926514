"""Bounds of one connection: of size, and of time in seconds."""

from __future__ import annotations

import asyncio
import ctypes
import re
import select
import socket
import struct
import sys
from contextlib import suppress

from threadline.kernel.limits import REQUEST_BYTES_MAX

HEAD_BYTES_MAX = 64 * 1_024
"""Of a head that comes in several pieces; what comes at once is bounded by what is read at once."""
HEADERS_MAX = 256
"""Headers of one head; a short one takes thirty times its bytes in memory."""
HEAD_SECONDS_MAX = 20.0
BODY_SECONDS_MAX = 120.0
"""Whoever sends a byte now and then would otherwise hold a connection for ever."""
DISCARD_BYTES_MAX, DISCARD_SECONDS_MAX = 2 * REQUEST_BYTES_MAX, 5.0
"""Of a request that is answered before its end, so much is still read, and dropped: a connection that is closed on what
was not read resets, and the client never sees the answer."""
TAKE_SECONDS, TAKE_BYTES_PER_SECOND = 30.0, 16 * 1_024
"""How long a client may take over an answer, and longer by its size."""
EXTRA_SECONDS_MAX = 2.0
"""How long a connection beyond the usual number is waited for."""
FRESH_SECONDS_MAX = 1.0
"""How long a connection that has sent nothing yet is waited for when the server stops."""
HEALTH = (b"/livez", b"/readyz", b"/metrics")
"""Addresses that are answered on any connection: an operator sees why others are refused."""
DISCARD_BYTES_MAX, DISCARD_SECONDS_MAX = 2 * REQUEST_BYTES_MAX, 5.0
"""Of a request that is answered before its end, so much is still read, and dropped: a connection that is closed on what
was not read resets, and the client never sees the answer."""
TAKE_SECONDS, TAKE_BYTES_PER_SECOND = 30.0, 16 * 1_024
"""How long a client may take over an answer, and longer by its size."""
EXTRA_SECONDS_MAX = 2.0
"""How long a connection beyond the usual number is waited for."""
FRESH_SECONDS_MAX = 1.0
"""How long a connection that has sent nothing yet is waited for when the server stops."""
HEALTH = (b"/livez", b"/readyz", b"/metrics")
"""Addresses that are answered on any connection: an operator sees why others are refused."""
HOST = re.compile(rb"(?:\[[0-9A-Za-z:.%~_-]*\]|(?:[0-9A-Za-z._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?")
"""A host and a port, as RFC 9110, 7.2, has them; it may be empty."""

BACKLOG = 2_048
"""Connections that the system keeps until they are accepted."""


_SO_ATTACH_FILTER = 26
_HANDSHAKE_SECONDS = 0.05
_ACCEPTED_MAX = 5_000
_DROP_SYN = (
    (0x30, 0, 0, 13),  # load the byte of flags of the TCP header
    (0x45, 0, 1, 0x02),  # if it has SYN, go on; else skip one
    (0x06, 0, 0, 0),  # drop the packet
    (0x06, 0, 0, 0xFFFF_FFFF),  # take all of it
)
"""A classic BPF program: (code, jump if true, jump if false, operand)."""


async def accept_the_last(listening: socket.socket) -> None:
    """Return when everybody who has connected is accepted, and nobody can connect any more.

    A client whose first packet is dropped sends it again a second later, and finds the port closed. Elsewhere than on
    Linux, who connects within the last microseconds is reset.
    """
    if sys.platform == "linux":
        code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *instruction) for instruction in _DROP_SYN))
        program = struct.pack("HP", len(_DROP_SYN), ctypes.addressof(code))
        with suppress(OSError):
            listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
    await asyncio.sleep(_HANDSHAKE_SECONDS)
    for _ in range(_ACCEPTED_MAX):
        if not _has_waiting(listening):
            return
        await asyncio.sleep(0)  # in which the loop accepts one


def _has_waiting(listening: socket.socket) -> bool:
    waiting = select.poll()
    waiting.register(listening, select.POLLIN)
    return bool(waiting.poll(0))
