"""A mail as it would go to somebody, without sending it."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import checked_id
from threadline.capabilities.reach.consent.refusal import refusals
from threadline.capabilities.reach.mail.definition import INBOX
from threadline.capabilities.reach.mail.message import address_of, message_of
from threadline.capabilities.reach.mail.operations import MAIL_GROUP
from threadline.capabilities.reach.mail.operations.templates import Name, Version
from threadline.capabilities.reach.mail.order import example_links, links_of, order_of, with_context
from threadline.capabilities.reach.mail.remarks import remarks
from threadline.capabilities.reach.mail.templates import Compiled, TemplateFailed, Templates, render
from threadline.capabilities.reach.messages.context import Cause, Facts
from threadline.capabilities.reach.messages.preparation import mailing_of
from threadline.kernel.disclosure import NOT_PERSONAL, PERSONAL, SENTENCE
from threadline.kernel.errors import InvalidSetting
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.names import names_a
from threadline.kernel.operation import Context, Operation, Params, always, shaped_operation
from threadline.kernel.person_view import PersonView
from threadline.kernel.projection import Edge

PREVIEW = "0" * 32
"""Stands for the id of the effect."""


_ADA = (Identifier("user_id", "ada"), Identifier("email", "ada@example.com"))


class MailPreviewParams(Params, kw_only=True):
    """Which template, and for whom."""

    template: Name
    person: Annotated[
        str, Meta(description="For whom; without it for somebody made up of what it asks for.", max_length=1_024)
    ] = ""
    variables: Annotated[
        dict[str, Any] | None, Meta(description="The examples and defaults of those that are absent count.")
    ] = None
    subject: Annotated[str, Meta(description="Instead of the template's, and filled in like it.", max_length=500)] = ""
    sender: Annotated[
        str, names_a("sender"), Meta(description="A declared sender other than the template's.", max_length=64)
    ] = ""
    event: Annotated[str, Meta(description="The id of the event that it sees.", max_length=64)] = ""
    language: Annotated[
        str, Meta(description="One of the template's languages; else the one that the person gets.", max_length=32)
    ] = ""
    version: Version = ""


class MailPreviewResult(msgspec.Struct, kw_only=True):
    """The mail."""

    template: str
    version: str
    language: Annotated[str, Meta(description="Empty for a template that has but one."), NOT_PERSONAL]
    subject: Annotated[str, PERSONAL]
    sender: Annotated[str, Meta(description="The address that it is from.")]
    recipient: Annotated[str, PERSONAL]
    html: Annotated[str, Meta(description="Empty for a mail of text alone."), PERSONAL]
    text: Annotated[str, PERSONAL]
    message: Annotated[str, Meta(description="The whole message as it goes over the wire."), PERSONAL]
    warnings: Annotated[list[str], Meta(description="What is likely not meant, or keeps it from being sent."), SENTENCE]


class _SamplePerson:
    """A `PersonView` of somebody made up: whatever a template asks for is there, under its own name. A trait
    `first_name` is the text "[first_name]"."""

    def __init__(self, compiled: Compiled, workspace: str, at: int) -> None:
        self.person = "0" * 32
        self.workspace = workspace
        self.identifiers = _ADA
        self.at = at
        self._compiled = compiled

    def view(self, name: str, at: int | None = None) -> Any:
        """See `PersonView`."""
        if name == "profile":
            return {"traits": self._below("person", "traits"), "tags": [], "groups": {}}
        if name == "features":
            return {name: {"value": 1} for name in self._compiled.read_below("features") if name}
        return None

    def events(self, name: str, edge: Edge) -> list[Recorded]:
        """See `PersonView`."""
        return []

    def due(self, name: str, at: int | None = None) -> int | None:
        """See `PersonView`."""
        return None

    def ahead(self, at: int | None = None) -> int | None:
        """See `PersonView`."""
        return None

    def event(self) -> Recorded | None:
        """See `threadline.capabilities.reach.mail.order.Facts`."""
        event = Event(
            type="example", identifiers=_ADA, occurred_at=self.at, key="", properties=self._below("event", "properties")
        )
        return Recorded(event, "0" * 32, self.person, 1, self.at)

    def _below(self, root: str, part: str) -> dict[str, str]:
        steps = (path.split(".") for path in self._compiled.reads)
        return {step[2]: f"[{step[2]}]" for step in steps if step[:2] == [root, part] and len(step) > 2}


@shaped_operation(
    "POST /v1/mail/templates/{template}/preview",
    MAIL_GROUP,
    is_long=always,
    example=MailPreviewParams(template="welcome", person="user_id:42"),
)
def preview(templates: Templates, context: Context, params: MailPreviewParams) -> MailPreviewResult:
    """Fill in a mail template for a person, and send nothing."""
    ports = context.engine
    if params.version:
        compiled = templates.of_version(ports.definition_history, params.template, params.version)
    elif templates.mail.provider.url == INBOX:
        compiled = templates.reread(params.template)  # files that are being written are shown as they are now
    else:
        compiled = templates.named(params.template)
    sample = _SamplePerson(compiled, context.workspace, context.now)
    view: PersonView = sample
    if params.person:
        view = ports.reader.as_of(ports.reader.person(context.workspace, params.person), context.now)
    data = {
        "template": params.template,
        "variables": compiled.examples | (params.variables or {}),
        "subject": params.subject,
        "sender": params.sender,
        "language": compiled.known_language(params.language),
    }
    order = order_of(templates, compiled, view, PREVIEW, data)
    warnings = []
    if address_of(order.address) is None:
        warnings.append("this person has no address that mail can be sent to: it would be skipped")
        order = order._replace(address="nobody@example.com")
    elif params.person and (reason := refusals(ports, [mailing_of(order, view)])[0]):
        warnings.append(f"this person would not get it: {reason}")
    try:
        links = links_of(ports, view, order)
    except InvalidSetting as error:
        warnings.append(f"it cannot be sent yet: {error}")
        links = example_links(order)
    cause: Facts = Cause(ports, context.workspace, checked_id(params.event)) if params.event else sample
    order = with_context(order, view, cause, links)
    (rendered,) = render(ports.confined, [(order.compiled, order.context)])
    try:
        message = message_of(ports, order, rendered, is_tracked=False)
    except TemplateFailed as error:
        hint = (
            "" if params.person and params.event else "preview it for a `person`, and with the `event` that it is about"
        )
        raise TemplateFailed(str(error), hint=hint) from None
    return MailPreviewResult(
        template=params.template,
        version=compiled.version,
        language=order.compiled.shown_language,
        subject=message.rendered.subject,
        sender=order.sender.address,
        recipient=message.recipient.mailbox,
        html=message.rendered.html,
        text=message.rendered.text,
        message=message.octets.decode("utf-8", "replace"),
        warnings=[*warnings, *remarks(message)],
    )


def operations(templates: Templates) -> list[Operation]:
    """The operation that previews."""
    return [preview(templates)]
