"""What a person's timers are for, in words: one of segments is for all of them, and does not say which may change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from threadline.surfaces.console.formats import words
from threadline.surfaces.console.sentences import EventWords

Changes = Mapping[str, Sequence[str]]
"""Instant -> which segments somebody may enter or leave then, in words."""


def changes_by_instant(segments: Sequence[Mapping[str, Any]]) -> Changes:
    """The changes ahead of somebody, of the answer of `segments_of` about them."""
    changes: dict[str, list[str]] = {}
    for segment in segments:
        at, leaves = segment["changes_at"], segment["until"] == segment["changes_at"]
        verb = "May enter" if not segment["member"] else "Leaves" if leaves else "May leave"
        changes.setdefault(at, []).append(f"{verb} the segment {words(segment['segment'])}")
    return changes


def timer_ahead(spoken: EventWords, timer: Mapping[str, Any], changes: Changes | None) -> str:
    """What a timer is for. ``changes``: those of its person, None where nobody has asked."""
    if timer["policy"] != "segments" or changes is None:
        return spoken.timer_sentence(timer)
    # What has come since may have left nothing to change then.
    return "; ".join(changes.get(timer["due_at"], ["Looks at segments again"]))
