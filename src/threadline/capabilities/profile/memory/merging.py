"""The state of the union of two people's events, made of their two states; None where only the events can tell.

Fact states commute, so they can be merged one by one. But where facts expire and were too many, those that stayed were
chosen at an instant: if that has happened to either person, or would to both together, the events are folded again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from threadline.capabilities.profile.features.cells import CELLS as TALLIES
from threadline.capabilities.profile.features.cells import add_units
from threadline.capabilities.profile.memory.derivation import FactDerivation
from threadline.capabilities.profile.memory.fact_state import (
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


def merge(makers: Mapping[str, FactDerivation], first: State, second: State) -> State | None:
    """The state of both together, or None; it reuses both. ``makers`` are by code."""
    if SORTED_OUT in first or SORTED_OUT in second:
        return None
    for code in first.keys() & second.keys() - {RETRACTED_FACTS}:
        if makers[code].room and len(first[code].keys() | second[code].keys()) > makers[code].room:
            return None
    for code, part in second.items():
        if code not in first:
            first[code] = part
        elif code == RETRACTED_FACTS:
            first[code] = keep_smallest(
                merge_entries(first[code], part, _merge_retractions), FACTS_RETRACTED_MAX, hash_of
            )
        else:
            first[code] = _merge_parts(makers[code], first[code], part)
    return first


def _merge_parts(maker: FactDerivation, first: Any, second: Any) -> Any:
    if not maker.many:
        return _merge_pieces(maker, first, second)
    merged = merge_entries(first, second, partial(_merge_pieces, maker))
    return merged if maker.room else keep_smallest(merged, maker.derivation.most, hash_of)


def _merge_pieces(maker: FactDerivation, first: FactState, second: FactState) -> FactState:
    older, newer = sorted((first, second), key=lambda piece: piece[TAIL][:2])
    if maker.derivation.says:
        statements = keep_smallest(merge_entries(older[STATEMENTS], newer[STATEMENTS], newest), FACT_VOICES_MAX)
    else:
        statements = newer[STATEMENTS]
    cells = [_merge_cells(*pair) for pair in zip(older[CELLS:], newer[CELLS:], strict=True)]
    count, first_at = older[COUNT] + newer[COUNT], min(older[FIRST_AT], newer[FIRST_AT])
    return [count, first_at, _merge_tails(newer[TAIL], older[TAIL], maker.tail), statements, *cells]


def _merge_tails(first: list[Any], second: list[Any], length: int) -> list[Any]:
    events = sorted(
        (*zip(first[::2], first[1::2], strict=True), *zip(second[::2], second[1::2], strict=True)), reverse=True
    )
    return [part for event in events for part in event][:length]


def _merge_cells(first: Any, second: Any) -> Any:
    if first is None or second is None:
        return first if second is None else second
    if isinstance(first, dict):
        return TALLIES["money"].total((first, second))
    if isinstance(first, list):
        return min(first, second, key=lambda cell: (cell[0], cell[1]))
    return add_units(first, int(second))


def _merge_retractions(first: Retractions, second: Retractions) -> Retractions:
    bits: dict[tuple[int, str], int] = {}
    for at, id, bit in (*first, *second):
        bits[at, id] = bits.get((at, id), 0) | bit
    return [[at, id, bits[at, id]] for at, id in sorted(bits, reverse=True)[:FACT_RETRACTIONS_MAX]]
