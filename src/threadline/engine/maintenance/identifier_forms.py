"""People who are known by two forms of one address or number, one of an earlier version: found, and joined."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from threadline.engine.folding.person import Person
from threadline.engine.reading.person_reader import PersonReader
from threadline.engine.recording.identity import objections
from threadline.engine.recording.merging import IdentityAdministration
from threadline.kernel.event import Identifier, thread_id
from threadline.kernel.ids import short_hash

REASON = "two forms of one identifier"


class TwoForms(NamedTuple):
    """An identifier in a form of an earlier version and in today's, and the people who are known by them."""

    workspace: str
    former: Identifier
    normal: Identifier
    person: str
    """Whose the former one is."""
    other: str
    """Whose today's is."""
    objection: str
    """Why they are not joined; empty if they may be."""


def two_forms(reader: PersonReader) -> Iterator[TwoForms]:
    """The pairs of people of a store who are one by today's forms, in the order of a scan."""
    after = ""
    while True:
        page, after = reader.people(None, after)
        for person in page:
            yield from _of_person(reader, person)
        if not after:
            return


def _of_person(reader: PersonReader, person: Person) -> Iterator[TwoForms]:
    rules = reader.catalogue.rules
    for former in person.identifiers.values():
        normal = rules.normalise(former)
        if normal is None or normal == former or not rules.identifies(normal):
            continue
        # Read again: somebody of the same page may have been joined with them since.
        owner, other = (reader.by_thread(thread_id(person.workspace, form)) for form in (former, normal))
        if owner is not None and other is not None and other.id != owner.id:
            against = objections(rules, owner, other.identifiers.values(), other)
            yield TwoForms(person.workspace, former, normal, owner.id, other.id, against)


def join_forms(identity: IdentityAdministration, pair: TwoForms, by: str) -> tuple[str, str]:
    """Join such a pair by an event, which can be undone; the ids of (survivor, merged). Twice, it is a `Conflict`."""
    request = f"forms/{short_hash(pair.workspace, str(pair.former), pair.person, pair.other)}"
    return identity.merge(pair.workspace, pair.person, pair.other, request=request, reason=REASON, by=by)
