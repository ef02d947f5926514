"""A definition as a form, made of its declaration: what is filled in for each shape, and the value that it says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from threadline.capabilities.foundation.conditions import All, Node, plain
from threadline.capabilities.foundation.conditions.reading import read_plain
from threadline.capabilities.foundation.conditions.where import short_form
from threadline.capabilities.foundation.definitions import Document
from threadline.capabilities.foundation.definitions.splicing import value_of
from threadline.capabilities.foundation.definitions.writing import yaml_of
from threadline.surfaces.console import condition_form
from threadline.surfaces.console.condition_form import BLANK, KINDS, Group, Known, Unfinished, typed_value
from threadline.surfaces.console.formats import label, words
from threadline.surfaces.console.shapes import Shape

PREFIX = "_f"
"""What the names of fields begin with. The underscore keeps them out of the parameters of an operation."""
ADD, DROP = "add:", "less:"
"""Buttons: one more entry of what has this name, and without an entry of it, by its number."""
UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks", "y": "years", "s": "seconds"}
_AMOUNT = re.compile(r"([0-9]{1,9})([mhdwys])")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_BROKEN, _BREAK = re.compile(r"[\0\r]"), re.compile(r"[\0\r\n]")
_NOTHING = object()


class Raw(NamedTuple):
    """A part that no fields can say, as YAML."""

    text: str


class Way(NamedTuple):
    """Which of several shapes a part has; -1: none was chosen."""

    number: int = -1
    filled: Any = ""


class Valued(NamedTuple):
    """A value with its kind, or an amount with its unit."""

    kind: str = ""
    value: str = ""


class Sent(NamedTuple):
    """What a form was filled in with."""

    fields: Mapping[str, str]
    action: str
    """The button that was pressed."""
    known: Callable[[str], Mapping[str, Known]]
    """Kind of conditions, ``condition`` or ``where`` -> the fields that they may name, by path."""
    meant: Callable[[str, str], str]
    """(kind of names, what was filled in) -> the name that is meant."""
    focus: list[str]
    """What is to be filled in next, the last counts."""


class Page(NamedTuple):
    """What the fields of a page are shown with."""

    problem: Unfinished | None
    known: Callable[[str], Mapping[str, Known]]
    offered: set[str]
    """The kinds of names that some field suggests."""


# --- from what is written to a form ---------------------------------------------------------------------


def fill(shape: Shape, value: Any) -> Any:
    """What the fields of a shape are filled in with that say a value exactly; `Raw` where none can."""
    filled = _fill(shape, value)
    if filled is not None:
        try:
            content = say(shape, filled, "")
        except Unfinished:
            content = _NOTHING
        if content is not None and _normal(shape, content) == _normal(shape, value):
            return filled
    return Raw(yaml_of(value, is_compact=True).removesuffix("...\n"))


def filled_in(shape: Shape, value: Mapping[str, Any]) -> dict[str, Any]:
    """What the fields of a definition are filled in with; what it has no field for is left out."""
    fields = fields_of(shape, value)
    return {name: fill(fields[name], inner) for name, inner in value.items() if name in fields}


def _fill(shape: Shape, value: Any) -> Any:
    """None: no fields can say it."""
    kind = shape.kind
    if kind in ("condition", "where"):
        tree = tree_read(kind, value)
        return None if tree is None else condition_form.form_of(tree)
    if kind == "ways":
        filled = ((number, fill(way, value)) for number, way in enumerate(shape.ways))
        return next((Way(number, inner) for number, inner in filled if not isinstance(inner, Raw)), None)
    if kind == "group" and isinstance(value, dict):
        return filled_in(shape, value)
    if kind == "mapping" and isinstance(value, dict) and shape.item:
        is_plain = all(isinstance(name, str) and not _BREAK.search(name) for name in value)
        return [(name, fill(shape.item, inner)) for name, inner in value.items()] if is_plain else None
    if kind in ("list", "choices"):
        values = value if isinstance(value, list) else [value] if shape.is_alone else None
        if values is None or kind == "choices":
            return values if values is None or all(value in shape.choices for value in values) else None
        return [fill(shape.item, item) for item in values] if shape.item else None
    if kind == "fixed":
        return "" if repr(value) == repr(shape.value) else None
    return _scalar_filled(shape, value)


def _scalar_filled(shape: Shape, value: Any) -> Any:
    kind = shape.kind
    if isinstance(value, str) and _BROKEN.search(value):
        return None
    if kind in ("duration", "scalar") and isinstance(value, str) and "\n" in value:
        return None
    if kind == "duration" and isinstance(value, str):
        amount = _AMOUNT.fullmatch(value)
        if value in shape.choices:
            return Valued(value)
        return Valued(amount[2], amount[1]) if amount else Valued("", value)
    if kind == "scalar" and isinstance(value, bool | int | float | str):
        return Valued(_scalar_kind(value), _text(value))
    if kind == "switch":
        return _text(value) if isinstance(value, bool) else None
    if kind == "choice":
        return next((_text(choice) for choice in shape.choices if repr(choice) == repr(value)), None)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = is_number if kind == "number" else isinstance(value, str) or (kind == "loose" and is_number)
    return _text(value) if fits and kind != "yaml" else None


def fields_of(shape: Shape, value: Mapping[str, Any]) -> Mapping[str, Shape]:
    """The fields of a group that has a value."""
    return shape.fields_for(_text(value.get(shape.by))) if shape.by else shape.fields


def tree_read(kind: str, value: Any) -> Node | None:
    """The conditions that are written; None where they are not right."""
    wrong = list[str]()

    def fail(at: Any, text: str) -> None:
        wrong.append(text)

    if kind == "where":
        if not isinstance(value, dict | list) or not value:
            return None
        value = {"all": value if isinstance(value, list) else [tree for _, tree in short_form(value)]}
    tree = read_plain(value, fail) if isinstance(value, dict) else None
    return None if wrong else tree


def _scalar_kind(value: Any) -> str:
    return "flag" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _normal(shape: Shape, value: Any) -> Any:
    """A value as it compares with others that mean the same: to Python 1 is 1.0 and true."""
    kind = shape.kind
    if value is _NOTHING:
        return ""
    if kind in ("condition", "where"):
        tree = tree_read(kind, value)
        return repr(plain(tree)) if tree is not None else repr(value)
    if kind == "ways":
        fitting = (way for way in shape.ways if not isinstance(fill(way, value), Raw))
        way = next(fitting, None)
        return repr(value) if way is None else _normal(way, value)
    if kind == "group" and isinstance(value, dict):
        fields = fields_of(shape, value)
        own = {name: _normal(fields[name], inner) if name in fields else repr(inner) for name, inner in value.items()}
        return sorted((name, inner) for name, inner in own.items() if not _is_default(fields.get(name), value[name]))
    if kind == "mapping" and isinstance(value, dict) and shape.item:
        return [(repr(name), _normal(shape.item, inner)) for name, inner in value.items()]
    if kind == "choices" and (isinstance(value, list) or shape.is_alone):
        return sorted(map(repr, value if isinstance(value, list) else [value]))
    if kind == "list" and shape.item and (isinstance(value, list) or shape.is_alone):
        return [_normal(shape.item, item) for item in (value if isinstance(value, list) else [value])]
    return _text(value) if kind == "loose" else repr(value)


def _is_default(shape: Shape | None, value: Any) -> bool:
    """Whether it is a switch as it is without being written."""
    return shape is not None and shape.kind == "switch" and value is bool(shape.default)


# --- from a form to what is written ---------------------------------------------------------------------


def written(shape: Shape, filled: Mapping[str, Any], before: Mapping[str, Any], named: Mapping[str, str]) -> Any:
    """The definition that a form says; what stands in it already and has no field stays. ``named``: the names of the
    fields that are not called after their key. Raises `Unfinished` for the first field in which something is missing.
    """
    content = _group_value(shape, filled, PREFIX, named, needs=True)
    assert content is not None, "a definition is never left out"
    content = settled(shape, content, before)
    remaining = {
        name: content.get(name, value)
        for name, value in before.items()
        if name in content or name not in shape.names_known
    }
    return {**remaining, **content}


def settled(shape: Shape, value: Any, before: Any) -> Any:
    """A value, with what means the same as before as it was written before."""
    if before is not None and _normal(shape, value) == _normal(shape, before):
        return before
    if shape.kind == "group" and isinstance(value, dict) and isinstance(before, dict):
        fields = fields_of(shape, value)
        made = {name: settled(fields[name], inner, before.get(name)) for name, inner in value.items()}
        return made | {
            name: old for name, old in before.items() if _is_default(fields.get(name), old) and name not in made
        }
    if shape.kind == "mapping" and shape.item and isinstance(value, dict) and isinstance(before, dict):
        return {name: settled(shape.item, inner, before.get(name)) for name, inner in value.items()}
    if shape.kind == "list" and shape.item and isinstance(value, list) and isinstance(before, list):
        olds = [*before, *[None] * len(value)]
        return [settled(shape.item, inner, old) for inner, old in zip(value, olds, strict=False)]
    return value


def say(shape: Shape, filled: Any, name: str) -> Any:
    """The value that fields say; `_NOTHING` where they are left empty. Raises `Unfinished`."""
    kind = shape.kind
    if isinstance(filled, Raw):
        return _raw_value(filled, name)
    if kind in ("condition", "where"):
        return _conditions_value(shape, filled, name)
    if kind == "ways":
        return say(shape.ways[filled.number], filled.filled, name) if filled and filled.number >= 0 else _NOTHING
    if kind == "fixed":
        return shape.value
    if kind == "group":
        content = _group_value(shape, filled or {}, name, {}, needs=False)
        return _NOTHING if content is None else content
    if kind == "mapping":
        return _mapping_value(shape, filled or [], name)
    if kind in ("list", "choices"):
        return _list_value(shape, filled or [], name)
    return _scalar_value(shape, filled or "", name)


def _raw_value(filled: Raw, name: str) -> Any:
    if not filled.text.strip():
        return _NOTHING
    document = Document("")
    if document.compose(filled.text) is None or document.problems:
        raise Unfinished(name, "this is not YAML")
    return value_of(filled.text)


def _conditions_value(shape: Shape, filled: Any, name: str) -> Any:
    if not isinstance(filled, Group) or condition_form.is_blank(filled):
        return _NOTHING
    tree = condition_form.tree_of(filled, name)
    if shape.kind == "condition":
        return plain(tree)
    return [plain(part) for part in tree.parts] if isinstance(tree, All) else [plain(tree)]


def _group_value(
    shape: Shape, filled: Mapping[str, Any], name: str, named: Mapping[str, str], *, needs: bool
) -> dict[str, Any] | None:
    """What the fields of a group say; None where all are left empty and it is not needed."""
    fields = shape.fields_for(_chosen(shape, filled))
    name_of = {inner: named.get(inner, f"{name}.{inner}") for inner in fields}
    content = {inner: say(field, filled.get(inner, ""), name_of[inner]) for inner, field in fields.items()}
    values = {inner: value for inner, value in content.items() if value is not _NOTHING}
    if not values and not needs:
        return None
    missing = next((inner for inner, field in fields.items() if field.is_required and inner not in values), "")
    if missing:
        at = f"{name_of[missing]}.0.field" if fields[missing].kind == "condition" else name_of[missing]
        what = "choose a field" if fields[missing].kind == "condition" else f"give: {fields[missing].title.lower()}"
        raise Unfinished(at, what)
    if shape.needs_one and not any(inner in values for inner in shape.needs_one):
        either = " or ".join(fields[inner].title.lower() for inner in shape.needs_one if inner in fields)
        raise Unfinished(name_of[shape.needs_one[0]], f"give one of: {either}")
    return values


def _chosen(shape: Shape, filled: Mapping[str, Any]) -> str:
    """What the deciding field of a group is filled in with."""
    return str(filled.get(shape.by, "")) if shape.by else ""


def _mapping_value(shape: Shape, filled: Sequence[tuple[str, Any]], name: str) -> Any:
    assert shape.item is not None, "a mapping has values"
    content: dict[str, Any] = {}
    for number, (key, inner) in enumerate(filled):
        value = say(shape.item, inner, f"{name}.{number}.of")
        if not key and (value is _NOTHING or shape.item.kind == "ways"):
            continue
        if not key or _BROKEN.search(key):
            raise Unfinished(f"{name}.{number}.name", "give it a name")
        if key in content:
            raise Unfinished(f"{name}.{number}.name", f"choose another name: {key!r} is given above")
        if value is _NOTHING and shape.item.kind != "group":
            raise Unfinished(f"{name}.{number}.of", "give a value")
        content[key] = {} if value is _NOTHING else value
    return content or _NOTHING


def _list_value(shape: Shape, filled: Sequence[Any], name: str) -> Any:
    if shape.kind == "choices":
        values = [choice for choice in shape.choices if choice in filled]
    else:
        assert shape.item is not None, "a list has items"
        content = (say(shape.item, inner, f"{name}.{number}") for number, inner in enumerate(filled))
        values = [value for value in content if value is not _NOTHING]
    if not values:
        return _NOTHING
    return values[0] if shape.is_alone and len(values) == 1 else values


def _scalar_value(shape: Shape, filled: Any, name: str) -> Any:
    kind = shape.kind
    if isinstance(filled, Valued):
        text, unit = filled.value, filled.kind
        if _BROKEN.search(text):
            raise Unfinished(name, "leave out what no field can hold")
        if kind == "scalar":
            return typed_value(unit, text, name) if text or unit == "flag" else _NOTHING
        if unit in shape.choices:
            return unit
        if text and unit and not text.isdecimal():
            raise Unfinished(name, f"{text[:40]!r} is no whole number")
        return f"{text}{unit}" if text else _NOTHING
    if kind == "switch":
        is_on = filled == "true"
        return _NOTHING if _is_default(shape, is_on) else is_on
    if filled == "" or isinstance(filled, Mapping | list):
        return _NOTHING
    if _BROKEN.search(filled):
        raise Unfinished(name, "leave out what no field can hold")
    if kind == "choice":
        return next((choice for choice in shape.choices if _text(choice) == filled), _NOTHING)
    if kind == "number":
        return typed_value("number", filled, name)
    return _number_or_text(filled) if kind == "loose" else filled


def _number_or_text(text: str) -> Any:
    """A number where it is written as this text, else the text."""
    for make in (int, float):
        try:
            value = make(text)
        except ValueError:
            continue
        if json.dumps(value) == text:
            return value
    return text


# --- what was sent --------------------------------------------------------------------------------------


def read(shape: Shape, sent: Sent, name: str) -> Any:
    """What was filled in for a shape, after the button that was pressed."""
    kind, fields = shape.kind, sent.fields
    if f"{name}.yaml" in fields or kind == "yaml":
        return Raw(_lines(fields.get(f"{name}.yaml", "")))
    if kind in ("condition", "where"):
        return _read_conditions(kind, sent, name)
    if kind == "ways":
        chosen = fields.get(f"{name}.way", "")
        number = int(chosen) if chosen.isdecimal() and int(chosen) < len(shape.ways) else -1
        return Way(number, read(shape.ways[number], sent, name)) if number >= 0 else Way()
    if kind == "group":
        return read_group(shape, sent, name)
    if kind in ("list", "mapping"):
        return _read_entries(shape, sent, name)
    if kind == "choices":
        return [choice for choice in shape.choices if fields.get(f"{name}.{choice}") == "true"]
    if kind in ("duration", "scalar"):
        return _fitted(shape, Valued(fields.get(f"{name}.as", ""), _lines(fields.get(name, ""))))
    text = _lines(fields.get(name, ""))
    return sent.meant(shape.names, text) if shape.names and text else text


def _fitted(shape: Shape, valued: Valued) -> Valued:
    """A value that goes with its kind, as after another kind was chosen."""
    if shape.kind == "duration":
        return valued
    kind = valued.kind if valued.kind in KINDS else "text"
    if kind == "flag":
        return Valued(kind, "false" if valued.value == "false" else "true")
    return Valued(kind, valued.value)


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")


def read_group(shape: Shape, sent: Sent, name: str) -> dict[str, Any]:
    """What was filled in for the fields of a group."""
    fields = dict(shape.fields)
    if shape.by:
        fields |= shape.fields_for(str(read(shape.fields[shape.by], sent, f"{name}.{shape.by}")))
    return {inner: read(field, sent, f"{name}.{inner}") for inner, field in fields.items()}


def read_sent(shape: Shape, sent: Sent, named: Mapping[str, str]) -> dict[str, Any]:
    """What was filled in for the fields of a definition that were in the form; ``named`` as in `written`."""
    fields = {**shape.fields, **{key: field for variant in shape.variants.values() for key, field in variant.items()}}
    name_of = {key: named.get(key, f"{PREFIX}.{key}") for key in fields}
    if shape.by and name_of[shape.by] in sent.fields:
        fields = {**shape.fields, **shape.fields_for(str(read(shape.fields[shape.by], sent, name_of[shape.by])))}
    begun = {".".join(name.split(".")[:depth]) for name in sent.fields for depth in (1, 2)}
    return {key: read(field, sent, name_of[key]) for key, field in fields.items() if name_of[key] in begun}


def _read_conditions(kind: str, sent: Sent, name: str) -> Group:
    asked = [field for field in sent.fields if field.startswith(f"{name}.") and field.endswith(".is")]
    names = [field.removesuffix(".is") for field in asked]
    is_settled = all(sent.fields.get(f"{at}.field", "") == sent.fields.get(f"{at}.shown", "") for at in names)
    known = {} if is_settled else sent.known(kind)
    form = condition_form.read_fields(sent.fields, {field.label: path for path, field in known.items()}, name)
    form, focus = condition_form.changed(form, sent.action, name)
    sent.focus.extend([focus] if focus else [])
    return condition_form.fitted(form, known)


def _read_entries(shape: Shape, sent: Sent, name: str) -> list[Any]:
    assert shape.item is not None, "a list or mapping holds something"
    count = sent.fields.get(f"{name}.count", "")
    entries: list[Any] = []
    for number in range(min(int(count), COUNT_MAX) if count.isdecimal() else 0):
        at = f"{name}.{number}"
        if shape.kind == "list":
            entries.append(read(shape.item, sent, at))
        else:
            key = _lines(sent.fields.get(f"{at}.name", ""))
            key = sent.meant(shape.key.names, key) if shape.key and shape.key.names and key else key
            entries.append((key, read(shape.item, sent, f"{at}.of")))
    what, _, dropped = sent.action.removeprefix(DROP).rpartition(":")
    if sent.action == f"{ADD}{name}":
        sent.focus.append(f"{name}.{len(entries)}" + (".name" if shape.kind == "mapping" else ""))
        entries.append(_blank_entry(shape))
    elif sent.action.startswith(DROP) and what == name and dropped.isdecimal() and int(dropped) < len(entries):
        sent.focus.append(f"{name}.add")
        del entries[int(dropped)]
    return entries


COUNT_MAX = 1_000
"""Entries of a list that a form has."""


def _blank_entry(shape: Shape) -> Any:
    assert shape.item is not None, "a list or mapping holds something"
    blank: Any = _blank(shape.item)
    return blank if shape.kind == "list" else ("", blank)


def _blank(shape: Shape) -> Any:
    if shape.kind != "ways":
        return ""
    number = next((number for number, way in enumerate(shape.ways) if way.kind != "fixed"), 0)
    return Way(number, _blank(shape.ways[number]))


def field_at(shape: Shape, value: Any, path: Sequence[str | int], named: Mapping[str, str]) -> tuple[str, str]:
    """The name and the title of the field that has what stands in a definition under keys; empty where none has."""
    key = path[0] if path else ""
    field = fields_of(shape, value).get(str(key)) if isinstance(value, dict) else None
    if field is None:
        return "", ""
    title, inner = field.title, value.get(key)
    name = named.get(str(key), f"{PREFIX}.{key}")
    for step in path[1:]:
        if field.kind == "ways":
            field = next((way for way in field.ways if not isinstance(fill(way, inner), Raw)), field)
        if field.kind == "group" and isinstance(inner, dict) and step in fields_of(field, inner):
            name, field, inner = f"{name}.{step}", fields_of(field, inner)[str(step)], inner.get(step)
            title = field.title
        elif field.kind == "list" and field.item and isinstance(inner, list) and isinstance(step, int):
            name, field, inner = f"{name}.{step}", field.item, inner[step]
        elif field.kind == "mapping" and field.item and isinstance(inner, dict) and step in inner:
            name, field, inner = f"{name}.{[*inner].index(step)}.of", field.item, inner[step]
        else:
            break
    return (f"{name}.0.field" if field.kind in ("condition", "where") else name), title


# --- what a page shows ----------------------------------------------------------------------------------


def shown_fields(
    shape: Shape, filled: Mapping[str, Any], page: Page, named: Mapping[str, str], name: str = PREFIX
) -> list[dict[str, Any]]:
    """What the template shows of the fields of a group."""
    fields = shape.fields_for(_chosen(shape, filled))
    return [
        {
            **shown(field, filled.get(inner, ""), page, named.get(inner, f"{name}.{inner}")),
            "key": inner,
            "decides": inner == shape.by,
            "one_of": inner in shape.needs_one,
        }
        for inner, field in fields.items()
    ]


def shown(shape: Shape, filled: Any, page: Page, name: str) -> dict[str, Any]:
    """What the template shows of one field."""
    if shape.names:
        page.offered.add(shape.names)
    problem = str(page.problem) if page.problem is not None and page.problem.name == name else ""
    field: dict[str, Any] = {
        "name": name,
        "kind": shape.kind,
        "title": shape.title,
        "help": shape.help,
        "needed": shape.is_required,
        "example": shape.example,
        "of": shape.names,
        "problem": problem,
        "is_filled": not _is_blank(shape, filled),
        "default": _shown_default(shape),
    }
    if isinstance(filled, Raw) or shape.kind == "yaml":
        text = filled.text if isinstance(filled, Raw) else ""
        rows = min(max(text.count("\n") + 1, 3), 20)
        return {**field, "kind": "yaml", "value": text, "rows": rows, "why": shape.why or TOO_MUCH}
    return {**field, **_SHOWN.get(shape.kind, _shown_text)(shape, filled, page, name)}


TOO_MUCH = "what is written there is more than these fields can say"


def _shown_default(shape: Shape) -> str:
    default = shape.default
    if default is None or default == "" or shape.kind in ("switch", "group"):
        return ""
    return words(default) if shape.kind in ("choice", "choices") else _text(default)


def _shown_text(shape: Shape, filled: Any, page: Page, name: str) -> dict[str, Any]:
    text = filled if isinstance(filled, str) else ""
    is_day = shape.kind == "date" and (not text or _DAY.fullmatch(text))
    is_long = shape.kind == "lines" or "\n" in text
    kind = "lines" if is_long else shape.kind if is_day or shape.kind == "number" else "text"
    return {
        "kind": kind,
        "value": text,
        "rows": min(max(text.count("\n") + 2, 3), 24),
        "step": 1 if shape.is_whole else "any",
    }


def _shown_switch(shape: Shape, filled: Any, page: Page, name: str) -> dict[str, Any]:
    is_on = filled == "true" if filled else bool(shape.default)
    return {"value": "true" if is_on else "false"}


def _shown_choice(shape: Shape, filled: Any, page: Page, name: str) -> dict[str, Any]:
    default = _text(shape.default) if shape.default is not None else ""
    options = [_text(choice) for choice in shape.choices if _text(choice) != default or filled == default]
    named = [
        (option, f"{label(option)}: {text}" if (text := shape.texts.get(option)) else label(option))
        for option in options
    ]
    return {"value": filled or "", "options": named}


def _shown_choices(shape: Shape, filled: Any, page: Page, name: str) -> dict[str, Any]:
    return {"options": [(f"{name}.{choice}", label(choice), choice in (filled or ())) for choice in shape.choices]}


def _shown_duration(shape: Shape, filled: Any, page: Page, name: str) -> dict[str, Any]:
    valued = filled if isinstance(filled, Valued) else Valued()
    units = [*UNITS.items()]
    if valued.value and valued.kind not in UNITS:
        units.append(("", "as written"))
    default = _AMOUNT.fullmatch(_text(shape.default)) if shape.default is not None else None
    unit = valued.kind if valued.kind or valued.value else default[2] if default else "d"
    return {
        "value": valued.value,
        "as": unit,
        "units": [*((choice, label(choice)) for choice in shape.choices), *units],
        "default": f"{default[1]} {UNITS[default[2]]}" if default else _shown_default(shape),
        "amount": default[1] if default else "",
    }


def _shown_scalar(shape: Shape, filled: Any, page: Page, name: str) -> dict[str, Any]:
    valued = filled if isinstance(filled, Valued) else Valued("text")
    return {"value": valued.value, "as": valued.kind or "text", "kinds": [*KINDS.items()]}


def _shown_list(shape: Shape, filled: Any, page: Page, name: str) -> dict[str, Any]:
    assert shape.item is not None, "a list has items"
    entries = list(filled or [])
    is_plain = shape.item.kind in ("text", "number", "loose", "date")
    if is_plain and not entries:
        entries.append("")
    item = shape.item._replace(title=shape.title)
    shown_entries = [shown(item, entry, page, f"{name}.{number}") for number, entry in enumerate(entries)]
    return {"entries": shown_entries, "is_plain": is_plain, "one": shape.item.names or _entry_name(shape.title)}


def _shown_mapping(shape: Shape, filled: Any, page: Page, name: str) -> dict[str, Any]:
    assert shape.item is not None, "a mapping has values"
    names = shape.key.names if shape.key else ""
    page.offered.update({names} if names else ())
    entries = []
    for number, (key, inner) in enumerate(filled or []):
        at = f"{name}.{number}"
        is_wrong = page.problem is not None and page.problem.name == f"{at}.name"
        wrong = str(page.problem) if is_wrong else ""
        of = shown(shape.item._replace(title=shape.title), inner, page, f"{at}.of")
        entries.append({"key": key, "at": at, "of": of, "wrong": wrong})
    return {"entries": entries, "key_names": names, "one": names or _entry_name(shape.title)}


def _entry_name(title: str) -> str:
    """What an entry of something is called, for the button that adds one."""
    plain_title = title.lower()
    return plain_title[:-1] if plain_title.endswith("s") and not plain_title.endswith("ss") else "entry"


def _shown_group(shape: Shape, filled: Any, page: Page, name: str) -> dict[str, Any]:
    return {"fields": shown_fields(shape, filled or {}, page, {}, name)}


def _shown_ways(shape: Shape, filled: Any, page: Page, name: str) -> dict[str, Any]:
    way = filled if isinstance(filled, Way) else _blank(shape) if shape.is_required else Way()
    chosen = shape.ways[way.number]._replace(title=shape.title)
    inner = shown(chosen, way.filled, page, name) if way.number >= 0 else None
    options = [(str(number), _way_name(option)) for number, option in enumerate(shape.ways)]
    return {"way": str(way.number), "options": options, "inner": inner}


_WAY_NAMES = {
    "list": "these",
    "mapping": "each with its own",
    "group": "with details",
    "number": "a number",
    "text": "a name",
    "condition": "by conditions",
    "choice": "one of these",
    "duration": "after a time",
    "yaml": "written as YAML",
}


def _way_name(shape: Shape) -> str:
    if shape.kind == "fixed":
        return "left out" if shape.value is False else "as it is"
    return _WAY_NAMES.get(shape.kind, shape.kind)


def _shown_conditions(shape: Shape, filled: Any, page: Page, name: str) -> dict[str, Any]:
    form = filled if isinstance(filled, Group) else BLANK
    return {
        "form": condition_form.shown_with(form, page.known(shape.kind), page.problem, name),
        "fields_of": shape.kind,
    }


_SHOWN: Mapping[str, Callable[[Shape, Any, Page, str], dict[str, Any]]] = {
    "switch": _shown_switch,
    "choice": _shown_choice,
    "choices": _shown_choices,
    "duration": _shown_duration,
    "scalar": _shown_scalar,
    "list": _shown_list,
    "mapping": _shown_mapping,
    "group": _shown_group,
    "ways": _shown_ways,
    "condition": _shown_conditions,
    "where": _shown_conditions,
    "fixed": lambda shape, filled, page, name: {},
}


def _is_blank(shape: Shape, filled: Any) -> bool:
    """Whether nothing is filled in."""
    try:
        return say(shape, filled, "") is _NOTHING
    except Unfinished:
        return False


def with_inner(fields: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """All fields of a page, those inside of others too."""
    for field in fields:
        yield field
        inner = field.get("inner")
        yield from with_inner([*field.get("fields", ()), *([inner] if inner else ())])
        yield from with_inner(entry["of"] if "at" in entry else entry for entry in field.get("entries", ()))
