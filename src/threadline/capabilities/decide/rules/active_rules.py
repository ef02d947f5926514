"""All rules and sets in force in one workspace, compiled and in order. Immutable: replaced as a whole."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from math import inf
from typing import Any

from msgspec.structs import replace

from threadline.capabilities.decide.rules.definition import Rule, RuleSet, rule_of_json, set_of_json
from threadline.capabilities.foundation.conditions import All, AnyOf, Node, Not, Path, Subject, Test
from threadline.capabilities.foundation.conditions.fields import EVENT, Read, reader
from threadline.capabilities.foundation.conditions.operators import (
    EXACT_INTEGER_MAX,
    check_of,
    decimal_of,
    is_plain_text,
)
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


# --- many trees in one function --------------------------------------------------------------------
#
# It is written out as source text: several times as fast as asking one tree after the other. The text is made of names
# and numbers of our own; whatever users declare reaches it as objects in the namespace only, so that nothing in a
# definition can become code.

Matching = Callable[[Subject], Iterator[int]]
"""The positions of the trees that match, in order, each as soon as it is known."""

TREES_MAX = 200
"""Trees of one function: a larger one takes longer to compile and is no faster."""

_SIGNS = {
    "equals": "==",
    "not_equals": "!=",
    "greater_than": ">",
    "greater_than_or_equal": ">=",
    "less_than": "<",
    "less_than_or_equal": "<=",
}


def fused(trees: Sequence[tuple[int, Node]]) -> Matching:
    """One function for all of these trees, each with its position."""
    parts = [_Part(trees[start : start + TREES_MAX]) for start in range(0, len(trees), TREES_MAX)]
    if len(parts) == 1:
        return parts[0].matching

    def matching(subject: Subject) -> Iterator[int]:
        for part in parts:
            yield from part.matching(subject)

    return matching


class _Part:
    """A function that is written when it is first asked."""

    def __init__(self, trees: Sequence[tuple[int, Node]]) -> None:
        self._trees = trees
        self._written: Matching | None = None

    def matching(self, subject: Subject) -> Iterator[int]:
        if self._written is None:
            self._written = _Writer().written(self._trees)
        return self._written(subject)


class _Writer:
    """Collects the lines and the namespace of one function; reads every field once, however many tests want it."""

    def __init__(self) -> None:
        self._names: dict[str, Any] = {"U": object(), "int": int, "float": float}
        self._fields: dict[Path, int] = {}
        self._numeric: set[int] = set()

    def written(self, trees: Sequence[tuple[int, Node]]) -> Matching:
        """The function."""
        body = [f"    if {self._expression(tree)}: yield {position}" for position, tree in trees]
        lines = ["def matching(s):", "    r = s.recorded", "    p = r.event.properties if r is not None else {}"]
        for path, number in self._fields.items():
            lines.append(f"    v{number} = {self._first(path, number)}")
        for number in sorted(self._numeric):
            kind = f"v{number}.__class__"
            whole = f"{kind} is int and {-EXACT_INTEGER_MAX} <= v{number} <= {EXACT_INTEGER_MAX}"
            lines.append(f"    k{number} = ({whole}) or ({kind} is float and -I < v{number} < I)")
        self._names["I"] = inf
        # The text holds only what this module wrote, see above.
        exec(compile("\n".join([*lines, *body]), "<fused rules>", "exec"), self._names)  # noqa: S102
        matching: Matching = self._names["matching"]
        return matching

    def _name(self, value: Any) -> str:
        name = f"c{len(self._names)}"
        self._names[name] = value
        return name

    def _first(self, path: Path, number: int) -> str:
        """A field of the event is read at once; a field of a view when it is needed, because that takes longer."""
        if path[0] != EVENT:
            return "U"
        if path[1] == "properties" and len(path) == 3:
            return f"p.get({self._name(path[2])})"
        return f"R{number}(s)"

    def _field(self, path: Path) -> tuple[int, str]:
        number = self._fields.get(path)
        if number is None:
            number = self._fields[path] = len(self._fields)
            self._names[f"R{number}"] = reader(path)
        if path[0] == EVENT:
            return number, f"v{number}"
        return number, f"(v{number} if v{number} is not U else (v{number} := R{number}(s)))"

    def _expression(self, node: Node) -> str:
        if isinstance(node, Test):
            return self._test(node)
        if isinstance(node, Not):
            return f"(not {self._expression(node.part)})"
        return "(" + (" and " if isinstance(node, All) else " or ").join(map(self._expression, node.parts)) + ")"

    def _test(self, test: Test) -> str:
        number, value = self._field(test.path)
        operand = test.operand
        if test.operator == "exists":
            return f"({value} is not None)" if operand else f"({value} is None)"
        if test.operator == "equals" and type(operand) is bool:
            return f"({value} is {operand})"
        if test.operator == "equals" and is_plain_text(operand):
            return f"({value} == {self._name(operand)})"
        check = self._name(check_of(test.operator, operand))
        slow = f"((t := {value}) is not None and {check}(t) is True)"
        if test.path[0] == EVENT and test.operator in _SIGNS and _is_near(operand):
            self._numeric.add(number)
            return f"({value} {_SIGNS[test.operator]} {self._name(operand)} if k{number} else {slow})"
        return slow


def _is_near(operand: Any) -> bool:
    """Whether every value that is marked as a number may be compared with this as it is."""
    return type(operand) is float or (type(operand) is int and abs(operand) <= EXACT_INTEGER_MAX)
