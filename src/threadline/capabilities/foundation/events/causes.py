"""What something would cause, as operations show it, and when that has to be confirmed."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.kernel.consequences import Consequences
from threadline.kernel.counted import counted
from threadline.kernel.disclosure import not_personal
from threadline.kernel.limits import UNASKED_EFFECTS_MAX

_COUNTED = {
    "segment_entered": ("entry into a segment", "entries into segments"),
    "segment_left": ("departure from a segment", "departures from segments"),
    "journey_entered": ("entry into a journey", "entries into journeys"),
}
_SENT = {"mail": ("mail", "mails"), "webhook": ("webhook", "webhooks"), "notification": ("alert", "alerts")}


@not_personal
class Causes(msgspec.Struct, kw_only=True):
    """What would follow, beside what is asked for itself."""

    events: Annotated[dict[str, int], Meta(description="Events that policies would add at once, by type.")]
    effects: Annotated[dict[str, int], Meta(description="What would be sent at once, by kind: mail, webhook …")]
    waiting: Annotated[int, Meta(description="Timers that may send something later, such as a step of a journey.")]


def causes_of(consequences: Consequences) -> Causes:
    """Consequences in their form."""
    events, effects = (dict(sorted(counts.items())) for counts in (consequences.events, consequences.effects))
    return Causes(events=events, effects=effects, waiting=consequences.waiting)


def consequences_of(causes: Causes) -> Consequences:
    """The other way round."""
    return Consequences(causes.events, causes.effects, causes.waiting)


def must_be_confirmed(consequences: Consequences) -> bool:
    """Whether so much would be sent that somebody has to say yes."""
    return consequences.sent > UNASKED_EFFECTS_MAX


def words(consequences: Consequences) -> str:
    """Consequences in a line: whoever enters, what is sent at once, and what may be sent later."""
    events, effects = consequences.events, consequences.effects
    parts = [counted(events[type], *names) for type, names in _COUNTED.items() if events.get(type)]
    parts += [counted(effects.get(kind, 0), *names) for kind, names in _SENT.items() if kind != "notification"]
    parts += [counted(count, *_SENT.get(kind, (kind, kind))) for kind, count in effects.items() if kind not in _SENT]
    if consequences.waiting:
        parts.append(counted(consequences.waiting, "step that waits", "steps that wait"))
    return ", ".join(parts)
