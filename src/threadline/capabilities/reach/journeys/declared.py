"""What the journeys capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from threadline.capabilities.foundation.conditions.values_read import merged, values_compared
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.features.definition import TIMEZONE
from threadline.capabilities.reach.journeys.definition import DECLARED, Journey
from threadline.capabilities.reach.journeys.operations import acting, people
from threadline.capabilities.reach.journeys.operations import definitions as in_force
from threadline.capabilities.reach.journeys.policy import journeys_policy
from threadline.capabilities.reach.journeys.program import circles, mistakes
from threadline.capabilities.reach.journeys.steps import steps_of
from threadline.capabilities.reach.mail.definition import read_mail
from threadline.kernel.names import TAG
from threadline.kernel.reading import Reading, Readings


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
    made.append(Readings("journeys", merged(*map(_values_read, journeys))))
    return [*made, journeys_policy(journeys, TIMEZONE.read(definitions, "UTC"), transactional)]


def _values_read(journey: Journey) -> dict[str, list[Reading]]:
    """What a journey compares in the events that it looks at, and in traits."""
    trees = [on.conditions for on in journey.ons]
    for step in steps_of(journey.steps):
        trees += [step.condition, *(branch.conditions for branch in step.choice)]
    compared = [values_compared([tree.tree], journey.types) for tree in trees if tree is not None]
    return merged(*compared, *(values_compared(on.where.parts, on.types) for on in journey.ons))


def read_journeys(definitions: Definitions) -> Sequence[Journey] | None:
    """The declared journeys by name; None if no file has the section. Problems are noted in the documents."""
    if not definitions.section(DECLARED.section):
        return None
    valid: list[Journey] = []
    for journey in DECLARED.read(definitions).values.values():
        problems = [*mistakes(journey)]
        definitions.problems += [f"{journey.place}: journey {journey.name!r}: {problem}" for problem in problems]
        valid += [] if problems else [journey]
    by_name = {journey.name: journey for journey in valid}
    in_circles = dict(circles(by_name))
    definitions.problems += [
        f"{by_name[name].place}: journey {name!r}: {problem}" for name, problem in in_circles.items()
    ]
    tags = (action.params["tag"] for journey in valid for action in journey.actions if action.kind == "tag")
    definitions.known_names[TAG].update(tag.plain for tag in tags if not tag.holes)
    return [journey for journey in valid if journey.name not in in_circles]
