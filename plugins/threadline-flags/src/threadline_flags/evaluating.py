"""Which variant a flag gives: the first rule that is true decides, and a draw is a hash of flag and targeting key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from threadline.capabilities.foundation.conditions import Subject
from threadline.kernel.arms import arm_at, draw
from threadline.kernel.event import Event, Identifier, Recorded
from threadline_flags.definition import Flag

Reason = Literal["STATIC", "TARGETING_MATCH", "SPLIT", "DEFAULT", "DISABLED"]
"""Why a variant was given, in the words of OpenFeature."""


class Evaluation(NamedTuple):
    """What a flag gives."""

    variant: str
    value: Any
    reason: Reason


def subject_of(view: Callable[[str], Any], key: str, context: Mapping[str, Any], now: int) -> Subject:
    """Somebody whom rules are asked about: their views, and the context of the call as ``event.properties``."""
    event = Event(
        type="flag_asked",
        identifiers=(Identifier("user_id", key[:512] or "nobody"),),
        occurred_at=now,
        key="flag",
        properties=dict(context),
    )
    return Subject(view, Recorded(event, id="0" * 32, thread="0" * 32, sequence=0, recorded_at=now), at=now)


def evaluate(flag: Flag, subject: Subject, key: str) -> Evaluation:
    """The variant of somebody, by their targeting key and by what is known of them."""
    if not flag.enabled:
        return _given(flag, flag.otherwise, "DISABLED")
    for rule in flag.rules:
        if rule.conditions is not None and not rule.conditions.test(subject):
            continue
        if rule.split:
            weighted = sorted((variant, weight) for variant, weight in rule.split.items() if weight)
            position = arm_at([weight for _, weight in weighted], draw("flag", flag.name, key))
            return _given(flag, weighted[position][0], "SPLIT")
        return _given(flag, rule.variant, "STATIC" if rule.conditions is None else "TARGETING_MATCH")
    return _given(flag, flag.otherwise, "DEFAULT" if flag.rules else "STATIC")


def _given(flag: Flag, variant: str, reason: Reason) -> Evaluation:
    return Evaluation(variant, flag.variants[variant], reason)
