"""Alerts as operators read them: the list, one version, all versions."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.events.forms import Instant
from threadline.capabilities.foundation.events.parameters import Next, Page, number_of
from threadline.capabilities.profile.segments.definition import read_segments
from threadline.capabilities.profile.segments.operations.definitions import Segments
from threadline.capabilities.reach.alerts import repository
from threadline.capabilities.reach.alerts.definition import Severity, Version
from threadline.capabilities.reach.alerts.operations import ALERTS_GROUP
from threadline.capabilities.reach.alerts.operations.forms import AlertId, AlertVersion, Number, optional, version_view
from threadline.kernel.disclosure import not_personal
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.operation import Context, Operation, Params, operation, shaped_operation

State = Literal["active", "scheduled", "over", "withdrawn"]


class AlertListParams(Page, kw_only=True):
    """Which page of the alerts."""

    state: Annotated[Literal["", State], Meta(description="Only alerts in this state.")] = ""


@key_fields("title", "state", "severity", "start", "stop", "id")
@not_personal
class AlertLine(msgspec.Struct, kw_only=True):
    """An alert in a list."""

    id: str
    version: Annotated[int, Meta(description="The newest version.")]
    state: State
    title: str
    severity: Severity
    start: Instant | None
    stop: Instant | None
    problem: Annotated[str, Meta(description="Why nobody belongs to its audience any more; empty if somebody may.")]


class AlertList(msgspec.Struct, kw_only=True):
    """Alerts by id."""

    alerts: list[AlertLine]
    next: Next = ""


@shaped_operation("GET /v1/alerts", ALERTS_GROUP, example=AlertListParams(state="active"))
def list_(segments: Segments, context: Context, params: AlertListParams) -> AlertList:
    """List alerts by id: active, scheduled, over or withdrawn."""
    known = {segment.name for segment in segments}
    listed: list[AlertLine] = []
    after, more, size = params.cursor, True, min(params.limit + 1, PAGE_ITEMS_MAX)
    while more and len(listed) <= params.limit:
        page = repository.page(context, after, size)
        lines = [_line(id, version, known, context.now) for id, version in page]
        listed += [line for line in lines if params.state in ("", line.state)]
        more = len(page) == size
        after = page[-1][0] if page else ""
    shown = listed[: params.limit]
    return AlertList(alerts=shown, next=shown[-1].id if len(listed) > params.limit else "")


def _line(id: str, version: Version, known: set[str], now: int) -> AlertLine:
    alert = version.alert
    return AlertLine(
        id=id,
        version=version.number,
        state=_state(version, now),
        title=alert.title,
        severity=alert.severity,
        start=optional(alert.start),
        stop=optional(alert.stop),
        problem=alert.problem(known),
    )


def _state(version: Version, now: int) -> State:
    if version.withdrawn:
        return "withdrawn"
    if version.alert.is_over(now):
        return "over"
    return "active" if version.alert.is_due(now) else "scheduled"


class AlertParams(Params, kw_only=True):
    """Which alert, in which version."""

    id: AlertId
    version: Annotated[Number | None, Meta(description="The newest if it is left out.")] = None


@operation("GET /v1/alerts/{id}", ALERTS_GROUP, example=AlertParams(id="maintenance"))
def show(context: Context, params: AlertParams) -> AlertVersion:
    """Show an alert as it was written, in its newest version or another."""
    newest = repository.newest(context, params.id)
    number = params.version or newest.number
    version = newest if number == newest.number else repository.version(context, params.id, number)
    return version_view(params.id, version)


class AlertVersionsParams(Page, kw_only=True):
    """Of which alert, and which page."""

    id: AlertId


class AlertVersions(msgspec.Struct, kw_only=True):
    """Versions, oldest first."""

    versions: list[AlertVersion]
    next: Next = ""


@operation("GET /v1/alerts/{id}/versions", ALERTS_GROUP, example=AlertVersionsParams(id="maintenance"))
def versions(context: Context, params: AlertVersionsParams) -> AlertVersions:
    """List the versions of an alert, oldest first: who wrote each and when."""
    newest, after = repository.newest(context, params.id), number_of(params.cursor)
    versions = repository.versions(context, params.id, after, params.limit)
    more = bool(versions) and versions[-1].number < newest.number
    return AlertVersions(
        versions=[version_view(params.id, version) for version in versions],
        next=str(versions[-1].number) if more else "",
    )


def declare(definitions: Definitions) -> list[Operation]:
    """The operation that knows the declared segments."""
    return [list_(read_segments(definitions) or ())]
