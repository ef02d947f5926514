"""What goes by a definition and is none itself: rules, alerts, broadcasts that are not over, people in a journey.

The catalogue refuses a definition that names another one that is not there. These stand in the store, and would go on
without it: a rule that never matches again, a broadcast that is skipped for everybody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from threadline.capabilities.decide.rules.definition import Rule
from threadline.capabilities.decide.rules.repository import active_rules_of
from threadline.capabilities.foundation.conditions import Conditions, read_json
from threadline.capabilities.reach.alerts.repository import at_instant
from threadline.capabilities.reach.broadcasts import repository as broadcasts
from threadline.capabilities.reach.broadcasts.definition import Broadcast
from threadline.capabilities.reach.journeys.operations.definitions import entries
from threadline.kernel.counted import counted
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.job import ENDED
from threadline.kernel.operation import Context

Definition = tuple[str, str]
"""Section and name."""
Paths = Iterable[tuple[str, tuple[str, ...]]]
"""Projections whose views are read, and the steps inside each."""

BROADCASTS_MAX = 1_000
"""The newest that are looked at: those that are not over yet are among them."""
PEOPLE_MAX = 1_000
"""Up to so many in a journey are counted."""
_SECTIONS = {
    "journey": "journeys",
    "sender": "mail.senders",
    "template": "mail.templates",
    "topic": "consent.topics",
}
"""Kind of names -> the section that declares them."""


def uses_of(context: Context, definition: Definition) -> list[str]:
    """What goes by one definition, each in words."""
    return uses(context, [definition])[definition]


def uses(context: Context, definitions: Collection[Definition]) -> dict[Definition, list[str]]:
    """What goes by each of some definitions in the caller's workspace, in words: one reading for all of them."""
    sentences: dict[Definition, list[str]] = {definition: [] for definition in definitions}
    if not sentences:
        return sentences
    for users in (_rules(context), _alerts(context), _broadcasts(context, sentences.keys())):
        for names, sentence in users:
            for definition in sentences.keys() & names:
                sentences[definition].append(sentence)
    for (section, name), own in sentences.items():
        people = _people_in(context, name) if section == "journeys" else 0
        if people:
            more = " or more" if people == PEOPLE_MAX else ""
            own.append(f"{counted(people, 'person')}{more} in it")
    return sentences


def _rules(context: Context) -> Iterator[tuple[set[Definition], str]]:
    """The rules of the store; those of files are definitions themselves."""
    active = active_rules_of(context)
    for id, rule in active.rules.items():
        if id not in active.declared:
            yield _of_rule(rule), f"rule {id!r}, whose version {rule.version} is active"
    for id, shadow in active.shadows.items():
        yield _of_rule(shadow), f"rule {id!r}, whose version {shadow.version} is a shadow"


def _of_rule(rule: Rule) -> set[Definition]:
    names = _read((read.projection, read.path) for read in rule.reads)
    for action in rule.actions:
        for param, template in action.params.items():
            section = _SECTIONS.get(action.kind.params[param].of if param in action.kind.params else "")
            if section and not template.holes:
                names.add((section, str(template.plain)))
    return names


def _alerts(context: Context) -> Iterator[tuple[set[Definition], str]]:
    for id, version in at_instant(context, context.now):
        alert = version.alert
        if not alert.is_over(context.now):
            yield {("segments", name) for name in alert.segments} | _read_when(alert.when), f"alert {id!r}"


def _broadcasts(context: Context, wanted: Collection[Definition]) -> Iterator[tuple[set[Definition], str]]:
    engine, workspace = context.engine, context.workspace
    for created in islice(_newest_broadcasts(context), BROADCASTS_MAX):
        names = _of_broadcast(created.broadcast)
        if names.isdisjoint(wanted):
            continue
        job = engine.jobs.find(workspace, broadcasts.job_id(created.id))
        state = broadcasts.state_of(engine, workspace, created.id, job)
        if state not in ENDED:
            yield names, f"broadcast {created.id!r}, which is {'a draft' if state == 'draft' else state}"


def _newest_broadcasts(context: Context) -> Iterator[broadcasts.Created]:
    before = ""
    while True:
        page, before = broadcasts.page(context.engine.store, context.workspace, None, before, 200)
        yield from page
        if not before:
            return


def _of_broadcast(broadcast: Broadcast) -> set[Definition]:
    templates = [broadcast.template, *(arm.template for arm in broadcast.arms)]
    names = {("mail.templates", template) for template in templates}
    names |= {("mail.senders", broadcast.sender), ("consent.topics", broadcast.topic)}
    audience = broadcast.audience
    return names if audience is None else names | {("segments", audience.segment)} | _read_when(audience.when)


def _read_when(when: object) -> set[Definition]:
    """The definitions that a stored tree of conditions reads."""
    try:
        return set() if when is None else _read(Conditions(read_json(when, "when")).reads)
    except InvalidDefinition:
        return set()  # it was written when conditions were read otherwise, and holds of nobody


WHOLE = frozenset({"interests", "points"})
"""Projections that are made of all of a section, which is declared once."""


def _read(paths: Paths) -> set[Definition]:
    return {
        (projection, projection if projection in WHOLE else path[0])
        for projection, path in paths
        if path or projection in WHOLE
    }


def _people_in(context: Context, journey: str) -> int:
    people = entries(context.engine.rows, context.workspace, journey)
    return sum(1 for _ in islice(people, PEOPLE_MAX))
