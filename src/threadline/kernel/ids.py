"""Ids that are functions of what they name, so that a retry finds what the first attempt made."""

from __future__ import annotations

import hashlib


def short_hash(*parts: str) -> str:
    """A BLAKE2b hash of these parts: 128 bits, 32 hex digits, the same for ever."""
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
