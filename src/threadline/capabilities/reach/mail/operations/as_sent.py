"""A mail as it was sent: its template as it was then, filled in with what was known of the person then."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, PersonRef, instant
from threadline.capabilities.foundation.events.instants import person_as_of
from threadline.capabilities.reach.mail.events import MAIL_SENT
from threadline.capabilities.reach.mail.operations import MAIL_GROUP
from threadline.capabilities.reach.mail.order import example_links, order_of, with_context
from threadline.capabilities.reach.mail.templates import TemplateFailed, Templates, render
from threadline.capabilities.reach.messages.context import Cause
from threadline.capabilities.reach.messages.outcomes import outcomes_of
from threadline.kernel.disclosure import NOT_PERSONAL, PERSONAL
from threadline.kernel.errors import NotFound
from threadline.kernel.event import Recorded
from threadline.kernel.operation import Context, Operation, Params, shaped_operation


class MailAsSentParams(Params, kw_only=True):
    """To whom, and which mail."""

    id: PersonRef
    message: Annotated[str, Meta(description="Its id, as `mail_history` lists it.", min_length=1, max_length=64)]


class MailAsSent(msgspec.Struct, kw_only=True):
    """A mail that was sent, made again. Its links lead nowhere: nobody unsubscribes a person by looking at their mail.

    A value that became known later, but is of the time before, is left out as it was then.
    """

    person: str
    message: Annotated[str, NOT_PERSONAL]
    template: str
    version: Annotated[str, Meta(description="That of the template with which it was sent.")]
    at: Annotated[Instant, Meta(description="When it was sent.")]
    subject: Annotated[str, Meta(description="As it was sent."), PERSONAL]
    sender: str
    recipient: Annotated[str, PERSONAL]
    html: Annotated[str, Meta(description="Empty for a mail of text alone."), PERSONAL]
    text: Annotated[str, PERSONAL]


@shaped_operation(
    "GET /v1/people/{id}/mail/messages/{message}",
    MAIL_GROUP,
    example=MailAsSentParams(id="user_id:42", message="5118b8d9fca0480f91b3700aa4bdf2b1"),
)
def as_sent(templates: Templates, context: Context, params: MailAsSentParams) -> MailAsSent:
    """Show a mail as a person got it, with the template and the data of that moment."""
    ports = context.engine
    sent = _sent(context, params)
    record = sent.event.properties
    compiled = templates.of_version(ports.definition_history, str(record["template"]), str(record["version"]))
    identifier = sent.event.identifiers[0]
    # Clocks of two processes differ: what was recorded before the outcome was known when the mail was made.
    recorded_at = instant(sent.recorded_at)
    view = person_as_of(context, f"{identifier.kind}:{identifier.value}", recorded_at).view
    order = order_of(templates, compiled, view, params.message, {**record, "subject": ""})
    cause = Cause(ports, context.workspace, str(record.get("event") or record.get("cause") or ""))
    order = with_context(order, view, cause, example_links(order))
    (rendered,) = render(ports.confined, [(order.compiled, order.context)])
    if isinstance(rendered, TemplateFailed):
        raise rendered
    return MailAsSent(
        person=ports.reader.person_of(sent).id,
        message=params.message,
        template=compiled.template.name,
        version=compiled.version,
        at=instant(sent.event.occurred_at),
        subject=str(record.get("subject") or rendered.subject),
        sender=order.sender.address,
        recipient=order.address,
        html=rendered.html,
        text=rendered.text,
    )


def _sent(context: Context, params: MailAsSentParams) -> Recorded:
    """The event that says that it was sent, to this person."""
    ports, person = context.engine, context.engine.reader.person(context.workspace, params.id)
    for recorded in outcomes_of(ports.log, context.workspace, params.message):
        if recorded.event.type == MAIL_SENT and ports.reader.person_of(recorded).id == person.id:
            return recorded
    hint = "`mail_history` lists what was sent; what still waits, or was skipped, looks like its preview"
    raise NotFound(f"no mail {params.message!r} was sent to this person", hint=hint)


def operations(templates: Templates) -> list[Operation]:
    """The operation that shows it."""
    return [as_sent(templates)]
