"""Shadows: versions asked of live events beside those that count, to see what they would say. They do nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from threadline.capabilities.decide.rules.acting import ERROR, NO_MATCH
from threadline.capabilities.decide.rules.active_rules import ActiveRules
from threadline.capabilities.decide.rules.deciding import Decided
from threadline.capabilities.decide.rules.events import DECISION_MADE
from threadline.kernel.event import Recorded
from threadline.kernel.policy import Emit, Wish

SHADOW = "shadow"
"""The mode of such a decision."""
TABLE = "shadow_decision"
"""Index rows of the decisions of shadows, apart from those that count."""


def shadow_wishes(
    active: ActiveRules, recorded: Recorded, live: Sequence[Decided], tried: Sequence[Decided]
) -> list[Wish]:
    """A decision for each shadow that matches, or does not match where the active version does.

    Its actions are kept in it and not carried out. ``live`` are the decisions that count, ``tried`` those of the rules
    with shadows in place of the active versions.
    """
    counts = {decided.rule.id: decided for decided in live}
    at = min(recorded.event.occurred_at, recorded.recorded_at)
    wishes: list[Wish] = []
    for decided in tried:
        id = decided.rule.id
        if id not in active.shadows:
            continue
        beside = counts.get(id)
        status = NO_MATCH if beside is None else beside.status
        if decided.status == NO_MATCH == status:
            continue
        properties = decided.properties(recorded, SHADOW, recorded.recorded_at)
        properties["beside"] = {
            "version": active.rules[id].version if id in active.rules else 0,
            "status": status,
            "same": beside is not None
            and (beside.status, beside.output, beside.wished) == (decided.status, decided.output, decided.wished),
        }
        key = f"{id}/{decided.rule.version}/{SHADOW}"
        wishes.append(Emit(type=DECISION_MADE, key=key, occurred_at=at, properties=properties))
    return wishes


def is_shadow(recorded: Recorded) -> bool:
    """Whether a decision is only a shadow's."""
    return recorded.event.properties.get("mode") == SHADOW


def mark_of(properties: Mapping[str, Any]) -> str:
    """What the index row of a shadow's decision says: version, its status, that of what counted, whether alike."""
    beside = properties.get("beside") or {}
    same = "same" if beside.get("same") is True else "changed"
    return f"{properties['version']} {properties['status']} {beside.get('status', ERROR)} {same}"
