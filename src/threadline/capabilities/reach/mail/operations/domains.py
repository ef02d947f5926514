"""Whether the domains that mail is sent from are set up, by what DNS says of them now."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.reach.mail.operations import MAIL_GROUP
from threadline.capabilities.reach.mail.sending_domain import DomainCheck, asking, checks_of
from threadline.capabilities.reach.mail.templates import Templates
from threadline.kernel.disclosure import not_personal
from threadline.kernel.key_fields import key_fields
from threadline.kernel.names import names_a
from threadline.kernel.operation import Context, Operation, Params, always, shaped_operation


class MailDomainsParams(Params, kw_only=True):
    """Of which sender."""

    sender: Annotated[str, names_a("sender"), Meta(description="Only this one.", max_length=64)] = ""


@key_fields("sender", "address")
@not_personal
class SenderDomain(msgspec.Struct, kw_only=True):
    """A sender, and what DNS says of its domain."""

    sender: str
    address: Annotated[str, Meta(description="The address that its mails are from.")]
    checks: Annotated[list[DomainCheck], Meta(description="SPF, DKIM and DMARC.")]


class MailDomainsResult(msgspec.Struct, kw_only=True):
    """The senders, by name."""

    domains: list[SenderDomain]


@shaped_operation("GET /v1/mail/domains", MAIL_GROUP, is_long=always, example=MailDomainsParams(sender="shop"))
def domains(templates: Templates, context: Context, params: MailDomainsParams) -> MailDomainsResult:
    """Check the domains of senders by DNS: SPF, DKIM and DMARC."""
    mail, ask = templates.mail, asking(context.engine.web.texts)
    wanted = [sender for name, sender in sorted(mail.senders.items()) if params.sender in ("", name)]
    return MailDomainsResult(
        domains=[
            SenderDomain(sender=sender.id, address=sender.address, checks=[*checks_of(sender, ask)])
            for sender in wanted
        ]
    )


def operations(templates: Templates) -> list[Operation]:
    """The operation that checks."""
    return [domains(templates)]
