"""Conditions as a form: rows of field, comparison and value, in groups one level deep, and the tree that they say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from threadline.capabilities.foundation.conditions import All, AnyOf, Node, Not, Path, Test
from threadline.capabilities.foundation.conditions.fields import RELATIVE
from threadline.capabilities.foundation.conditions.operators import OPERATORS
from threadline.capabilities.foundation.conditions.wording import field_text
from threadline.kernel.errors import InvalidValue
from threadline.kernel.time import check_date

PREFIX = "_when"
"""What the names of all fields begin with. The underscore keeps them out of the parameters of an operation."""
BEYOND = "_beyond"
"""The field with parts that a form does not show, as JSON; they stay as they are."""
GROUPS = {
    "all": "all of these are true",
    "any": "at least one of these is true",
    "none": "none of these is true",
    "not_all": "not all of these are true",
}
KINDS = {"text": "text", "number": "number", "flag": "yes or no"}
"""Kinds of values to compare with."""
_KINDS_OF = {
    "scalar": ("text", "number", "flag"),
    "orderable": ("text", "number"),
    "text": ("text",),
    "list": ("text", "number"),
    "flag": (),
}
"""Kind of an operand, see `Operator` -> the kinds of values that it may be made of."""
_WHOLE, _BROKEN = re.compile(r"-?[0-9]+"), re.compile(r"[\0\r\n]")
_CALLED = {"traits": "trait", "features": "feature", "segments": "segment"}
DAY_LENGTH = len("2026-03-01")
NOT, DENIED = ":not", "!"
"""What ends a comparison that is an operator with the flag false, such as `exists:not`, and what begins one that is the
contrary of another, which is true of what is missing as well, such as `!equals`."""


class Row(NamedTuple):
    """One condition, as it is filled in."""

    field: str = ""
    comparison: str = ""
    """See `Comparison`."""
    kind: str = ""
    value: str = ""
    """Of several values one a line."""


class Group(NamedTuple):
    """Conditions that stand together; only the outermost group holds others."""

    how: str
    parts: tuple[Row | Group, ...]
    is_single: bool = False
    """Whether a condition that stands alone is written without `all` around it."""


class Unfinished(Exception):
    """What is missing in a row, in words, and the name of the field where it is."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class Comparison(NamedTuple):
    """What a row can say of its field: an operator, or the contrary of one."""

    operator: str
    flag: bool = True
    """The operand of an operator that takes a flag."""
    is_denied: bool = False

    @property
    def name(self) -> str:
        """As forms send it."""
        return f"{DENIED if self.is_denied else ''}{self.operator}{'' if self.flag else NOT}"

    @property
    def is_usual(self) -> bool:
        """Whether it is offered for every field of a type that it fits. The contrary of an operator is where there is a
        second operator that sounds like it and is not true of what is missing."""
        return not self.is_denied or f"not_{self.operator}" in OPERATORS

    def fits(self, type: str) -> bool:
        """Whether it fits fields of a type; empty: the type is not known."""
        return not type or type in OPERATORS[self.operator].types

    def text(self, type: str) -> str:
        """In words."""
        known, contrary = OPERATORS[self.operator], OPERATORS.get(f"not_{self.operator}")
        text = known.of_times if type == "time" and known.of_times else known.text
        text = text if self.flag else known.of_false
        if self.is_denied:
            return f"not: {text}" if contrary is None else f"{contrary.text}, or is missing"
        return text


def comparisons() -> Iterator[Comparison]:
    """Every comparison that a row can make."""
    for is_denied in (False, True):
        for name, operator in OPERATORS.items():
            yield Comparison(name, is_denied=is_denied)
            if operator.operand == "flag":
                yield Comparison(name, flag=False, is_denied=is_denied)


def comparison_named(name: str) -> Comparison | None:
    """The comparison of a name; None if there is none."""
    return next((comparison for comparison in comparisons() if comparison.name == name), None)


def kinds_of(name: str) -> tuple[str, ...]:
    """The kinds of values that a comparison takes; none: it takes no value."""
    comparison = comparison_named(name)
    return () if comparison is None else _KINDS_OF[OPERATORS[comparison.operator].operand]


# --- from a tree to a form ------------------------------------------------------------------------------


def form_of(tree: Node) -> Group | None:
    """The form that says a tree; None where none can: it is nested more deeply, or has values with line breaks."""
    if (tested := _tested(tree)) is None:
        return _group(tree, inner=True)
    row = _row(*tested)
    return None if row is None else Group("all", (row,), is_single=True)


def _tested(node: Node) -> tuple[Test, bool] | None:
    """The condition that a node is, and whether it is denied; None: it is a group."""
    if isinstance(node, Test):
        return node, False
    return (node.part, True) if isinstance(node, Not) and isinstance(node.part, Test) else None


