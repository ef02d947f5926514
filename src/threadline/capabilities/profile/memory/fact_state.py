"""What is kept of the events behind one fact: pieces that grow by one event at a time, in any order.

A piece is a list whose first four places are alike for all derivations:

    0  how many events made it
    1  the earliest instant at which one occurred
    2  the newest of them: [instant, id, instant, id, …], the newest first
    3  its words

The words of a derivation that keeps sources apart (``says``) are ``{source: [instant, id, value, confidence,
expires_at, premises]}``, the newest of each source; those of any other are the values of its last fields and constants
in the newest event, with confidence and expiry where events tell these. From place 4 on stand the cells of its other
fields, in their order.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

FactState = list[Any]

COUNT, FIRST_AT, TAIL, STATEMENTS, CELLS = range(5)

STATED_AT, STATED_ID, STATED_VALUE, STATED_CONFIDENCE, STATED_UNTIL, STATED_PREMISES = range(6)


# --- retractions --------------------------------------------------------------------------------

RETRACTED, RESTORED = 1, 2

Retractions = list[list[Any]]
"""[instant, id of the retraction, bits] of each, the newest first; an undoing may arrive before what it undoes."""


def standing(retractions: Retractions) -> list[Any] | None:
    """The newest retraction that is not undone."""
    return next((retraction for retraction in retractions if retraction[2] == RETRACTED), None)


State = dict[str, Any]
FactStates = dict[str, FactState]
"""The pieces of one derivation by what tells them apart."""

RETRACTED_FACTS, SORTED_OUT = "!", "~"
"""The parts of the facts that were taken back, and of when facts that expire were sorted out."""


@lru_cache(maxsize=65_536)
def hash_of(part: str) -> bytes:
    """What decides which of too many pieces stay, whatever came first."""
    return hashlib.blake2b(part.encode("utf-8", "surrogatepass"), digest_size=8).digest()
