"""Alerts as operators write them: written, changed, withdrawn; every version stays."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.events.forms import Time, time_param
from threadline.capabilities.profile.segments.definition import read_segments
from threadline.capabilities.profile.segments.operations.definitions import Name, Segments, segment_named
from threadline.capabilities.reach.alerts import repository
from threadline.capabilities.reach.alerts.definition import Alert, Severity, refuse_event_fields, refuse_link
from threadline.capabilities.reach.alerts.operations import ALERTS_GROUP
from threadline.capabilities.reach.alerts.operations.forms import AlertId, AlertVersion, Note, version_view
from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.limits import (
    ALERT_AUDIENCE_NAMES_MAX,
    ALERT_BODY_LENGTH_MAX,
    ALERT_LINK_LENGTH_MAX,
    ALERT_TITLE_LENGTH_MAX,
    IDENTIFIER_LENGTH_MAX,
)
from threadline.kernel.names import offers
from threadline.kernel.operation import Context, Operation, Params, operation, shaped_operation
from threadline.kernel.policy import Read

Tag = Annotated[str, offers("tag"), Meta(min_length=1, max_length=IDENTIFIER_LENGTH_MAX)]


class AlertWriteParams(Params, kw_only=True):
    """What the alert says, to whom and when. Without `tags`, `segments` and `when` it is for everybody; of several of
    them all must hold."""

    id: AlertId
    title: Annotated[str, Meta(min_length=1, max_length=ALERT_TITLE_LENGTH_MAX)]
    body: Annotated[str, Meta(max_length=ALERT_BODY_LENGTH_MAX)] = ""
    link: Annotated[
        str,
        Meta(
            description="A web address, or a path that begins with a slash.",
            max_length=ALERT_LINK_LENGTH_MAX,
        ),
    ] = ""
    severity: Severity = "info"
    start: Annotated[Time | None, Meta(description="From when on it is shown; without it at once.")] = None
    stop: Annotated[Time | None, Meta(description="Until when it is shown; without it until it is withdrawn.")] = None
    tags: Annotated[
        list[Tag], Meta(description="For people who have one of these tags.", max_length=ALERT_AUDIENCE_NAMES_MAX)
    ] = []
    segments: Annotated[
        list[Name],
        Meta(description="For people who belong to one of these segments.", max_length=ALERT_AUDIENCE_NAMES_MAX),
    ] = []
    when: Annotated[
        dict[str, Any] | None,
        Meta(description="For people for whom this condition is true, in the language of segments and rules."),
    ] = None
    dismissable: bool = True
    shown_again: Annotated[bool, Meta(description="Show it also to those who dismissed an earlier version.")] = False
    expected: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="The newest version that you know of, 0 for none; refused if another is the newest."),
    ] = None


class AlertWriteResult(msgspec.Struct, kw_only=True):
    """The version that says it."""

    created: Annotated[bool, Meta(description="False: the newest version already says this.")]
    version: AlertVersion


@shaped_operation(
    "POST /v1/alerts/{id}",
    ALERTS_GROUP,
    done=("Wrote the alert {id}",),
    scope="admin",
    example=AlertWriteParams(
        id="maintenance",
        title="The shop is closed on Sunday",
        severity="warning",
        tags=["vip"],
        start="2026-03-01T00:00:00Z",
        stop="2026-03-08T00:00:00Z",
    ),
)
def write(segments: Segments, context: Context, params: AlertWriteParams) -> AlertWriteResult:
    """Write an alert, or a new version of it."""
    for name in params.segments:
        try:
            segment_named(segments, name)
        except NotFound as error:
            raise InvalidValue(f"segments: {error}", param="segments") from None
    if params.link:
        refuse_link(params.link)
    start, stop = time_param(params.start), time_param(params.stop)
    if start is not None and stop is not None and stop <= start:
        raise InvalidValue("stop: must be later than `start`", param="stop")
    alert = Alert(
        title=params.title,
        body=params.body,
        link=params.link,
        severity=params.severity,
        start=start,
        stop=stop,
        tags=tuple(params.tags),
        segments=tuple(params.segments),
        when=params.when,
        dismissable=params.dismissable,
    )
    if alert.conditions is not None:
        refuse_event_fields(alert.conditions)
        context.engine.catalogue.refuse_unread(Read(*read, "when") for read in alert.conditions.reads)
    made, created = repository.write(
        context, params.id, alert, shown_again=params.shown_again, expected=params.expected
    )
    return AlertWriteResult(created=created, version=version_view(params.id, made))


class AlertWithdrawParams(Params, kw_only=True):
    """Which alert nobody is to see any more."""

    id: AlertId
    note: Note = ""


@operation(
    "POST /v1/alerts/{id}/withdraw",
    ALERTS_GROUP,
    done=("Withdrew the alert {id}",),
    scope="admin",
    example=AlertWithdrawParams(id="maintenance", note="the work is done"),
)
def withdraw(context: Context, params: AlertWithdrawParams) -> AlertWriteResult:
    """Withdraw an alert, so that nobody sees it any more."""
    made, created = repository.withdraw(context, params.id, params.note)
    return AlertWriteResult(created=created, version=version_view(params.id, made))


def declare(definitions: Definitions) -> list[Operation]:
    """The operation that knows the declared segments."""
    return [write(read_segments(definitions) or ())]
