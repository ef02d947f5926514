"""Sends one mail to one person."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import EventId, PersonRef, checked_id
from threadline.capabilities.foundation.events.requests import RequestKey
from threadline.capabilities.reach.mail.events import MAIL_REQUESTED
from threadline.capabilities.reach.mail.operations import MAIL_GROUP
from threadline.capabilities.reach.mail.operations.templates import Name
from threadline.capabilities.reach.mail.policy import NAME, REQUEST
from threadline.capabilities.reach.mail.templates import Templates
from threadline.capabilities.reach.messages.requests import Asking, check_variables, requested
from threadline.kernel.disclosure import not_personal
from threadline.kernel.names import names_a
from threadline.kernel.operation import Context, Operation, Params, shaped_operation

_ASKING = Asking(MAIL_REQUESTED, NAME, REQUEST, "mail")


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
    check_variables(params.template, template.variables, params.variables or {})
    if params.event:
        context.engine.log.event(context.workspace, checked_id(params.event))
    properties: dict[str, Any] = {"template": params.template, "variables": params.variables or {}}
    properties |= {name: value for name in ("sender", "topic", "event") if (value := getattr(params, name))}
    asked = requested(_ASKING, context, params.id, properties, params.request)
    return MailSendResult(person=asked.person, message=asked.message, event=asked.event, status=asked.status)


def operations(templates: Templates) -> list[Operation]:
    """The operation that sends."""
    return [send(templates)]
