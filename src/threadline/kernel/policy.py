"""A policy: a pure function of one new event and its person that answers with wishes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from threadline.kernel.event import Recorded


class Emit(msgspec.Struct, frozen=True, kw_only=True):
    """Wish: a further event in the same person's thread, committed with the one that caused it.

    ``key`` must be unique within (policy, cause); the event's id derives from both, so a retry is the same wish.
    """

    type: str
    key: str
    occurred_at: int
    properties: dict[str, Any] = {}


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """Wish: something outside (send, call). It goes through the outbox and comes back as an event."""

    kind: str
    """The sender's kind, e.g. ``console``, ``webhook``."""
    key: str
    due_at: int = 0
    """Not before this instant, microseconds; 0 for at once."""
    data: dict[str, Any] = {}


class Timer(msgspec.Struct, frozen=True, kw_only=True):
    """Wish: wake this policy about this person at an instant. Setting a key again moves it."""

    key: str
    due_at: int
    data: dict[str, Any] = {}


class CancelTimer(msgspec.Struct, frozen=True, kw_only=True):
    """Wish: forget the timer with this key; nothing happens if there is none."""

    key: str


Wish = Emit | Effect | Timer | CancelTimer

TIMER_FIRED = "threadline.timer_fired"
"""Type of the event a due timer puts in the thread; properties: policy, key, data."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What must happen because of an event. Runs once, when the event arrives, never in a refold.

    `react` sees the event and the projected states of its person *after* the event was folded, by
    projection name. It is pure: ids of what it wishes derive from the cause.
    """

    name: str
    handles: frozenset[str]
    """Event types reacted to. `TIMER_FIRED` events reach only the policy that set the timer."""
    react: Callable[[Recorded, dict[str, Any]], Sequence[Wish]]
