"""The projection ``interests``: how many actions a person took, per day and scope, bounded whatever the order.

The state holds no score but counts per day, or per window where that is shorter, in blocks of four weeks: any formula
can be applied at reading, and an event touches one block. What is left out is decided by the set of events alone: the
oldest blocks, and within a block the cells with the largest hashes.
"""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Any

from threadline.capabilities.profile.interests.actions import cell_of, reader_of
from threadline.capabilities.profile.interests.definition import Interests, Source
from threadline.capabilities.profile.interests.ranking import lacks, rank, shown_ranking
from threadline.capabilities.profile.interests.state import (
    BLOCK_BYTES_MAX,
    BLOCK_DAYS,
    BLOCKS_MAX,
    CELL_BYTES,
    CUTOFF,
    NAME,
    NAME_BYTES_MAX,
    SLOTS_MAX,
    TOPICS,
    TOPICS_MAX,
    State,
)
from threadline.kernel.event import Recorded
from threadline.kernel.merging import keep_smallest, merge_entries
from threadline.kernel.personal import PersonFile, shown_views
from threadline.kernel.projection import Depends, Faster, Fold, Projection
from threadline.kernel.time import DAY

_BLOCK = BLOCK_DAYS * DAY
_CELLS_THAT_FIT = BLOCK_BYTES_MAX // (CELL_BYTES + NAME_BYTES_MAX)
"""So many cells have room however long their names are."""


def interests_projection(interests: Interests) -> Projection:
    """The projection of these definitions. It commutes."""
    folds = {type: _fold_of(interests, source) for type, source in interests.sources.items()}
    return Projection(
        name=NAME,
        version=1,
        handles=frozenset(folds),
        empty=dict,
        fold=lambda state, recorded: folds[recorded.event.type](state, recorded),
        view=lambda state, now, events: shown_ranking(rank(interests, state, now)),
        depends=Depends(
            due=lambda state, now: (now // DAY + 1) * DAY if rank(interests, state, now) else None, lacks=lacks
        ),
        in_parts=True,
        fingerprint=interests.fingerprint,
        carries={"": interests.fingerprint},
        faster=Faster(fold=folds.get, merge=partial(_merge, interests)),
    )


def _fold_of(interests: Interests, source: Source) -> Fold:
    read = reader_of(source)

    def fold(state: State, recorded: Recorded) -> State | None:
        event = recorded.event
        action = read(event.properties)
        if action is None:
            return None
        topic, names = action
        at = event.occurred_at
        _begin(_part(state, TOPICS), topic, at // DAY)
        rules = interests.topics.get(topic, interests.default)
        block, within = divmod(at, _BLOCK)
        cells = _part(state, str(block))
        slot = within // rules.slot
        for name in names:
            cell = cells.get(name)
            if cell is None:
                _new_cell(cells, name, slot)
            else:
                _count(cell, slot, rules.most)
        if len(state) > BLOCKS_MAX + 1:
            # What is older than so many blocks can never be among the newest again.
            del state[min((block for block in state if block != TOPICS), key=int)]
        return state

    return fold


def _part(state: State, name: str) -> dict[str, Any]:
    part = state.get(name)
    if part is None:
        part = state[name] = {}
    typed: dict[str, Any] = part
    return typed


def _begin(topics: dict[str, int], topic: str, day: int) -> None:
    first = topics.get(topic)
    if first is None:
        topics[topic] = day
        if len(topics) > TOPICS_MAX:
            del topics[max(topics, key=_hash)]
    elif day < first:
        topics[topic] = day


def _count(cell: list[int], slot: int, most: int) -> None:
    """Count one action; ``most`` bounds what one slot counts, 0 does not."""
    position = len(cell) - 2
    while position >= 0 and cell[position] > slot:
        position -= 2
    if position >= 0 and cell[position] == slot:
        if not most or cell[position + 1] < most:
            cell[position + 1] += 1
        return
    cell[position + 2 : position + 2] = (slot, 1)
    if len(cell) > 2 * SLOTS_MAX:
        del cell[:2]


def _new_cell(cells: dict[str, Any], name: str, slot: int) -> None:
    cutoff = cells.get(CUTOFF)
    if cutoff is not None and _hash(name) >= cutoff:
        return
    cells[name] = [slot, 1]
    _cut(cells)


def _cut(cells: dict[str, Any]) -> None:
    """Leave as many cells as a block has room for."""
    if len(cells) <= _CELLS_THAT_FIT:
        return
    size = sum(map(_bytes, cells))
    if size <= BLOCK_BYTES_MAX:
        return
    hashed = sorted((_hash(cell), cell) for cell in cells if cell != CUTOFF)
    while size > BLOCK_BYTES_MAX:
        cells[CUTOFF], last = hashed.pop()
        size -= _bytes(last)
        del cells[last]


def _bytes(name: str) -> int:
    return 0 if name == CUTOFF else len(name.encode("utf-8", "surrogatepass")) + CELL_BYTES


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def _merge(interests: Interests, first: State, second: State) -> State:
    topics = merge_entries(first.pop(TOPICS, {}), second.pop(TOPICS, {}), min)
    merged = merge_entries(first, second, partial(_merge_blocks, interests))
    for block in sorted(merged, key=int)[:-BLOCKS_MAX]:
        del merged[block]
    if topics:
        merged[TOPICS] = keep_smallest(topics, TOPICS_MAX, _hash)
    return merged


def _merge_blocks(interests: Interests, first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    cutoffs = [cells.pop(CUTOFF) for cells in (first, second) if CUTOFF in cells]
    cells = first
    for name, cell in second.items():
        other_cell = first.get(name)
        cells[name] = (
            cell if other_cell is None else _merge_cells(other_cell, cell, interests.topic(cell_of(name).topic).most)
        )
    if cutoffs:
        # From the smaller on one of the two knows of no cell.
        cutoff = min(cutoffs)
        cells = {name: cell for name, cell in cells.items() if _hash(name) < cutoff} | {CUTOFF: cutoff}
    _cut(cells)
    return cells


def _merge_cells(first: list[int], second: list[int], most: int) -> list[int]:
    counts = dict(zip(first[::2], first[1::2], strict=True))
    for slot, count in zip(second[::2], second[1::2], strict=True):
        counts[slot] = counts.get(slot, 0) + count
    slots = sorted(counts)[-SLOTS_MAX:]
    return [number for slot in slots for number in (slot, min(counts[slot], most) if most else counts[slot])]


INTERESTS_FILE = PersonFile(
    "interests",
    "What seems to interest you",
    "Topics that your actions point to, with their weight.",
    shown_views("interests"),
    ("interests",),
)
