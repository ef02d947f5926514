"""Requests of callers: the event of an operation, recorded once however often and by whomever it is sent."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from msgspec import Meta
from msgspec.structs import replace

from threadline.kernel.canonical import canonical_json
from threadline.kernel.errors import Conflict
from threadline.kernel.event import Event, Identifier, event_id
from threadline.kernel.operation import Context
from threadline.kernel.ports import Person

WISHES = "threadline.wishes"
"""The source of what operations record for a caller. Keys are unique by source, and a wish that is sent again may come
with another credential or from the command line: it is the same wish whoever sends it."""

RequestKey = Annotated[
    str,
    Meta(
        description="Names this call, so that repeating it changes nothing. Without it every call counts as new.",
        max_length=100,
    ),
]


def wish(
    context: Context,
    identifier: Identifier,
    type: str,
    properties: dict[str, Any],
    key: str,
    *,
    vouched: bool = False,
    source: str = WISHES,
) -> Event:
    """The event of a wish. ``vouched``: the operation vouches for what no producer may tell under this type.

    Who sent it stands in `Event.wire`, which is no part of the payload: a retry need not repeat it.
    """
    at = context.engine.recorder.clock()
    return Event(
        type=type,
        identifiers=(identifier,),
        occurred_at=at,
        key=key,
        source=source,
        source_type="internal" if vouched else context.source_type,
        workspace=context.workspace,
        properties=properties,
        received_at=at,
        wire={"by": context.source},
    )


def derived_key(*parts: str) -> str:
    """An idempotency key of 32 hex digits that is a function of these parts, however long they are."""
    return event_id("", "", canonical_json(parts).decode())


def place_and_key(
    context: Context, person: Person, *parts: str, named: str, source: str = WISHES
) -> tuple[Identifier, str]:
    """Whose thread a wish about a person goes to, and its key, which is made of the person's id and these parts.

    If its caller ``named`` it, and told it of somebody who has been merged into the person since, it keeps the place
    and the key of then: sent again it is the same wish.
    """
    # The threads of whoever was merged are the person's, and one of them is that of the id they had.
    keys = [derived_key(id, *parts) for id in dict.fromkeys((person.id, *(person.heads if named else ())))]
    earlier = context.engine.log.of_keys(context.workspace, (source,), keys) if len(keys) > 1 else None
    if earlier is not None and earlier.thread in person.identifiers:
        return person.identifiers[earlier.thread], earlier.event.key
    # Of what its caller has not named, somebody who has come back asks anew.
    key = keys[0] if named else context.engine.log.unerased_key(context.workspace, source, keys[0])
    return person.identifiers[person.id], key


class RequestName(NamedTuple):
    """The place and key of the first event that a named request of several events makes. They alone are the same
    whatever is asked for, so that it is noticed if that is something else the next time."""

    request: str
    identifier: Identifier
    key: str
    content: str
    """All that was asked for, as a digest. It stands in `Event.wire`, so that the event reads as any other."""
    first: Event | None

    def given_to(self, event: Event) -> Event:
        """The event as the first one of the request."""
        return replace(
            event, identifiers=(self.identifier,), key=self.key, wire={**event.wire, "content": self.content}
        )

    def conflict(self) -> Conflict:
        """What is raised for other content."""
        return Conflict(f"the request {self.request!r} was used for something else; give this one its own name")


def name_of(context: Context, person: Person, operation: str, request: str, content: str) -> RequestName:
    """Raises `Conflict` for a name that was used for other content. A request that changed nothing has used none."""
    identifier, key = place_and_key(context, person, operation, request, named=request)
    recorded = context.engine.log.of_key(context.workspace, WISHES, key)
    name = RequestName(request, identifier, key, content, None if recorded is None else recorded.event)
    if recorded is not None and recorded.event.wire.get("content") != content:
        raise name.conflict()
    return name
