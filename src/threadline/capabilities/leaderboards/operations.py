"""Leaderboards as callers ask for them: the first places, a person's own place, what is declared, recomputing them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal, Protocol

import msgspec
from msgspec import Meta

from threadline.capabilities.events.forms import Identifiers, Instant, PersonRef, Time, instant, time_param
from threadline.capabilities.leaderboards.definition import ALL, BoardDefinition, Boards, is_kept, period_of
from threadline.capabilities.leaderboards.projection import NAME, plain
from threadline.capabilities.leaderboards.recomputed import Nearest, RecomputedBoard, everybody, score_of
from threadline.capabilities.leaderboards.refresh import refresh
from threadline.capabilities.points.calendar import Calendar
from threadline.kernel.errors import Conflict, InvalidValue, NotFound
from threadline.kernel.operation import Context, Group, Operation
from threadline.kernel.ports import Person, WithCatalogue, WithMaintenance, WithRanks, WithReader
from threadline.kernel.ranking import Board, Place, board_of, place_of
from threadline.kernel.time import format_time

LEADERBOARDS_GROUP = Group("leaderboards", "Who is ahead, now or in any past period.")

Name = Annotated[str, Meta(description="A leaderboard that `leaderboards_list` names.", min_length=1, max_length=64)]
PeriodKind = Annotated[
    Literal["day", "week", "month", "all"], Meta(description="Weeks begin on Monday; all: for ever, or as it is now.")
]
At = Annotated[Time | None, Meta(description="Of the period in which this instant lies, instead of the present one.")]
Scope = Annotated[
    str,
    Meta(
        description="Among whom: tag=vip, segment=regulars, or trait=value as declared: country=IT; empty: everyone.",
        max_length=200,
    ),
]


class Entry(msgspec.Struct, kw_only=True):
    """A person's place."""

    rank: Annotated[
        int, Meta(description="1 plus the number of people with a higher score; equal scores share a rank.")
    ]
    person: str
    score: int | float
    identifiers: Identifiers


class Leaderboard(msgspec.Struct, kw_only=True):
    """The first places. People of equal score stand in the order of their ids, which means nothing."""

    name: str
    period: Annotated[str, Meta(description="2026-03-01, the Monday of a week, 2026-03, or all.")]
    scope: str
    total: Annotated[int | None, Meta(description="How many people are on the board, where it was counted.")]
    as_of: Annotated[Instant, Meta(description="Everything that was committed before this instant is in it.")]
    people_read: Annotated[
        int, Meta(description="0, or for a period of long ago everybody: it takes time in proportion.")
    ]
    places: list[Entry]


class Standing(Leaderboard, kw_only=True):
    """A person's own place, and those around it."""

    person: str
    rank: Annotated[int | None, Meta(description="Null for somebody who is not on the board.")]
    score: int | float


class BoardParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which board, and how much of it."""

    name: Name
    period: PeriodKind = ALL
    at: At = None
    scope: Scope = ""
    limit: Annotated[int, Meta(description="How many places.", ge=1, le=1_000)] = 10


class StandingParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Whose place, on which board."""

    id: PersonRef
    name: Name
    period: PeriodKind = ALL
    at: At = None
    scope: Scope = ""
    around: Annotated[int, Meta(description="How many places before and after it.", ge=0, le=100)] = 0


class Needs(WithReader, WithRanks, WithMaintenance, WithCatalogue, Protocol):
    """What is needed here of the engine."""


