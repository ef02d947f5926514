"""What a journey that somebody is writing would have done with the people there are."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.drafts.draft import Text, in_force, read_draft
from threadline.capabilities.decide.drafts.sections import keys_of
from threadline.capabilities.foundation.events.forms import Identifiers, Instant, instant
from threadline.capabilities.foundation.events.sample import Deadline, Estimate, Sample, Seconds, sample
from threadline.capabilities.profile.segments.definition import SECTION_NAME as SEGMENTS
from threadline.capabilities.profile.segments.projection import member_rows
from threadline.capabilities.reach.journeys.declared import read_journeys
from threadline.capabilities.reach.journeys.operations import JOURNEYS_GROUP
from threadline.capabilities.reach.journeys.operations.definitions import waiting
from threadline.capabilities.reach.journeys.operations.what_if import pages_with
from threadline.capabilities.reach.journeys.program import compiled
from threadline.capabilities.reach.journeys.steps import JOURNEYS
from threadline.capabilities.reach.journeys.what_if.tally import Tally
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.operation import Context, Params, always, operation
from threadline.kernel.ports import Catalogue
from threadline.kernel.time import DAY

PAGE = 50
"""People between two looks at the clock."""
SAMPLES_LOOKED_AT, SAMPLES = 50, 5
MEMBERS_MAX = 20_000
"""Of segments, who are counted at most."""
UNNAMED = "draft"
"""What a journey is called that has no name yet."""


class JourneyPreviewParams(Params, kw_only=True):
    """Which journey."""

    text: Annotated[Text, Meta(description="What stands under the name of the journey: `trigger`, `steps` and so on.")]
    name: Annotated[str, Meta(description="Its name; one in force is compared with.", max_length=64)] = ""
    days: Annotated[int, Meta(description="As if it had been in force for so many days.", ge=1, le=3_650)] = 90
    seconds: Seconds = 2


class PreviewedMail(msgspec.Struct, kw_only=True):
    """A mail that somebody would have got."""

    at: Instant
    step: str
    template: str


@key_fields("identifiers", "mails")
class JourneyPerson(msgspec.Struct, kw_only=True):
    """Somebody who would have got mail by it."""

    person: str
    identifiers: Identifiers
    mails: list[PreviewedMail]


class PreviewedStep(msgspec.Struct, kw_only=True):
    """What one step would have done."""

    step: str
    reached: Annotated[Estimate, Meta(description="People who would have come to it.")]
    mails: Annotated[int, Meta(description="Mails that it would have sent to those who were looked at.")]
    actions: Annotated[int, Meta(description="How often it would have done what else it does, to the same.")] = 0


class JourneyNow(msgspec.Struct, kw_only=True):
    """What happens at once if it is put in force: nobody enters by that alone, whatever was before."""

    members: Annotated[
        int | None,
        Meta(
            description="People who belong to the segments that let people enter, and do not enter: only who comes "
            f"into one from then on does. At most {MEMBERS_MAX:,} are counted. Null: no segment in force lets people "
            "enter."
        ),
    ]
    people: Annotated[int, Meta(description="People who are in the journey of its name that is in force.")]
    keeps: Annotated[bool, Meta(description="Whether they keep their version; else they go on in this one.")]
    leaving: Annotated[
        int, Meta(description="Those of them who will leave at their next step, since it does not have the step.")
    ]


class JourneyPreview(msgspec.Struct, kw_only=True):
    """What a journey would have done. Nothing was sent, and nothing was changed."""

    start: Instant
    stop: Instant
    people_read: int
    exact: Annotated[
        bool, Meta(description="Whether everybody was looked at; else numbers are of 95 times of 100 within bounds.")
    ]
    entered: Annotated[Estimate, Meta(description="People who would have entered it.")]
    mailed: Annotated[Estimate, Meta(description="People who would have got mail by it.")]
    mailed_before: Annotated[
        Estimate | None, Meta(description="People who got mail by it as it is in force; null: it is new.")
    ]
    mails: Annotated[int, Meta(description="Mails to those who were looked at.")]
    steps: list[PreviewedStep]
    left: Annotated[dict[str, int], Meta(description="Reason -> people looked at who would have left for it.")]
    samples: Annotated[list[JourneyPerson], Meta(description="The first five who would have got mail, by id.")]
    failed: Annotated[int, Meta(description="People whose history could not be replayed; they are not counted.")]
    now: JourneyNow


@operation(
    "POST /v1/journeys/preview",
    JOURNEYS_GROUP,
    is_long=always,
    shown_on=frozenset({"http", "python"}),
    relies_on=("people",),
    example=JourneyPreviewParams(text="trigger: {event: signed_up}\nsteps: [{send: hello}]", name="welcome"),
    audited=False,
)
def preview(context: Context, params: JourneyPreviewParams) -> JourneyPreview:
    """Try a journey that is being written on the history of as many people as the time allows."""
    name = params.name or UNNAMED
    read = read_draft(context, params.text, JOURNEYS, name)
    if read.catalogue is None:
        raise InvalidDefinition("\n".join(map(str, read.problems)), param="text")
    return tried(context, read.catalogue, name, params.days, params.seconds)


def tried(
    context: Context,
    catalogue: Catalogue,
    name: str,
    days: int,
    seconds: float,
    sections: frozenset[str] = frozenset(),
) -> JourneyPreview:
    """What a journey of a catalogue would have done; ``sections``: others in which it differs from the one in force."""
    known = (context.now - days * DAY, context.now)
    tally = Tally(SAMPLES_LOOKED_AT, context.now)
    deadline, after = Deadline(context, seconds), ""
    while True:
        page, after = context.engine.reader.people(context.workspace, after, PAGE)
        ids = [person.id for person in page]
        for _ in pages_with(context.engine, context.workspace, catalogue, tally, known, ids, sections)(None):
            pass
        if not after or deadline.is_over:
            break
    return _shown(context, tally, name, sample(tally.people, after), known, _now(context, catalogue, name))


def _shown(
    context: Context, tally: Tally, name: str, looked: Sample, known: tuple[int, int], now: JourneyNow
) -> JourneyPreview:
    new = tally.new
    present = context.engine.catalogue
    is_new = in_force(present).written(keys_of(present, JOURNEYS, name)) is None
    mails = Counter[str]()
    for (journey, step, _, _), count in new.mails.items():
        mails[step] += count if journey == name else 0
    steps = {step for journey, step in new.reached if journey == name}
    actions = Counter({step: count for (journey, step, _), count in new.actions.items() if journey == name})
    named = [(shown.person, [mail for mail in shown.new if mail.journey == name]) for shown in tally.samples]
    samples = [(person, sent) for person, sent in named if sent][:SAMPLES]
    identifiers = context.engine.reader.identifiers_of(context.workspace, [person for person, _ in samples])
    return JourneyPreview(
        start=instant(known[0]),
        stop=instant(known[1]),
        people_read=tally.people,
        exact=looked.share >= 1,
        entered=looked.estimate(new.people[name]),
        mailed=looked.estimate(new.mailed[name]),
        mailed_before=None if is_new else looked.estimate(tally.old.mailed[name]),
        mails=mails.total(),
        steps=[
            PreviewedStep(
                step=step,
                reached=looked.estimate(new.reached[name, step]),
                mails=mails[step],
                actions=actions[step],
            )
            for step in sorted(steps | {step for step in mails if mails[step]})
        ],
        left={reason: count for (journey, reason), count in sorted(new.left.items()) if journey == name},
        samples=[
            JourneyPerson(
                person=person,
                identifiers=identifiers.get(person, []),
                mails=[PreviewedMail(at=instant(mail.at), step=mail.step, template=mail.template) for mail in sent],
            )
            for person, sent in samples
        ],
        failed=tally.failed,
        now=now,
    )


def _now(context: Context, catalogue: Catalogue, name: str) -> JourneyNow:
    """What happens at once if a journey of a catalogue is put in force."""
    journey = next(it for it in read_journeys(in_force(catalogue)) or () if it.name == name)
    there = waiting(context, name)
    known, keeps = compiled(journey).nodes, journey.on_change == "keep"
    gone = sum(people for (step, _), people in there.items() if step not in known)
    declared = in_force(context.engine.catalogue).names_in(SEGMENTS) or ()
    segments = {on.segment for on in journey.trigger if on.segment in declared}
    store, workspace = context.engine.store, context.workspace
    rows = (row for name in sorted(segments) for row in member_rows(store, workspace, name, "", PAGE_ITEMS_MAX))
    members = {row.key.sort for row in islice(rows, MEMBERS_MAX)}
    return JourneyNow(
        members=len(members) if segments else None,
        people=there.total(),
        keeps=keeps,
        leaving=0 if keeps else gone,
    )
