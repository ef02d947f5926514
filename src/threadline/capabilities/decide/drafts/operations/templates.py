"""A mail template that somebody is writing, filled in as it would go to somebody."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from threadline.capabilities.decide.drafts.draft import Text, read_draft
from threadline.capabilities.reach.mail.operations import MAIL_GROUP
from threadline.capabilities.reach.mail.operations.preview import MailPreviewParams, MailPreviewResult
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.operation import Context, Params, always, operation

SECTION = "mail.templates"
UNNAMED = "draft"
"""What a template is called that has no name yet."""


class MailPreviewDraftParams(Params, kw_only=True):
    """Which template, and for whom."""

    text: Annotated[Text, Meta(description="What stands under its name: `subject`, `blocks` and so on.")]
    name: Annotated[str, Meta(description="Its name.", max_length=64)] = ""
    person: Annotated[
        str, Meta(description="For whom; without it for somebody made up of what it asks for.", max_length=1_024)
    ] = ""
    variables: Annotated[dict[str, Any] | None, Meta(description="In the place of examples and defaults.")] = None
    language: Annotated[
        str, Meta(description="One of its languages; else the one that the person gets.", max_length=32)
    ] = ""


@operation(
    "POST /v1/mail/preview",
    MAIL_GROUP,
    is_long=always,
    shown_on=frozenset({"http", "python"}),
    example=MailPreviewDraftParams(text="subject: Hello\ntext: Hello\n", name="hello"),
    audited=False,
)
def preview_draft(context: Context, params: MailPreviewDraftParams) -> MailPreviewResult:
    """Fill in a mail template that is being written, and send nothing."""
    name = params.name or UNNAMED
    read = read_draft(context, params.text, SECTION, name)
    if read.catalogue is None:
        raise InvalidDefinition("\n".join(map(str, read.problems)), param="text")
    asked = MailPreviewParams(template=name, person=params.person, variables=params.variables, language=params.language)
    preview = next(known for known in read.catalogue.operations if known.name == "mail_preview")
    result: MailPreviewResult = preview.run(context, asked)
    return result
