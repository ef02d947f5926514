"""The state of the union of two people's events, made of their two states; None where only the events can tell.

Fact states commute, so they can be merged one by one. But where facts expire and were too many, those that stayed were
chosen at an instant: if that has happened to either person, or would to both together, the events are folded again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from threadline.capabilities.features.cells import CELLS as TALLIES
from threadline.capabilities.features.cells import add_units
from threadline.capabilities.memory.derivation import FactDerivation
from threadline.capabilities.memory.fact_state import (
    CELLS,
    COUNT,
    FIRST_AT,
    RETRACTED_FACTS,
    SORTED_OUT,
    STATEMENTS,
    TAIL,
    FactState,
    Retractions,
    State,
    hash_of,
)
from threadline.kernel.limits import FACT_RETRACTIONS_MAX, FACT_VOICES_MAX, FACTS_RETRACTED_MAX
from threadline.kernel.merging import keep_smallest, merge_entries, newest


def merge(makers: Mapping[str, FactDerivation], one: State, other: State) -> State | None:
    """The state of both together, or None; it reuses both. ``makers`` are by code."""
    if SORTED_OUT in one or SORTED_OUT in other:
        return None
    for code in one.keys() & other.keys() - {RETRACTED_FACTS}:
        if makers[code].room and len(one[code].keys() | other[code].keys()) > makers[code].room:
            return None
    for code, part in other.items():
        if code not in one:
            one[code] = part
        elif code == RETRACTED_FACTS:
            one[code] = keep_smallest(merge_entries(one[code], part, _merge_retractions), FACTS_RETRACTED_MAX, hash_of)
        else:
            one[code] = _merge_parts(makers[code], one[code], part)
    return one


def _merge_parts(maker: FactDerivation, one: Any, other: Any) -> Any:
    if not maker.many:
        return _merge_pieces(maker, one, other)
    merged = merge_entries(one, other, partial(_merge_pieces, maker))
    return merged if maker.room else keep_smallest(merged, maker.derivation.most, hash_of)


def _merge_pieces(maker: FactDerivation, one: FactState, other: FactState) -> FactState:
    older, newer = sorted((one, other), key=lambda piece: piece[TAIL][:2])
    if maker.derivation.says:
        statements = keep_smallest(merge_entries(older[STATEMENTS], newer[STATEMENTS], newest), FACT_VOICES_MAX)
    else:
        statements = newer[STATEMENTS]
    cells = [_merge_cells(*pair) for pair in zip(older[CELLS:], newer[CELLS:], strict=True)]
    count, first_at = older[COUNT] + newer[COUNT], min(older[FIRST_AT], newer[FIRST_AT])
    return [count, first_at, _merge_tails(newer[TAIL], older[TAIL], maker.tail), statements, *cells]


def _merge_tails(one: list[Any], other: list[Any], length: int) -> list[Any]:
    events = sorted((*zip(one[::2], one[1::2], strict=True), *zip(other[::2], other[1::2], strict=True)), reverse=True)
    return [part for event in events for part in event][:length]


def _merge_cells(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return one if other is None else other
    if isinstance(one, dict):
        return TALLIES["money"].total((one, other))
    if isinstance(one, list):
        return min(one, other, key=lambda cell: (cell[0], cell[1]))
    return add_units(one, int(other))


def _merge_retractions(one: Retractions, other: Retractions) -> Retractions:
    bits: dict[tuple[int, str], int] = {}
    for at, id, bit in (*one, *other):
        bits[at, id] = bits.get((at, id), 0) | bit
    return [[at, id, bits[at, id]] for at, id in sorted(bits, reverse=True)[:FACT_RETRACTIONS_MAX]]
