"""What the journeys capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from threadline.capabilities.consent.definition import CONSENT, read_consent
from threadline.capabilities.definitions import Definitions
from threadline.capabilities.features.definition import TIMEZONE
from threadline.capabilities.journeys.definition import DECLARED, Journey
from threadline.capabilities.journeys.operations import acting, people
from threadline.capabilities.journeys.operations import definitions as in_force
from threadline.capabilities.journeys.policy import journeys_policy
from threadline.capabilities.journeys.program import mistakes
from threadline.capabilities.mail.definition import Mail, read_mail
from threadline.kernel.suggestion import suggestion


def declare(definitions: Definitions) -> list[Any]:
    """The operations, and the policy where the section stands: without it no event costs anything.

    An empty section keeps the policy, which then lets everybody leave what was declared before.
    """
    journeys = read_journeys(definitions)
    nouns = (acting, in_force, people)
    made: list[Any] = [operation for noun in nouns for operation in noun.operations(journeys or ())]
    if journeys is None:
        return made
    mail = read_mail(definitions)
    templates = mail.templates.values() if mail is not None else ()
    transactional = frozenset(template.name for template in templates if template.transactional)
    return [*made, journeys_policy(journeys, TIMEZONE.read(definitions, "UTC"), transactional)]


def _unknown(journey: Journey, mail: Mail | None, topics: Collection[str] | None) -> Iterator[str]:
    """What it names that the sections `mail` and `consent` do not declare, where they stand."""
    for template in sorted({arm.template for send in journey.sends for arm in send.arms}):
        if mail is not None and template not in mail.templates:
            yield f"there is no template {template!r}; {_hint(template, mail.templates)}"
    if mail is not None and journey.sender and journey.sender not in mail.senders:
        yield f"there is no sender {journey.sender!r}; {_hint(journey.sender, mail.senders)}"
    if journey.topic and topics is not None and journey.topic not in topics:
        yield f"there is no topic {journey.topic!r}; {_hint(journey.topic, topics)}"


def _hint(name: str, known: Collection[str]) -> str:
    return suggestion(name, known) if known else "none is declared"


def read_journeys(definitions: Definitions) -> Sequence[Journey] | None:
    """The declared journeys by name; None if no file has the section. Problems are noted in the documents."""
    if not definitions.section(DECLARED.section):
        return None
    mail = read_mail(definitions)
    topics = read_consent(definitions).topics if definitions.section(CONSENT.section) else None
    valid: list[Journey] = []
    for journey in DECLARED.read(definitions).values.values():
        problems = [*mistakes(journey), *_unknown(journey, mail, topics)]
        definitions.problems += [f"{journey.place}: journey {journey.name!r}: {problem}" for problem in problems]
        valid += [] if problems else [journey]
    return valid
