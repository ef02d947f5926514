"""A person's rank on a leaderboard, and the people around them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from threadline.capabilities.foundation.events.forms import PersonRef, instant
from threadline.capabilities.profile.leaderboards.definition import Boards
from threadline.capabilities.profile.leaderboards.operations import LEADERBOARDS_GROUP
from threadline.capabilities.profile.leaderboards.operations.board_query import (
    BoardChoice,
    BoardQuery,
    Entry,
    Leaderboard,
    parts_of,
)
from threadline.capabilities.profile.leaderboards.projection import NAME, plain
from threadline.capabilities.profile.leaderboards.recomputed import Nearest
from threadline.kernel.operation import Context, Operation, shaped_operation
from threadline.kernel.ports import Person
from threadline.kernel.ranking import Place, board_of, place_of


class Standing(Leaderboard, kw_only=True):
    """A person's own place, and those around it."""

    person: str
    rank: Annotated[int | None, Meta(description="Null for somebody who is not on the board.")]
    score: int | float


class StandingParams(BoardChoice, kw_only=True):
    """Whose place, on which board."""

    id: PersonRef
    around: Annotated[int, Meta(description="How many places before and after it.", ge=0, le=100)] = 0


@shaped_operation(
    "GET /v1/people/{id}/leaderboards/{name}",
    LEADERBOARDS_GROUP,
    relies_on=("leaderboards",),
    relied_on=parts_of,
    example=StandingParams(id="user_id:42", name="points", period="week", around=2),
)
def standing(boards: Boards, context: Context, params: StandingParams) -> Standing:
    """Show a person's rank on a leaderboard, and the people around them."""
    asked = BoardQuery(boards, context, params)
    person = context.engine.reader.person(context.workspace, params.id)
    shared = {"name": params.name, "period": asked.period.text, "scope": params.scope, "person": person.id}
    if not asked.from_rows:
        place = asked.past_place(person)
        before, after = (Nearest(params.around, place, before=is_before) for is_before in (True, False))
        past = asked.past(before, after)
        around = [*before.places, place, *after.places] if place is not None and params.around else []
        return Standing(
            **shared,
            rank=None if place is None else past.above(place.score) + 1,
            score=plain(0 if place is None else place.score),
            total=past.total,
            as_of=instant(context.now),
            people_read=past.read,
            places=asked.entries(around, past.above),
        )
    place = _own_place(context, person, asked)
    score = 0 if place is None else place.score
    counted = asked.count(score)
    entries: list[Entry] = []
    if place is not None and params.around:
        expiring = asked.board.expiring
        places = context.engine.ranks.around(asked.key, place, context.now, params.around, expiring=expiring)
        entries = asked.entries(places, lambda score: int(asked.count(score).above))
    return Standing(
        **shared,
        rank=None if place is None else counted.above + 1,
        score=plain(score),
        total=counted.total,
        as_of=instant(counted.as_of),
        people_read=0,
        places=entries,
    )


def _own_place(context: Context, person: Person, asked: BoardQuery) -> Place | None:
    """The person's place as their own state tells it: exact at the position that was read, whatever counts know."""
    for row in context.engine.maintenance.rows(person, NAME):
        if board_of(row.partition) == asked.key:
            place = place_of(row.sort)
            return place if place.counts_at(context.now) else None
    return None


def operations(boards: Boards) -> list[Operation]:
    """The operation that shows a person's place on these boards."""
    return [standing(boards)]