def _group(node: Node, *, inner: bool) -> Group | None:
    how, nodes = _read_group(node)
    parts = [_part(child, inner=inner) for child in nodes]
    known = tuple(part for part in parts if part is not None)
    return Group(how, known) if how and len(known) == len(parts) else None


def _read_group(node: Node) -> tuple[str, tuple[Node, ...]]:
    """How the conditions of a group go together, and these; empty where no group is like that."""
    if isinstance(node, Not) and isinstance(node.part, All | AnyOf):
        return ("not_all" if isinstance(node.part, All) else "none"), node.part.parts
    return ("all" if isinstance(node, All) else "any", node.parts) if isinstance(node, All | AnyOf) else ("", ())


def _part(node: Node, *, inner: bool) -> Row | Group | None:
    if (tested := _tested(node)) is not None:
        return _row(*tested)
    return _group(node, inner=False) if inner else None


def _row(test: Test, is_denied: bool) -> Row | None:
    field, operand = field_of(test.path), test.operand
    if OPERATORS[test.operator].operand == "flag":
        return Row(field, Comparison(test.operator, operand, is_denied).name)
    comparison = Comparison(test.operator, is_denied=is_denied).name
    values = operand if isinstance(operand, tuple) else (operand,)
    kinds = {_kind(value) for value in values}
    texts = [_text(value) for value in values]
    kind = kinds.pop()
    if kinds or kind not in kinds_of(test.operator) or not all(texts) or any(map(_BROKEN.search, texts)):
        return None
    return Row(field, comparison, kind, "\n".join(texts))


def _kind(value: Any) -> str:
    return "flag" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def field_of(path: Path) -> str:
    """A path as it is filled in: with dots, or as JSON where that would not be read back."""
    text = ".".join(path)
    is_plain = not (any("." in step for step in path) or text.startswith("[") or _BROKEN.search(text))
    return text if is_plain and text == text.strip() else json.dumps(path)


def path_of(field: str) -> Path:
    """The path that a field was filled in with."""
    if field.startswith("["):
        try:
            steps = json.loads(field)
        except ValueError:
            steps = None
        if isinstance(steps, list) and all(isinstance(step, str) for step in steps):
            return tuple(steps)
    return tuple(field.strip().split("."))


# --- from a form to a tree ------------------------------------------------------------------------------


def tree_of(form: Group, name: str = PREFIX) -> Node:
    """The tree that a form says. Raises `Unfinished` for the first row in which something is missing."""
    return _tree(form, name)


def _tree(group: Group, name: str) -> Node:
    parts = tuple(
        _tree(part, f"{name}.{number}") if isinstance(part, Group) else _condition(part, f"{name}.{number}")
        for number, part in enumerate(group.parts)
    )
    if group.is_single and group.how == "all" and len(parts) == 1 and isinstance(group.parts[0], Row):
        return parts[0]
    if group.how in ("all", "any"):
        return All(parts) if group.how == "all" else AnyOf(parts)
    return Not(AnyOf(parts) if group.how == "none" else All(parts))


def _condition(row: Row, name: str) -> Node:
    if not row.field.strip():
        raise Unfinished(f"{name}.field", "choose a field")
    comparison = comparison_named(row.comparison)
    if comparison is None:
        raise Unfinished(f"{name}.is", "choose a comparison")
    test = Test(path_of(row.field), comparison.operator, _operand(row, comparison, name))
    return Not(test) if comparison.is_denied else test


def _operand(row: Row, comparison: Comparison, name: str) -> Any:
    known = OPERATORS[comparison.operator]
    if known.operand == "flag":
        return comparison.flag
    texts = [line for line in row.value.split("\n") if line] if known.operand == "list" else [row.value]
    if not any(texts):
        raise Unfinished(f"{name}.value", "give a value")
    values = tuple(typed_value(row.kind, text, f"{name}.value") for text in texts)
    return values if known.operand == "list" else values[0]


def typed_value(kind: str, text: str, name: str) -> Any:
    """What was filled in for a value of a kind; ``name`` is that of the field. Raises `Unfinished` for what is none."""
    if kind == "flag":
        return text == "true"
    if kind != "number":
        return text
    try:
        number = int(text) if _WHOLE.fullmatch(text.strip()) else float(text)
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise Unfinished(name, f"{text[:40]!r} is no number")
    return number


# --- fields of a form in a page ---------------------------------------------------------------------------


BLANK = Group("all", (Row(),), is_single=True)
"""A form in which nothing is filled in."""


def read_fields(fields: Mapping[str, str], labels: Mapping[str, str], name: str = PREFIX) -> Group:
    """The form that was filled in; ``labels`` gives the field that a name in words stands for."""
    return _read(fields, name, labels) or BLANK


