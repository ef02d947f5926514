"""Ids as 16 bytes, as stores with tables of their own keep them."""

from __future__ import annotations

from collections.abc import Iterable


def packed_id(text: str) -> bytes | None:
    """The 16 bytes of 32 lower-case hex digits; None for any other text, which names nothing."""
    try:
        blob = bytes.fromhex(text)
    except ValueError:
        return None
    return blob if blob.hex() == text and len(blob) == 16 else None


def packed_ids(ids: Iterable[str]) -> list[bytes]:
    """The bytes of those that are ids."""
    return [blob for blob in map(packed_id, ids) if blob is not None]
