"""The actions of a rule as a form, made of the declaration of each kind, and the list that they are written as."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from threadline.capabilities.decide.rules.actions import KINDS, SYNONYMS, Kind, Param
from threadline.surfaces.console.condition_form import KINDS as VALUE_KINDS
from threadline.surfaces.console.condition_form import Unfinished, typed_value
from threadline.surfaces.console.formats import label, number, words
from threadline.surfaces.console.sentences import event_name

PREFIX = "_act"
"""What the names of all fields begin with. The underscore keeps them out of the parameters of an operation."""
ADD = "act.add"
"""The button that adds an action."""
MORE = "+"
"""Stands for the parameters of a kind that takes any, in the names of fields."""
OBJECT = "object"
ANY_KINDS = {**VALUE_KINDS, OBJECT: "several fields"}
_BROKEN, _BROKEN_NAME = re.compile(r"[\0\r]"), re.compile(r"[\0\r\n]")


class Field(NamedTuple):
    """A member of an object, as it is filled in."""

    name: str = ""
    kind: str = "text"
    value: str = ""


class Given(NamedTuple):
    """What is filled in for a parameter."""

    kind: str = "text"
    value: str = ""
    fields: tuple[Field, ...] = ()
    """Of an object."""


class Act(NamedTuple):
    """One action, as it is filled in."""

    kind: str = ""
    alternative: str = ""
    """Which of the parameters is given of which a kind takes exactly one."""
    given: Mapping[str, Given] = {}
    """By parameter; `MORE` has those that are not declared."""


Form = tuple[Act, ...]


# --- from what is written to a form ---------------------------------------------------------------------


def form_of(value: Any) -> Form | None:
    """The form that says what is written under `actions`, exactly; None where none can."""
    written = _read(value)
    if written is None:
        return None
    form = tuple(
        Act(
            kind.name,
            next((name for name in kind.one_of if name in params), next(iter(kind.one_of), "")),
            dict(_given(kind, params)),
        )
        for kind, params in written
    )
    try:
        content = list_of(form)
    except Unfinished:
        return None
    return form if _exact(content) == _exact([{kind.name: params} for kind, params in written]) else None


def _read(value: Any) -> list[tuple[Kind, dict[str, Any]]] | None:
    """The kind and the parameters of each action; None where this is no list of actions."""
    actions: list[tuple[Kind, dict[str, Any]]] = []
    for action in [] if value is None else value if isinstance(value, list) else [None]:
        name, params = next(iter(action.items())) if isinstance(action, dict) and len(action) == 1 else ("", None)
        kind = KINDS.get(SYNONYMS.get(name, name)) if isinstance(name, str) else None
        if kind is None or not isinstance(params, dict) or not all(isinstance(key, str) for key in params):
            return None
        actions.append((kind, params))
    return actions


def _given(kind: Kind, params: Mapping[str, Any]) -> Iterator[tuple[str, Given]]:
    """What is filled in for parameters. What no field can hold is left out, and so the form does not say it."""
    for name, value in params.items():
        param = kind.params.get(name)
        if param is None:
            continue
        if isinstance(value, dict):
            yield name, Given(OBJECT, "", tuple(_members(value)))
        elif isinstance(value, bool | int | float | str):
            yield name, Given(_kind(value) if param.takes == "anything" else param.takes, _text(value))
    if more := tuple(_members({name: value for name, value in params.items() if name not in kind.params})):
        yield MORE, Given(OBJECT, "", more)


def _members(values: Mapping[Any, Any]) -> Iterator[Field]:
    for name, value in values.items():
        if isinstance(name, str) and isinstance(value, bool | int | float | str):
            yield Field(name, _kind(value), _text(value))


def _kind(value: Any) -> str:
    return "flag" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _exact(value: Any) -> str:
    """A value as text: to Python 1 is 1.0 and true."""
    return json.dumps(value, sort_keys=True, default=repr)


def is_written(value: Any, actions: list[dict[str, Any]]) -> bool:
    """Whether what is written under `actions` are these, in whichever spelling of their kinds."""
    written = _read(value)
    return written is not None and _exact([{kind.name: params} for kind, params in written]) == _exact(actions)


# --- from a form to what is written ---------------------------------------------------------------------


def list_of(form: Form) -> list[dict[str, Any]]:
    """The actions as they are written. Raises `Unfinished` for the first field in which something is missing."""
    return [_written_action(act, f"{PREFIX}.{index}") for index, act in enumerate(form)]


def _written_action(act: Act, name: str) -> dict[str, Any]:
    kind = KINDS.get(act.kind)
    if kind is None:
        raise Unfinished(f"{name}.kind", "choose what is to be done")
    content: dict[str, Any] = {}
    for member, param in kind.params.items():
        if member in kind.one_of and member != act.alternative:
            continue
        value = _value(act.given.get(member, Given()), param, f"{name}.of.{member}")
        if value is not None:
            content[member] = value
        elif param.required or member == act.alternative:
            raise Unfinished(f"{name}.of.{member}", f"give the {words(member)}")
    if kind.open:
        inside = f"{name}.of.{MORE}"
        for index, (member, value) in enumerate(_object(act.given.get(MORE, Given()), inside)):
            if member in content or member in kind.params:
                raise Unfinished(f"{inside}.{index}.name", f"choose another name: {member!r} is given above")
            content[member] = value
    return {kind.name: content}


def _value(given: Given, param: Param, name: str) -> Any:
    """The value of a parameter; None: it is not given."""
    if param.takes == OBJECT or (param.takes == "anything" and given.kind == OBJECT):
        return dict(_object(given, name)) or None
    if given.value == "":
        return None
    kind = given.kind if param.takes == "anything" else "number" if param.takes == "number" else "text"
    is_placeholder = param.takes == "number" and "${" in given.value
    return _scalar("text" if is_placeholder else kind, given.value, name)


def _object(given: Given, name: str) -> list[tuple[str, Any]]:
    members: dict[str, Any] = {}
    for index, field in enumerate(given.fields):
        if not field.name and not field.value:
            continue
        if not field.name or _BROKEN_NAME.search(field.name):
            raise Unfinished(f"{name}.{index}.name", "give the field a name of one line")
        if field.name in members:
            raise Unfinished(f"{name}.{index}.name", f"choose another name: {field.name!r} is given above")
        members[field.name] = _scalar(field.kind, field.value, f"{name}.{index}.value")
    return list(members.items())


def _scalar(kind: str, text: str, name: str) -> Any:
    if _BROKEN.search(text):  # as from YAML: a browser would change it
        raise Unfinished(name, "leave out what no field can hold")
    return typed_value(kind, text, name)


# --- fields of a form in a page -------------------------------------------------------------------------


def read_fields(fields: Mapping[str, str]) -> Form:
    """The form that was filled in."""
    form: list[Act] = []
    # A field that was left empty may be missing; a choice never is.
    while (name := f"{PREFIX}.{len(form)}") and f"{name}.kind" in fields:
        kind = KINDS.get(fields[f"{name}.kind"])
        given = {} if kind is None else {param: _read_given(fields, name, param) for param in (*kind.params, MORE)}
        form.append(Act("" if kind is None else kind.name, fields.get(f"{name}.one", ""), given))
    return tuple(form)


def _read_given(fields: Mapping[str, str], name: str, param: str) -> Given:
    members: list[Field] = []
    while (inside := f"{name}.of.{param}.{len(members)}") and f"{inside}.kind" in fields:
        members.append(Field(*(_plain(fields.get(f"{inside}.{part}", "")) for part in Field._fields)))
    kind = fields.get(f"{name}.as.{param}", "text")
    return Given(kind, _plain(fields.get(f"{name}.of.{param}", "")), tuple(members))


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n")


def fitted(form: Form) -> Form:
    """The form with one of the parameters chosen where a kind takes exactly one, and values of their kinds."""
    return tuple(act if act.kind not in KINDS else _fitted(act, KINDS[act.kind]) for act in form)


def _fitted(act: Act, kind: Kind) -> Act:
    alternative = act.alternative if act.alternative in kind.one_of else next(iter(kind.one_of), "")
    given = {}
    for name, answer in act.given.items():
        param = kind.params.get(name)
        if param is not None and param.takes == "anything":
            answer = answer if answer.kind in ANY_KINDS else answer._replace(kind="text")
            is_number = answer.kind == "number" and answer.value and not _is_number(answer.value)
            value = "" if is_number else "true" if answer.kind == "flag" and answer.value != "false" else answer.value
            fields = answer.fields or (Field(),) if answer.kind == OBJECT else answer.fields
            answer = answer._replace(value=value, fields=fields)
        given[name] = answer._replace(fields=tuple(map(_fitted_field, answer.fields)))
    return Act(kind.name, alternative, given)


def _fitted_field(field: Field) -> Field:
    kind = field.kind if field.kind in VALUE_KINDS else "text"
    value = "true" if kind == "flag" and field.value != "false" else field.value
    return Field(field.name, kind, "" if kind == "number" and value and not _is_number(value) else value)


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False


def changed(form: Form, action: str) -> tuple[Form, str]:
    """The form after a button, and the name of what is to be looked at next. ``act.add``; ``act.drop:`` and the number
    of an action; ``act.field:`` with a number and a parameter, and ``act.less:`` with the number of a field as well."""
    what, _, written = action.partition(":")
    if what == ADD:
        return (*form, Act()), f"{PREFIX}.{len(form)}.kind"
    position, param, row = ([*written.split(":"), "", ""])[:3]
    if not position.isdecimal() or int(position) >= len(form):
        return form, ""
    number = int(position)
    if what == "act.drop":
        rest = (*form[:number], *form[number + 1 :])
        return rest, f"{PREFIX}.{max(number - 1, 0)}.kind" if rest else ADD
    act, name = form[number], f"{PREFIX}.{number}.of.{param}"
    fields = act.given.get(param, Given()).fields
    if what == "act.field":
        fields, focus = (*fields, Field()), f"{name}.{len(fields)}.name"
    elif what == "act.less" and row.isdecimal() and int(row) < len(fields):
        fields, focus = (*fields[: int(row)], *fields[int(row) + 1 :]), f"{name}.add"
    else:
        return form, ""
    grown = act._replace(given={**act.given, param: act.given.get(param, Given(OBJECT))._replace(fields=fields)})
    return (*form[:number], grown, *form[number + 1 :]), focus


# --- what a page shows ----------------------------------------------------------------------------------


def named_in(form: Form) -> set[str]:
    """What parameters of these actions are the names of, so that those there are can be offered."""
    kinds = [KINDS[act.kind] for act in form if act.kind in KINDS]
    return {param.of for kind in kinds for param in kind.params.values() if param.of}


def shown(form: Form, problem: Unfinished | None) -> list[dict[str, Any]]:
    """What the template shows of a form."""
    return [_shown(act, index, problem) for index, act in enumerate(form)]


def _shown(act: Act, index: int, problem: Unfinished | None) -> dict[str, Any]:
    kind, name = KINDS.get(act.kind), f"{PREFIX}.{index}"
    params = (
        []
        if kind is None
        else [
            _shown_param(member, param, act, name, problem)
            for member, param in kind.params.items()
            if member not in kind.one_of or member == act.alternative
        ]
    )
    is_open = kind is not None and kind.open
    members = act.given.get(MORE, Given()).fields
    return {
        "name": name,
        "place": index,
        "kind": act.kind,
        "does": "" if kind is None else kind.does,
        "kinds": [(option, label(option)) for option in KINDS],
        "ones": [] if kind is None else [(option, words(option)) for option in kind.one_of],
        "one": act.alternative,
        "asked": [field for field in params if field["is_asked"]],
        "folded": [field for field in params if not field["is_asked"]],
        "open": _shown_object(members, f"{name}.of.{MORE}", problem) if is_open else None,
        "more": MORE,
        **_problem_of(f"{name}.kind", problem),
    }


def _shown_param(member: str, param: Param, act: Act, within: str, problem: Unfinished | None) -> dict[str, Any]:
    given, name = act.given.get(member, Given()), f"{within}.of.{member}"
    is_needed = param.required or member == act.alternative
    other = [] if not given.value or given.value in param.choices else [given.value]  # as a placeholder
    return {
        "name": name,
        "as": f"{within}.as.{member}",
        "param": member,
        "label": label(member),
        "is_needed": is_needed,
        "is_asked": is_needed or bool(given.value or given.fields),
        "kind": given.kind,
        "value": given.value,
        "input": _input(param, given),
        "choices": [*param.choices, *other],
        "of": param.of.replace(" ", "-"),
        "kinds": [*ANY_KINDS.items()] if param.takes == "anything" else [],
        "object": _shown_object(given.fields, name, problem),
        **_problem_of(name, problem),
    }


def _input(param: Param, given: Given) -> str:
    """How a value is filled in: ``object``, ``choice``, ``flag``, ``number``, ``lines`` or ``text``."""
    if param.takes == OBJECT:
        return OBJECT
    if param.choices:
        return "choice"
    kind = given.kind if param.takes == "anything" else param.takes
    if kind in (OBJECT, "flag", "number"):
        # What may be a placeholder is a text to the browser, which would not keep one in a field for numbers.
        return "text" if param.takes == "number" else kind
    return "lines" if kind == "lines" or "\n" in given.value else "text"


def _shown_object(fields: Sequence[Field], name: str, problem: Unfinished | None) -> list[dict[str, Any]]:
    return [
        {
            "name": f"{name}.{index}",
            "place": index,
            "of": field.name,
            "kind": field.kind,
            "value": field.value,
            "kinds": [*VALUE_KINDS.items()],
            "is_long": "\n" in field.value,
            "wrong_name": _problem_of(f"{name}.{index}.name", problem)["problem"],
            "wrong_value": _problem_of(f"{name}.{index}.value", problem)["problem"],
        }
        for index, field in enumerate(fields)
    ]


def _problem_of(name: str, problem: Unfinished | None) -> dict[str, str]:
    return {"problem": str(problem) if problem and problem.name == name else ""}


def worded(actions: Any) -> list[dict[str, Any]]:
    """The actions of a rule in words: what each does, and what it is given."""
    return [
        {
            "does": label(kind.name),
            "given": [(words(name), _worded(value, kind.params.get(name))) for name, value in params.items()],
        }
        for kind, params in _read(actions) or []
    ]


def _worded(value: Any, param: Param | None) -> Any:
    if isinstance(value, dict) and not any(isinstance(item, dict | list) for item in value.values()):
        return ", ".join(f"{words(name)} {number(amount)}" for name, amount in value.items())
    if param is not None and param.of == "event type" and isinstance(value, str) and "${" not in value:
        return event_name(value)
    return value
