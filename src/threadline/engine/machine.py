"""What the machine has for this process: its memory, or what its container is allowed."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where Linux says how much memory a container may have, by its second and its first version of control groups."""


def memory_bytes(limits: tuple[Path, ...] = _LIMITS) -> int:
    """The memory of the machine in bytes, or the limit of the container if that is less."""
    sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in limits:
        with suppress(OSError, ValueError):  # no such file, or the word "max"
            sizes.append(int(path.read_text()))
    return min(sizes)
