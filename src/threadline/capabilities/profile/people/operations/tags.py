"""Tags that an operator puts on a person or takes off."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import PersonRef
from threadline.capabilities.foundation.events.requests import (
    RequestKey,
    RequestName,
    derived_key,
    name_of,
    place_and_key,
    wish,
)
from threadline.capabilities.profile.people.events import TAG_ADDED, TAG_REMOVED
from threadline.capabilities.profile.people.operations import PEOPLE_GROUP
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Event, Receipt
from threadline.kernel.limits import IDENTIFIER_LENGTH_MAX
from threadline.kernel.names import offers
from threadline.kernel.operation import Context, Params, operation
from threadline.kernel.ports import Person

Tag = Annotated[str, offers("tag"), Meta(min_length=1, max_length=IDENTIFIER_LENGTH_MAX)]


class TagParams(Params, kw_only=True):
    """Which tags to put on a person and which to take off."""

    id: PersonRef
    add: Annotated[list[Tag], Meta(max_length=100)] = []
    remove: Annotated[list[Tag], Meta(max_length=100)] = []
    request: RequestKey = ""


class TagResult(msgspec.Struct, kw_only=True):
    """The tags now, and a receipt for each event that this took: none for a tag that stood as wished."""

    person: str
    tags: list[str]
    receipts: list[Receipt]


@operation(
    "POST /v1/people/{id}/tags",
    PEOPLE_GROUP,
    done=(
        "Tagged {add}, no longer {remove}",
        "Tagged {add}",
        "Removed the tag {remove}",
    ),
    scope="write",
    example=TagParams(id="user_id:42", add=["vip"]),
    refused=lambda result: bool(result.receipts) and all(receipt.status == "rejected" for receipt in result.receipts),
)
def tag(context: Context, params: TagParams) -> TagResult:
    """Add tags to a person, and remove tags."""
    if both := set(params.add) & set(params.remove):
        raise InvalidValue(f"{min(both)!r} cannot be both added and removed")
    for tag in (*params.add, *params.remove):
        # A longer one could be told but would be kept by no projection.
        if len(tag.encode("utf-8", "surrogatepass")) > IDENTIFIER_LENGTH_MAX:
            raise InvalidValue(f"a tag has at most {IDENTIFIER_LENGTH_MAX} bytes of UTF-8")
    engine = context.engine
    person = engine.reader.person(context.workspace, params.id)
    tags = _tags(context, person)
    # What stands as wished needs no event, unless this very request has made it so: its repetition meets the same
    # events. Without a request the position makes a later wish of the same words another one.
    wishes = [(TAG_ADDED, tag, tag in tags) for tag in dict.fromkeys(params.add)]
    wishes += [(TAG_REMOVED, tag, tag not in tags) for tag in dict.fromkeys(params.remove)]
    name = _name_of(context, person, params) if params.request else None
    wished = ((_tag_event(context, person, kind, tag, params.request, name), stands) for kind, tag, stands in wishes)
    events = [event for event, stands in wished if not stands or (params.request and _is_known(context, event))]
    if name is not None and events and not any(_is_known(context, event) for event in events):
        events[0] = name.given_to(events[0])
    receipts = engine.recorder.record(events, known=True) if events else []
    if name is not None and any(receipt.status == "conflict" for receipt in receipts):
        raise name.conflict()
    person = engine.reader.person(context.workspace, person.id)
    return TagResult(person=person.id, tags=_tags(context, person), receipts=receipts)


def _name_of(context: Context, person: Person, params: TagParams) -> RequestName:
    content = derived_key(*sorted({f"+{tag}" for tag in params.add} | {f"-{tag}" for tag in params.remove}))
    return name_of(context, person, tag.name, params.request, content)


def _is_known(context: Context, event: Event) -> bool:
    return context.engine.log.of_key(context.workspace, event.source, event.key) is not None


def _tags(context: Context, person: Person) -> list[str]:
    views = context.engine.reader.views(person, context.engine.recorder.now(), names=["profile"])
    tags: list[str] = views["profile"]["tags"]
    return tags


def _tag_event(context: Context, person: Person, kind: str, tag: str, request: str, name: RequestName | None) -> Event:
    parts = (kind, tag, request or f"at {person.position}")
    identifier, key = place_and_key(context, person, *parts, named=request)
    event = wish(context, identifier, kind, {"tag": tag}, key)
    first = None if name is None else name.first
    if name is not None and first is not None and (first.type, first.properties["tag"]) == (kind, tag):
        return name.given_to(event)
    return event
