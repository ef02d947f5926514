"""Who would stand first on a leaderboard that is being written."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.drafts.draft import Text, read_draft
from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.capabilities.foundation.events.sample import Deadline, Estimate, Seconds, sample
from threadline.capabilities.profile.leaderboards.definition import ALL, BoardDefinition, Period, period_of, read_boards
from threadline.capabilities.profile.leaderboards.operations import LEADERBOARDS_GROUP
from threadline.capabilities.profile.leaderboards.operations.board_query import Entry, entries_of
from threadline.capabilities.profile.leaderboards.policy import measured
from threadline.capabilities.profile.leaderboards.recomputed import Nearest, score_of
from threadline.kernel.calendar import Calendar
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.operation import Context, Params, always, operation
from threadline.kernel.ports import Person
from threadline.kernel.ranking import Place

LEADERBOARDS = "leaderboards"
PAGE = 200
"""People between two looks at the clock."""
PLACES = 10
UNNAMED = "draft"
"""What a leaderboard is called that has no name yet."""


class BoardPreviewParams(Params, kw_only=True):
    """Which leaderboard."""

    text: Annotated[Text, Meta(description="What stands under the name of the leaderboard: `score`, `periods` …")]
    name: Annotated[str, Meta(description="Its name; it may be one in force.", max_length=64)] = ""
    seconds: Seconds = 2


class BoardPreview(msgspec.Struct, kw_only=True):
    """The first places of the board among the people who were looked at. Nothing was changed."""

    name: str
    as_of: Instant
    period: Annotated[str, Meta(description="The longest that it is kept by: 2026-03, or all; the present one.")]
    people_read: int
    exact: Annotated[
        bool, Meta(description="Whether everybody was looked at; else the places are those among the people looked at.")
    ]
    ranked: Annotated[Estimate, Meta(description="People who would stand on it.")]
    places: Annotated[list[Entry], Meta(description="The first ten, of everybody together.")]


@operation(
    "POST /v1/leaderboards/preview",
    LEADERBOARDS_GROUP,
    is_long=always,
    shown_on=frozenset({"http", "python"}),
    relies_on=("people",),
    example=BoardPreviewParams(name="top_buyers", text="score: features.monetary_total"),
    audited=False,
)
def preview(context: Context, params: BoardPreviewParams) -> BoardPreview:
    """Rank people by a leaderboard that is being written, and show its first ten places."""
    name = params.name or UNNAMED
    read = read_draft(context, params.text, LEADERBOARDS, name)
    if read.problems:
        raise InvalidDefinition("\n".join(map(str, read.problems)), param="text")
    boards = read_boards(read.definitions)
    board = next(board for board in boards.boards if board.name == name)
    calendar = boards.calendar
    period = period_of(board.periods[-1], calendar.day(context.now), calendar)
    best, people, ranked = Nearest(PLACES), 0, 0
    deadline, after = Deadline(context, params.seconds), ""
    while True:
        page, after = context.engine.reader.people(context.workspace, after, PAGE)
        for person in page:
            score = _score(context, board, period, calendar, person)
            people, ranked = people + 1, ranked + bool(score)
            if score:
                best.take(Place(score, person.id, None))
        if not after or deadline.is_over:
            break
    looked = sample(people, after)
    return BoardPreview(
        name=name,
        as_of=instant(context.now),
        period=period.text,
        people_read=people,
        exact=looked.share >= 1,
        ranked=looked.estimate(ranked),
        places=entries_of(context, best.places),
    )


def _score(context: Context, board: BoardDefinition, period: Period, calendar: Calendar, person: Person) -> int:
    """A person's score now, in millionths; 0 for who stands nowhere."""
    if period.kind != ALL:
        return score_of(context, board, period, context.now, "", calendar, person)
    view = context.engine.reader.views(person, context.now, names=[board.path[0]]).get(board.path[0])
    score = measured(board, view).score
    return max(score, 0) if board.of_ledger else score
