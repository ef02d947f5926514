"""The policy ``leaderboards``: a number that a board ranks and that has changed is told in the thread."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, NamedTuple

from threadline.capabilities.profile.leaderboards.definition import BoardDefinition, Boards
from threadline.capabilities.profile.leaderboards.events import LEADERBOARD_SCORED, LEADERBOARDS_REFRESHED
from threadline.capabilities.profile.leaderboards.projection import AT, END, NAME, NUMBER, SCORE, State
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Recorded
from threadline.kernel.fixed import to_fixed
from threadline.kernel.identity import MERGED, SPLIT
from threadline.kernel.policy import (
    TIMER_FIRED,
    Emit,
    Policy,
    PolicyView,
    Timer,
    TimerSentence,
    Wish,
    emission_budget,
)
from threadline.kernel.ranking import LIFE_MAX
from threadline.kernel.time import parse_time

_ALWAYS = frozenset({MERGED, SPLIT, TIMER_FIRED, LEADERBOARDS_REFRESHED})
"""After these any score may be another one."""
TIMER = "look"
"""One timer per person: the next instant at which any of the numbers may be another one."""
AHEAD_MAX = 16
"""Events ahead of the clock that are looked at when a timer fires, before it is set to go on from there."""


class Measured(NamedTuple):
    """A number as a view tells it now."""

    score: int
    end: int | None
    changes_at: int | None
    """When it may change by time alone."""


def boards_policy(boards: Boards) -> Policy | None:
    """The policy of the boards that rank numbers in views; None where there is none, for it has to see every event."""
    watched = tuple(board for board in boards.boards if not board.of_ledger)
    if not watched:
        return None
    return Policy(
        name=NAME,
        handles=None,
        also=_ALWAYS,
        emits=frozenset({LEADERBOARD_SCORED}),
        sends=frozenset(),
        reads=tuple(read for board in watched for read in board.reads),
        react=partial(_react, watched),
        timers=(TimerSentence("May go up or down on a leaderboard"),),
    )


def _react(watched: Sequence[BoardDefinition], recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
    type = recorded.event.type
    ahead = recorded.event.occurred_at > recorded.recorded_at
    looked: list[BoardDefinition] = []
    for board in watched:
        if type in _ALWAYS:
            looked.append(board)
        elif known.touches(board.path[0], board.path[1:]):
            if ahead:
                # From a clock that runs fast: it counts from its own time on.
                return [Timer(key=TIMER, due_at=recorded.event.occurred_at + 1, unless_earlier=True)]
            looked.append(board)
    return _emitted(looked, recorded, known)


def _emitted(looked: Sequence[BoardDefinition], recorded: Recorded, known: PolicyView) -> list[Wish]:
    """The scores that are others now, as many as may be told at once, and when to look again."""
    wishes: list[Wish] = []
    most = emission_budget(known, LEADERBOARD_SCORED)
    again: list[int] = []
    for board in looked:
        measure = measured(board, known.view(board.path[0]))
        score_change = _changed_score(board, measure, known)
        if score_change and len(wishes) == most:
            again.append(known.at)  # the rest have their turn at once, of another cause
            break
        if score_change:
            wishes.append(
                Emit(type=LEADERBOARD_SCORED, key=board.name, occurred_at=recorded.recorded_at, properties=score_change)
            )
        look_at = _look_at(board, measure, known, AHEAD_MAX if recorded.event.type == TIMER_FIRED else 0)
        if look_at is not None:
            again.append(look_at)
    return [*wishes, Timer(key=TIMER, due_at=min(again), unless_earlier=True)] if again else wishes


def lacks(boards: Boards, known: PolicyView, parts: Collection[str]) -> bool:
    """Whether the score on one of these boards is another one than the person's events say."""
    asked = (board for board in boards.boards if board.name in parts and not board.of_ledger)
    return any(_changed_score(board, measured(board, known.view(board.path[0])), known) for board in asked)


def _changed_score(board: BoardDefinition, measure: Measured, known: PolicyView) -> dict[str, Any]:
    """What is to be told of a board; nothing if its score and its end are those that were told."""
    state: State = known[NAME]
    stored = state["scores"].get(board.name)
    number, at, score, end = (stored[NUMBER], stored[AT], stored[SCORE], stored[END]) if stored else (0, 0, 0, None)
    if end is not None and end <= known.at:
        score, end = 0, None  # time has ended it, and nobody has to be told
    # An end that is too far ahead was cut when it was told; it is told again only with another score.
    same_end = measure.end == end or (measure.end is not None and end == at + LIFE_MAX <= measure.end)
    if score == measure.score and (not score or same_end):
        return {}
    return {"board": board.name, "turn": number + 1, "score": measure.score, "end": measure.end}


def _look_at(board: BoardDefinition, measure: Measured, known: PolicyView, looks: int) -> int | None:
    """When to look again if nothing more is told: once time or an event that lies ahead may change the number.

    Of many events that lie ahead few do, so that of these as many are looked at: the timer is set for one that does.
    """
    ahead = known.ahead()
    for _ in range(looks):
        if ahead is None or (measure.changes_at is not None and measure.changes_at <= ahead):
            break
        then = measured(board, known.view(board.path[0], ahead))
        if then._replace(changes_at=None) != measure._replace(changes_at=None):
            break
        measure, ahead = then, known.ahead(ahead)
    return min((at for at in (measure.changes_at, ahead) if at is not None), default=None)


def measured(board: BoardDefinition, view: Any) -> Measured:
    """The number at a board's path, in millionths; 0 for what is no number."""
    around: Any = None
    for name in board.path[1:]:
        around, view = view, view.get(name) if isinstance(view, dict) else None
    score = None if isinstance(view, bool) else to_fixed(view)
    beside = around if isinstance(around, dict) else {}
    end = _instant(beside.get("expires_at")) if board.expiring else None
    return Measured(score or 0, end, None if board.expiring else _instant(beside.get("changes_at")))


def _instant(written: Any) -> int | None:
    """An instant as views tell them: as text, or in microseconds."""
    if type(written) is int:
        return written
    try:
        return parse_time(written) if isinstance(written, str) else None
    except InvalidValue:
        return None
