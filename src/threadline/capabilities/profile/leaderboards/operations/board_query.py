"""A question about one leaderboard in one period: its places, from the rows or computed for the past."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Identifiers, Instant, Time, time_param
from threadline.capabilities.foundation.jobs.filling import being_filled
from threadline.capabilities.profile.leaderboards.definition import ALL, BoardDefinition, Boards, is_stored, period_of
from threadline.capabilities.profile.leaderboards.projection import NAME, plain
from threadline.capabilities.profile.leaderboards.recomputed import Nearest, RecomputedBoard, everybody, score_of
from threadline.capabilities.profile.segments.definition import SECTION_NAME
from threadline.kernel.applied import IndexPart
from threadline.kernel.disclosure import not_personal
from threadline.kernel.errors import Conflict, InvalidValue, NotFound
from threadline.kernel.key_fields import key_fields
from threadline.kernel.names import names_a
from threadline.kernel.operation import Context, Params
from threadline.kernel.ports import Person
from threadline.kernel.ranking import Board, Place
from threadline.kernel.time import format_time

Name = Annotated[
    str,
    names_a("leaderboard"),
    Meta(description="A leaderboard that `leaderboards_list` names.", min_length=1, max_length=64),
]
PeriodKind = Annotated[Literal["day", "week", "month", "all"], Meta(description="all: for ever, or as it is now.")]
At = Annotated[Time | None, Meta(description="Of the period in which this instant lies, instead of the present one.")]
Scope = Annotated[
    str,
    Meta(
        description="Among whom: tag=vip, segment=regulars, or trait=value as declared: country=IT; empty: everyone.",
        max_length=200,
    ),
]


@key_fields("rank", "score", "identifiers")
class Entry(msgspec.Struct, kw_only=True):
    """A person's place."""

    rank: Annotated[
        int, Meta(description="1 plus the number of people with a higher score; equal scores share a rank.")
    ]
    person: str
    score: int | float
    identifiers: Identifiers


@not_personal
class Leaderboard(msgspec.Struct, kw_only=True):
    """The first places. People of equal score stand in the order of their ids, which means nothing."""

    name: str
    period: Annotated[str, Meta(description="2026-03-01, the first day of a week, 2026-03, or all.")]
    scope: str
    total: Annotated[int | None, Meta(description="How many people are on the board, where it was counted.")]
    as_of: Annotated[Instant, Meta(description="Everything that was committed before this instant is in it.")]
    people_read: Annotated[
        int, Meta(description="0, or for a period of long ago everybody: it takes time in proportion.")
    ]
    places: list[Entry]


class BoardChoice(Params, kw_only=True):
    """Which board, of which period, among whom."""

    name: Name
    period: PeriodKind = ALL
    at: At = None
    scope: Scope = ""


class BoardQuery:
    """One question about one board."""

    def __init__(self, boards: Boards, context: Context, params: BoardChoice) -> None:
        self.context, self.params = context, params
        self.calendar = boards.calendar
        self.board = board_named(boards, params)
        at = time_param(params.at)
        if at is not None and at > context.now:
            raise InvalidValue(f"`at` is in the future; it is now {format_time(context.now)}", param="at")
        self.at = context.now if at is None else at
        self.period = period_of(params.period, self.calendar.day(self.at), self.calendar)
        self.from_rows = is_stored(self.period, self.calendar.day(context.now), self.calendar)
        if self.period.kind == ALL and at is not None:
            self.from_rows = False  # not as it is now, but as it was then
        self.key = Board(context.workspace, boards.key(self.board), self.period.row_name, params.scope)
        filling = being_filled(context.engine, parts_of(params)) if self.from_rows else ""
        if filling:
            raise Conflict(
                "leaderboards, or what they rank, were declared or changed after people were recorded, and not "
                f"everybody is on them yet ({filling})",
                hint="run `threadline apply`, or call `leaderboards_refresh` and let a worker do its job",
            )

    def past(self, *wanted: Nearest) -> RecomputedBoard:
        """Everybody's scores of then."""
        scores = everybody(self.context, self.board, self.period, self.at, self.params.scope, self.calendar)
        return RecomputedBoard(scores, *wanted)

    def past_place(self, person: Person) -> Place | None:
        """The place that a person had then."""
        scope = self.params.scope
        score = score_of(self.context, self.board, self.period, self.at, scope, self.calendar, person)
        return Place(score, person.id, None) if score else None

    def entries(self, places: list[Place], above: Callable[[int], int] | None = None) -> list[Entry]:
        """See `entries_of`."""
        return entries_of(self.context, places, above)

    def count(self, score: int) -> Any:
        """How a score stands among all on the board."""
        return self.context.engine.ranks.counted(self.key, score, self.context.now, expiring=self.board.expiring)


def entries_of(context: Context, places: Sequence[Place], above: Callable[[int], int] | None = None) -> list[Entry]:
    """Places that follow each other: from the very first on, or ``above`` says how many have more than a score."""
    entries: list[Entry] = []
    rank = 0
    names = context.engine.reader.identifiers_of(context.workspace, [place.person for place in places])
    for index, place in enumerate(places):
        if not index or place.score != places[index - 1].score:
            rank = index + 1 if above is None else above(place.score) + 1
        identifiers = names.get(place.person, [])
        entries.append(Entry(rank=rank, person=place.person, identifiers=identifiers, score=plain(place.score)))
    return entries


def parts_of(params: BoardChoice) -> tuple[IndexPart, ...]:
    """What has to be filled so that everybody is on a board."""
    kind, _, value = params.scope.partition("=")
    return (IndexPart(NAME, params.name), *([IndexPart(SECTION_NAME, value)] if kind == "segment" else []))


def board_named(boards: Boards, params: BoardChoice) -> BoardDefinition:
    """The declared board that is asked for; raises `NotFound`, and `InvalidValue` for what it is not kept by."""
    board = next((definition for definition in boards.boards if definition.name == params.name), None)
    if board is None:
        raise NotFound(f"there is no leaderboard {params.name!r}", hint="`leaderboards_list` lists them all")
    if params.period not in board.periods:
        raise InvalidValue(f"{board.name} is not kept by {params.period}; it is kept by {', '.join(board.periods)}")
    kind, _, value = params.scope.partition("=")
    named = [*(f"tag={tag}" for tag in board.tags), *(f"segment={segment}" for segment in board.segments)]
    if params.scope and not (value and (kind == board.per or params.scope in named)):
        scopes = [*([f"{board.per}=…"] if board.per else []), *named]
        raise InvalidValue(f"{board.name} is not ranked among {params.scope!r}; it is {' or '.join(scopes) or 'whole'}")
    return board
