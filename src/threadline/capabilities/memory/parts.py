"""The parts of a person's memory: pieces by what tells them apart."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

from threadline.capabilities.memory.fact_state import FactState

State = dict[str, Any]
FactStates = dict[str, FactState]
"""The pieces of one derivation by what tells them apart."""

RETRACTED_FACTS, SORTED_OUT = "!", "~"
"""The parts of the facts that were taken back, and of when facts that expire were sorted out."""


@lru_cache(maxsize=65_536)
def hash_of(part: str) -> bytes:
    """What decides which of too many pieces stay, whatever came first."""
    return hashlib.blake2b(part.encode("utf-8", "surrogatepass"), digest_size=8).digest()
