"""What the journeys capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.features.definition import TIMEZONE
from threadline.capabilities.reach.journeys.definition import DECLARED, Journey
from threadline.capabilities.reach.journeys.operations import acting, people
from threadline.capabilities.reach.journeys.operations import definitions as in_force
from threadline.capabilities.reach.journeys.policy import journeys_policy
from threadline.capabilities.reach.journeys.program import mistakes
from threadline.capabilities.reach.mail.definition import read_mail


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


def read_journeys(definitions: Definitions) -> Sequence[Journey] | None:
    """The declared journeys by name; None if no file has the section. Problems are noted in the documents."""
    if not definitions.section(DECLARED.section):
        return None
    valid: list[Journey] = []
    for journey in DECLARED.read(definitions).values.values():
        problems = [*mistakes(journey)]
        definitions.problems += [f"{journey.place}: journey {journey.name!r}: {problem}" for problem in problems]
        valid += [] if problems else [journey]
    return valid
