"""File descriptors: as many as the system allows, of which connections leave some for everything else."""

from __future__ import annotations

import os
import resource
from typing import NamedTuple

WANTED = 1 << 20
"""More are not asked for where the system sets no limit."""
OTHERS = 1_024
"""For the store, its server, the log, webhooks, mail and processes for simulations."""
OTHERS_MIN = 32
EXTRA = 256
CONNECTIONS_MIN = 16


class Room(NamedTuple):
    """For how many connections there is room."""

    connections: int = 10_000
    """Those that are served as usual."""
    extra: int = EXTRA
    """Further ones, which may ask for the server's health and are told 503 otherwise."""


def raise_limit() -> int:
    """Raise the limit of this process to what the system allows; answers what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return WANTED if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return soft  # a kernel with a lower limit of its own
    return wanted


def room(limit: int, clients_max: int) -> Room:
    """How a limit is divided, with what is open already; never more than ``clients_max`` connections as usual."""
    free = max(0, limit - _open())
    others = max(OTHERS_MIN, min(OTHERS, free // 8))
    extra = max(4, min(EXTRA, free // 16))
    return Room(max(CONNECTIONS_MIN, min(clients_max, free - others - extra)), extra)


def _open() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:  # no Linux
        return 64
