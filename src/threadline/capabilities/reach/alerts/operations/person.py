"""The alerts of one person: what they are shown now or at an instant, and what they dismiss."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.events.forms import Instant, PersonRef, Time, time_param
from threadline.capabilities.foundation.events.instants import person_as_of
from threadline.capabilities.foundation.events.requests import derived_key, place_and_key, wish
from threadline.capabilities.profile.segments.definition import read_segments
from threadline.capabilities.profile.segments.membership import Memberships
from threadline.capabilities.profile.segments.operations.definitions import Segments
from threadline.capabilities.reach.alerts import repository
from threadline.capabilities.reach.alerts.definition import SEVERITIES, Severity, Version
from threadline.capabilities.reach.alerts.events import ALERT_DISMISSED
from threadline.capabilities.reach.alerts.operations import ALERTS_GROUP
from threadline.capabilities.reach.alerts.operations.forms import AlertId, optional
from threadline.capabilities.reach.alerts.projection import DISMISSALS
from threadline.kernel.disclosure import not_personal
from threadline.kernel.errors import Conflict, NotFound
from threadline.kernel.event import Receipt, identifier_named, thread_id
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, Operation, Params, operation, shaped_operation


class AlertsParams(Params, kw_only=True):
    """Whose alerts, and which of them."""

    id: PersonRef
    severity: Annotated[Literal["", Severity], Meta(description="Only alerts of this severity.")] = ""
    dismissed: Annotated[bool, Meta(description="Show also those that the person has dismissed.")] = False
    anyone: Annotated[
        bool, Meta(description="For a person without any event, show what is for everybody, instead of 404.")
    ] = False
    at: Annotated[
        Time | None,
        Meta(
            description="The instant to read at. Of an earlier one, what was answered then; of a later one, what is "
            "foreseen today."
        ),
    ] = None


@key_fields("title", "severity", "start", "dismissed_at")
@not_personal
class AlertView(msgspec.Struct, kw_only=True):
    """An alert as its reader sees it."""

    id: str
    version: int
    severity: Severity
    title: str
    body: str
    link: str
    dismissable: bool
    start: Instant | None
    stop: Instant | None
    dismissed_at: Annotated[Instant | None, Meta(description="When the person dismissed it; null if not.")]


class AlertsResult(msgspec.Struct, kw_only=True):
    """Alerts in force for a person: the most severe first, then those that began last."""

    person: Annotated[str, Meta(description="Empty for a person without any event.")]
    at: Annotated[Instant | None, Meta(description="The instant that was asked for; null for the present.")]
    alerts: list[AlertView]


@shaped_operation(
    "GET /v1/people/{id}/alerts",
    ALERTS_GROUP,
    revalidated=True,
    example=AlertsParams(id="user_id:42", severity="warning"),
)
def of(segments: Segments, context: Context, params: AlertsParams) -> AlertsResult:
    """Show the alerts that a person sees, now or at an instant."""
    at = time_param(params.at)
    try:
        known = person_as_of(context, params.id, params.at if at is not None and at < context.now else None)
    except NotFound:
        if not params.anyone:
            raise
        return _shown(segments, context, params, _Nobody(context), "", at)
    return _shown(segments, context, params, known.view, known.person.id, at)


def _shown(
    segments: Segments, context: Context, params: AlertsParams, view: Any, person: str, at: int | None
) -> AlertsResult:
    instant_of_reading = context.now if at is None else at
    by_name = {segment.name: segment for segment in segments}
    memberships = Memberships(view, instant_of_reading)
    dismissed: dict[str, Any] = (memberships.subject.view(DISMISSALS.name) or {}).get("dismissed", {})
    alerts: list[tuple[str, Version, Instant | None]] = []
    for id, version in _in_force(context, at):
        alert = version.alert
        if not alert.is_due(instant_of_reading) or params.severity not in ("", alert.severity):
            continue
        is_dismissed = alert.dismissable and version.is_dismissed(dismissed.get(id))
        if (params.dismissed or not is_dismissed) and alert.is_for(memberships, by_name):
            alerts.append((id, version, dismissed[id]["at"] if is_dismissed else None))
    alerts.sort(key=lambda entry: (SEVERITIES.index(entry[1].alert.severity), -_since(entry[1]), entry[0]))
    return AlertsResult(person=person, at=optional(at), alerts=[_view(*entry) for entry in alerts])


def _in_force(context: Context, at: int | None) -> Iterable[tuple[str, Version]]:
    return repository.active(context).items() if at is None or at >= context.now else repository.at_instant(context, at)


def _since(version: Version) -> int:
    return version.at if version.alert.start is None else version.alert.start


def _view(id: str, version: Version, dismissed_at: Instant | None) -> AlertView:
    alert = version.alert
    return AlertView(
        id=id,
        version=version.number,
        severity=alert.severity,
        title=alert.title,
        body=alert.body,
        link=alert.link,
        dismissable=alert.dismissable,
        start=optional(alert.start),
        stop=optional(alert.stop),
        dismissed_at=dismissed_at,
    )


class _Nobody:
    """The views of somebody of whom nothing is known."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def view(self, name: str, at: int | None = None) -> Any:
        """What a projection says of them."""
        return self._context.engine.catalogue.of_nobody(name, self._context.now if at is None else at)


# --- dismissing -------------------------------------------------------------------------------


class AlertDismissParams(Params, kw_only=True):
    """Who does not want to see which alert any more."""

    id: PersonRef
    alert: AlertId
    anyone: Annotated[bool, Meta(description="Also for a person without any event yet, who is known from then on.")] = (
        False
    )


@not_personal
class AlertDismissResult(msgspec.Struct, kw_only=True):
    """The receipt of the event. Dismissing the same version again changes nothing."""

    alert: str
    version: int
    receipt: Receipt


@operation(
    "POST /v1/people/{id}/alerts/{alert}/dismiss",
    ALERTS_GROUP,
    done=("Dismissed the alert {alert}",),
    scope="write",
    example=AlertDismissParams(id="user_id:42", alert="maintenance"),
    refused=lambda result: result.receipt.status == "rejected",
)
def dismiss(context: Context, params: AlertDismissParams) -> AlertDismissResult:
    """Dismiss an alert for a person."""
    version = _dismissable(context, params.alert)
    properties = {"alert": params.alert, "version": version.number}
    parts = (ALERT_DISMISSED, params.alert, str(version.number))
    known = True
    try:
        person = context.engine.reader.person(context.workspace, params.id)
        identifier, key = place_and_key(context, person, *parts, named="")
    except NotFound:
        named = context.engine.catalogue.rules.normalise(identifier_named(params.id))
        if named is None or not params.anyone:
            raise
        # The thread that the event founds gives the person their id, of which the key is made afterwards, too.
        identifier, key, known = named, derived_key(thread_id(context.workspace, named), *parts), False
    event = wish(context, identifier, ALERT_DISMISSED, properties, key, vouched=True)
    receipt = context.engine.recorder.record([event], known=known)[0]
    return AlertDismissResult(alert=params.alert, version=version.number, receipt=receipt)


def _dismissable(context: Context, alert: str) -> Version:
    version = repository.active(context).get(alert)
    if version is None or version.alert.is_over(context.now):
        raise NotFound(f"there is no alert {alert[:64]!r}, or it is withdrawn or over")
    if not version.alert.dismissable:
        raise Conflict(f"alert {alert!r} cannot be dismissed")
    return version


def declare(definitions: Definitions) -> list[Operation]:
    """The operation that knows the declared segments."""
    return [of(read_segments(definitions) or ())]