def _read(fields: Mapping[str, str], name: str, labels: Mapping[str, str]) -> Group | None:
    if f"{name}.how" not in fields:
        return None
    parts: list[Row | Group] = []
    # A field that was left empty may be missing; a comparison never is.
    while (inner := f"{name}.{len(parts)}") and (f"{inner}.is" in fields or f"{inner}.how" in fields):
        parts.append(_read(fields, inner, labels) or _read_row(fields, inner, labels))
    how = fields[f"{name}.how"]
    return Group(how if how in GROUPS else "all", tuple(parts), fields.get(f"{name}.single") == "1")


def _read_row(fields: Mapping[str, str], name: str, labels: Mapping[str, str]) -> Row:
    given = {part: fields.get(f"{name}.{part}", "") for part in ("field", "shown", "path", "is", "as", "value")}
    text = given["field"]
    # What was not touched is the path that it was made of: a name in words may have come to stand for another field.
    is_same = bool(given["path"]) and text == given["shown"]
    field = given["path"] if is_same else labels.get(text, text)
    return Row(field, given["is"], given["as"] if is_same else "", given["value"].replace("\r\n", "\n"))


def is_blank(form: Group) -> bool:
    """Whether nothing is filled in."""
    return all(
        is_blank(part) if isinstance(part, Group) else not (part.field.strip() or part.value.strip())
        for part in form.parts
    )


def beyond_of(fields: Mapping[str, str]) -> dict[str, Any]:
    """The parameters that a form was sent with and does not show, such as conditions that are nested more deeply."""
    try:
        value = json.loads(fields.get(BEYOND, "{}"))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def missing(form: Group) -> Unfinished | None:
    """What is missing in conditions that may be left out altogether."""
    try:
        if not is_blank(form):
            tree_of(form)
    except Unfinished as problem:
        return problem
    return None


def sent_tree(form: Group) -> Node:
    """The tree that a form says which was sent to an operation. Raises `InvalidValue`."""
    try:
        return tree_of(form)
    except Unfinished as problem:
        raise InvalidValue(f"a condition is not finished: {problem}", param=problem.name) from None


def changed(form: Group, action: str, name: str = PREFIX) -> tuple[Group, str]:
    """The form after a button: ``row``, ``group``, or one of them or ``drop`` with a place such as ``row:0`` or
    ``drop:0.1``; and the name of what is to be looked at next. Before a bar it may say of which conditions it is."""
    root, _, action = action.rpartition("|")
    if root not in ("", name):  # the button of other conditions
        return form, ""
    what, _, written = action.partition(":")
    path = [int(step) for step in written.split(".") if step.isdigit()]
    inside = form.parts[path[0]] if path and path[0] < len(form.parts) else None
    if what == "drop" and len(path) == 2 and isinstance(inside, Group):
        rest = (*inside.parts[: path[1]], *inside.parts[path[1] + 1 :])
        if rest:
            return _replaced(form, path[0], inside._replace(parts=rest)), f"{name}.{path[0]}.how"
    if what == "drop" and inside is not None:
        rest = (*form.parts[: path[0]], *form.parts[path[0] + 1 :])
        return form._replace(parts=rest or (Row(),)), f"{name}.how"
    if what == "row" and isinstance(inside, Group):
        grown = inside._replace(parts=(*inside.parts, Row()))
        return _replaced(form, path[0], grown), f"{name}.{path[0]}.{len(inside.parts)}.field"
    last = len(form.parts)
    if what == "row":
        return form._replace(parts=(*form.parts, Row())), f"{name}.{last}.field"
    if what == "group":
        return form._replace(parts=(*form.parts, Group("any", (Row(),)))), f"{name}.{last}.0.field"
    return form, ""


def _replaced(form: Group, number: int, part: Row | Group) -> Group:
    return form._replace(parts=(*form.parts[:number], part, *form.parts[number + 1 :]))


# --- what a page shows ------------------------------------------------------------------------------------


class Known(NamedTuple):
    """A field that is offered."""

    path: str
    label: str
    type: str
    samples: Sequence[Any]


def shown(form: Group, known: Mapping[str, Known], problem: Unfinished | None, name: str = PREFIX) -> dict[str, Any]:
    """What the template shows of a form; ``known`` are the fields on offer by path."""
    return {**_shown_group(form, name, "", known, problem), "root": name}


def shown_with(
    form: Group, known: Mapping[str, Known], problem: Unfinished | None, name: str = PREFIX
) -> dict[str, Any]:
    """The same of a form as it may have been sent, with names in words for fields that are not on offer as well."""
    fitting = fitted(form, known)
    return shown(fitting, {**dict(_unseen(fitting)), **known}, problem, name)


