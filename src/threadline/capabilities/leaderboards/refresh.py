"""Everybody put on the leaderboards anew: scores that views tell are told again, and missing rows are written."""

from __future__ import annotations

from typing import Protocol

from threadline.capabilities.leaderboards.definition import Boards
from threadline.capabilities.leaderboards.events import LEADERBOARDS_REFRESHED
from threadline.capabilities.leaderboards.projection import NAME
from threadline.kernel.event import Event
from threadline.kernel.operation import Context
from threadline.kernel.ports import Person, WithMaintenance, WithReader, WithRecorder

_PAGE = 500


class Needs(WithReader, WithRecorder, WithMaintenance, Protocol):
    """What is needed here of the engine."""


def refresh(context: Context[Needs], boards: Boards) -> int:
    """Do it, page by page, beside live traffic; may be called again after an interruption. Answers how many people."""
    if any(not board.of_ledger for board in boards.boards):
        after = ""
        while True:
            # Rows are marked as written for everybody, so it is everybody who is asked, whatever the workspace.
            page, after = context.engine.reader.people(None, after, _PAGE)
            context.engine.recorder.record([_asked(context, boards, person) for person in page], known=True)
            if not after:
                break
    people: int = context.engine.maintenance.write_rows(NAME)
    return people


def _asked(context: Context[WithRecorder], boards: Boards, person: Person) -> Event:
    # A function of the definitions and of what is known: sent again before anything has happened it is the same event.
    key, at = f"{person.id}/{boards.fingerprint}/{person.position}", context.engine.recorder.clock()
    return Event(
        type=LEADERBOARDS_REFRESHED, identifiers=(person.identifiers[person.id],), occurred_at=at, key=key,
        source="threadline.leaderboards", source_type="internal", workspace=person.workspace, received_at=at,
    )  # fmt: skip
