"""One event placed: whose it is, its place in their thread, and what policies make of it."""

from __future__ import annotations

from threadline.engine.cascade import cascade
from threadline.engine.group import Group
from threadline.engine.identity import resolve
from threadline.engine.known import KnownPerson
from threadline.engine.screen import Screened
from threadline.engine.void import Overtaken, Poisoned
from threadline.engine.wishes import note_fired
from threadline.kernel.errors import Conflict, ThreadlineError
from threadline.kernel.event import Receipt, Recorded
from threadline.kernel.policy import TIMER_FIRED


def place(group: Group, one: Screened) -> None:
    """Record one event in a group: resolve its person, append, fold, and let policies react."""
    event = one.event
    expected = one.request.expected
    group.placing = one.position
    try:
        person, thread = resolve(group, event.workspace, one.named, one.id)
        if expected is not None and expected != person.position:
            # Void, not only rejected: finding the person may have created, linked or joined people already.
            message = f"expected position {expected}, the person is at {person.position}; read and decide again"
            raise Poisoned([one.position], "position_conflict", message)
        if event.type == TIMER_FIRED:
            note_fired(person, thread, event)
        recorded = group.append(person, thread, one)
        cascade(group, person, recorded)
    except Poisoned as poison:
        raise poison if poison.positions else Poisoned([one.position], poison.code, str(poison)) from poison
    except Conflict as error:
        # What an event brings about bears its id: another process has recorded it since this attempt looked.
        raise Overtaken(f"event {one.id} has joined two people already") from error
    except (ThreadlineError, Overtaken):
        raise
    except Exception as error:
        raise Poisoned([one.position], "projection_failed", f"{type(error).__name__}: {error}") from error
    if one.position in group.care.alone:
        group.seal(group.draft(person))
    group.receipts[one.position] = Receipt(
        status="accepted", id=one.id, person=person.id, thread=thread, sequence=recorded.sequence
    )


def fold_only(group: Group, one: Screened) -> tuple[Recorded, KnownPerson]:
    """An event in its place, and its person right after it, for who only wants to look. Policies are not asked."""
    person, thread = resolve(group, one.event.workspace, one.named, one.id)
    recorded = group.append(person, thread, one)
    return recorded, group.known(person, recorded)
