"""From a plain value to a decision model: nothing in it may reach out, ask a clock or throw dice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from threadline.capabilities.decide.rules.model_engine import wrong_expression
from threadline.capabilities.decide.rules.models import MILLISECONDS, SECONDS, ModelBody
from threadline.capabilities.foundation.conditions import Path
from threadline.capabilities.foundation.conditions.fields import EVENT, wrong_path
from threadline.capabilities.foundation.conditions.placeholders import Fail
from threadline.capabilities.foundation.definitions import Noted, Part, Place
from threadline.capabilities.foundation.definitions.declaring import Form
from threadline.kernel.errors import InvalidValue
from threadline.kernel.limits import CONDITION_TEXT_LENGTH_MAX, MODEL_EXPRESSIONS_MAX, MODEL_INPUTS_MAX, MODEL_NODES_MAX
from threadline.kernel.suggestion import suggestion

KEYS = ("nodes", "edges", "inputs", "match")
DROPPED = ("contentType", "tests", "settings")
"""Keys of a file as editors write it that say nothing of how it decides."""
NODES = ("inputNode", "outputNode", "decisionTableNode", "expressionNode", "switchNode")
REFUSED = {
    "functionNode": "runs JavaScript, which may reach the network and the clock and take all time and memory there is; "
    "write it as an expression",
    "decisionNode": "calls another model; put its nodes into this one",
    "customNode": "is of a program of yours, which is not here",
}

_CLOCKED = (
    "date",
    "dateString",
    "dayOfMonth",
    "dayOfWeek",
    "dayOfYear",
    "endOf",
    "monthOfYear",
    "monthString",
    "startOf",
    "weekOfYear",
    "weekdayString",
    "year",
)
"""Functions that take the text ``now`` for the time, and a number of seconds as well."""
_NOW = re.compile(rf"\b({'|'.join(_CLOCKED)})(\s*\(\s*)(?:'now'|\"now\")")
_D_NOW = re.compile(r"(?<![\w.#$])d(\s*\()\s*\)")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
"""A backslash is a character like others: `'\\'` is a whole text, and what follows it is code."""
_FORBIDDEN = (
    (re.compile(r"(?<![\w.#$])rand\s*\("), "`rand` throws dice: the same inputs would not give the same answer"),
    (
        re.compile(rf"(?<![\w.#$])d\s*\((?!\s*{MILLISECONDS})"),
        "`d(…)` reads the machine's clock where it is given a time zone; write `d()` for the event's time, or `date`",
    ),
    (
        re.compile(r"\b(isToday|isYesterday|isTomorrow)\s*\("),
        "this asks the machine's clock; compare with `date('now')`, which is the time of the event",
    ),
    (
        re.compile(r"^(?=.*\b(map|flatMap|filter|some|all|none|one|count)\s*\().*\.\.", re.DOTALL),
        "this walks through a range, which may be of any length; walk through a list that is there",
    ),
)
_DATES = re.compile(rf"\b(?:{'|'.join(_CLOCKED)}|time)\s*\(")


def read_model(value: Any, fail: Fail) -> ModelBody | None:
    """The body of a plain value; None for a mistake, which is passed to ``fail`` with its place."""
    reading = _Reading(fail)
    return reading.body(value)


class _Reading:
    """Reads one model and passes on every mistake."""

    def __init__(self, fail: Fail) -> None:
        self._failed = 0
        self._tell = fail
        self._dates = False

    def _fail(self, at: Place, text: str) -> None:
        self._failed += 1
        self._tell(at, text)

    def body(self, value: Any) -> ModelBody | None:
        """The whole."""
        if type(value) is not dict:
            self._fail((), "a model is a mapping with `nodes` and `edges`, as a JDM file has them")
            return None
        for name in value:
            if name not in KEYS and name not in DROPPED:
                self._fail((name,), f"a model: unknown key {name!r}; {suggestion(str(name), KEYS)}")
        nodes, edges = self._list(value, "nodes"), self._list(value, "edges")
        if len(nodes) > MODEL_NODES_MAX:
            self._fail(("nodes",), f"a model has at most {MODEL_NODES_MAX} nodes, this one {len(nodes)}")
        inputs, match = self._inputs(value.get("inputs")), self._match(value.get("match"))
        clean = [self._node(node, ("nodes", index)) for index, node in enumerate(nodes)]
        self._check_expressions(nodes)
        if self._failed:
            return None
        plain = {"nodes": nodes, "edges": edges}
        plain |= {name: value[name] for name in ("inputs", "match") if name in value}
        try:
            body = ModelBody({"nodes": clean, "edges": edges}, inputs, match, plain, dates=self._dates)
        except InvalidValue as error:
            self._fail((), str(error))
            return None
        return body

    def _list(self, value: dict[str, Any], name: str) -> list[Any]:
        listed = value.get(name)
        if type(listed) is not list or not all(type(item) is dict for item in listed):
            self._fail((name,) if name in value else (), f"`{name}` is a list of objects, as a JDM file has them")
            return []
        return listed

    def _inputs(self, value: Any) -> dict[str, Path]:
        if value is None:
            return {}
        if type(value) is not dict or not 0 < len(value) <= MODEL_INPUTS_MAX:
            self._fail(("inputs",), f"`inputs` names 1 to {MODEL_INPUTS_MAX} fields, such as {{plan: traits.plan}}")
            return {}
        return {name: self._path(path, ("inputs", name), wrong_path) for name, path in value.items()}

    def _match(self, value: Any) -> Path:
        return () if value is None else self._path(value, ("match",), lambda path: "" if all(path) else "is not a path")

    def _path(self, value: Any, at: Place, wrong: Callable[[Path], str]) -> Path:
        if type(value) is not str or not 0 < len(value) <= CONDITION_TEXT_LENGTH_MAX:
            self._fail(at, "takes a path, such as event.properties.total")
            return (EVENT, "id")
        path = tuple(value.split("."))
        if problem := wrong(path):
            self._fail(at, f"{value!r}: {problem}")
            return (EVENT, "id")
        return path

    def _node(self, node: dict[str, Any], at: Place) -> dict[str, Any]:
        name, type_ = node.get("name"), node.get("type")
        if type(node.get("id")) is not str or type(name) is not str:
            self._fail(at, "a node has an `id` and a `name`")
        elif type_ in REFUSED:
            self._fail(at, f"node {name!r}: a {type_} {REFUSED[type_]}")
        elif type_ not in NODES:
            self._fail(at, f"node {name!r}: unknown type {str(type_)!r}; {suggestion(str(type_), NODES)}")
        return {
            key: item if key in ("id", "name", "type") else self._clean(item, (*at, key)) for key, item in node.items()
        }

    def _clean(self, value: Any, at: Place) -> Any:
        """The same without the machine's clock; what would ask it in another way is a mistake."""
        if type(value) is dict:
            labels = ("schema", "description", "name", "id")
            return {
                name: item if name in labels or name.startswith("_") else self._clean(item, (*at, name))
                for name, item in value.items()
            }
        if type(value) is list:
            return [self._clean(item, (*at, index)) for index, item in enumerate(value)]
        return self._clean_text(value, at) if type(value) is str else value

    def _clean_text(self, text: str, at: Place) -> str:
        if SECONDS in text or MILLISECONDS in text:
            self._fail(at, "control characters have no place in an expression")
        text = _D_NOW.sub(rf"d\1{MILLISECONDS})", _NOW.sub(rf"\1\2{SECONDS}", text))
        # What stands between quotes is no code, except in a template, whose quotes may be anything.
        code = text if "`" in text else _QUOTED.sub("''", text)
        for pattern, problem in _FORBIDDEN:
            if pattern.search(code):
                self._fail(at, problem)
        if _DATES.search(code):
            self._dates = True
            if any(quoted[1:-1] == "now" for quoted in _QUOTED.findall(text)):
                self._fail(at, "'now' stands here where we cannot put the time of the event; write date('now')")
        return text

    def _check_expressions(self, nodes: list[Any]) -> None:
        count = 0
        for index, node in enumerate(nodes):
            content = node.get("content")
            for at, text, cell in _expressions(content) if type(content) is dict else ():
                count += 1
                if count > MODEL_EXPRESSIONS_MAX:
                    self._fail(("nodes",), f"a model has at most {MODEL_EXPRESSIONS_MAX:,} expressions")
                    return
                try:
                    problem = wrong_expression(text, cell=cell)
                except InvalidValue as error:
                    self._fail((), str(error))
                    return
                if problem:
                    self._fail(("nodes", index, "content", *at), f"node {node.get('name')!r}: {text[:80]!r}: {problem}")