def _unseen(form: Group) -> Iterator[tuple[str, Known]]:
    """The fields of a form, each with a name in words, for those that nobody has of whom fields are on offer."""
    for part in form.parts:
        if isinstance(part, Group):
            yield from _unseen(part)
        elif (path := part.field) and all(steps := path_of(path)):
            within = next((step for step in steps if step not in RELATIVE), "")
            label = label_of(field_text(steps), within)
            yield path, Known(path, label if label.isprintable() else path, "", ())


def label_of(text: str, within: str) -> str:
    """What a field is called: its name, and what it is a part of where the name does not say it."""
    called = _CALLED.get(within, within)
    return text if called == "event" or text.startswith(called) else f"{text} ({called})"


def _shown_group(
    group: Group, name: str, position: str, known: Mapping[str, Known], problem: Unfinished | None
) -> dict[str, Any]:
    parts = []
    for number, part in enumerate(group.parts):
        inner, where = f"{name}.{number}", f"{position}.{number}".lstrip(".")
        if isinstance(part, Group):
            parts.append(_shown_group(part, inner, where, known, problem))
        else:
            parts.append(_shown_row(part, inner, where, known, problem))
    return {
        "name": name,
        "place": position,
        "how": group.how,
        "single": group.is_single,
        "parts": parts,
        "is_group": True,
        "ways": [*GROUPS.items()],
    }


def _shown_row(
    row: Row, name: str, position: str, known: Mapping[str, Known], problem: Unfinished | None
) -> dict[str, Any]:
    field = known.get(row.field)
    type, kind, comparison = ("", row.kind, row.comparison) if field is None else (field.type, row.kind, row.comparison)
    offered = [
        {"value": offer.name, "text": offer.text(type)}
        for offer in comparisons()
        if (offer.fits(type) and offer.is_usual) or offer.name == comparison
    ]
    kinds = kinds_of(comparison)
    samples = [_text(sample)[: DAY_LENGTH if type == "time" else None] for sample in field.samples] if field else []
    return {
        "name": name,
        "place": position,
        "path": row.field,
        "field": field.label if field else row.field,
        "type": type,
        "samples": samples,
        "is": comparison,
        "offered": offered,
        "as": kind,
        "kinds": [(option, KINDS[option]) for option in kinds],
        "asks_kind": kind != usual_kind(type),
        "input": _input(row, type, kinds),
        "value": row.value,
        "problem": str(problem) if problem and problem.name.rpartition(".")[0] == name else "",
        "wrong": problem.name.rpartition(".")[2] if problem and problem.name.rpartition(".")[0] == name else "",
    }


def usual_kind(type: str) -> str:
    """The kind of values that a field of a type is compared with; empty: it may be any."""
    return {"number": "number", "flag": "flag", "text": "text", "time": "text", "list": "text"}.get(type, "")


def _input(row: Row, type: str, kinds: Sequence[str]) -> str:
    """How a value is filled in: ``none``, ``lines``, ``flag``, ``number``, ``date`` or ``text``."""
    if not kinds:
        return "none"
    chosen = comparison_named(row.comparison)
    if chosen is not None and OPERATORS[chosen.operator].operand == "list":
        return "lines"
    if row.kind in ("flag", "number"):
        return row.kind
    return "date" if type == "time" and (not row.value or _is_day(row.value)) else "text"


def _is_day(text: str) -> bool:
    """Whether this is a date and nothing else: a field for dates loses any other text."""
    try:
        check_date(text)
    except InvalidValue:
        return False
    return True


def fitted(form: Group, known: Mapping[str, Known]) -> Group:
    """The form with a comparison and a kind of value where none fits, as after another field was chosen."""
    return form._replace(
        parts=tuple(fitted(part, known) if isinstance(part, Group) else _fitted(part, known) for part in form.parts)
    )


def _fitted(row: Row, known: Mapping[str, Known]) -> Row:
    type = known[row.field].type if row.field in known else ""
    names = [offer.name for offer in comparisons() if offer.fits(type)]
    is_known = comparison_named(row.comparison) is not None
    comparison = row.comparison if row.comparison in names or (row.kind and is_known) else names[0]
    kinds = kinds_of(comparison)
    if row.kind in kinds or not kinds:
        return row._replace(comparison=comparison)
    kind = usual_kind(type) if usual_kind(type) in kinds else kinds[0]
    return row._replace(comparison=comparison, kind=kind, value=_value_of_kind(kind, row.value))


def _value_of_kind(kind: str, text: str) -> str:
    """What was filled in, as far as it can be of this kind."""
    if kind == "flag":
        return text if text in ("true", "false") else "true"
    try:
        for line in text.split() if kind == "number" else ():
            float(line)
    except ValueError:
        return ""
    return text
