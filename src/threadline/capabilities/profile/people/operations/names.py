"""What to call people: many of them, read together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import PersonRef
from threadline.capabilities.profile.people.operations import PEOPLE_GROUP
from threadline.capabilities.profile.people.operations.person import name_in
from threadline.kernel.event import identifier_named, is_thread_id
from threadline.kernel.operation import Context, Params, operation
from threadline.kernel.ports import Person

PEOPLE_MAX = 500


class NamesParams(Params, kw_only=True):
    """Whom to name."""

    people: Annotated[list[PersonRef], Meta(description="Ids and identifiers.", min_length=1, max_length=PEOPLE_MAX)]


class PersonName(msgspec.Struct, kw_only=True):
    """What to call a person."""

    id: str
    name: Annotated[
        str, Meta(description="Their name, else their e-mail address, else the value of their strongest identifier.")
    ]


class Names(msgspec.Struct, kw_only=True):
    """People by what they were asked for with; unknown people are left out."""

    people: dict[str, PersonName]


@operation("GET /v1/people-names", PEOPLE_GROUP, example=NamesParams(people=["user_id:42", "email:ada@example.com"]))
def names(context: Context, params: NamesParams) -> Names:
    """Give the display names of up to 500 people."""
    threads = {ref: list(_threads(context, ref)) for ref in params.people}
    by_thread = context.engine.reader.by_threads([thread for some in threads.values() for thread in some])
    people = {
        ref: next((by_thread[thread] for thread in some if thread in by_thread), None) for ref, some in threads.items()
    }
    return Names(
        people={
            ref: PersonName(id=person.id, name=_name(context, person))
            for ref, person in people.items()
            if person is not None and person.workspace == context.workspace
        }
    )


def _threads(context: Context, ref: str) -> Iterator[str]:
    """The threads that a text may mean: it may have the form of an id, and be a user id."""
    if is_thread_id(ref):
        yield ref
    yield from context.engine.catalogue.rules.threads(context.workspace, identifier_named(ref))


def _name(context: Context, person: Person) -> str:
    views = context.engine.reader.views(person, context.now, names=["profile"])
    if name := name_in(views.get("profile", {}).get("traits", {})):
        return name
    ranked = sorted(person.identifiers.values(), key=context.engine.catalogue.rules.rank)
    best = next((identifier for identifier in ranked if identifier.kind == "email"), ranked[0] if ranked else None)
    return person.id if best is None else best.value
