"""Journeys tried on history: who would have got what, and when, compared with the journeys in force."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.events.forms import Identifiers, Instant, PersonRef, Time, instant, time_param
from threadline.capabilities.reach.journeys.book import Book
from threadline.capabilities.reach.journeys.events import SEGMENT_TYPES
from threadline.capabilities.reach.journeys.operations import JOURNEYS_GROUP
from threadline.capabilities.reach.journeys.steps import JOURNEYS
from threadline.capabilities.reach.journeys.what_if.evaluator import JourneysEvaluator
from threadline.capabilities.reach.journeys.what_if.tally import Counts, Tally, WouldSend
from threadline.kernel.errors import InvalidDefinition, InvalidValue
from threadline.kernel.operation import Context, Params, always, operation
from threadline.kernel.ports import Catalogue, Ports
from threadline.kernel.simulation import Pages, VariantSpec
from threadline.kernel.time import EARLIEST

CANDIDATE = "definitions"
ASIDE = frozenset({"event_schemas", "identifiers", "settings"})
"""Sections of a candidate that are left aside: who is who, and what may come in, is no part of a what-if."""
SEGMENTS = "segments"


class Asked(Params, kw_only=True):
    """Which journeys are tried, and on which history."""

    definitions: Annotated[
        str,
        Meta(
            description="The candidate: YAML with a section `journeys`, which stands in the place of the one in force; "
            "other sections of it too.",
            min_length=1,
            max_length=1_000_000,
        ),
    ]
    file: Annotated[
        str,
        Meta(description="What messages call `definitions`, such as the name of the file.", max_length=500),
    ] = ""
    start: Annotated[Time | None, Meta(description="As if it were switched on at this instant.")] = None
    stop: Annotated[Time | None, Meta(description="Up to this instant; without it up to now.")] = None


class JourneysWhatIfParams(Asked, kw_only=True):
    """The same, and for whom."""

    people: Annotated[list[PersonRef], Meta(description="Only these people.", max_length=10_000)] = []
    samples: Annotated[int, Meta(description="People who are shown with their mails.", ge=0, le=1_000)] = 20


class WouldSendView(msgspec.Struct, kw_only=True):
    """A mail that somebody would have got."""

    at: Instant
    journey: str
    step: str
    template: str
    arm: str = ""


class WhatIfSample(msgspec.Struct, kw_only=True):
    """A person, and what they would have got."""

    person: str
    identifiers: Identifiers
    old: Annotated[list[WouldSendView], Meta(description="By the journeys in force.")]
    new: Annotated[list[WouldSendView], Meta(description="By the candidate.")]


class StepDifference(msgspec.Struct, kw_only=True):
    """Mails of one step."""

    journey: str
    step: str
    template: str
    arm: str
    old: Annotated[int, Meta(description="Mails by the journeys in force.")]
    new: Annotated[int, Meta(description="Mails by the candidate.")]


class ActionDifference(msgspec.Struct, kw_only=True):
    """What one step does besides sending mails."""

    journey: str
    step: str
    action: Annotated[str, Meta(description="The key of the step, such as `tag`.")]
    old: Annotated[int, Meta(description="How often, by the journeys in force.")]
    new: Annotated[int, Meta(description="How often, by the candidate.")]


class JourneyDifference(msgspec.Struct, kw_only=True):
    """Results of one journey's people, before and after."""

    journey: str
    entered_old: int
    entered_new: int
    holdout_old: int
    holdout_new: int
    left_old: Annotated[dict[str, int], Meta(description="Reason -> people who left for it.")]
    left_new: dict[str, int]
    only_old: Annotated[int, Meta(description="Mails that only the journeys in force would have sent.")]
    only_new: Annotated[int, Meta(description="Mails that only the candidate would have sent.")]
    moved: Annotated[int, Meta(description="Mails that both would have sent, at different instants.")]


class JourneysWhatIfResult(msgspec.Struct, kw_only=True):
    """What the candidate would have done, beside the journeys in force. Nothing was sent, and nothing is stored."""

    start: Instant
    stop: Instant
    people: Annotated[int, Meta(description="People whose history was replayed.")]
    people_old: Annotated[int, Meta(description="People who would have got any mail, by the journeys in force.")]
    people_new: int
    people_changed: Annotated[int, Meta(description="People who would have got other mails, or at other times.")]
    journeys: list[JourneyDifference]
    steps: list[StepDifference]
    actions: list[ActionDifference]
    samples: Annotated[list[WhatIfSample], Meta(description="People for whom it differs, and others before the first.")]
    cut: Annotated[int, Meta(description="Events of which more came than may come of one; the rest is left out.")]
    failed: Annotated[int, Meta(description="People whose history could not be replayed; they are not counted.")]
    failures: Annotated[dict[str, str], Meta(description="Person -> what went wrong, for some of them.")]


@operation(
    "POST /v1/journeys/what-if",
    JOURNEYS_GROUP,
    audited=False,
    is_long=always,
    scope="admin",
    shown_on=frozenset({"http", "python"}),
    example=JourneysWhatIfParams(definitions="journeys: {welcome: {steps: [{send: hello}]}}"),
)
def what_if(context: Context, params: JourneysWhatIfParams) -> JourneysWhatIfResult:
    """Try journeys on history: who would have got what, and when, compared with those in force."""
    start, stop = range_of(params, context.now)
    tally = Tally(params.samples, stop)
    people = sorted({context.engine.reader.person(context.workspace, ref).id for ref in params.people})
    pages = pages_of(
        context.engine,
        context.workspace,
        params.definitions,
        tally,
        (start, context.now),
        people if params.people else None,
        params.file,
    )
    context.engine.simulations.run(pages)
    names = context.engine.reader.identifiers_of(context.workspace, [sample.person for sample in tally.samples])
    return result_of(tally, start, names)