def _expressions(content: dict[str, Any]) -> Iterator[tuple[Place, str, bool]]:
    """(place, expression, whether it may be a test) of a node's content."""
    for name, key, cell in (("expressions", "value", False), ("statements", "condition", False)):
        for index, entry in _objects(content.get(name)):
            if type(entry.get(key)) is str and entry[key].strip():
                yield (name, index, key), entry[key], cell
    for index, row in _objects(content.get("rules")):
        for column, text in row.items():
            if not column.startswith("_") and type(text) is str and text.strip():
                yield ("rules", index, column), text, True


def _objects(value: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    return ((index, item) for index, item in enumerate(value if type(value) is list else ()) if type(item) is dict)


def _model(part: Part) -> ModelBody:
    note = part.noting()
    body = read_model(part.value, note)
    if body is None or note.noted:
        raise Noted
    return body


MODEL = Form(
    (dict,),
    "a mapping with `nodes` and `edges`, as a JDM file has them",
    _model,
    {
        "type": "object",
        "description": "A decision model as a JDM file has it.",
        "properties": {
            "nodes": {"type": "array", "items": {"type": "object"}, "maxItems": MODEL_NODES_MAX},
            "edges": {"type": "array", "items": {"type": "object"}},
            "inputs": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": MODEL_INPUTS_MAX},
            "match": {"type": "string"},
            **{name: {} for name in DROPPED},
        },
        "required": ["nodes", "edges"],
        "additionalProperties": False,
    },
)
