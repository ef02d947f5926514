"""The projection ``leaderboards``: a person's scores by board and period, and the rows by which they are ranked."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import add
from typing import Any

from threadline.capabilities.profile.leaderboards.definition import (
    ALL,
    BoardDefinition,
    Boards,
    Period,
    period_of,
    span_of,
)
from threadline.capabilities.profile.leaderboards.events import LEADERBOARD_SCORED
from threadline.capabilities.profile.people.events import IDENTIFY, TAG_ADDED, TAG_REMOVED
from threadline.capabilities.profile.people.tags import LIST, changed_in, listed_in, source_of
from threadline.capabilities.profile.points.events import LEDGER, POINTS_ADJUSTED, POINTS_EARNED, amount_of
from threadline.capabilities.profile.points.ledger import merge_tables, newest
from threadline.capabilities.profile.segments.events import SEGMENT_ENTERED, SEGMENT_LEFT, SEGMENT_RENEWED
from threadline.capabilities.profile.segments.projection import SEGMENTS, since
from threadline.capabilities.profile.segments.projection import merge as merge_segments
from threadline.kernel.event import Recorded
from threadline.kernel.fixed import FIXED_MAX, SCALE, from_fixed
from threadline.kernel.merging import merge_entries
from threadline.kernel.merging import newest as newest_of
from threadline.kernel.projection import Depends, Faster, Index, Projection, Row
from threadline.kernel.ranking import LIFE_MAX, TABLE, Board, Place, row_of
from threadline.kernel.time import format_time
from threadline.kernel.view_parts import VALUE, Parts, values

NAME = "leaderboards"
TRAIT_LENGTH_MAX = 100
_LISTED = "#"
"""The name under which the newest list of tags is kept: no tag is empty."""
SEGMENT_EVENTS = frozenset({SEGMENT_ENTERED, SEGMENT_RENEWED, SEGMENT_LEFT})

State = dict[str, Any]
"""``sums``: kind of period -> number -> points earned; ``balance``: the sum of the ledger; ``scores``: board -> [turn,
occurred_at, id, score, end]; ``words``: trait, # and tag, or # for the list of tags -> [occurred_at, id, value],
the newest; where a board is ranked among any, ``segments``: as the projection of that name keeps them."""

NUMBER, AT, ID, SCORE, END = range(5)


def boards_projection(boards: Boards) -> Projection:
    """The projection of these boards; it keeps what they rank and no more."""
    plan = _Plan(boards)
    return Projection(
        name=NAME,
        version=3,
        handles=plan.handles,
        empty=plan.empty,
        fold=plan.fold,
        view=partial(_view, boards),
        depends=Depends(
            due=partial(_due, boards), parts=Parts(dict.fromkeys((board.name for board in boards.boards), _BOARD))
        ),
        faster=Faster(merge=plan.merge),
        index=Index(rows=plan.rows, tables=(TABLE,), complete=True),
        fingerprint=boards.fingerprint,
        carries={"": boards.fingerprint},
    )


_BOARD = Parts(values("ends_at", "scopes") | {"scores": Parts(named="", inside=VALUE)})


class _Plan:
    """What events of each type do to a state, and which rows follow from one."""

    def __init__(self, boards: Boards) -> None:
        self.calendar = boards.calendar
        self.kinds = sorted({kind for b in boards.boards if b.path == ("points", "earned") for kind in b.periods})
        self.names = {b.name for b in boards.boards if not b.of_ledger}
        self.traits = {b.per for b in boards.boards if b.per} - {LIST}
        self.tags = {tag for b in boards.boards for tag in b.tags}
        self.segments = {name for b in boards.boards for name in b.segments}
        types = {LEADERBOARD_SCORED}
        types |= LEDGER if any(b.of_ledger for b in boards.boards) else set()
        types |= {IDENTIFY} if self.traits or self.tags else set()
        types |= {TAG_ADDED, TAG_REMOVED} if self.tags else set()
        types |= SEGMENT_EVENTS if self.segments else set()
        self.handles = frozenset(types)
        self.keys = [(board, boards.key(board)) for board in boards.boards]

    def empty(self) -> State:
        state: State = {"sums": {kind: {} for kind in self.kinds}, "balance": 0, "scores": {}, "words": {}}
        return {**state, "segments": SEGMENTS.empty()} if self.segments else state

    def fold(self, state: State, recorded: Recorded) -> State | None:
        return state if self._touches(state, recorded) else None

    def _touches(self, state: State, recorded: Recorded) -> bool:
        event = recorded.event
        if event.type == IDENTIFY:
            values: dict[str, Any] = {
                trait: region_of(event.properties[trait]) for trait in self.traits & event.properties.keys()
            }
            listed = listed_in(event) if self.tags else None
            if listed is not None:
                values[_LISTED] = [tag for tag in listed if tag in self.tags]
            return sum(_keep_newest(state, name, recorded, value) for name, value in values.items()) > 0
        if (changed := changed_in(event)) is not None:
            tag, is_added = changed
            return tag in self.tags and _keep_newest(state, f"#{tag}", recorded, is_added or None)
        if event.type in LEDGER:
            return self._add(state, recorded)
        if event.type == LEADERBOARD_SCORED:
            return self._score(state, recorded)
        segment = event.properties.get("segment")
        if event.type not in SEGMENT_EVENTS or type(segment) is not str or segment not in self.segments:
            return False
        folded = SEGMENTS.fold(state["segments"], recorded)
        if folded is not None:
            state["segments"] = folded
        return folded is not None

    def _add(self, state: State, recorded: Recorded) -> bool:
        event = recorded.event
        points = amount_of(event)
        if points is None:
            return False
        state["balance"] += points if event.type in (POINTS_EARNED, POINTS_ADJUSTED) else -points
        if event.type != POINTS_EARNED:
            return True
        day = self.calendar.day(event.occurred_at)
        for kind in self.kinds:
            period = period_of(kind, day, self.calendar)
            if newest(state["sums"][kind], period.number, span_of(kind), 0) is not None:
                state["sums"][kind][str(period.number)] += points
        return True

    def _score(self, state: State, recorded: Recorded) -> bool:
        properties = recorded.event.properties
        board, number, score, end = (properties.get(name) for name in ("board", "turn", "score", "end"))
        if type(board) is not str or board not in self.names:
            return False
        if type(number) is not int or type(score) is not int or abs(score) > FIXED_MAX:
            return False
        at = recorded.event.occurred_at
        until = min(end, at + LIFE_MAX) if type(end) is int else None
        stored = state["scores"].get(board)
        if stored is not None and (stored[NUMBER], stored[AT], stored[ID]) >= (number, at, recorded.id):
            return False
        state["scores"][board] = [number, at, recorded.id, score, until]
        return True

    def merge(self, first: State, second: State) -> State:
        sums = {
            kind: merge_tables(first["sums"][kind], second["sums"][kind], span_of(kind), add) for kind in self.kinds
        }
        merged = {
            "sums": sums,
            "balance": first["balance"] + second["balance"],
            "scores": merge_entries(first["scores"], second["scores"], _last_score),
            "words": merge_entries(first["words"], second["words"], newest_of),
        }
        if self.segments:
            merged["segments"] = merge_segments(first["segments"], second["segments"])
        return merged

    # --- rows ------------------------------------------------------------------------------

    def rows(self, state: State, workspace: str, person: str) -> Iterator[Row]:
        for board, name in self.keys:
            scopes = list(_scopes(board, state))
            for period, score, end in scores_of(board, state):
                for scope in scopes:
                    yield row_of(Board(workspace, name, period.row_name, scope), Place(score, person, end))


def _last_score(first: list[Any], second: list[Any]) -> list[Any]:
    return max(first, second, key=lambda score: (score[NUMBER], score[AT], score[ID]))


def _keep_newest(state: State, name: str, recorded: Recorded, value: Any) -> bool:
    """Keep the newest value under a name; answers whether it puts the person elsewhere."""
    stored = state["words"].get(name)
    order = (recorded.event.occurred_at, recorded.id)
    if stored is not None and (stored[0], stored[1]) >= order:
        return False
    state["words"][name] = [*order, value]
    return stored is None or bool(stored[2] != value)


def region_of(value: Any) -> str | None:
    """The region that a trait names, as scopes have it; None if it names none."""
    if type(value) is int and not isinstance(value, bool):
        value = str(value)
    if type(value) is str:
        # Bytes, not characters: it becomes part of a row's key. A lone surrogate can be in no key at all.
        size = len(value.encode("utf-8", "replace")) if value.isprintable() else 0
        return value if 0 < size <= TRAIT_LENGTH_MAX else None
    return None


def _scopes(board: BoardDefinition, state: State) -> Iterator[str]:
    words = state["words"]
    yield ""
    trait = words[board.per][2] if board.per in words else None
    if isinstance(trait, str):
        yield scope_text(board.per, trait)
    for tag in board.tags:
        if source_of(tag, words.get(f"#{tag}"), words.get(_LISTED)) is not None:
            yield scope_text("tag", tag)
    for name in board.segments:
        if since(state["segments"].get(name)) is not None:
            yield scope_text("segment", name)


def scope_text(kind: str, value: str) -> str:
    """A scope as callers write it and rows name it."""
    return f"{kind}={value}"


def scores_of(board: BoardDefinition, state: State) -> Iterator[tuple[Period, int, int | None]]:
    """Period, score in millionths and end of each score on a board. Who has nothing stands on none."""
    if not board.of_ledger:
        stored = state["scores"].get(board.name)
        # Readers look for scores that end among those that end, and nowhere else.
        if stored is not None and stored[SCORE] and board.expiring == (stored[END] is not None):
            yield Period(ALL, 0), stored[SCORE], stored[END]
    elif board.path[1] == "balance":
        if 0 < state["balance"] <= FIXED_MAX // SCALE:
            yield Period(ALL, 0), state["balance"] * SCALE, None
    else:
        for kind in board.periods:
            for number, points in state["sums"][kind].items():
                yield Period(kind, int(number)), min(points, FIXED_MAX // SCALE) * SCALE, None


def _view(boards: Boards, state: State, now: int, edges: list[Recorded]) -> dict[str, Any]:
    shown = {}
    for board in boards.boards:
        scores = [row for row in scores_of(board, state) if row[2] is None or now < row[2]]
        shown[board.name] = {
            "scores": {period.row_name: plain(score) for period, score, _ in scores},
            "ends_at": next((format_time(end) for _, _, end in scores if end is not None), None),
            "scopes": [scope for scope in _scopes(board, state) if scope],
        }
    return shown


def _due(boards: Boards, state: State, now: int) -> int | None:
    ends = (end for board in boards.boards for _, _, end in scores_of(board, state) if end is not None and end > now)
    return min(ends, default=None)


def plain(score: int) -> int | float:
    """A score as it is told: whole where it is."""
    return score // SCALE if score % SCALE == 0 else from_fixed(score)
