"""The policies that react again because two candidates differ: what they emit may differ, and is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from threadline.capabilities.rules import ActiveRules
from threadline.capabilities.rules.deciding import POLICY
from threadline.capabilities.whatif.candidate import RULE_SECTIONS, Candidate
from threadline.kernel.policy import Policy


def emitted(old: ActiveRules, new: ActiveRules) -> frozenset[str]:
    """The types of events that rules may put into threads, if rules that do so differ between the two."""
    differing = {id for id in {*old.rules, *new.rules} if _content(old, id) != _content(new, id)}
    if {each.name: each.content for each in old.sets.values()} != {
        each.name: each.content for each in new.sets.values()
    }:
        differing = {*old.rules, *new.rules}
    rules = [active.rules[id] for active in (old, new) for id in differing if id in active.rules]
    if not any(action.emits is not None for rule in rules for action in rule.actions):
        return frozenset()
    return frozenset(
        action.emits
        for active in (old, new)
        for rule in active.rules.values()
        for action in rule.actions
        if action.emits is not None
    )


def _content(active: ActiveRules, id: str) -> dict[str, Any] | None:
    rule = active.rules.get(id)
    return None if rule is None else {name: value for name, value in rule.content.items() if name != "version"}


def replayed(
    side: Candidate, both: Iterable[ActiveRules], sections: frozenset[str], types: frozenset[str]
) -> frozenset[str]:
    """The policies, rules apart, that react again: what they emit may differ, and is noticed.

    Different are those of a section that is another one; those that go by what such a section or policy shapes; and
    those that react to events that rules put into threads, or go by what these change. Noticed is what a rule reads or
    is asked of, what decides who belongs to a segment, and the points.
    """
    shapes = {each.name: each.shapes or {each.name} for each in side.catalogue.sections}
    changed = {name for section in sections - RULE_SECTIONS for name in shapes.get(section, {section})}
    found_reads = [rule.reads for active in both for rule in active.rules.values()]
    found_reads += [segment.reads for segment in side.segments]
    reads = {("points", ()), *((read.projection, read.path) for each in found_reads for read in each)}
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
    if policy.emits is None or policy.emits & heeded:
        return True
    return any(catalogue.touches(type, name, path) for type in policy.emits for name, path in reads)


def _differs(catalogue: Any, policy: Policy, changed: set[str], types: frozenset[str]) -> bool:
    reads = {(read.projection, read.path) for read in policy.reads}
    if policy.name in changed or any(name in changed for name, _ in reads) or (changed and not reads):
        return True
    if policy.handles is not None and policy.handles & types:
        return True
    return any(catalogue.touches(type, name, path) for type in types for name, path in reads)
