"""What has to live again because two sides differ: policies that would do something else, where anybody notices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from threadline.capabilities.features.campaigns import CAMPAIGN_IGNORED
from threadline.capabilities.memory.events import FACT_COMPUTED
from threadline.capabilities.people.events import IDENTIFY, TAG_ADDED, TAG_REMOVED
from threadline.capabilities.points.events import OWN as POINTS
from threadline.capabilities.points.events import POINTS_EARNED
from threadline.capabilities.rules import ActiveRules
from threadline.capabilities.rules.deciding import POLICY
from threadline.capabilities.rules.events import JOURNEY_ENTRY_REQUESTED, RULE_LOGGED
from threadline.capabilities.segments.events import SEGMENT_ENTERED, SEGMENT_KEPT, SEGMENT_LEFT
from threadline.capabilities.streaks.events import OURS as STREAKS
from threadline.capabilities.whatif.candidate import RULE_SECTIONS, Candidate
from threadline.capabilities.whatif.evaluator import UNCHANGING
from threadline.kernel.policy import Policy

_SHAPES: Mapping[str, frozenset[str]] = {
    "campaigns": frozenset({CAMPAIGN_IGNORED}),
    "calendar": frozenset({"streaks"}),
    "currencies": frozenset({"features"}),
    "timezone": frozenset({"features", "points", "streaks"}),
}
"""Section -> the projections and policies that it shapes, where these are not named like it."""

_LOOKS_AT: Mapping[str, frozenset[str]] = {
    CAMPAIGN_IGNORED: frozenset({"campaigns"}),
    "points": frozenset({"points", "streaks"}),
}
"""Policy -> the projections that it goes by, where it does not declare what it reads."""

_TELLS: Mapping[str, frozenset[str]] = {
    CAMPAIGN_IGNORED: frozenset({CAMPAIGN_IGNORED}),
    "leaderboards": frozenset(),
    "points": POINTS,
    "segments": frozenset({SEGMENT_ENTERED, SEGMENT_LEFT, SEGMENT_KEPT}),
    "streaks": STREAKS,
}
"""Policy -> the types of events that it puts into threads. Nobody is ranked in a sandbox, where people live alone."""

_EMITS: Mapping[str, Callable[[Mapping[str, Any]], Iterable[str]]] = {
    "set_value": lambda params: (IDENTIFY if "trait" in params else FACT_COMPUTED,),
    "emit_event": lambda params: (params["type"].plain,),
    "award_points": lambda params: (POINTS_EARNED,),
    "tag": lambda params: (TAG_ADDED,),
    "untag": lambda params: (TAG_REMOVED,),
    "enter_journey": lambda params: (JOURNEY_ENTRY_REQUESTED,),
    "log_event": lambda params: (RULE_LOGGED,),
}
"""Kind of action -> the types of events that it may put into a thread."""


def emitted(old: ActiveRules, new: ActiveRules) -> frozenset[str]:
    """The types of events that rules may put into threads, if rules that do so differ between two both."""
    differing = {id for id in {*old.rules, *new.rules} if _content(old, id) != _content(new, id)}
    if {each.name: each.content for each in old.sets.values()} != {
        each.name: each.content for each in new.sets.values()
    }:
        differing = {*old.rules, *new.rules}
    rules = [active.rules[id] for active in (old, new) for id in differing if id in active.rules]
    if not any(action.kind.name not in UNCHANGING for rule in rules for action in rule.actions):
        return frozenset()
    return frozenset(
        type
        for active in (old, new)
        for rule in active.rules.values()
        for action in rule.actions
        for type in _EMITS.get(action.kind.name, _nothing)(action.params)
    )


def _nothing(params: Mapping[str, Any]) -> Iterable[str]:
    return ()


def _content(active: ActiveRules, id: str) -> dict[str, Any] | None:
    rule = active.rules.get(id)
    return None if rule is None else {name: value for name, value in rule.content.items() if name != "version"}


def replayed(
    side: Candidate, both: Iterable[ActiveRules], sections: frozenset[str], types: frozenset[str]
) -> frozenset[str]:
    """The policies, rules apart, that live again: whose doings may differ, and are noticed.

    Different are those of a section that is another one; those that go by what such a section or policy shapes; and
    those that react to events that rules put into threads, or go by what these change. Noticed is what a rule reads or
    is asked of, what decides who belongs to a segment, and the points.
    """
    changed = {name for section in sections - RULE_SECTIONS for name in _SHAPES.get(section, {section})}
    found_reads = [rule.reads for active in both for rule in active.rules.values()]
    found_reads += [segment.reads for segment in side.segments]
    reads = {(read.projection, read.path) for each in found_reads for read in each}
    heeded = {type for active in both for each in active.sets.values() for type in each.events}
    noticed = [
        policy
        for policy in side.catalogue.policies
        if policy.name != POLICY and _is_noticed(side.catalogue, policy, reads, heeded)
    ]
    found: set[str] = set()
    while more := {p.name for p in noticed if p.name not in found and _differs(side.catalogue, p, changed, types)}:
        found |= more
        changed |= more
    return frozenset(found)


def _is_noticed(catalogue: Any, policy: Policy, reads: Iterable[tuple[str, Any]], heeded: set[str]) -> bool:
    tells = _TELLS.get(policy.name)
    if tells is None or policy.name == "points" or tells & heeded:
        return True
    return any(catalogue.touches(type, name, path) for type in tells for name, path in reads)


def _differs(catalogue: Any, policy: Policy, changed: set[str], types: frozenset[str]) -> bool:
    declared = {(read.projection, read.path) for read in policy.reads}
    looks_at = {name for name, _ in declared} or _LOOKS_AT.get(policy.name)
    if policy.name in changed or (changed and (looks_at is None or looks_at & changed)):
        return True
    if policy.handles is not None and policy.handles & types:
        return True
    return any(catalogue.touches(type, name, path) for type in types for name, path in declared)
