"""The balance of a person and what will expire."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, PersonRef
from threadline.capabilities.foundation.events.instants import person_as_of
from threadline.capabilities.foundation.events.parameters import AsOf
from threadline.capabilities.profile.points.operations import POINTS_GROUP
from threadline.kernel.disclosure import not_personal
from threadline.kernel.errors import NotFound
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, operation
from threadline.kernel.ports import Person


class PointsParams(AsOf, kw_only=True):
    """Whose points, and at which instant."""

    id: PersonRef


class Expiry(msgspec.Struct, kw_only=True):
    """Points that will be gone if they are not spent before."""

    at: Instant
    points: int


@key_fields("day", "earned", "spent")
@not_personal
class PointsDay(msgspec.Struct, kw_only=True):
    """What the ledger says of one day."""

    day: Annotated[str, Meta(description="2026-03-01, in the calendar of the definitions.")]
    earned: int
    spent: int
    adjusted: int
    expired: int


@not_personal
class Anomaly(msgspec.Struct, kw_only=True):
    """Something that looked wrong."""

    kind: str
    of: Annotated[str, Meta(description="The hour or the day in which it was noticed.")]
    at: Instant


class PointsView(msgspec.Struct, kw_only=True):
    """A person's points at one position."""

    person: str
    position: int
    as_of: Annotated[Instant | None, Meta(description="The instant that was asked for; null for the present.")] = None
    balance: Annotated[int, Meta(description="What can be spent then.")]
    earned: Annotated[int, Meta(description="All points ever earned, also those spent, expired or revoked.")]
    spent: int
    adjusted: Annotated[int, Meta(description="The sum of all corrections; may be negative.")]
    expired: int
    expires_next: Expiry | None
    days: Annotated[list[PointsDay], Meta(description="Days with lines, the newest first.")]
    anomalies: list[Anomaly]


def points_view(context: Context, person: Person, now: int) -> dict[str, Any]:
    """What the projection says of a person. Raises `NotFound` where there are no points."""
    must_be_on(context)
    view: dict[str, Any] = context.engine.reader.views(person, now, names=["points"])["points"]
    return view


def must_be_on(context: Context) -> None:
    """Raise `NotFound` where points are switched off."""
    if not context.engine.catalogue.has("points"):
        raise NotFound("points are switched off by `points: false`")


@operation("GET /v1/people/{id}/points", POINTS_GROUP, example=PointsParams(id="user_id:42"))
def of(context: Context, params: PointsParams) -> PointsView:
    """Show a person's points: balance, total earned, the newest days, and anomalies."""
    must_be_on(context)
    asked = person_as_of(context, params.id, params.as_of)
    shown = {"as_of": None if asked.as_of is None else asked.shown_at, **asked.views("points")["points"]}
    return msgspec.convert({"person": asked.person.id, "position": asked.person.position, **shown}, PointsView)
