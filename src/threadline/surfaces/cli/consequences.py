"""What a command would cause, in words, and the question whether to go on."""

from __future__ import annotations

import sys

import click
from rich.console import Console

from threadline.capabilities.foundation.events.causes import must_be_confirmed
from threadline.kernel.consequences import Consequences
from threadline.kernel.errors import LimitExceeded

_COUNTED = {
    "segment_entered": ("entry into a segment", "entries into segments"),
    "segment_left": ("departure from a segment", "departures from segments"),
    "journey_entered": ("entry into a journey", "entries into journeys"),
}
_SENT = {"mail": ("mail", "mails"), "webhook": ("webhook", "webhooks"), "notification": ("alert", "alerts")}


def show(console: Console, consequences: Consequences, label: str = "Causes") -> None:
    """Print what would follow."""
    console.print(f"{label}: {words(consequences)}.", highlight=False, soft_wrap=True)


def words(consequences: Consequences) -> str:
    """Consequences in a line: whoever enters, what is sent at once, and what may be sent later."""
    events, effects = consequences.events, consequences.effects
    parts = [_number(events[type], *names) for type, names in _COUNTED.items() if events.get(type)]
    parts += [_number(effects.get(kind, 0), *names) for kind, names in _SENT.items() if kind != "notification"]
    parts += [_number(count, *_SENT.get(kind, (kind, kind))) for kind, count in effects.items() if kind not in _SENT]
    if consequences.waiting:
        parts.append(_number(consequences.waiting, "step that waits", "steps that wait"))
    return ", ".join(parts)


def confirm(consequences: Consequences, *, yes: bool) -> None:
    """Ask whether to go on, if so much would be sent. Raises `LimitExceeded` where nobody can be asked."""
    if yes or not must_be_confirmed(consequences):
        return
    question = f"{words(consequences)}, all because of what was so before"
    if not sys.stdin.isatty():
        raise LimitExceeded(
            f"this would cause {question}", hint="Add --yes to go on, or take `existing: true` out of the definitions."
        )
    click.confirm(f"This causes {question}. Go on?", abort=True, err=True)


def _number(count: int, singular: str, plural: str) -> str:
    return f"{count:,} {singular if count == 1 else plural}"
