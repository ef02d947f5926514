"""How many people an audience has that somebody is choosing, and how many of them a mail reaches now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.events.forms import Identifiers, Instant, instant
from threadline.capabilities.foundation.events.sample import Deadline, Estimate, Seconds, sample
from threadline.capabilities.foundation.jobs.filling import BeingFilled, being_filled
from threadline.capabilities.profile.segments.definition import read_segments
from threadline.capabilities.profile.segments.operations.definitions import Segments
from threadline.capabilities.reach.broadcasts.audience import Resolver
from threadline.capabilities.reach.broadcasts.definition import Audience, TemplateName
from threadline.capabilities.reach.broadcasts.operations import BROADCASTS_GROUP
from threadline.capabilities.reach.consent.refusal import Mailing, refusals
from threadline.capabilities.reach.mail.definition import Mail, Template, read_mail
from threadline.capabilities.reach.mail.message import address_of
from threadline.capabilities.reach.mail.order import address_in
from threadline.kernel.disclosure import NOT_PERSONAL, not_personal
from threadline.kernel.key_fields import key_fields
from threadline.kernel.names import names_a
from threadline.kernel.operation import Context, Operation, Params, always, shaped_operation
from threadline.kernel.person_view import PersonView

PAGE = 200
"""People between two looks at the clock."""
SAMPLES = 10
NO_ADDRESS, INVALID_ADDRESS, DUPLICATE = "no_address", "invalid_address", "duplicate"


class AudienceParams(Params, kw_only=True):
    """Which audience, and what it is to be sent."""

    audience: Annotated[Audience | None, Meta(description="Who gets it; everybody without.")] = None
    template: Annotated[TemplateName, Meta(description="Its topic counts, and whether it is transactional.")] = ""
    topic: Annotated[str, names_a("topic"), Meta(description="A topic other than the template's.", max_length=64)] = ""
    seconds: Seconds = 2


@key_fields("identifiers", "reason")
class AudiencePerson(msgspec.Struct, kw_only=True):
    """Somebody in the audience."""

    person: str
    identifiers: Identifiers
    reason: Annotated[str, Meta(description="Why no mail reaches them now; empty: one does."), NOT_PERSONAL]


@not_personal
class AudienceCount(msgspec.Struct, kw_only=True):
    """The audience as it is now. Nothing was written or sent."""

    as_of: Instant
    people_read: Annotated[int, Meta(description="People of the audience who were looked at.")]
    looked_at: Annotated[int, Meta(description="People to whom its conditions were put.")]
    exact: Annotated[
        bool, Meta(description="Whether everybody was looked at; else numbers are of 95 times of 100 within bounds.")
    ]
    people: Annotated[Estimate, Meta(description="People in the audience.")]
    reachable: Annotated[Estimate, Meta(description="Those of them whom a mail reaches now.")]
    unreachable: Annotated[
        dict[str, int],
        Meta(
            description="Why a mail does not reach the others, and how many of those who were looked at: `no_address`, "
            "`invalid_address`, `unsubscribed`, `opted_out`, `unconfirmed`, `suppressed:REASON`, `duplicate` (another "
            "person has the same address). Frequency caps and quiet hours count when a mail leaves."
        ),
    ]
    samples: Annotated[list[AudiencePerson], Meta(description="The first ten, by id.")]
    being_filled: BeingFilled = ""


@shaped_operation(
    "POST /v1/audiences/count",
    BROADCASTS_GROUP,
    is_long=always,
    example=AudienceParams(audience=Audience(tags=["newsletter"]), template="sale"),
    audited=False,
)
def audience(segments: Segments, mail: Mail | None, context: Context, params: AudienceParams) -> AudienceCount:
    """Count an audience, how many of it a mail reaches now, and why it does not reach the others."""
    engine, workspace = context.engine, context.workspace
    resolver = Resolver(params.audience)
    resolver.refuse_mistakes(engine.catalogue, segments)
    declared = {} if mail is None else mail.templates
    asks = _Asks(context, declared.get(params.template, Template(name="", subject="")), params.topic)
    filling = being_filled(engine, resolver.parts)
    reasons: Counter[str] = Counter()
    samples: list[tuple[str, str]] = []
    people = looked_at = 0
    deadline, after = Deadline(context, params.seconds), ""
    while True:
        page = resolver.page(engine, workspace, context.now, after, PAGE)
        after, looked_at = page.next, looked_at + page.looked_at
        for person, reason in asks.reasons(page.ids):
            people += 1
            reasons[reason] += 1
            samples += [(person, reason)] if len(samples) < SAMPLES else []
        if not after or deadline.is_over:
            break
    looked = sample(people, after)
    names = engine.reader.identifiers_of(workspace, [person for person, _ in samples])
    return AudienceCount(
        as_of=instant(context.now),
        people_read=people,
        looked_at=looked_at,
        exact=not after,
        people=looked.estimate(people),
        reachable=looked.estimate(reasons.pop("", 0)),
        unreachable=dict(reasons.most_common()),
        samples=[
            AudiencePerson(person=person, identifiers=names.get(person, []), reason=reason)
            for person, reason in samples
        ],
        being_filled=filling,
    )


class _Asks:
    """Asks for people, page by page, whether a mail would reach them."""

    def __init__(self, context: Context, template: Template, topic: str) -> None:
        self._context = context
        self._topic = topic or template.topic
        self._transactional = template.transactional
        self._taken = set[str]()
        """The addresses of those who are reached: who comes after with one of them gets no second mail."""

    def reasons(self, ids: Sequence[str]) -> Iterator[tuple[str, str]]:
        """These people by id, each with why a mail does not reach them; empty: it does."""
        engine, workspace = self._context.engine, self._context.workspace
        people = engine.reader.people_of(workspace, ids)
        views = [(id, engine.reader.as_of(people[id], self._context.now)) for id in ids if id in people]
        mailings = [self._mailing(view) for _, view in views]
        asked = iter(refusals(engine, [mailing for mailing in mailings if mailing.address]))
        for (id, _), mailing in zip(views, mailings, strict=True):
            reason = next(asked) if mailing.address else NO_ADDRESS
            yield id, reason or self._claimed(mailing.address)

    def _mailing(self, view: PersonView) -> Mailing:
        return Mailing(self._context.workspace, address_in(view), self._topic, self._transactional, view)

    def _claimed(self, written: str) -> str:
        address = address_of(written)
        if address is None:
            return INVALID_ADDRESS
        mailbox = address.mailbox.casefold()  # as it is claimed when a mail leaves
        if mailbox in self._taken:
            return DUPLICATE
        self._taken.add(mailbox)
        return ""


def declare(definitions: Definitions) -> list[Operation]:
    """The operation that counts an audience, by the declared segments and templates."""
    return [audience(read_segments(definitions) or (), read_mail(definitions))]
