"""Effects on their way out: the queues, those that were given up on, and those of which the outcome is unknown."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.capabilities.foundation.events.parameters import Next, Page, checked_cursor, next_of
from threadline.kernel.disclosure import FREE, SENTENCE, not_personal
from threadline.kernel.errors import NotFound
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, Group, NoParams, Params, operation
from threadline.kernel.outbox import DeadLetter, QueueState, UnknownEffect
from threadline.kernel.sender import EFFECT_PARKED, EFFECT_RETRIED, Outcome
from threadline.kernel.time import format_time

EFFECTS_GROUP = Group("effects", "Mails, webhooks and other effects: queues, failures, unknown outcomes.")

Queued = Annotated[
    str,
    Meta(
        description="Only those of this queue, such as a destination of webhooks; empty: all.",
        pattern="^[a-z0-9._-]{0,64}$",
    ),
]
Id = Annotated[str, Meta(description="The effect's id, the same in all its events.", pattern="^[0-9a-f]{32}$")]
Resolution = Literal["happened", "send_again", "give_up"]
_ID = re.compile(r"[0-9a-f]{32}")
_TIMER = re.compile(r"[0-9a-f]{16}\.[0-9a-f]{32}")
_PARKED = re.compile(r"[a-z0-9._-]{1,64}![0-9a-f]{16}\.[0-9a-f]{32}")


class Line(msgspec.Struct, kw_only=True):
    """An effect that is not on its way any more."""

    id: str
    kind: str
    queue: Annotated[str, Meta(description="Empty for none.")]
    policy: Annotated[str, Meta(description="The policy that wished for it.")]
    cause: Annotated[str, Meta(description="The id of the event because of which.")]
    person: Annotated[str, Meta(description="The id of the person; empty if nobody has the thread.")]
    attempts: int
    why: Annotated[str, SENTENCE]
    since: Instant
    data: Annotated[dict[str, Any], Meta(description="What the policy wished for."), FREE]


@key_fields("kind", "why", "attempts", "id")
class UnknownLine(Line, kw_only=True):
    """An effect that may or may not have happened: it was begun, and its outcome is not known."""

    claimed_at: Instant | None
    noted: Annotated[dict[str, Any], Meta(description="What was to be sent, as its preparation has noted it."), FREE]


@key_fields("kind", "why", "attempts", "id")
class ParkedLine(Line, kw_only=True):
    """An effect that was given up on."""

    last: Annotated[dict[str, Any], Meta(description="What the last attempt came to."), FREE]


def _line(context: Context, effect: UnknownEffect | DeadLetter) -> dict[str, Any]:
    pending = effect.pending
    person = context.engine.reader.by_thread(pending.thread)
    return {
        "id": pending.id,
        "kind": pending.effect.kind,
        "queue": effect.queue,
        "policy": pending.policy,
        "cause": pending.cause,
        "person": "" if person is None else person.id,
        "attempts": pending.attempts,
        "why": effect.why,
        "since": format_time(effect.at),
        "data": pending.effect.data,
    }


# --- unknown ----------------------------------------------------------------------------------


class UnknownParams(Page, kw_only=True):
    """Which page of the effects whose outcome is not known."""


class UnknownPage(msgspec.Struct, kw_only=True):
    """Effects whose outcome is not known, by id."""

    effects: list[UnknownLine]
    next: Next = ""


@operation("GET /v1/effects/unknown", EFFECTS_GROUP, scope="admin", example=UnknownParams(limit=20))
def unknown(context: Context, params: UnknownParams) -> UnknownPage:
    """List effects that may or may not have happened: they were begun, and their outcome is not known."""
    cursor = checked_cursor(params.cursor, _ID)
    effects = context.engine.delivery.unknown(context.workspace, cursor, params.limit)
    lines = []
    for effect in effects:
        claim = effect.pending.claim
        at, noted = (None, {}) if claim is None else (format_time(claim.at), claim.properties)
        lines.append(UnknownLine(**_line(context, effect), claimed_at=at, noted=noted))
    return UnknownPage(effects=lines, next=next_of(effects, params.limit, lambda effect: effect.cursor))


class ResolveParams(Params, kw_only=True):
    """The outcome of an unknown effect, as somebody has found out or decides."""

    id: Id
    outcome: Annotated[
        Resolution,
        Meta(
            description="happened: its event is what its sender would have recorded. send_again: it is due at once, "
            "and may happen a second time. give_up: it is parked."
        ),
    ]
    why: Annotated[str, Meta(description="For the reader of the event.", max_length=500)] = ""


class Resolved(msgspec.Struct, kw_only=True):
    """The effect is not unknown any more."""

    id: str


@operation(
    "POST /v1/effects/{id}/resolve",
    EFFECTS_GROUP,
    done=("Settled an unknown effect: {outcome}",),
    scope="admin",
    example=ResolveParams(id="0123456789abcdef0123456789abcdef", outcome="happened"),
)
def resolve(context: Context, params: ResolveParams) -> Resolved:
    """Settle an unknown effect: it happened, send it again, or give it up."""
    properties = {"why": params.why} if params.why else {}
    outcomes = {
        "happened": None,
        "send_again": Outcome(type=EFFECT_RETRIED, properties=properties, retry_after_seconds=0.0),
        "give_up": Outcome(
            type=EFFECT_PARKED, properties=properties, parked=params.why or f"given up by {context.source}"
        ),
    }
    if not context.engine.delivery.resolve(context.workspace, params.id, outcomes[params.outcome], context.source):
        hint = "`effects_unknown` lists those that are; another may have been faster."
        raise NotFound(f"no effect {params.id} is unknown in this workspace", hint=hint)
    return Resolved(id=params.id)


# --- parked -----------------------------------------------------------------------------------


class ParkedEffectsParams(Page, kw_only=True):
    """Which page of the effects that were given up on."""

    queue: Queued = ""


class ParkedEffects(msgspec.Struct, kw_only=True):
    """Effects that were given up on, by queue and time, the oldest first."""

    effects: list[ParkedLine]
    next: Next = ""


def _dead_letters(context: Context, params: ParkedEffectsParams | RedriveEffectsParams) -> list[DeadLetter]:
    cursor = checked_cursor(params.cursor, _PARKED)
    return context.engine.delivery.dead_letters(context.workspace, params.queue, cursor, params.limit)


@operation("GET /v1/effects/parked", EFFECTS_GROUP, scope="admin", example=ParkedEffectsParams(queue="crm", limit=20))
def parked(context: Context, params: ParkedEffectsParams) -> ParkedEffects:
    """List effects of all kinds that were given up on, and why."""
    letters = _dead_letters(context, params)
    lines = [ParkedLine(**_line(context, letter), last=letter.outcome) for letter in letters]
    return ParkedEffects(effects=lines, next=next_of(letters, params.limit, lambda letter: letter.cursor))


class RedriveEffectsParams(Page, kw_only=True):
    """Which effects are to be sent after all."""

    queue: Queued = ""
    ids: Annotated[list[str], Meta(description="Only these; empty: all.", max_length=500)] = msgspec.field(
        default_factory=list
    )


class RedrivenEffects(msgspec.Struct, kw_only=True):
    """How many are due again."""

    redriven: int
    next: Annotated[str, Meta(description="Where to go on, for the rest; empty at the end.")] = ""


@operation(
    "POST /v1/effects/redrive",
    EFFECTS_GROUP,
    done=(
        "Sent again what was given up on in the queue {queue}",
        "Sent again what was given up on",
    ),
    scope="admin",
    example=RedriveEffectsParams(queue="crm"),
)
def redrive(context: Context, params: RedriveEffectsParams) -> RedrivenEffects:
    """Send effects again that were given up on."""
    looked_at = _dead_letters(context, params)
    letters = [letter for letter in looked_at if not params.ids or letter.pending.id in params.ids]
    done = context.engine.delivery.redrive(letters, context.source)
    return RedrivenEffects(redriven=done, next=next_of(looked_at, params.limit, lambda letter: letter.cursor))


# --- timers -----------------------------------------------------------------------------------


class TimersParams(Page, kw_only=True):
    """Which page of the timers."""


@key_fields("due_at", "policy", "key", "person")
class TimerLine(msgspec.Struct, kw_only=True):
    """Something that is looked at again at an instant, such as the end of a streak or the next step of a journey."""

    due_at: Instant
    policy: Annotated[str, Meta(description="The policy that set it.")]
    key: Annotated[str, Meta(description="What it is about, in the policy's own words.")]
    person: Annotated[str, Meta(description="The id of the person; empty if nobody has the thread.")]
    data: dict[str, Any]


class TimersPage(msgspec.Struct, kw_only=True):
    """Timers by due time."""

    timers: list[TimerLine]
    next: Next = ""


@operation("GET /v1/effects/timers", EFFECTS_GROUP, scope="admin", example=TimersParams(limit=20))
def timers(context: Context, params: TimersParams) -> TimersPage:
    """List what is due later, by due time."""
    after = checked_cursor(params.cursor, _TIMER)
    timers = context.engine.delivery.pending_timers(context.workspace, after, params.limit)
    people = context.engine.reader.by_threads([timer.thread for timer in timers])
    lines = [
        TimerLine(
            due_at=instant(timer.due_at),
            policy=timer.policy,
            key=timer.key,
            data=timer.data,
            person=people[timer.thread].id if timer.thread in people else "",
        )
        for timer in timers
    ]
    return TimersPage(timers=lines, next=next_of(timers, params.limit, lambda timer: timer.cursor))


# --- queues -----------------------------------------------------------------------------------


@key_fields("name", "state", "waiting", "oldest", "parked")
@not_personal
class QueueLine(msgspec.Struct, kw_only=True):
    """A queue and how it stands. Numbers are of all workspaces; 1,000 is that or more."""

    name: str
    state: Annotated[str, Meta(description="`open`; `resting` while it is left alone; `testing`; `stopped`.")]
    claims: Annotated[bool, Meta(description="Whether effects are claimed first, and sent at most once.")]
    waiting: int
    oldest: Annotated[Instant | None, Meta(description="When the first of them is due.")]
    unknown: Annotated[int, Meta(description="Effects whose outcome is not known.")]
    retried: Annotated[int, Meta(description="Of those that wait, how many were tried.")] = 0
    parked: Annotated[int, Meta(description="Effects that were given up on.")] = 0


class QueueList(msgspec.Struct, kw_only=True):
    """The declared queues by name."""

    queues: list[QueueLine]


def _queue(context: Context, queue_state: QueueState) -> QueueLine:
    circuit = queue_state.circuit
    resting = circuit.rests_at(context.now)
    state = "stopped" if circuit.stopped_at else "resting" if resting else "testing" if circuit.rests else "open"
    oldest = None if queue_state.oldest is None else instant(queue_state.oldest)
    return QueueLine(
        name=queue_state.queue.name,
        state=state,
        claims=queue_state.queue.claims,
        waiting=queue_state.waiting,
        oldest=oldest,
        unknown=queue_state.unknown,
        retried=queue_state.retried,
        parked=queue_state.parked,
    )


@operation("GET /v1/effects/queues", EFFECTS_GROUP, scope="admin")
def queues(context: Context, params: NoParams) -> QueueList:
    """List the queues, and how many effects wait in each or are unknown."""
    return QueueList(queues=[_queue(context, queue) for queue in context.engine.delivery.queues()])
