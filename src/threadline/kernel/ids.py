"""Ids that are functions of what they name, so that a retry finds what the first attempt made."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def short_hash(*parts: str) -> str:
    """A BLAKE2b hash of these parts: 128 bits, 32 hex digits, the same for ever."""
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


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
