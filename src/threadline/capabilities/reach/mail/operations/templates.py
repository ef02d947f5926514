"""The templates in force, and each as it was written in an earlier version."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.capabilities.reach.mail.definition import SHARED
from threadline.capabilities.reach.mail.operations import MAIL_GROUP
from threadline.capabilities.reach.mail.templates import Compiled, Templates, version_of
from threadline.kernel.disclosure import NOT_PERSONAL, not_personal
from threadline.kernel.key_fields import key_fields
from threadline.kernel.names import names_a
from threadline.kernel.operation import Context, NoParams, Operation, Params, shaped_operation

Name = Annotated[str, names_a("template"), Meta(description="A template's name.", min_length=1, max_length=64)]
Version = Annotated[
    str, Meta(description="A version of it, as the ledger has it; without it the one in force.", max_length=64)
]


@not_personal
class MailVariable(msgspec.Struct, kw_only=True):
    """A value that the sender of the mail gives."""

    name: str
    required: bool
    default: Any = None
    example: Any = None
    description: str = ""


@key_fields("name", "subject", "topic")
@not_personal
class MailTemplate(msgspec.Struct, kw_only=True):
    """A template in force."""

    name: str
    description: str
    version: Annotated[str, Meta(description="A hash of its parts and of all that they include.")]
    subject: Annotated[str, Meta(description="As it is written.")]
    sender: str
    topic: str
    transactional: bool
    parts: Annotated[list[str], Meta(description="subject, html, mjml, text: those that are written.")]
    languages: Annotated[list[str], Meta(description="Those that there are, the fallback first; none for one alone.")]
    variables: list[MailVariable]


class MailTemplatesResult(msgspec.Struct, kw_only=True):
    """Every template, by name."""

    templates: list[MailTemplate]
    senders: Annotated[list[str], Meta(description="The declared senders, by name."), NOT_PERSONAL] = []
    timezone: Annotated[str, Meta(description="The zone of people who have no trait `timezone`.")] = "UTC"


def _template(templates: Templates, compiled: Compiled) -> MailTemplate:
    template = compiled.template
    return MailTemplate(
        name=template.name,
        description=template.description,
        version=compiled.version,
        subject=template.subject,
        sender=templates.mail.sender_of(template).id,
        topic=template.topic,
        transactional=template.transactional,
        parts=list(compiled.sources.parts_in("")),
        languages=[*compiled.sources.languages],
        variables=[
            MailVariable(
                name=name,
                required=variable.default is None,
                default=variable.default,
                example=variable.example,
                description=variable.description,
            )
            for name, variable in sorted(template.variables.items())
        ],
    )


@shaped_operation("GET /v1/mail/templates", MAIL_GROUP)
def templates(templates: Templates, context: Context, params: NoParams) -> MailTemplatesResult:
    """List the mail templates in force."""
    return MailTemplatesResult(
        templates=[_template(templates, template) for template in templates],
        senders=sorted(templates.mail.senders),
        timezone=templates.mail.timezone,
    )


class MailTemplateParams(Params, kw_only=True):
    """Which template, and in which version."""

    template: Name
    version: Version = ""


@key_fields("version", "since")
class MailTemplateVersion(msgspec.Struct, kw_only=True):
    """A version, and since when it was in force."""

    version: Annotated[str, Meta(description="Empty: the template was not declared from then on.")]
    since: Instant


@not_personal
class MailTemplateResult(msgspec.Struct, kw_only=True):
    """How a template is written."""

    template: str
    version: str
    sources: Annotated[dict[str, str], Meta(description="Its parts and all files that they include, by name.")]
    versions: Annotated[list[MailTemplateVersion], Meta(description="All there were, the newest first.")]


@shaped_operation("GET /v1/mail/templates/{template}", MAIL_GROUP, example=MailTemplateParams(template="welcome"))
def template(templates: Templates, context: Context, params: MailTemplateParams) -> MailTemplateResult:
    """Show how a mail template is written, now or in an earlier version."""
    history = context.engine.definition_history
    if params.version:
        compiled = templates.of_version(history, params.template, params.version)
    else:
        compiled = templates.named(params.template)
    versions = [
        MailTemplateVersion(version=version_of(number), since=instant(at))
        for at, number in reversed(history.transitions(SHARED, params.template))
    ]
    return MailTemplateResult(
        template=params.template, version=compiled.version, sources=dict(compiled.sources.texts), versions=versions
    )


def operations(declared: Templates) -> list[Operation]:
    """The operations on templates."""
    return [templates(declared), template(declared)]
