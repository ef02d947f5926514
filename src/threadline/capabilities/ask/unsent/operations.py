"""Why somebody did not get a mail: the operation that answers it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.ask.unsent.answer import About, Unsent, unsent
from threadline.capabilities.ask.unsent.asked import Subject, Wanted
from threadline.capabilities.ask.unsent.broadcasts import of_broadcasts
from threadline.capabilities.ask.unsent.journeys import of_journeys
from threadline.capabilities.ask.unsent.mails import asked_for, asked_for_now
from threadline.capabilities.ask.unsent.reasons import SENT
from threadline.capabilities.ask.unsent.rules import of_rules
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.events.forms import Instant, PersonRef, instant
from threadline.capabilities.reach.consent.refusal import Mailing, refusals
from threadline.capabilities.reach.mail.definition import Mail, read_mail
from threadline.capabilities.reach.mail.message import address_of
from threadline.capabilities.reach.mail.operations import MAIL_GROUP
from threadline.capabilities.reach.mail.order import address_in
from threadline.kernel.disclosure import PERSONAL
from threadline.kernel.names import names_a
from threadline.kernel.operation import Choice, Context, Operation, Params, always, shaped_operation

LISTED_MAX = 200
"""Mails in one answer."""


class WhyNotParams(Params, kw_only=True):
    """Who did not get a mail, and which; without one of them every mail that could have come."""

    id: PersonRef
    template: Annotated[str, names_a("template"), Meta(description="The template of the mail.", max_length=64)] = ""
    journey: Annotated[str, names_a("journey"), Meta(description="The journey that sends it.", max_length=64)] = ""
    broadcast: Annotated[str, names_a("broadcast"), Meta(description="The broadcast.", max_length=64)] = ""
    rule: Annotated[str, names_a("rule"), Meta(description="The rule that sends it.", max_length=100)] = ""


class WhyNotResult(msgspec.Struct, kw_only=True):
    """The mails that somebody did not get, and why."""

    person: str
    as_of: Instant
    address: Annotated[str, Meta(description="Where their mail goes; empty: nowhere."), PERSONAL]
    now: Annotated[
        Unsent | None,
        Meta(
            description="What would become of a mail of the template, or of one that is no marketing, if it was asked "
            "for now; null: it would be sent."
        ),
    ]
    mails: Annotated[
        list[Unsent],
        Meta(
            description=f"The last first, {LISTED_MAX} at most; mails that were sent only where one is named. Of a "
            "journey that the person was never in, the first mail, unless it is named."
        ),
    ]
    left_off: Annotated[int, Meta(description="How many more there are.")] = 0


@shaped_operation(
    "GET /v1/people/{id}/unsent",
    MAIL_GROUP,
    # The whole outbox is read for the mails of one person that wait in it.
    is_long=always,
    choices=(Choice(("template", "journey", "broadcast", "rule")),),
    example=WhyNotParams(id="user_id:42", template="welcome"),
)
def why_not(mail: Mail | None, context: Context, params: WhyNotParams) -> WhyNotResult:
    """Explain why a person did not get a mail: skipped, waiting, held out, not in the audience, never triggered."""
    subject = Subject(context, context.engine.reader.person(context.workspace, params.id))
    wanted = Wanted(template=params.template, journey=params.journey, broadcast=params.broadcast, rule=params.rule)
    mails = sorted(_mails(subject, wanted), key=_last_first)
    return WhyNotResult(
        person=subject.person.id,
        as_of=instant(context.now),
        address=address_in(subject.view),
        now=_now(mail, subject, params.template),
        mails=mails[:LISTED_MAX],
        left_off=max(len(mails) - LISTED_MAX, 0),
    )


def _mails(subject: Subject, wanted: Wanted) -> Iterator[Unsent]:
    asked = asked_for(subject, wanted)
    occurrences = {mail.occurrence for mail in asked if mail.occurrence}
    mails = [mail.unsent for mail in asked if not (wanted.is_all and mail.unsent.reason == SENT)]
    mails += of_journeys(subject, wanted, occurrences)
    mails += of_broadcasts(subject, wanted, occurrences)
    mails += of_rules(subject, wanted)
    if not mails and not (wanted.is_all or wanted.broadcast):
        mails.append(unsent(About(template=wanted.template, journey=wanted.journey, rule=wanted.rule), "not_requested"))
    return iter(mails)


def _last_first(mail: Unsent) -> Any:
    """What waits, then what was decided last, then what has no instant."""
    return (mail.at is not None, _reversed(mail.at or ""), mail.template, mail.journey, mail.step, mail.broadcast)


def _reversed(at: str) -> tuple[int, ...]:
    return tuple(-ord(sign) for sign in at)


def _now(mail: Mail | None, subject: Subject, template: str) -> Unsent | None:
    """What would become of a mail of a template that is asked for now, with the examples of its variables."""
    declared = None if mail is None else mail.templates.get(template)
    if declared is not None:
        examples = {name: variable.example for name, variable in declared.variables.items()}
        return asked_for_now(subject, template, {name: value for name, value in examples.items() if value is not None})
    address = address_in(subject.view)
    if address_of(address) is None:
        return unsent(About(), "invalid_address" if address else "no_address")
    reason = refusals(subject.engine, [Mailing(subject.context.workspace, address, "", True, subject.view)])[0]
    return unsent(About(), reason) if reason else None


def declare(definitions: Definitions) -> list[Operation]:
    """The operation that knows the topics of the declared templates."""
    return [why_not(read_mail(definitions))]
