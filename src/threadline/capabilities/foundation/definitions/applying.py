"""Operations that bring everybody up to changed definitions: what is to be done, and doing it by page or as a job."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.definitions.schema import DEFINITIONS_GROUP
from threadline.capabilities.foundation.events.causes import Causes, causes_of
from threadline.capabilities.foundation.events.parameters import Next, Page
from threadline.capabilities.foundation.jobs.operations import JobView
from threadline.capabilities.foundation.jobs.refreshing import begun, elsewhere
from threadline.kernel.counted import counted
from threadline.kernel.disclosure import not_personal
from threadline.kernel.job import Job
from threadline.kernel.job_kind import JobKind, Step
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import UNASKED_EFFECTS_MAX
from threadline.kernel.operation import Context, NoParams, Params, always, operation
from threadline.kernel.ports import Maintenance, Ports

JOB_KIND = "definitions_apply"
_FORETELLING, _ADVANCING = "foretell/", "advance/"
"""What a cursor of the job begins with: it rehearses first, unless that was said not to matter."""
_WOULD_ENTER, _WOULD_SEND = "would_enter", "would_send"
_ENTERED = "segment_entered"
_SENT = ("would_mail", "would_webhook")
_YES = (
    f"Go on although more than {UNASKED_EFFECTS_MAX} mails, webhooks and the like follow. Without it the job foretells "
    "them first, and fails if there are so many."
)

Stale = Annotated[
    list[str],
    Meta(description="What is older than the definitions: `people`, whose states are recalculated, then others."),
]


@key_fields("change", "section", "name")
@not_personal
class ChangeView(msgspec.Struct, kw_only=True):
    """A definition that differs from the one that everybody was last brought up to."""

    change: Annotated[str, Meta(description="added, changed or removed.")]
    section: str
    name: Annotated[str, Meta(description="Empty where the section holds no names.")]


@not_personal
class ChangesResult(msgspec.Struct, kw_only=True):
    """What differs, and what has to be done about it."""

    changes: list[ChangeView]
    stale: Stale
    projections: Annotated[list[str], Meta(description="Kinds of states that are recalculated for everybody.")]


class ApplyParams(Page, kw_only=True):
    """From where to go on."""


class ApplyResult(msgspec.Struct, kw_only=True):
    """How far it came. It may be stopped after any call and begun again."""

    step: Annotated[str, Meta(description="What was brought up to date; empty if everything was.")]
    people: Annotated[int, Meta(description="People looked at in this call.")]
    next: Next = ""


class ForetellResult(msgspec.Struct, kw_only=True):
    """What bringing a page of people up to date would cause. Nothing was written."""

    people: Annotated[int, Meta(description="People looked at in this call.")]
    causes: Causes
    next: Next = ""


class BackgroundParams(Params, kw_only=True):
    """How to begin."""

    yes: Annotated[bool, Meta(description=_YES)] = False


@operation(
    "POST /v1/definitions/reload",
    DEFINITIONS_GROUP,
    done=("Loaded the definition files",),
    is_long=always,
    scope="admin",
    shown_on=frozenset({"http", "python"}),
)
def reload(context: Context, params: NoParams) -> ChangesResult:
    """Put the definition files, as they are now, in force in a running server; all of them or none."""
    return _result(context.engine.maintenance.reload())


@operation(
    "GET /v1/definitions/changes",
    DEFINITIONS_GROUP,
    is_long=always,
    scope="admin",
    shown_on=frozenset({"http", "python"}),
)
def changes(context: Context, params: NoParams) -> ChangesResult:
    """Show how the definitions in force differ from those that everybody was last brought up to."""
    return _result(context.engine.maintenance)


def _result(maintenance: Maintenance) -> ChangesResult:
    stale = maintenance.stale()
    return ChangesResult(
        changes=[ChangeView(change=c.change, section=c.section, name=c.name) for c in maintenance.changes()],
        stale=list(stale),
        projections=list(maintenance.changed_projections()) if "people" in stale else [],
    )


@operation(
    "POST /v1/definitions/apply",
    DEFINITIONS_GROUP,
    done=("Recalculated people by the definitions",),
    is_long=always,
    scope="admin",
    shown_on=frozenset({"http", "python"}),
    example=ApplyParams(),
)
def apply(context: Context, params: ApplyParams) -> ApplyResult:
    """Bring a page of people up to the definitions in force; to be repeated until `next` is empty."""
    done = context.engine.maintenance.advance(params.cursor, params.limit)
    return ApplyResult(step=done.step, people=done.people, next=done.next)


@operation(
    "GET /v1/definitions/foretell",
    DEFINITIONS_GROUP,
    scope="admin",
    shown_on=frozenset({"http", "python"}),
    example=ApplyParams(limit=500),
)
def foretell(context: Context, params: ApplyParams) -> ForetellResult:
    """What bringing a page of people up to the definitions in force would cause; to be repeated until `next` is
    empty.
    """
    foretold = context.engine.maintenance.foretell(params.cursor, params.limit)
    return ForetellResult(people=foretold.people, causes=causes_of(foretold.consequences), next=foretold.next)


@operation(
    "POST /v1/definitions/apply/job",
    DEFINITIONS_GROUP,
    done=("Brought everybody up to the definitions",),
    scope="admin",
    shown_on=frozenset({"http", "python"}),
    example=BackgroundParams(yes=True),
)
def apply_in_background(context: Context, params: BackgroundParams) -> JobView:
    """Recalculate everyone under the definitions in force as a job that survives restarts."""
    fingerprint = context.engine.maintenance.fingerprint
    about = {"definitions": fingerprint, **({"yes": True} if params.yes else {})}
    return begun(context, JOB_KIND, f"{JOB_KIND}.{fingerprint}", about)


def _step(engine: Ports, job: Job, limit: int) -> Step:
    maintenance = engine.maintenance
    if (later := elsewhere(engine, job, maintenance.fingerprint)) is not None:
        return later
    if not job.params.get("yes") and (not job.cursor or job.cursor.startswith(_FORETELLING)):
        return _foretold(maintenance, job, limit)
    done = maintenance.advance(job.cursor.removeprefix(_ADVANCING), limit)
    return Step(f"{_ADVANCING}{done.next}", {done.step: done.people} if done.step else {}, finished=not done.next)


def _foretold(maintenance: Maintenance, job: Job, limit: int) -> Step:
    """A page of the rehearsal that comes first; refused at its end if so much has to be confirmed."""
    foretold = maintenance.foretell(job.cursor.removeprefix(_FORETELLING), limit)
    more = foretold.consequences
    counts = {_WOULD_ENTER: more.events.get(_ENTERED, 0), _WOULD_SEND: more.sent}
    counts |= {f"would_{kind}": count for kind, count in more.effects.items()}
    if foretold.next:
        return Step(f"{_FORETELLING}{foretold.next}", {name: count for name, count in counts.items() if count})
    total = {name: job.counts.get(name, 0) + counts.get(name, 0) for name in (_WOULD_ENTER, _WOULD_SEND, *_SENT)}
    if total[_WOULD_SEND] > UNASKED_EFFECTS_MAX:
        return Step(
            refused=f"the definitions would send {total[_WOULD_SEND]:,} mails, webhooks and the like because of "
            f"what was so before: {counted(total[_WOULD_ENTER], 'entry into a segment', 'entries into segments')}, "
            f"{counted(total['would_mail'], 'mail')}, "
            f"{counted(total['would_webhook'], 'webhook')} at once, and the rest later. "
            "Apply them with `yes`, or without `existing: true` in the journey or rule set."
        )
    return Step(_ADVANCING, {name: count for name, count in counts.items() if count})


KIND = JobKind(JOB_KIND, _step)
