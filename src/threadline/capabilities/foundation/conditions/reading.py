"""From YAML or JSON to a tree: every mistake is named where it stands, with what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from math import isfinite
from typing import Any

from threadline.capabilities.foundation.conditions.fields import (
    ALSO_CALLED,
    EVENT,
    PROFILE,
    RELATIVE,
    viewed,
    wrong_path,
)
from threadline.capabilities.foundation.conditions.operators import (
    ALIASES,
    COMPARING,
    OPERATORS,
    ORDERING,
    WRITTEN,
    check_of,
    is_like_a_date,
)
from threadline.capabilities.foundation.conditions.tree import All, AnyOf, Node, Not, Path, Test, depth_of, tests_of
from threadline.capabilities.foundation.definitions import PROBLEMS_MAX, Noted, Part, Place, shown_place
from threadline.kernel.errors import InvalidDefinition, InvalidValue
from threadline.kernel.limits import (
    CONDITION_DEPTH_MAX,
    CONDITION_TEXT_LENGTH_MAX,
    CONDITION_VALUES_MAX,
    CONDITIONS_MAX,
)
from threadline.kernel.names import INTEREST, PROPERTY, TAG, TRAIT, property_name
from threadline.kernel.suggestion import suggestion

NAMING = frozenset({"equals", "not_equals", "contains", "not_contains", "in", "not_in"})
"""Operators whose operand, of a list of names, is a name."""
GROUPS = ("all", "any", "not")
NESTING_MAX = 4 * CONDITION_DEPTH_MAX


def read_json(value: Any, label: str = "conditions") -> Node:
    """The tree of plain values, as JSON gives them.

    Raises `InvalidDefinition` with every mistake, one a line, each with its place, such as ``conditions.all[0].field``.
    """
    problems: list[str] = []

    def fail(at: Place, text: str) -> None:
        problems.append(f"{label}{shown_place(at)}: {text}")

    tree = _Reader(fail).tree(value)
    if tree is None or problems:
        raise InvalidDefinition("\n".join(problems[:PROBLEMS_MAX]))
    return tree


def read_tree(part: Part, own: Collection[str] = ()) -> Node:
    """The tree of a part of a definition. Raises `Noted` where something is wrong with it.

    ``own``: first steps of fields that are neither of the event nor of a view.
    """
    note = part.noting()

    def note_path(at: Place, path: Path) -> None:
        projection, steps = viewed(path)
        if projection and projection not in own:
            part.whole.note_path((*part.at, *at), projection, steps)

    def note_test(at: Place, name: str, test: Test) -> None:
        for key, kind, named in names_in(test):
            part.whole.note_free((*part.at, *at, key or name), kind, named)

    tree = None if misread(part, COMPARING.__contains__) else _Reader(note, note_path, note_test).tree(part.value)
    if tree is None or note.noted:
        raise Noted
    return tree


def misread(part: Part, is_literal: Callable[[str], bool]) -> bool:
    """Note the values that YAML reads otherwise than they look, under keys whose values are compared with, and warn of
    dates that are compared letter by letter: whoever wrote them sees a segment that is nearly right."""
    is_misread = False
    for leaf in part.leaves():
        key = next((step for step in reversed(leaf.at) if isinstance(step, str)), "")
        problem = leaf.whole.misread(leaf.at) if is_literal(key) else ""
        if problem:
            is_misread = True
            leaf.whole.fail(leaf.at, problem)
        elif key in ORDERING and isinstance(leaf.value, str) and is_like_a_date(leaf.value):
            text = f"{leaf.value!r} is compared letter by letter; write a date as 2024-09-06, in events as well"
            leaf.whole.warn(leaf.at, text)
    return is_misread


def names_in(test: Test) -> Iterator[tuple[str, str, str]]:
    """The names of free kinds in a condition, each as the key that it stands under (empty: that of its operator), its
    `NameKind` and itself."""
    name, *steps = test.path
    if name in RELATIVE:
        name, *steps = steps
    if name == PROFILE:
        name, *steps = steps
    if name == "traits" and steps:
        yield "field", TRAIT, ".".join(steps)
    elif name == "tags" and not steps:
        for tag in test.operand if isinstance(test.operand, tuple) else (test.operand,):
            if isinstance(tag, str) and test.operator in NAMING:
                yield "", TAG, tag
    elif name == "interests" and steps:
        yield "field", INTEREST, steps[0]
    elif name == EVENT and steps[0] == "properties":
        yield "field", PROPERTY, property_name(steps[1:])


def read_plain(value: Any, fail: Callable[[Place, str], None]) -> Node | None:
    """The tree of plain values inside a larger one; each mistake is passed to ``fail`` with its place."""
    return _Reader(fail).tree(value)


class _Reader:
    """Reads plain values; each mistake is passed to ``fail`` with its place."""

    def __init__(
        self,
        fail: Callable[[Place, str], None],
        note_path: Callable[[Place, Path], None] = lambda at, path: None,
        note_test: Callable[[Place, str, Test], None] = lambda at, operator, test: None,
    ) -> None:
        self._fail = fail
        self._note_path = note_path
        self._note_test = note_test

    def tree(self, value: Any) -> Node | None:
        """The whole tree, within its limits."""
        node = self._node(value, (), 0)
        if node is None:
            return None
        count = sum(1 for _ in tests_of(node))
        if count > CONDITIONS_MAX:
            self._fail((), f"{count} conditions stand here, {CONDITIONS_MAX} may; use `in` for a list of values")
        if depth_of(node) > CONDITION_DEPTH_MAX:
            self._fail((), f"all, any and not may stand in each other {CONDITION_DEPTH_MAX} levels deep")
        return node

    def _node(self, value: Any, at: Place, depth: int) -> Node | None:
        if depth > NESTING_MAX:
            self._fail(at, f"all, any and not may stand in each other {CONDITION_DEPTH_MAX} levels deep")
            return None
        if not isinstance(value, dict):
            self._fail(at, "a condition is a mapping, such as {field: traits.plan, equals: pro}")
            return None
        group = next((name for name in GROUPS if name in value), None)
        if group is None or (group == "not" and "field" in value):
            return self._test(value, at)
        if len(value) > 1:
            other = next(name for name in value if name != group)
            self._fail((*at, other), f"`{group}` stands alone; put {other!r} into a condition of its own under it")
            return None
        inside = (*at, group)
        if group == "not":
            part = self._node(value[group], inside, depth + 1)
            return None if part is None else Not(part)
        return self._group(group, value[group], inside, depth)

    def _group(self, group: str, listed: Any, at: Place, depth: int) -> Node | None:
        if not isinstance(listed, list) or not listed:
            self._fail(at, f"`{group}` takes a list of at least one condition")
            return None
        parts = [self._node(item, (*at, index), depth + 1) for index, item in enumerate(listed)]
        known = tuple(part for part in parts if part is not None)
        if len(known) < len(parts):
            return None
        return All(known) if group == "all" else AnyOf(known)

    def _test(self, value: dict[str, Any], at: Place) -> Test | None:
        if "field" not in value:
            allowed = suggestion(next(iter(value), ""), ["field", *GROUPS])
            self._fail(at, f"a condition names its `field`, or is one of all, any and not; {allowed}")
            return None
        operators = {name: WRITTEN.get(name, name) for name in value if name != "field"}
        unknown = [name for name, operator in operators.items() if operator not in OPERATORS]
        for name in unknown:
            instead = suggestion(name, (*OPERATORS, *ALIASES))
            if name == "not":
                instead = "write `not_equals`, or `not_in` for a list"
            self._fail((*at, name), f"unknown operator {name!r}; {instead}")
        if not unknown and len(operators) != 1:
            self._fail(at, "a condition has one operator, such as `equals`; put further ones under `all`")
        path = self._path(value["field"], (*at, "field"))
        if unknown or len(operators) != 1 or path is None:
            return None
        ((name, operator),) = operators.items()
        operand = value[name]
        problem = _wrong_operand(operator, operand)
        if problem:
            self._fail((*at, name), f"`{name}` {problem}")
            return None
        test = Test(path, operator, tuple(operand) if isinstance(operand, list) else operand)
        self._note_test(at, name, test)
        return test

    def _path(self, value: Any, at: Place) -> Path | None:
        steps = value.split(".") if isinstance(value, str) else value
        path = tuple(steps) if isinstance(steps, list) and all(isinstance(step, str) for step in steps) else ()
        problem = wrong_path(path)
        if not problem and len(".".join(path)) > CONDITION_TEXT_LENGTH_MAX:
            problem = f"a field has at most {CONDITION_TEXT_LENGTH_MAX} characters"
        if problem:
            self._fail(at, problem)
            return None
        path = ALSO_CALLED.get(path, path)
        self._note_path(at, path)
        return path


def _wrong_operand(operator: str, operand: Any) -> str:
    """What is wrong with what an operator is to compare with; empty if nothing is."""
    match OPERATORS[operator].operand:
        case "flag":
            return "" if type(operand) is bool else "takes true or false"
        case "list":
            if not isinstance(operand, list) or not 0 < len(operand) <= CONDITION_VALUES_MAX:
                return f"takes a list of 1 to {CONDITION_VALUES_MAX} values"
            return next((problem for item in operand if (problem := _wrong_scalar(item))), "")
        case "orderable" if type(operand) is bool:
            return "takes a number or a text; true and false have no order"
        case "text" if not isinstance(operand, str):
            return "takes a text; write it in quotes"
    problem = _wrong_scalar(operand)
    if not problem and operator == "regex":
        try:
            check_of(operator, operand)
        except InvalidValue as error:
            return f"cannot be used: {error}"
    return problem


def _wrong_scalar(value: Any) -> str:
    if value is None:
        return "takes no null; ask with `exists: false` for what is missing or null"
    if type(value) is str:
        too_long = len(value) > CONDITION_TEXT_LENGTH_MAX
        return f"takes a text of at most {CONDITION_TEXT_LENGTH_MAX} characters" if too_long else ""
    if type(value) is int:
        return "" if -(2**63) <= value < 2**64 else "takes numbers of 64 bits; write a longer one as a text"
    if type(value) is float:
        return "" if isfinite(value) else "takes finite numbers"
    return "" if type(value) is bool else "takes a text, a number, true or false"
