"""Values that nothing shortens."""

from __future__ import annotations

from random import Random


def noise(seed: int, size: int) -> bytes:
    """Bytes that deflate cannot shorten."""
    return Random(seed).randbytes(size)
