"""What was sent to a person, and what became of it."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, PersonRef
from threadline.capabilities.foundation.events.instants import person_as_of
from threadline.capabilities.foundation.events.parameters import AsOf
from threadline.capabilities.reach.mail.events import MAIL_SENT, MAIL_SKIPPED
from threadline.capabilities.reach.mail.operations import MAIL_GROUP
from threadline.capabilities.reach.mail.operations.templates import Name
from threadline.capabilities.reach.mail.projection import LEDGER, STATUSES
from threadline.capabilities.reach.messages.outcomes import last_outcomes
from threadline.kernel.disclosure import PERSONAL, SENTENCE, not_personal
from threadline.kernel.event import Recorded
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import MAIL_LEDGER_MAX
from threadline.kernel.operation import Context, operation

_FINAL = frozenset({MAIL_SENT, MAIL_SKIPPED})
_KNOWN = ", ".join(status for _, status in STATUSES)


class MailHistoryParams(AsOf, kw_only=True):
    """Whose mail, and at which instant."""

    id: PersonRef
    limit: Annotated[int, Meta(ge=1, le=MAIL_LEDGER_MAX)] = MAIL_LEDGER_MAX


@key_fields("at", "subject", "template", "status", "reason")
@not_personal
class MailEntry(msgspec.Struct, kw_only=True):
    """One mail."""

    message: Annotated[str, Meta(description="The id of its effect, and the beginning of its Message-ID.")]
    template: str
    status: Annotated[str, Meta(description=f"The most that is known: {_KNOWN}.")]
    at: Annotated[Instant, Meta(description="When it was sent; for one that was not, when that was known.")]
    transactional: bool
    subject: Annotated[str, Meta(description="As it was sent; empty for one that was not."), PERSONAL] = ""
    journey: Annotated[str, Meta(description="The journey that it belongs to.")] = ""
    step: Annotated[str, Meta(description="The step of the journey.")] = ""
    broadcast: Annotated[str, Meta(description="The broadcast that it belongs to.")] = ""
    arm: Annotated[str, Meta(description="The variant that they got.")] = ""
    rule: Annotated[str, Meta(description="The rule that sent it.")] = ""
    reason: Annotated[str, Meta(description="Why it was not sent, such as `unsubscribed`."), SENTENCE] = ""


class MailHistoryResult(msgspec.Struct, kw_only=True):
    """The mails of a person."""

    person: str
    as_of: Instant
    mails: Annotated[
        list[MailEntry],
        Meta(description=f"The newest first, {MAIL_LEDGER_MAX} at most; older ones are events of the type mail_sent."),
    ]


@operation("GET /v1/people/{id}/mail", MAIL_GROUP, example=MailHistoryParams(id="user_id:42"))
def history(context: Context, params: MailHistoryParams) -> MailHistoryResult:
    """List the mails of a person, with the result of each."""
    asked = person_as_of(context, params.id, params.as_of)
    mails = _ledger(asked.views(LEDGER.name))["mails"][: params.limit]
    messages = [mail["message"] for mail in mails]
    outcomes = last_outcomes(context.engine.log, context.workspace, messages, asked.at, _FINAL)
    shown = [MailEntry(**mail | _details(outcomes.get(mail["message"]))) for mail in mails]
    return MailHistoryResult(person=asked.person.id, as_of=asked.shown_at, mails=shown)


_DETAILS = ("subject", "journey", "step", "broadcast", "arm", "rule", "reason")


def _details(outcome: Recorded | None) -> dict[str, str]:
    known = {} if outcome is None else outcome.event.properties
    return {name: value for name in _DETAILS if isinstance(value := known.get(name), str)}


def _ledger(views: dict[str, Any]) -> dict[str, Any]:
    return views.get(LEDGER.name) or {"mails": [], "templates": {}}


class MailSentParams(AsOf, kw_only=True):
    """To whom, and which template."""

    id: PersonRef
    template: Name


class MailSentResult(msgspec.Struct, kw_only=True):
    """Whether a template was sent to a person. It counts what is older than the ledger's mails as well."""

    person: str
    template: str
    sent: bool
    count: int
    first: Instant | None = None
    last: Instant | None = None


@operation(
    "GET /v1/people/{id}/mail/{template}", MAIL_GROUP, example=MailSentParams(id="user_id:42", template="welcome")
)
def sent(context: Context, params: MailSentParams) -> MailSentResult:
    """Show whether a template was sent to a person, and when."""
    asked = person_as_of(context, params.id, params.as_of)
    counts = _ledger(asked.views(LEDGER.name))["templates"].get(params.template, {"count": 0})
    return MailSentResult(person=asked.person.id, template=params.template, sent=counts["count"] > 0, **counts)