class _Asked:
    """One question about one board."""

    def __init__(self, boards: Boards, context: Context[Needs], params: BoardParams | StandingParams) -> None:
        self.context, self.params = context, params
        self.calendar = Calendar(boards.timezone)
        self.board = _board(boards, params)
        at = time_param(params.at)
        if at is not None and at > context.now:
            raise InvalidValue(f"`at` is in the future; it is now {format_time(context.now)}")
        self.at = context.now if at is None else at
        self.period = period_of(params.period, self.calendar.day(self.at))
        self.from_rows = is_kept(self.period, self.calendar.day(context.now))
        if self.period.kind == ALL and at is not None:
            self.from_rows = False  # not as it is now, but as it was then
        self.key = Board(context.workspace, boards.key(self.board), self.period.row_name, params.scope)
        if self.from_rows and not context.engine.maintenance.has_all_rows(NAME):
            raise Conflict(
                "leaderboards were declared or changed after people were recorded, and not everybody is on them yet",
                hint="run `threadline apply`, or call `leaderboards_refresh` once",
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
        """Places that follow each other: from the very first on, or ``above`` says how many have more than a score."""
        entries: list[Entry] = []
        rank = 0
        reader = self.context.engine.reader
        names = reader.identifiers_of(self.context.workspace, [place.person for place in places])
        for index, place in enumerate(places):
            if not index or place.score != places[index - 1].score:
                rank = index + 1 if above is None else above(place.score) + 1
            identifiers = names.get(place.person, [])
            entries.append(Entry(rank=rank, person=place.person, identifiers=identifiers, score=plain(place.score)))
        return entries

    def count(self, score: int) -> Any:
        """How a score stands among all on the board."""
        return self.context.engine.ranks.counted(
            self.key, score, self.context.now, expiring=self.board.expiring
        )  # fmt: skip


def _board(boards: Boards, params: BoardParams | StandingParams) -> BoardDefinition:
    board = next((each for each in boards.boards if each.name == params.name), None)
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


# --- the first places -----------------------------------------------------------------------


def _leaderboard(boards: Boards, context: Context[Needs], params: BoardParams) -> Leaderboard:
    asked = _Asked(boards, context, params)
    total: int | None = None
    read = 0
    if asked.from_rows:
        places = context.engine.ranks.best(asked.key, context.now, params.limit, expiring=asked.board.expiring)
        total = len(places) if len(places) < params.limit else None
    else:
        best = Nearest(params.limit)
        past = asked.past(best)
        places, total, read = best.places, past.total, past.read
    return Leaderboard(
        name=params.name, period=asked.period.text, scope=params.scope, total=total, as_of=instant(context.now),
        people_read=read, places=asked.entries(places),
    )  # fmt: skip


# --- a person's own -------------------------------------------------------------------------


def _standing(boards: Boards, context: Context[Needs], params: StandingParams) -> Standing:
    asked = _Asked(boards, context, params)
    person = context.engine.reader.person(context.workspace, params.id)
    told = {"name": params.name, "period": asked.period.text, "scope": params.scope, "person": person.id}
    if not asked.from_rows:
        place = asked.past_place(person)
        before, after = (Nearest(params.around, place, before=each) for each in (True, False))
        past = asked.past(before, after)
        around = [*before.places, place, *after.places] if place is not None and params.around else []
        return Standing(
            **told, rank=None if place is None else past.above(place.score) + 1,
            score=plain(0 if place is None else place.score), total=past.total, as_of=instant(context.now),
            people_read=past.read, places=asked.entries(around, past.above),
        )  # fmt: skip
    place = _place(context, person, asked)
    score = 0 if place is None else place.score
    counted = asked.count(score)
    entries: list[Entry] = []
    if place is not None and params.around:
        expiring = asked.board.expiring
        places = context.engine.ranks.around(asked.key, place, context.now, params.around, expiring=expiring)
        entries = asked.entries(places, lambda score: int(asked.count(score).above))
    return Standing(
        **told, rank=None if place is None else counted.above + 1, score=plain(score), total=counted.total,
        as_of=instant(counted.as_of), people_read=0, places=entries,
    )  # fmt: skip


def _place(context: Context[Needs], person: Person, asked: _Asked) -> Place | None:
    """The person's place as their own state tells it: exact at the position that was read, whatever counts know."""
    for row in context.engine.maintenance.rows(person, NAME):
        if board_of(row.partition) == asked.key:
            place = place_of(row.sort)
            return place if place.counts_at(context.now) else None
    return None


# --- what is declared -----------------------------------------------------------------------


class BoardsParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Nothing to choose."""


class BoardView(msgspec.Struct, kw_only=True):
    """What a board ranks, and among whom."""

    name: str
    description: str
    score: str
    periods: list[str]
    per: Annotated[str, Meta(description="The trait whose values have boards of their own; empty: none.")]
    tags: list[str]
    segments: Annotated[list[str], Meta(description="The segments whose members have boards of their own.")] = []


class BoardsResult(msgspec.Struct, kw_only=True):
    """Every board in force."""

    timezone: Annotated[str, Meta(description="The zone whose days, weeks and months these are.")]
    boards: list[BoardView]


def _listed(boards: Boards) -> BoardsResult:
    return BoardsResult(
        timezone=boards.timezone,
        boards=[
            BoardView(
                name=b.name, description=b.description, score=".".join(b.path), periods=list(b.periods), per=b.per,
                tags=list(b.tags), segments=list(b.segments),
            )
            for b in boards.boards
        ],
    )  # fmt: skip


class RefreshParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Nothing to choose."""


class RefreshResult(msgspec.Struct, kw_only=True):
    """What was done."""

    people: Annotated[int, Meta(description="How many people were read, those of all workspaces.")]


def operations(boards: Boards) -> list[Operation]:
    """The operations on these boards."""
    listed = _listed(boards)
    return [
        Operation(
            name="leaderboards_top",
            relies_on=("people", "leaderboards"),
            group=LEADERBOARDS_GROUP,
            summary="List the top of a leaderboard, now or for any past period.",
            params=BoardParams,
            result=Leaderboard,
            run=partial(_leaderboard, boards),
            method="GET",
            path="/v1/leaderboards/{name}",
            example=BoardParams(name="points", period="week", limit=10),
        ),
        Operation(
            name="leaderboards_standing",
            relies_on=("people", "leaderboards"),
            group=LEADERBOARDS_GROUP,
            summary="Show a person's rank on a leaderboard, and the people around them.",
            params=StandingParams,
            result=Standing,
            run=partial(_standing, boards),
            method="GET",
            path="/v1/people/{id}/leaderboards/{name}",
            example=StandingParams(id="user_id:42", name="points", period="week", around=2),
        ),
        Operation(
            name="leaderboards_list", group=LEADERBOARDS_GROUP, summary="List the leaderboards that are declared.",
            params=BoardsParams, result=BoardsResult, run=lambda context, params: listed, method="GET",
            path="/v1/leaderboards", example=BoardsParams(),
        ),
        Operation(
            name="leaderboards_refresh", group=LEADERBOARDS_GROUP,
            summary="Put everybody on the leaderboards again after these were declared or changed; reads every person.",
            params=RefreshParams, result=RefreshResult,
            run=lambda context, params: RefreshResult(people=refresh(context.engine, boards)), method="POST",
            path="/v1/leaderboards/refresh", scope="admin", example=RefreshParams(),
        ),
    ]  # fmt: skip
