"""Parameters and fields that operations on alerts share."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.capabilities.reach.alerts.definition import Alert, Severity, Version
from threadline.capabilities.reach.alerts.projection import ID_PATTERN
from threadline.kernel.disclosure import not_personal
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import ALERT_VERSIONS_MAX

AlertId = Annotated[
    str, Meta(description="An alert's id: letters, digits, dots, hyphens and underscores.", pattern=f"^{ID_PATTERN}$")
]
Number = Annotated[int, Meta(description="The number of a version.", ge=1, le=ALERT_VERSIONS_MAX)]
Note = Annotated[str, Meta(description="Why, in the words of the caller; kept with the version.", max_length=1_000)]


@not_personal
class AlertContent(msgspec.Struct, kw_only=True):
    """What an alert says, to whom and when."""

    title: str
    body: str
    link: str
    severity: Severity
    start: Annotated[Instant | None, Meta(description="From when on it is shown; null: from when it was written.")]
    stop: Annotated[Instant | None, Meta(description="Until when it is shown; null: until it is withdrawn.")]
    tags: list[str]
    segments: list[str]
    when: dict[str, Any] | None
    dismissable: bool


def content_of(alert: Alert) -> AlertContent:
    """The form in which an alert is read by operators."""
    return AlertContent(
        title=alert.title,
        body=alert.body,
        link=alert.link,
        severity=alert.severity,
        start=optional(alert.start),
        stop=optional(alert.stop),
        tags=list(alert.tags),
        segments=list(alert.segments),
        when=alert.when,
        dismissable=alert.dismissable,
    )


def optional(at: int | None) -> Instant | None:
    """An instant that there may not be."""
    return None if at is None else instant(at)


@key_fields("version", "written_at", "written_by", "note")
@not_personal
class AlertVersion(msgspec.Struct, kw_only=True):
    """A version of an alert, whole."""

    id: str
    version: int
    withdrawn: Annotated[bool, Meta(description="Whether the version withdraws the alert.")]
    alert: AlertContent
    written_at: Instant
    written_by: Annotated[str, Meta(description="The name of the credential.")]
    note: str
    shown_again_from: Annotated[int, Meta(description="Dismissals of versions before this one do not count.")]


def version_view(id: str, version: Version) -> AlertVersion:
    """The form in which a version is read."""
    return AlertVersion(
        id=id,
        version=version.number,
        withdrawn=version.withdrawn,
        alert=content_of(version.alert),
        written_at=instant(version.at),
        written_by=version.by,
        note=version.note,
        shown_again_from=version.shown_again_from,
    )
