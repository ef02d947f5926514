"""What became of the actions of a decision: what was recorded, what was sent, and how that stands."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.rules.actions import KINDS
from threadline.capabilities.decide.rules.policy import LIVE, POLICY, SOURCE
from threadline.capabilities.foundation.events.forms import EventView, event_view
from threadline.kernel.disclosure import free
from threadline.kernel.event import Recorded
from threadline.kernel.operation import Context
from threadline.kernel.outbox import EffectStatus
from threadline.kernel.sender import EFFECT_PRINTED, EFFECT_WITHDRAWN
from threadline.kernel.time import parse_time

WISHED = free(
    "action", "event", "journey", "key", "kind", "path", "policy", "points", "queue", "rule", "segment", "status",
    "step", "tag", "template", "topic", "type", "unit",
)  # fmt: skip
"""Marks what actions are filled in with: the names of definitions are shown."""


class Consequence(msgspec.Struct, kw_only=True):
    """The outcome of one action."""

    action: str
    wished: Annotated[dict[str, Any], Meta(description="What it was filled in with."), WISHED]
    status: Annotated[
        Literal[
            "decided",
            "recorded",
            "waiting",
            "done",
            "printed",
            "retrying",
            "parked",
            "unknown",
            "withdrawn",
            "cut",
            "not carried out",
        ],
        Meta(
            description="printed: to the server's console, because nothing delivers effects of its kind. "
            "parked: it was given up on, until somebody drives it again; without an outcome that says so "
            "where the thread could not take its outcome. "
            "unknown: it was claimed, and nobody knows yet whether it happened. "
            "withdrawn: right before it was sent it was not wanted any more. "
            "cut: the event caused too much, and this was left out."
        ),
    ]
    event: Annotated[EventView | None, Meta(description="The event that it put into the thread.")] = None
    effect: Annotated[str, Meta(description="The id of what it sent, for the receiver the key of idempotency.")] = ""
    outcomes: Annotated[list[EventView], Meta(description="The outcome of each attempt to send it.")] = []


def consequences(context: Context, decision: Recorded) -> list[Consequence]:
    """What became of each action of a decision, in order."""
    properties = decision.event.properties
    return [_consequence(context, properties, number, wish) for number, wish in enumerate(properties["wished"], 1)]


def _consequence(context: Context, properties: dict[str, Any], number: int, wished: dict[str, Any]) -> Consequence:
    ((name, params),) = wished.items()
    if KINDS[name].wish is None:
        return Consequence(action=name, wished=params, status="decided")
    if properties["mode"] != LIVE:
        return Consequence(action=name, wished=params, status="not carried out")
    key = f"{properties['rule']}/{properties['version']}/{LIVE}/{number}"
    event = context.engine.log.of_key(context.workspace, SOURCE, f"{properties['event_id']}/{key}")
    if event is not None:
        return Consequence(action=name, wished=params, status="recorded", event=event_view(event))
    if not KINDS[name].sends:
        return Consequence(action=name, wished=params, status="cut")
    effect = context.engine.delivery.effect(
        context.workspace, POLICY, properties["event_id"], key, parse_time(properties["evaluated_at"])
    )
    return Consequence(
        action=name,
        wished=params,
        status=status_of(effect),
        effect=effect.id,
        outcomes=[event_view(outcome) for outcome in effect.outcomes],
    )


def status_of(
    effect: EffectStatus,
) -> Literal["waiting", "retrying", "cut", "parked", "unknown", "withdrawn", "printed", "done"]:
    """How an effect stands; cut: it was never in the outbox."""
    if effect.parked or effect.unknown:
        return "parked" if effect.parked else "unknown"
    if effect.waits:
        return "retrying" if effect.outcomes else "waiting"
    if not effect.outcomes:
        return "cut"
    last = effect.outcomes[-1].event.type
    return "printed" if last == EFFECT_PRINTED else "withdrawn" if last == EFFECT_WITHDRAWN else "done"
