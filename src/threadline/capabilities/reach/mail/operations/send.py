"""Sends one mail to one person."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import EventId, PersonRef, checked_id
from threadline.capabilities.foundation.events.requests import RequestKey, derived_key, place_and_key, wish
from threadline.capabilities.reach.mail.events import MAIL_REQUESTED
from threadline.capabilities.reach.mail.operations import MAIL_GROUP
from threadline.capabilities.reach.mail.operations.templates import Name
from threadline.capabilities.reach.mail.policy import NAME, REQUEST
from threadline.capabilities.reach.mail.templates import Templates
from threadline.kernel.canonical import canonical_json
from threadline.kernel.disclosure import not_personal
from threadline.kernel.errors import Conflict, InvalidValue
from threadline.kernel.names import names_a
from threadline.kernel.operation import Context, Operation, Params, shaped_operation
from threadline.kernel.suggestion import suggestion


class MailSendParams(Params, kw_only=True):
    """To whom, which template, and what it says besides."""

    id: PersonRef
    template: Name
    variables: Annotated[dict[str, Any] | None, Meta(description="The template's variables by name.")] = None
    sender: Annotated[
        str, names_a("sender"), Meta(description="A declared sender other than the template's.", max_length=64)
    ] = ""
    topic: Annotated[str, names_a("topic"), Meta(description="A topic other than the template's.", max_length=64)] = ""
    event: Annotated[str, Meta(description="The id of the event that the template sees.", max_length=64)] = ""
    request: RequestKey = ""


@not_personal
class MailSendResult(msgspec.Struct, kw_only=True):
    """The mail waits in the outbox; its result is in the person's history."""

    person: str
    message: Annotated[str, Meta(description="The id of its effect, and the beginning of its Message-ID.")]
    event: Annotated[EventId, Meta(description="The event of the request.")]
    status: Annotated[Literal["queued", "duplicate"], Meta(description="duplicate: this request was made before.")]


@shaped_operation(
    "POST /v1/people/{id}/mail",
    MAIL_GROUP,
    done=("Sent the mail {template}",),
    scope="write",
    example=MailSendParams(id="user_id:42", template="welcome", variables={"code": "A1"}, request="welcome-42"),
)
def send(templates: Templates, context: Context, params: MailSendParams) -> MailSendResult:
    """Send one mail to a person."""
    template = templates.named(params.template).template
    templates.mail.sender_of(template, params.sender)
    _check_variables(templates, params)
    if params.event:
        context.engine.log.event(context.workspace, checked_id(params.event))
    person = context.engine.reader.person(context.workspace, params.id)
    properties: dict[str, Any] = {"template": params.template, "variables": params.variables or {}}
    properties |= {name: value for name in ("sender", "topic", "event") if (value := getattr(params, name))}
    request = params.request or derived_key(str(person.position), canonical_json(properties).decode())
    identifier, key = place_and_key(context, person, MAIL_REQUESTED, request, named=params.request)
    # The operation vouches for it: an event of this type from a producer is recorded and sends nothing.
    event = wish(context, identifier, MAIL_REQUESTED, properties, key, vouched=True)
    receipt = context.engine.recorder.record([event], known=True)[0]
    if receipt.status == "conflict":
        raise Conflict(f"the request {params.request!r} was used for another mail; give this one its own name")
    if receipt.status == "rejected":
        raise InvalidValue(receipt.message)
    effect = context.engine.delivery.effect(context.workspace, NAME, receipt.id, REQUEST, event.occurred_at)
    return MailSendResult(
        person=receipt.person or person.id,
        message=effect.id,
        event=receipt.id,
        status="queued" if receipt.status == "accepted" else "duplicate",
    )


def _check_variables(templates: Templates, params: MailSendParams) -> None:
    """A caller learns of a mistake at once, and not from a dead letter."""
    declared = templates.named(params.template).template.variables
    given = params.variables or {}
    for name in given:
        if name not in declared:
            raise InvalidValue(
                f"the template {params.template!r} has no variable {name[:64]!r}; {suggestion(name, declared)}",
                param="variables",
            )
    missing = [name for name, variable in declared.items() if variable.default is None and name not in given]
    if missing:
        raise InvalidValue(f"the template {params.template!r} needs the variable {missing[0]!r}", param="variables")


def operations(templates: Templates) -> list[Operation]:
    """The operation that sends."""
    return [send(templates)]
