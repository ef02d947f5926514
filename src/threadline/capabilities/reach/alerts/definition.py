"""What an alert says, to whom and when, and the alerts of a workspace that are not withdrawn."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from threadline.capabilities.foundation.conditions import Conditions, read_json
from threadline.capabilities.foundation.conditions.fields import viewed
from threadline.capabilities.profile.segments.definition import Segment
from threadline.capabilities.profile.segments.membership import Memberships
from threadline.kernel.errors import InvalidDefinition, InvalidValue
from threadline.kernel.policy import Shared
from threadline.kernel.typed import prepared

ALERTS = "alerts"
"""The `Shared` of the alerts that are not withdrawn, and its table."""

Severity = Literal["info", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")
"""The most severe first."""

_CONTROLS = re.compile(r"[\x00-\x20\x7f\\]")


class Alert(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """What its author wrote."""

    title: str
    body: str = ""
    link: str = ""
    severity: Severity = "info"
    start: int | None = None
    stop: int | None = None
    tags: tuple[str, ...] = ()
    segments: tuple[str, ...] = ()
    when: dict[str, Any] | None = None
    dismissable: bool = True

    def is_due(self, at: int) -> bool:
        """Whether the instant is in the time in which the alert is shown."""
        return (self.start is None or self.start <= at) and not self.is_over(at)

    def is_over(self, at: int) -> bool:
        """Whether the time in which the alert is shown has ended by then."""
        return self.stop is not None and self.stop <= at

    @cached_property
    def conditions(self) -> Conditions | None:
        """The compiled `when`; None without one. Raises `InvalidDefinition`."""
        return None if self.when is None else Conditions(read_json(self.when, "when"))

    def is_for(self, memberships: Memberships, segments: Mapping[str, Segment]) -> bool:
        """Whether somebody belongs to the audience; ``segments`` are those in force."""
        if self.tags and not set(self.tags).intersection(memberships.subject.view("profile")["tags"]):
            return False
        known = [segments[name] for name in self.segments if name in segments]
        if self.segments and not any(map(memberships.belongs, known)):
            return False
        try:
            return self.conditions is None or self.conditions.test(memberships.subject)
        except InvalidDefinition:
            return False  # it was written when conditions were read otherwise: all other alerts are still shown

    def problem(self, segments: Collection[str]) -> str:
        """Why nobody belongs to the audience any more; empty if somebody may."""
        if self.segments and not set(self.segments).intersection(segments):
            return f"there is no segment {self.segments[0]!r}"
        try:
            self.conditions  # noqa: B018 — compiled when it is first looked at
        except InvalidDefinition as error:
            return str(error)
        return ""


@prepared
class Version(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One version of an alert, as it is stored. Withdrawing an alert is a version, too."""

    number: int
    at: int
    by: str
    alert: Alert
    withdrawn: bool = False
    note: str = ""
    shown_again_from: int = 1
    """Dismissals of earlier versions do not count."""

    def is_dismissed(self, dismissed: Mapping[str, Any] | None) -> bool:
        """Whether what the projection says of the alert is a dismissal of this version."""
        return dismissed is not None and dismissed["version"] >= self.shown_again_from


Active = Mapping[str, Version]
"""The newest version of each alert that is not withdrawn, by id."""


def _active(items: Mapping[str, bytes], before: Any) -> Active:
    return {id: msgspec.json.decode(data, type=Version) for id, data in items.items()}


ACTIVE_ALERTS = Shared(name=ALERTS, make=_active)


def refuse_link(link: str) -> None:
    """Raise `InvalidValue` for a link that is no web page: an application would put it into an ``href``."""
    wanted = "must be an address such as https://shop.example/sale, or a path such as /sale"
    try:
        parts = urlsplit(link)
    except ValueError:
        raise InvalidValue(f"link: {wanted}", param="link") from None
    page = parts.scheme in ("http", "https") and parts.netloc
    path = not parts.scheme and not parts.netloc and link.startswith("/") and not link.startswith("//")
    if _CONTROLS.search(link) or not (page or path):
        raise InvalidValue(f"link: {wanted}", param="link")


def refuse_event_fields(conditions: Conditions) -> None:
    """Raise `InvalidValue` for a condition on an event: whoever reads alerts has none."""
    for field in conditions.fields:
        if not viewed(field)[0]:
            message = f"when: a person has no event; name what is known of them, not {'.'.join(field)}"
            raise InvalidValue(message, param="when")
