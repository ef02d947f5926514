"""Values that nothing shortens: as long in a store as they are."""

from __future__ import annotations

from random import Random


def noise(seed: int, size: int) -> bytes:
    """Bytes that no compression shortens."""
    return Random(seed).randbytes(size)
