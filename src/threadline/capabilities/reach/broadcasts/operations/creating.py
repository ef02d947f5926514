"""Creating a broadcast as a draft, and looking at its audience before anything is sent."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.events.forms import Identifiers
from threadline.capabilities.foundation.jobs.filling import BeingFilled, being_filled
from threadline.capabilities.profile.segments.definition import read_segments
from threadline.capabilities.profile.segments.operations.definitions import Segments
from threadline.capabilities.reach.broadcasts import repository
from threadline.capabilities.reach.broadcasts.audience import Resolver
from threadline.capabilities.reach.broadcasts.definition import Arm, Audience, Broadcast, is_instant, time_and_zone
from threadline.capabilities.reach.broadcasts.operations import BROADCASTS_GROUP
from threadline.capabilities.reach.broadcasts.operations.reading import (
    BroadcastId,
    BroadcastParams,
    BroadcastView,
    view_of,
)
from threadline.capabilities.reach.broadcasts.repository import Created
from threadline.capabilities.reach.mail.definition import Mail, read_mail
from threadline.kernel.disclosure import not_personal
from threadline.kernel.errors import InvalidValue
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.names import NAME
from threadline.kernel.operation import Context, Operation, always, operation, shaped_operation

SAMPLES = 10


class CreateParams(Broadcast, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole broadcast. Nothing is sent before it is started."""

    id: Annotated[BroadcastId, Meta(extra_json_schema={"pattern": f"^{NAME.pattern}$"})]


@key_fields("identifiers", "arm")
class Sample(msgspec.Struct, kw_only=True):
    """Somebody who would get it."""

    person: str
    identifiers: Identifiers
    arm: Annotated[str, Meta(description="`holdout`: gets nothing; empty: gets the winner of the test.")]


@not_personal
class Preview(msgspec.Struct, kw_only=True):
    """The audience as it is now. Nothing was written or sent."""

    id: str
    people: Annotated[int, Meta(description="How many belong to the audience, whether or not they can be written to.")]
    looked_at: Annotated[int, Meta(description="How many people its conditions were put to.")]
    arms: Annotated[dict[str, int], Meta(description="People by arm; `holdout` gets nothing, `rest` the winner.")]
    sample: Annotated[list[Sample], Meta(description=f"{SAMPLES} of them at most, the first by id, which is a hash.")]
    being_filled: BeingFilled = ""


EXAMPLE = CreateParams(
    id="spring-sale",
    template="sale",
    audience=Audience(tags=["newsletter"]),
    at="2026-12-01T09:00",
    zone="Europe/Rome",
    arms=[Arm(name="a"), Arm(name="b", subject="Only until Sunday")],
    holdout=0.05,
)


@shaped_operation(
    "POST /v1/broadcasts/{id}",
    BROADCASTS_GROUP,
    done=("Created the broadcast {id}",),
    scope="admin",
    example=EXAMPLE,
    needs=(("in_zone_of_recipient", "at"),),
)
def create(segments: Segments, mail: Mail | None, context: Context, params: CreateParams) -> BroadcastView:
    """Create a broadcast as a draft. The same call again changes nothing; its id can never be used for another."""
    made = _made(segments, mail, context, params)
    return view_of(context, repository.create(context.engine.store, context.workspace, made))


@shaped_operation(
    "POST /v1/broadcasts/{id}/edit",
    BROADCASTS_GROUP,
    done=("Changed the broadcast {id}",),
    scope="admin",
    example=EXAMPLE,
    needs=(("in_zone_of_recipient", "at"),),
)
def edit(segments: Segments, mail: Mail | None, context: Context, params: CreateParams) -> BroadcastView:
    """Replace a draft: what is not given is as in a new broadcast. A broadcast that was started cannot be edited."""
    made = _made(segments, mail, context, params)
    return view_of(context, repository.edit(context.engine, context.workspace, made))


def _made(segments: Segments, mail: Mail | None, context: Context, params: CreateParams) -> Created:
    """The broadcast that is asked for. Raises `InvalidValue` for a mistake."""
    if not NAME.fullmatch(params.id):
        raise InvalidValue("id: lower-case letters, digits, - and _, beginning with a letter or digit", param="id")
    fields = {name: getattr(params, name) for name in Broadcast.__struct_fields__}
    if params.at:
        fields["at"], fields["zone"] = time_and_zone(params.at, params.zone)
        if params.in_zone_of_recipient and is_instant(params.at):
            raise InvalidValue(
                "at: an instant is the same for everybody; write a local time, or leave `in_zone_of_recipient` out",
                param="at",
            )
    broadcast = Broadcast(**fields)
    broadcast.refuse_mistakes()
    broadcast.refuse_undeclared(mail)
    broadcast.refuse_subjects()
    Resolver(broadcast.audience).refuse_mistakes(context.engine.catalogue, segments)
    assert mail is not None, "refused above"
    template = mail.templates[broadcast.template]
    return Created(
        id=params.id,
        broadcast=broadcast,
        at=context.engine.recorder.clock(),
        by=context.source,
        subject=broadcast.subject or template.subject,
        sender=mail.sender_of(template, broadcast.sender).id,
    )


@operation(
    "GET /v1/broadcasts/{id}/preview", BROADCASTS_GROUP, is_long=always, example=BroadcastParams(id="spring-sale")
)
def preview(context: Context, params: BroadcastParams) -> Preview:
    """Count the audience of a broadcast and show ten of its people; nothing is sent."""
    engine, workspace = context.engine, context.workspace
    broadcast = repository.get(engine.store, workspace, params.id).broadcast
    arms: Counter[str] = Counter()
    looked_at, sample = 0, list[str]()
    resolver = Resolver(broadcast.audience)
    filling = being_filled(engine, resolver.parts)
    for page in resolver.pages(engine, workspace, context.now, PAGE_ITEMS_MAX):
        looked_at += page.looked_at
        arms.update(broadcast.arm_of(params.id, person) or "rest" for person in page.ids)
        sample = sorted([*sample, *page.ids])[:SAMPLES]
    names = engine.reader.identifiers_of(workspace, sample)
    shown = [
        Sample(person=person, identifiers=names.get(person, []), arm=broadcast.arm_of(params.id, person))
        for person in sample
    ]
    return Preview(
        id=params.id,
        people=sum(arms.values()),
        looked_at=looked_at,
        arms=dict(arms),
        sample=shown,
        being_filled=filling,
    )


def declare(definitions: Definitions) -> list[Operation]:
    """The operations that check a broadcast against the declared segments, templates and senders."""
    segments, mail = read_segments(definitions) or (), read_mail(definitions)
    return [create(segments, mail), edit(segments, mail)]