def range_of(asked: Asked, now: int) -> tuple[int, int]:
    """From when to when it is tried. Raises `InvalidValue` for what is no range."""
    start, stop = time_param(asked.start) or EARLIEST, time_param(asked.stop) or now
    if not start < stop <= now:
        raise InvalidValue("`start` must be before `stop`, and `stop` not in the future", param="start")
    return start, stop


def pages_of(
    engine: Ports,
    workspace: str,
    definitions: str,
    tally: Tally,
    known: tuple[int, int],
    people: Sequence[str] | None = None,
    file: str = "",
) -> Pages:
    """The trial, page by page. Raises `InvalidDefinition` for a candidate that cannot be tried."""
    declared = engine.catalogue.definitions
    current = declared if isinstance(declared, Definitions) else Definitions()
    candidate = current.with_candidate(file or CANDIDATE, definitions, ASIDE)
    for name in ASIDE:
        candidate.section(name)
    # Before the sections are looked for: a text that is no definitions at all has none, and is told what is wrong.
    catalogue = engine.catalogue.variant(candidate)
    sections = Definitions([(CANDIDATE, definitions)]).names
    if JOURNEYS not in sections:
        raise InvalidDefinition(f"the candidate has no section `{JOURNEYS}`", param="definitions")
    return pages_with(engine, workspace, catalogue, tally, known, people, sections - {JOURNEYS})


def pages_with(
    engine: Ports,
    workspace: str,
    catalogue: Catalogue,
    tally: Tally,
    known: tuple[int, int],
    people: Sequence[str] | None = None,
    sections: frozenset[str] = frozenset(),
) -> Pages:
    """The trial of a catalogue beside the one in force, page by page; ``sections``: others in which they differ."""
    in_force = engine.catalogue
    remembered = engine.shared.fresh(workspace, JOURNEYS).remembered if in_force.policy(JOURNEYS) is not None else {}
    books = _book(in_force, remembered), _book(catalogue, remembered)
    replayed = sections | ({SEGMENTS} if any(map(_goes_by_segments, books)) else frozenset())
    old = _spec(in_force, books[0], replayed & {SEGMENTS})
    new = _spec(catalogue, books[1], replayed)
    return engine.simulations.replay(workspace, old, new, *known, tally, people=people)


def _book(catalogue: Catalogue, remembered: Mapping[str, bytes]) -> Book:
    """The journeys of a catalogue, none of them paused."""
    policy = catalogue.policy(JOURNEYS)
    if policy is None or policy.shared is None:
        return Book(())
    book: Book = policy.shared.make(remembered, None)
    return book


def _goes_by_segments(book: Book) -> bool:
    return any(not SEGMENT_TYPES.isdisjoint(active.journey.types) for active in book.in_force.values())


def _spec(catalogue: Catalogue, book: Book, sections: Iterable[str]) -> VariantSpec:
    evaluator = JourneysEvaluator(book)
    names = {policy.name for policy in catalogue.policies}
    return VariantSpec(catalogue, evaluator, evaluator, names.intersection(sections), {JOURNEYS: book})


def result_of(tally: Tally, start: int, names: Mapping[str, list[str]]) -> JourneysWhatIfResult:
    """What a tally says; ``names``: the identifiers of the people shown."""
    samples = [
        WhatIfSample(
            person=sample.person,
            identifiers=names.get(sample.person, []),
            old=_mails(sample.old),
            new=_mails(sample.new),
        )
        for sample in tally.samples
    ]
    old, new = tally.old, tally.new
    steps = [
        StepDifference(journey=key[0], step=key[1], template=key[2], arm=key[3], old=old.mails[key], new=new.mails[key])
        for key in sorted({*old.mails, *new.mails})
    ]
    return JourneysWhatIfResult(
        start=instant(start),
        stop=instant(tally.stop),
        people=tally.people,
        people_old=tally.people_old,
        people_new=tally.people_new,
        people_changed=tally.people_changed,
        journeys=[_journey(tally, name) for name in sorted({*old.entered, *new.entered})],
        steps=steps,
        actions=[
            ActionDifference(journey=key[0], step=key[1], action=key[2], old=old.actions[key], new=new.actions[key])
            for key in sorted({*old.actions, *new.actions})
        ],
        samples=samples,
        cut=tally.cuts,
        failed=tally.failed,
        failures=tally.failures,
    )


def _journey(tally: Tally, name: str) -> JourneyDifference:
    def of(counter: dict[tuple[str, str], int]) -> int:
        return sum(count for (journey, _), count in counter.items() if journey == name)

    return JourneyDifference(
        journey=name,
        entered_old=tally.old.entered[name],
        entered_new=tally.new.entered[name],
        holdout_old=tally.old.holdout[name],
        holdout_new=tally.new.holdout[name],
        left_old=_left(tally.old, name),
        left_new=_left(tally.new, name),
        only_old=of(tally.only_old),
        only_new=of(tally.only_new),
        moved=of(tally.moved),
    )


def _left(counts: Counts, name: str) -> dict[str, int]:
    return {reason: count for (journey, reason), count in sorted(counts.left.items()) if journey == name}


def _mails(mails: Iterable[WouldSend]) -> list[WouldSendView]:
    return [
        WouldSendView(at=instant(mail.at), journey=mail.journey, step=mail.step, template=mail.template, arm=mail.arm)
        for mail in mails
    ]
