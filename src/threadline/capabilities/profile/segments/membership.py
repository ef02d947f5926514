"""Who belongs at an instant, and when that may change by time alone: the same for the policy and for readers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from threadline.capabilities.foundation.conditions import Path, Subject
from threadline.capabilities.foundation.conditions.fields import PROFILE, relative_change, value_at
from threadline.capabilities.profile.segments.definition import Segment
from threadline.capabilities.profile.segments.projection import SEGMENTS
from threadline.kernel.person_view import PersonView

STEPS_MAX = 64
"""Instants looked at in one go before a timer is set to go on from there."""


class Memberships:
    """The segments of a person at one instant: each view is made once, whichever segments ask for it."""

    def __init__(self, person: PersonView, at: int) -> None:
        self.at = at
        self.person = person
        self.subject = Subject(lambda name: person.view(name, at), at=at)
        self._dues: dict[str, int | None] = {}

    def belongs(self, segment: Segment) -> bool:
        """Whether the conditions of a segment are true at this instant."""
        return segment.conditions.test(self.subject_of(segment))

    def subject_of(self, segment: Segment) -> Subject:
        """What the conditions of a segment are put to: of other segments, those to which the person belongs by now.

        The events may not say yet that time has ended a membership; since when it lasted is theirs to say.
        """
        if not segment.others:
            return self.subject

        def view(name: str) -> Any:
            shown = self.subject.view(name)
            if name != SEGMENTS.name:
                return shown
            since = shown or {}
            return {
                other.name: since[other.name] for other in segment.others if other.name in since and self.belongs(other)
            }

        return Subject(view, at=self.at)

    def changes(self, segments: Iterable[Segment]) -> int | None:
        """The next instant at which time alone may change a field that these segments read; None: never.

        Time alone, as if no event lay ahead; see `next`.
        """
        asked = {other.name: other for segment in segments for other in segment.with_others}
        reads = dict.fromkeys(read for segment in asked.values() for read in segment.conditions.reads)
        changes = [self._changes(name, path) for name, path in reads]
        for segment in asked.values():
            changes += [relative_change(self.subject_of(segment), test) for test in segment.conditions.relative]
        return min((at for at in changes if at is not None and at > self.at), default=None)

    def next(self, segments: Iterable[Segment]) -> int | None:
        """The next instant at which these may turn if nothing more is told: by time, or by an event that lies ahead."""
        instants = (self.changes(segments), self.person.ahead(self.at))
        return min((at for at in instants if at is not None), default=None)

    def _changes(self, name: str, path: Path) -> int | None:
        """A view that tells `changes_at` beside a value knows better than the projection as a whole."""
        _, around = (None, None) if name == PROFILE else value_at(self.subject.view(name), path)
        if around is not None and "changes_at" in around:
            at: int | None = around["changes_at"]
            return at
        if name not in self._dues:
            self._dues[name] = self.person.due(name, self.at)
        return self._dues[name]


def next_change(segments: Sequence[Segment], memberships: Memberships) -> int | None:
    """The next instant at which somebody enters or leaves one of these if nothing more is told; None: never.

    After `STEPS_MAX` instants at which nothing turned it is the last of them: look again from there.
    """
    now = [memberships.belongs(segment) for segment in segments]
    for _ in range(STEPS_MAX):
        ahead = memberships.next(segments)
        if ahead is None:
            return None
        memberships = Memberships(memberships.person, ahead)
        if [memberships.belongs(segment) for segment in segments] != now:
            break
    return memberships.at


def leaves_at(segment: Segment, memberships: Memberships, until: int, steps: int) -> int | None:
    """When a member leaves if nothing more is told; None if not before ``until`` and within so many steps."""
    for _ in range(steps):
        ahead = memberships.next((segment,))
        if ahead is None or ahead > until:
            return None
        memberships = Memberships(memberships.person, ahead)
        if not memberships.belongs(segment):
            return ahead
    return None
