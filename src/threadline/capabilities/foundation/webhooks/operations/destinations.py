"""Where webhooks go: list the destinations, stop calls to one, and resume them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.capabilities.foundation.webhooks.definition import Destination
from threadline.capabilities.foundation.webhooks.operations import WEBHOOKS_GROUP
from threadline.kernel.disclosure import not_personal
from threadline.kernel.key_fields import key_fields
from threadline.kernel.names import names_a
from threadline.kernel.operation import Context, NoParams, Params, operation
from threadline.kernel.outbox import QueueState
from threadline.kernel.time import format_time

Name = Annotated[str, names_a("destination"), Meta(description="A destination's name.", min_length=1, max_length=64)]
_SHOWN_WHY_MAX = 500


@key_fields("name", "state", "waiting", "oldest", "why")
@not_personal
class DestinationLine(msgspec.Struct, kw_only=True):
    """A destination and how it stands."""

    name: str
    url: Annotated[str, Meta(description="Without its query, which may hold a secret.")]
    state: Annotated[
        str, Meta(description="`open`; `resting` while it is left alone; `testing` before it is believed; `stopped`.")
    ]
    since: Annotated[Instant | None, Meta(description="Since when it is stopped.")] = None
    until: Annotated[Instant | None, Meta(description="Until when it rests.")] = None
    why: Annotated[str, Meta(description="Why it is stopped.")] = ""
    waiting: Annotated[int, Meta(description="Calls that wait for it, of all workspaces; 1,000 is that or more.")]
    oldest: Annotated[Instant | None, Meta(description="When the first of them is due.")] = None


class DestinationList(msgspec.Struct, kw_only=True):
    """The declared destinations by name."""

    destinations: list[DestinationLine]


def _line(context: Context, state: QueueState) -> DestinationLine:
    standing = state.circuit
    resting = standing.rests_at(context.now)
    return DestinationLine(
        name=state.queue.name,
        url=state.queue.destination.url.partition("?")[0],
        state="stopped" if standing.stopped_at else "resting" if resting else "testing" if standing.rests else "open",
        since=format_time(standing.stopped_at) if standing.stopped_at else None,
        until=format_time(standing.rest_until) if resting else None,
        why=standing.why,
        waiting=state.waiting,
        oldest=None if state.oldest is None else instant(state.oldest),
    )


@operation("GET /v1/webhooks/destinations", WEBHOOKS_GROUP, scope="admin")
def destinations(context: Context, params: NoParams) -> DestinationList:
    """List the destinations of webhooks: whether calls succeed, and how many wait."""
    states = context.engine.delivery.queues()
    return DestinationList(
        destinations=[_line(context, state) for state in states if isinstance(state.queue.destination, Destination)]
    )


class StopParams(Params, kw_only=True):
    """Which destination, and why."""

    name: Name
    why: Annotated[str, Meta(description="For those who find it stopped.", max_length=_SHOWN_WHY_MAX)] = ""


class StartParams(Params, kw_only=True):
    """Which destination."""

    name: Name


class Changed(msgspec.Struct, kw_only=True):
    """Whether it stood otherwise before."""

    changed: bool


@operation(
    "POST /v1/webhooks/destinations/{name}/stop",
    WEBHOOKS_GROUP,
    done=("Stopped calls to {name}",),
    scope="admin",
    example=StopParams(name="crm", why="moves on Monday"),
)
def stop(context: Context, params: StopParams) -> Changed:
    """Stop calls to a destination: calls that are due are parked."""
    why = params.why or f"stopped by {context.source}"
    return Changed(changed=context.engine.delivery.stop(params.name, why))


@operation(
    "POST /v1/webhooks/destinations/{name}/start",
    WEBHOOKS_GROUP,
    done=("Started calls to {name}",),
    scope="admin",
    example=StartParams(name="crm"),
)
def start(context: Context, params: StartParams) -> Changed:
    """Resume calls to a destination that was stopped or paused itself."""
    return Changed(changed=context.engine.delivery.start(params.name))
