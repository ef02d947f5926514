"""The journeys in force: what each is made of, drawn, with the people at each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.capabilities.reach.journeys.book import Book
from threadline.capabilities.reach.journeys.definition import Journey
from threadline.capabilities.reach.journeys.drawing import arrows, entered_by, kind_of, mermaid, step_text, tree
from threadline.capabilities.reach.journeys.labels import step_labels
from threadline.capabilities.reach.journeys.operations import JOURNEYS_GROUP, Journeys, Name, journey_named
from threadline.capabilities.reach.journeys.program import compiled
from threadline.capabilities.reach.journeys.projection import TABLE, Entry, entry_of, partition
from threadline.capabilities.reach.journeys.steps import JOURNEYS
from threadline.kernel.disclosure import not_personal
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, NoParams, Operation, Params, shaped_operation
from threadline.kernel.ports import IndexRows

_PAGE = 1_000


@key_fields("name", "people", "entered_by", "paused_since")
@not_personal
class JourneySummary(msgspec.Struct, kw_only=True):
    """A journey in one line."""

    name: str
    version: int
    entered_by: Annotated[str, Meta(description="What lets people enter.")]
    description: str
    paused_since: Instant | None
    people: Annotated[int, Meta(description="People who are in it.")]
    templates: Annotated[list[str], Meta(description="The templates of its mails.")]


class JourneysListResult(msgspec.Struct, kw_only=True):
    """Every declared journey, by name."""

    journeys: list[JourneySummary]


def book_of(context: Context) -> Book:
    """The journeys of the workspace, as the store has them now."""
    book: Book = context.engine.shared.fresh(context.workspace, JOURNEYS)
    return book


@shaped_operation("GET /v1/journeys", JOURNEYS_GROUP, relies_on=("people",))
def list_(journeys: Journeys, context: Context, params: NoParams) -> JourneysListResult:
    """List the journeys in force."""
    paused = book_of(context).paused if journeys else {}
    shown = [
        JourneySummary(
            name=journey.name,
            version=journey.version,
            entered_by=entered_by(journey.trigger),
            description=journey.description,
            paused_since=_paused(paused.get(journey.name)),
            people=waiting(context, journey.name).total(),
            templates=sorted({arm.template for send in journey.sends for arm in send.arms}),
        )
        for journey in journeys
    ]
    return JourneysListResult(journeys=shown)


def _paused(since: int | None) -> Instant | None:
    return None if since is None else instant(since)


class JourneyParams(Params, kw_only=True):
    """Which journey."""

    name: Name


@not_personal
class Way(msgspec.Struct, kw_only=True):
    """An arrow from a step to another one."""

    to: Annotated[str, Meta(description="The next step; empty: the end.")]
    when: Annotated[str, Meta(description="What decides for it, in words; empty: there is no other.")] = ""


@key_fields("step", "does", "people", "joins")
@not_personal
class StepCount(msgspec.Struct, kw_only=True):
    """A step, where it leads to, and who is there."""

    step: str
    does: str
    label: Annotated[str, Meta(description="What it does, in words that no other step has.")]
    kind: Annotated[str, Meta(description="`send`, `wait`, `if`, `choice` or `exit`.")]
    ways: list[Way]
    joins: Annotated[str, Meta(description="The step at which all its ways come together again; empty: the end.")]
    people: Annotated[int, Meta(description="People who wait there now.")]


@key_fields("version", "label", "people")
@not_personal
class Waiting(msgspec.Struct, kw_only=True):
    """People of one version at a step, which the version in force may not have."""

    step: str
    version: int
    label: Annotated[str, Meta(description="What the step does; its name, where that is not known any more.")]
    people: int


@not_personal
class JourneyView(msgspec.Struct, kw_only=True):
    """A journey, drawn."""

    name: str
    version: int
    description: str
    entered_by: Annotated[str, Meta(description="What lets people enter.")]
    paused_since: Instant | None
    people: Annotated[int, Meta(description="People who are in it.")]
    versions: Annotated[dict[str, int], Meta(description="Version -> people who are in it.")]
    keeps: Annotated[bool, Meta(description="Whether people keep the version with which they entered.")]
    waiting: Annotated[list[Waiting], Meta(description="Who waits where, the newest version first.")]
    steps: list[StepCount]
    drawing: Annotated[str, Meta(description="A tree of its steps, for terminals.")]
    mermaid: Annotated[str, Meta(description="A flowchart for Mermaid.")]


@shaped_operation(
    "GET /v1/journeys/{name}", JOURNEYS_GROUP, relies_on=("people",), example=JourneyParams(name="welcome")
)
def show(journeys: Journeys, context: Context, params: JourneyParams) -> JourneyView:
    """Show a journey, drawn, with the people at each step."""
    journey = journey_named(journeys, params.name)
    there = waiting(context, journey.name)
    steps, versions = Counter[str](), Counter[int]()
    for (step, version), people in there.items():
        steps[step] += people
        versions[version] += people
    book = book_of(context)
    labels = {version: labels_of(book, journey.name, version) for version in versions}
    return JourneyView(
        name=journey.name,
        version=journey.version,
        description=journey.description,
        entered_by=entered_by(journey.trigger),
        paused_since=_paused(book.paused.get(journey.name)),
        people=there.total(),
        versions={str(version): count for version, count in sorted(versions.items())},
        keeps=journey.on_change == "keep",
        waiting=[
            Waiting(step=step, version=version, label=labels[version].get(step, step), people=people)
            for (step, version), people in sorted(there.items(), key=lambda item: (-item[0][1], item[0][0]))
        ],
        steps=steps_of(journey, steps),
        drawing=tree(journey, steps),
        mermaid=mermaid(journey, steps),
    )


def labels_of(book: Book, journey: str, version: int) -> Mapping[str, str]:
    """What the steps of a version are called; nothing of one that is not known here."""
    known = book.version(journey, version)
    return {} if known is None else step_labels(known.journey)


def steps_of(journey: Journey, people: Mapping[str, int]) -> list[StepCount]:
    """The steps of a journey, each with the people who wait there."""
    labels = step_labels(journey)
    return [
        StepCount(
            step=node.id,
            does=step_text(node.step),
            label=labels[node.id],
            kind=kind_of(node.step),
            people=people.get(node.id, 0),
            ways=[Way(to=to, when=when) for when, to in arrows(node)],
            joins=node.following,
        )
        for node in compiled(journey).nodes.values()
    ]


def entries(rows: IndexRows, workspace: str, journey: str, start: str = "", stop: str | None = None) -> Iterator[Entry]:
    """Everybody in a journey, by step and person."""
    while True:
        page = rows.read(TABLE, partition(workspace, journey), start, stop, _PAGE)
        yield from (entry_of(row.sort, row.value) for row in page)
        if len(page) < _PAGE:
            return
        start = f"{page[-1].sort}\0"


def waiting(context: Context, journey: str) -> Counter[tuple[str, int]]:
    """How many people wait at each step, by step and the version that they go by."""
    there = entries(context.engine.rows, context.workspace, journey)
    return Counter((entry.step, entry.version) for entry in there)


def operations(journeys: Journeys) -> list[Operation]:
    """The operations on these definitions."""
    return [list_(journeys), show(journeys)]
