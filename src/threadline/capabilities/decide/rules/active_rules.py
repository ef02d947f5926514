"""All rules and sets in force in one workspace, compiled and in order. Immutable: replaced as a whole."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from threadline.capabilities.decide.rules.codegen import Matching, fused
from threadline.capabilities.decide.rules.definition import Rule, RuleSet, rule_of_json, set_of_json
from threadline.capabilities.foundation.conditions import All, AnyOf, Node, Path, Subject, Test
from threadline.capabilities.foundation.conditions.fields import EVENT, Read, reader
from threadline.capabilities.foundation.conditions.operators import decimal_of, is_plain_text
from threadline.kernel.canonical import read_canonical
from threadline.kernel.errors import InvalidDefinition

Key = str | Decimal | tuple[bool]
"""A plain text, a number, or a flag, which is no number."""


class Index:
    """Positions of rules by the values that they need."""

    __slots__ = ("_fields", "rest")

    def __init__(self, trees: Sequence[Node | None]) -> None:
        needs = [[] if tree is None else list(_needs(tree)) for tree in trees]
        spread: dict[Path, set[Key]] = {}
        for needed in needs:
            for path, keys in needed:
                spread.setdefault(path, set()).update(keys)
        by_path: dict[Path, dict[Key, list[int]]] = {}
        rest: list[int] = []
        for position, needed in enumerate(needs):
            if not needed:
                rest.append(position)
                continue
            # The field with the most different values; one of the event first, because it costs nothing to read.
            path, keys = max(needed, key=lambda need: (need[0][0] == EVENT, len(spread[need[0]])))
            for key in keys:
                by_path.setdefault(path, {}).setdefault(key, []).append(position)
        self.rest = tuple(rest)
        """The rules of which nothing is known beforehand."""
        self._fields: list[tuple[Read, dict[Key, list[int]], bool]] = [
            (reader(path), keys, any(isinstance(key, Decimal) for key in keys)) for path, keys in by_path.items()
        ]

    def matching(self, subject: Subject) -> list[int]:
        """The positions of the others that can match, in order."""
        positions: list[int] = []
        for read, keys, numbers in self._fields:
            value = read(subject)
            kind = type(value)
            if kind is str:
                positions += keys.get(value, ())
                number = decimal_of(value) if numbers else None
            elif kind is bool:
                positions += keys.get((value,), ())
                continue
            else:
                number = None if value is None else decimal_of(value)
            if number is not None:
                positions += keys.get(number, ())
        return sorted(positions)


def _needs(node: Node) -> Iterator[tuple[Path, list[Key]]]:
    """The tests without which a tree is never true, as fields and the values of which they have to hold one."""
    if isinstance(node, Test):
        operands = node.operand if node.operator == "in" else (node.operand,) if node.operator == "equals" else ()
        keys = [_key(operand) for operand in operands]
        if keys and None not in keys:
            yield node.path, [key for key in dict.fromkeys(keys) if key is not None]
    elif isinstance(node, All) or (isinstance(node, AnyOf) and len(node.parts) == 1):
        for part in node.parts:
            yield from _needs(part)


def _key(operand: Any) -> Key | None:
    """What a value must be, to be equal to this; None where it may be one of several."""
    if type(operand) is bool:
        return (operand,)
    if type(operand) is str:
        # A text that is a number or an instant is equal to more than itself.
        return operand if is_plain_text(operand) else None
    return decimal_of(operand)


RULE, SET, SHADOWED = "rule/", "set/", "shadow/"
"""What items are sorted by: this and the name. Of rules, of sets, and of versions that are asked beside those that
count."""


class Ordered:
    """A set with its rules in the order in which they are asked."""

    def __init__(self, rule_set: RuleSet, rules: Iterable[Rule]) -> None:
        self.set = rule_set
        self.rules = tuple(sorted(rules, key=lambda rule: (-rule.priority, rule.id)))
        self.every = tuple((rule, False) for rule in self.rules)
        """All of them, in the form of `promising`."""

    @cached_property
    def _index(self) -> Index:
        return Index([rule.body.tree for rule in self.rules])

    @cached_property
    def _rest(self) -> tuple[Matching, tuple[int, ...]]:
        """Of the rules outside the index: the function that asks all trees of conditions, and the other bodies."""
        rest = self._index.rest
        trees = [(position, tree) for position in rest if (tree := self.rules[position].body.tree) is not None]
        return fused(trees), tuple(position for position in rest if self.rules[position].body.tree is None)

    def promising(self, subject: Subject) -> Iterator[tuple[Rule, bool]]:
        """The rules that may match, in order, and whether it is sure of each; no other one matches."""
        matching, others = self._rest
        unsure = [*self._index.matching(subject), *others]
        if not unsure:
            yield from ((self.rules[position], True) for position in matching(subject))
            return
        sure = ((position, True) for position in matching(subject))
        for position, known in heapq.merge(sure, ((position, False) for position in sorted(unsure))):
            yield self.rules[position], known


class ActiveRules:
    """Rules by id and sets by name, and which are asked of an event of which type."""

    def __init__(self, rules: Iterable[Rule] = (), sets: Iterable[RuleSet] = ()) -> None:
        self.rules: Mapping[str, Rule] = {rule.id: rule for rule in sorted(rules, key=lambda item: item.id)}
        self.sets: Mapping[str, RuleSet] = {
            rule_set.name: rule_set for rule_set in sorted(sets, key=lambda rule_set: rule_set.name)
        }
        self.declared: Mapping[str, Rule] = self.rules
        """Those of the definitions; no operation changes them."""
        self.declared_sets: Mapping[str, RuleSet] = self.sets
        self.shadows: Mapping[str, Rule] = {}
        """Versions that are asked beside those that count, by rule."""
        self.shadow: ActiveRules | None = None
        """The same rules with the shadows in place of the active versions; None if there are none."""
        self.problems: Mapping[str, str] = {}
        """What could not be read of what the store holds: it is left out, and everything else holds."""
        self.sources: Mapping[str, tuple[bytes, Rule | RuleSet]] = {}
        """The items it was made of beside what is declared, and what they were read as."""
        self._ordered = {
            rule_set.name: Ordered(rule_set, [self.rules[id] for id in rule_set.rules if id in self.rules])
            for rule_set in self.sets.values()
        }
        plans: dict[str, list[Ordered]] = {}
        for ordered in self._ordered.values():
            for type in ordered.set.events if ordered.rules else ():
                plans.setdefault(type, []).append(ordered)
        self._plans = {type: tuple(ordered_sets) for type, ordered_sets in plans.items()}

    def ordered(self, rule_set: str) -> Ordered:
        """A set with its rules in order."""
        return self._ordered[rule_set]

    def recording_all(self) -> ActiveRules:
        """The same rules, recording each that is asked: to see why one does not match."""
        return ActiveRules(self.rules.values(), [replace(rule_set, record="all") for rule_set in self.sets.values()])

    def plan(self, event_type: str) -> tuple[Ordered, ...]:
        """The sets that are asked of an event of this type, by name, those without a rule left out."""
        return self._plans.get(event_type, ())

    def handles(self, event_type: str) -> bool:
        """Whether any rule is asked of events of this type."""
        return event_type in self._plans or (self.shadow is not None and self.shadow.handles(event_type))

    def sets_of(self, rule: str) -> tuple[RuleSet, ...]:
        """The sets that name a rule."""
        return self._sets_by_rule.get(rule, ())

    @cached_property
    def _sets_by_rule(self) -> dict[str, tuple[RuleSet, ...]]:
        by_rule: dict[str, tuple[RuleSet, ...]] = {}
        for rule_set in self.sets.values():
            for rule in rule_set.rules:
                by_rule[rule] = (*by_rule.get(rule, ()), rule_set)
        return by_rule


def make_active_rules(declared: ActiveRules, items: Mapping[str, bytes], before: Any) -> ActiveRules:
    """What the definitions declare and, under other names, what the items of a workspace hold.

    ``before`` are the active rules as they were: what is unchanged is taken from there, compiled as it is.
    """
    if not items:
        return declared
    known = before.sources if isinstance(before, ActiveRules) else {}
    sources: dict[str, tuple[bytes, Rule | RuleSet]] = {}
    problems: dict[str, str] = {}
    for sort, data in items.items():
        earlier = known.get(sort)
        try:
            sources[sort] = earlier if earlier is not None and earlier[0] == data else (data, _read(sort, data))
        except InvalidDefinition as error:
            problems[sort] = str(error)
    pairs = [(sort, value) for sort, (_, value) in sources.items()]
    shadows = [value for sort, value in pairs if sort.startswith(SHADOWED) and isinstance(value, Rule)]
    rules = [value for sort, value in pairs if sort.startswith(RULE) and isinstance(value, Rule)]
    sets = [value for _, value in pairs if isinstance(value, RuleSet) and value.name not in declared.sets]
    rules = [rule for rule in rules if rule.id not in declared.rules]
    active = ActiveRules([*declared.rules.values(), *rules], [*declared.sets.values(), *sets])
    if shadows:
        active.shadows = {shadow.id: shadow for shadow in shadows}
        active.shadow = ActiveRules(*_shadow_parts(active.rules.values(), active.sets.values(), shadows))
    active.declared, active.declared_sets = declared.rules, declared.sets
    active.problems, active.sources = problems, sources
    return active


def _shadow_parts(
    rules: Iterable[Rule], sets: Iterable[RuleSet], shadows: Sequence[Rule]
) -> tuple[list[Rule], list[RuleSet]]:
    """The rules and sets with shadows in place of the active versions; every rule is recorded."""
    ids = {shadow.id for shadow in shadows}
    chosen = [replace(rule_set, record="all") for rule_set in sets if ids.intersection(rule_set.rules)]
    return [*(rule for rule in rules if rule.id not in ids), *shadows], chosen


def _read(sort: str, data: bytes) -> Rule | RuleSet:
    content = read_canonical(data)
    if sort.startswith((RULE, SHADOWED)):
        return rule_of_json(content.pop("id"), content)
    return set_of_json(content.pop("name"), content)
