"""Everybody put on the leaderboards anew: scores that views tell are told again, and missing rows are written."""

from __future__ import annotations

from functools import partial

from threadline.capabilities.profile.leaderboards.definition import Boards
from threadline.capabilities.profile.leaderboards.events import LEADERBOARDS_REFRESHED
from threadline.capabilities.profile.leaderboards.policy import lacks
from threadline.capabilities.profile.leaderboards.projection import NAME
from threadline.kernel.event import Event, marks_of
from threadline.kernel.operation import Refresh, RefreshPart, refresh_reason
from threadline.kernel.ports import Person, Ports
from threadline.kernel.why import Why


def boards_refresh(boards: Boards) -> Refresh:
    """The refresh of everybody's places, by these definitions."""
    parts = {board.name: RefreshPart(boards.fingerprint, board.reads) for board in boards.boards}
    return Refresh(
        NAME,
        boards.fingerprint,
        partial(_page, boards),
        parts,
        event=LEADERBOARDS_REFRESHED,
        lacks=partial(lacks, boards),
    )


def _page(boards: Boards, engine: Ports, after: str, limit: int) -> tuple[int, str]:
    if all(board.of_ledger for board in boards.boards):
        return engine.maintenance.write_rows(NAME), ""
    # Rows are marked as written for everybody, so it is everybody who is asked, whatever the workspace.
    page, after = engine.reader.people(None, after, limit)
    why = refresh_reason(engine, NAME)
    engine.recorder.record([_asked(engine, boards, person, why) for person in page], known=True)
    if not after:
        engine.maintenance.write_rows(NAME)
    return len(page), after


def _asked(engine: Ports, boards: Boards, person: Person, why: Why) -> Event:
    # A function of the definitions and of what is known: sent again before anything has happened it is the same event.
    key, at = f"{person.id}/{boards.fingerprint}/{person.position}", engine.recorder.clock()
    return Event(
        type=LEADERBOARDS_REFRESHED,
        identifiers=(person.identifiers[person.id],),
        occurred_at=at,
        key=key,
        source="threadline.leaderboards",
        source_type="internal",
        workspace=person.workspace,
        received_at=at,
        marks=marks_of(why),
    )
