"""Work: the events of one group are appended, folded and reacted to, and their changes sealed."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.engine.folding.person import Person
from threadline.engine.folding.person_view import ReactingPersonView
from threadline.engine.recording.attempt import Attempt
from threadline.engine.recording.identity import resolve, review_alias
from threadline.engine.recording.reactions import AttemptReactions, TracedReactions, cascade, look_first, note_fired
from threadline.engine.recording.retry import PROJECTION_FAILED, ConcurrencyConflict, UnrecordableEvents
from threadline.engine.recording.validation import ValidatedEvent
from threadline.kernel.errors import Conflict, EventDamaged, ThreadlineError
from threadline.kernel.event import Receipt, Recorded
from threadline.kernel.identity import ALIAS
from threadline.kernel.policy import TIMER_FIRED


def work(attempt: Attempt, events: Sequence[ValidatedEvent]) -> None:
    """Record the events of one group in an attempt. Raises `ConcurrencyConflict` or `UnrecordableEvents`: then nothing
    of the group is to be committed."""
    for event in events:
        try:
            _record(attempt, event)
        except UnrecordableEvents as error:
            raise error if error.positions else UnrecordableEvents([event.position], error.code, str(error)) from error
        except Conflict as error:
            # The ids of consequences come from the event: another process has recorded it since this attempt read.
            raise ConcurrencyConflict(f"event {event.id} has joined two people already") from error
        except EventDamaged as error:
            # It needs an event that cannot be read. The rejected log keeps it until that is repaired; its neighbours
            # are recorded.
            raise UnrecordableEvents([event.position], error.code, str(error)) from error
        except (ThreadlineError, ConcurrencyConflict):
            raise
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            raise UnrecordableEvents([event.position], PROJECTION_FAILED, message) from error
    attempt.changes.seal_open()


def _record(attempt: Attempt, validated: ValidatedEvent) -> None:
    request = validated.request
    attempt.changes.position = validated.position
    person, thread = _person_of(attempt, validated)
    if request.expected is not None and request.expected != person.position:
        # Void, not only rejected: finding the person may have created, linked or joined people already.
        message = f"expected position {request.expected}, the person is at {person.position}; read and decide again"
        raise UnrecordableEvents([validated.position], "position_conflict", message)
    if validated.event.type == ALIAS:
        review_alias(attempt, person, validated)
    if attempt.unfilled:
        look_first(attempt, person, validated.event.type, validated.id)
    if validated.event.type == TIMER_FIRED:
        note_fired(person, thread, validated.event)
    plan = attempt.plans.of_event(validated.event)
    recorded = attempt.append(person, thread, validated, plan)
    if plan.awaits == -1 or plan.awaits & attempt.touched.get(validated.id, 0):
        trace = attempt.trace
        reactions = AttemptReactions(attempt) if trace is None else TracedReactions(attempt, trace, validated.id)
        cascade(reactions, person, recorded)
    if validated.position in attempt.isolation.alone:
        attempt.changes.seal(attempt.changes.of(person))
    attempt.receipts[validated.position] = Receipt(
        status="accepted", id=validated.id, person=person.id, thread=thread, sequence=recorded.sequence
    )


def _person_of(attempt: Attempt, validated: ValidatedEvent) -> tuple[Person, str]:
    """The person and the thread of an event: nearly always one who has all of its identifiers."""
    names, owners = validated.names, attempt.people.owners
    person = owners.get(names[0].thread)
    if person is not None:
        for name in names:
            if owners.get(name.thread) is not person:
                break
        else:
            return person, names[0].thread
    return resolve(attempt, validated.event.workspace, names, validated.id, validated.event.why)


def fold_only(attempt: Attempt, validated: ValidatedEvent) -> tuple[Recorded, ReactingPersonView]:
    """An event, appended and folded, and its person right after it. Policies are not asked."""
    event = validated.event
    person, thread = resolve(attempt, event.workspace, validated.names, validated.id, event.why)
    recorded = attempt.append(person, thread, validated, attempt.plans.of_event(event))
    return recorded, AttemptReactions(attempt).known(person, recorded)
