"""The end of a listening socket: the system resets the connections that nobody has accepted when it is closed."""

from __future__ import annotations

import asyncio
import ctypes
import select
import socket
import struct
import sys
from contextlib import suppress

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
        code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in _DROP_SYN))
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
