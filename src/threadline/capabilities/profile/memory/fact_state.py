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

from threadline.capabilities.profile.features.cells import add_money, add_units
from threadline.kernel.limits import FACT_VOICES_MAX

FactState = list[Any]

COUNT, FIRST_AT, TAIL, STATEMENTS, CELLS = range(5)

STATED_AT, STATED_ID, STATED_VALUE, STATED_CONFIDENCE, STATED_UNTIL, STATED_PREMISES = range(6)


def note_event(piece: FactState, at: int, id: str, length: int) -> bool:
    """Count one more event, with ``length`` places for the newest ones; answers whether it is the newest so far."""
    piece[COUNT] += 1
    tail = piece[TAIL]
    if at > tail[0] or (at == tail[0] and id > tail[1]):
        tail[0:0] = (at, id)
        del tail[length:]
        return True
    piece[FIRST_AT] = min(piece[FIRST_AT], at)
    for index in range(2, length, 2):
        if index == len(tail) or (at, id) > (tail[index], tail[index + 1]):
            tail[index:index] = (at, id)
            del tail[length:]
            break
    return False


def add_statement(statements: dict[str, list[Any]], voice: str, statement: list[Any]) -> None:
    """Keep the newest word of a voice. A voice that is pushed out has smaller names before it and never comes back."""
    before = statements.get(voice)
    if before is not None:
        if (statement[STATED_AT], statement[STATED_ID]) > (before[STATED_AT], before[STATED_ID]):
            statements[voice] = statement
        return
    statements[voice] = statement
    if len(statements) > FACT_VOICES_MAX:
        del statements[max(statements)]


# --- cells: what a field keeps beside the newest event ------------------------------------------


def open_cell(aggregate: str, at: int, id: str, value: Any) -> Any:
    """The cell of one event. ``found`` is None, or a value (first), units (sum), or units with a currency."""
    if value is None:
        return None
    if aggregate == "first":
        return [at, id, value]
    return {value[1]: [1, value[0]]} if type(value) is tuple else value


def add_to_cell(cell: Any, aggregate: str, at: int, id: str, value: Any) -> Any:
    """The cell with one more event in it."""
    if value is None:
        return cell
    if cell is None:
        return open_cell(aggregate, at, id, value)
    if aggregate == "first":
        return [at, id, value] if (at, id) < (cell[0], cell[1]) else cell
    return add_money(cell, value[0], value[1]) if type(value) is tuple else add_units(cell, value)


# --- retractions --------------------------------------------------------------------------------

RETRACTED, RESTORED = 1, 2

Retractions = list[list[Any]]
"""[instant, id of the retraction, bits] of each, the newest first; an undoing may arrive before what it undoes."""


def add_retraction(retractions: Retractions, at: int, id: str, bit: int, most: int) -> None:
    """Note a retraction, or its undoing; only the newest stay, in whatever order they arrive."""
    for retraction in retractions:
        if retraction[0] == at and retraction[1] == id:
            retraction[2] |= bit
            return
    retractions.append([at, id, bit])
    retractions.sort(reverse=True)
    del retractions[most:]


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
