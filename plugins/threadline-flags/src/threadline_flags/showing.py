"""A flag for somebody: whom the targeting key names, what is known of them, and the event of what they were shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from threadline.capabilities.foundation.conditions import Subject
from threadline.kernel.errors import BeingErased, InvalidValue, NotFound
from threadline.kernel.event import Event
from threadline.kernel.ports import Person, Ports
from threadline.kernel.time import DAY
from threadline_flags.definition import Flag
from threadline_flags.evaluating import Evaluation, subject_of
from threadline_flags.events import FLAG_EXPOSED, SOURCE
from threadline_flags.projection import NAME, is_shown_today


class Asked(NamedTuple):
    """Somebody for whom flags are asked."""

    person: Person | None
    """None: nobody is known by the targeting key, and nobody is created."""
    subject: Subject


def asked_for(engine: Ports, workspace: str, key: str, context: Mapping[str, Any], now: int) -> Asked:
    """Whom a targeting key names: a user id, another identifier as kind:value, or a person's id."""
    try:
        person: Person | None = engine.reader.person(workspace, key)
    except (NotFound, InvalidValue, BeingErased):
        person = None
    return Asked(person, subject_of(lambda name: _view(engine, person, name, now), key, context, now))


def subject_for(engine: Ports, person: Person, key: str, now: int) -> Subject:
    """Somebody who is known, without the context of a call."""
    return subject_of(lambda name: _view(engine, person, name, now), key, {}, now)


def _view(engine: Ports, person: Person | None, name: str, now: int) -> Any:
    if person is None:
        return engine.catalogue.of_nobody(name, now)
    return engine.reader.views(person, now, names=(name,)).get(name)


def expose(engine: Ports, asked: Asked, flag: Flag, given: Evaluation, now: int) -> None:
    """Record that somebody who is known was shown a variant, unless it is recorded of this day."""
    person = asked.person
    if person is None or given.reason == "DISABLED":
        return
    if is_shown_today(asked.subject.view(NAME), flag.name, given.variant, now):
        return
    engine.recorder.record(
        [
            Event(
                type=FLAG_EXPOSED,
                identifiers=(person.identifiers[person.id],),
                occurred_at=now,
                # Two calls at the same moment are one exposure.
                key=f"{person.id}/{now // DAY}/{flag.name}/{given.variant}",
                source=SOURCE,
                source_type="internal",
                workspace=person.workspace,
                properties={"flag": flag.name, "variant": given.variant, "reason": given.reason},
            )
        ]
    )
