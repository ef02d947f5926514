"""How much work a decision model can be for an input, told before it is evaluated: elements, not seconds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from math import prod
from typing import Any

from threadline.kernel.errors import InvalidValue
from threadline.kernel.limits import MODEL_DEPTH_MAX, MODEL_WORK_MAX

WALKS = {"map", "filter", "flatMap", "some", "all", "none", "one", "count"}
"""Functions that evaluate their second argument for each element of the first."""
_PRODUCTS = {"matches", "extract", "fuzzyMatch"}
"""Functions whose time is the product of both arguments."""
_SMALL = {
    "len", "contains", "startsWith", "endsWith", "matches", "isNumeric", "bool", "type", "number", "abs", "sum", "avg",
    "min", "max", "median", "mode", "floor", "ceil", "round", "trunc", "some", "all", "none", "one", "count",
}  # fmt: skip
"""Functions whose result is one value, however large their arguments are."""
_CHARACTERS = 16
"""Of a text, that count as one element: what copying one takes."""

_TEMPLATE = r"`(?:[^`$]|\$(?!\{)|\$\{(?:'[^']*'|\"[^\"]*\"|[^}'\"`])*\})*`"
_TOKEN = re.compile(
    rf"{_TEMPLATE}|'[^']*'|\"[^\"]*\"|[#$A-Za-z_][\w$#]*|\d+(?:\.\d+)?|\.\.|\?\?|[=!<>]=|\?\.|\S", re.DOTALL
)
_HOLE = re.compile(r"\$\{((?:'[^']*'|\"[^\"]*\"|[^}'\"`])*)\}")
_NAME = re.compile(r"[#$A-Za-z_]")
_WORD = re.compile(r"[^.\s\[\]]+")
_REPEATED = re.compile(r"\{\s*(\d+)\s*(?:,\s*(\d*))?")
_ENDS = {"": "", "(": ")]", "[": ")]", "{": "}"}
"""A range may begin with one bracket and end with another."""
_SCALAR_SIGNS = {"*", "/", "-", "%", "^", "==", "!=", "<", ">", "<=", ">=", "in"}
_OTHER_SIGNS = {"+", "?", ":", "??", "and", "or", "..", "=", ";"}
_WORDS = _SCALAR_SIGNS | _OTHER_SIGNS | {"not", "as", "true", "false", "null"}


@dataclass
class _Group:
    """What stands between two brackets or commas: its parts in order, and what of it decides how much they come to."""

    parts: list[Any] = field(default_factory=list)
    signs: set[str] = field(default_factory=set)
    constant: int = 0
    bracket: str = ""
    call: str = ""
    names: tuple[str, ...] = ()
    """What its value is known by afterwards."""
    range: bool = False
    walks: bool = False
    """Whether what it takes may be more than in proportion to what it reads."""

    @property
    def is_constant(self) -> bool:
        return not self.parts and not self.range


def expression(text: str) -> Any:
    """An expression as its parts. Raises `InvalidValue` where they are nested too deeply."""
    tokens = _TOKEN.findall(text)
    if "`" in tokens:
        raise InvalidValue(f"{text[:80]!r}: this template does not end")
    group, _ = _group(tokens, 0, "", 0)
    return group


def _group(tokens: list[str], at: int, bracket: str, depth: int) -> tuple[_Group, int]:
    """The entries between a bracket and its end, each a group of its own."""
    if depth > MODEL_DEPTH_MAX:
        raise InvalidValue(f"an expression has more than {MODEL_DEPTH_MAX} brackets inside one another")
    whole, entry = _Group(bracket=bracket), _Group()
    while at < len(tokens) and tokens[at] not in tuple(_ENDS[bracket]):
        token = tokens[at]
        if token in (",", ";"):
            _ended(whole, entry)
            entry = _Group()
        elif token in _ENDS:
            compared = at > 0 and tokens[at - 1] == "in"
            inner, at = _group(tokens, at + 1, token, depth + 1)
            _bracketed(entry, inner, compared=compared)
        elif token[0] == "`":
            for hole in _HOLE.findall(token):
                inner, _ = _group(_TOKEN.findall(hole), 0, "", depth + 1)
                _put(entry, inner)
            entry.constant += len(token) // _CHARACTERS
        elif token[0] in "'\"":
            entry.constant += 1 + len(token) // _CHARACTERS
            if at + 1 < len(tokens) and tokens[at + 1] == ":":
                entry.names = (*entry.names, token[1:-1])
        elif _NAME.match(token) and token not in _WORDS:
            at = _path(tokens, at, entry)
        else:
            _sign(tokens, at, entry)
        at += 1
    _ended(whole, entry)
    return whole, at


def _path(tokens: list[str], at: int, entry: _Group) -> int:
    """A name with its members; the last index of it."""
    if at and tokens[at - 1] == "as":
        entry.names = (tokens[at],)
        return at
    names = [tokens[at]]
    while at + 2 < len(tokens) and tokens[at + 1] in (".", "?.") and _NAME.match(tokens[at + 2]):
        at += 2
        names.append(tokens[at])
    following = tokens[at + 1] if at + 1 < len(tokens) else ""
    if following in (":", "=") and "?" not in entry.signs:
        entry.names = (*entry.names, *names)
        entry.walks |= following == "="
        return at
    entry.parts.append(tuple(names))
    return at


def _sign(tokens: list[str], at: int, entry: _Group) -> None:
    entry.signs.add(tokens[at])
    entry.constant += tokens[at][0].isdigit()
    entry.range |= tokens[at] == ".."


def _bracketed(entry: _Group, inner: _Group, *, compared: bool) -> None:
    last = entry.parts[-1] if entry.parts else None
    if inner.bracket == "(" and type(last) is tuple and len(last) == 1:
        inner.call = last[0]
        entry.parts.pop()
    inner.walks |= inner.call in WALKS or inner.call in _PRODUCTS
    if compared:
        inner.range = False
    _put(entry, inner)


def _put(entry: _Group, inner: _Group) -> None:
    entry.walks |= inner.walks
    if inner.is_constant and not inner.call and not inner.names:
        entry.constant += 1 + inner.constant
    else:
        entry.parts.append(inner)


def _ended(whole: _Group, entry: _Group) -> None:
    whole.walks |= entry.walks
    # In `x in [1..5]` a range is only compared with; anywhere else it may be walked through.
    whole.range |= entry.range
    entry.range = False
    if whole.bracket == "(" or not entry.is_constant or entry.names:
        whole.parts.append(entry)
    else:
        whole.constant += max(1, entry.constant)


class Work:
    """What one evaluation comes to, at most; more than the limit is an `InvalidValue`."""

    def __init__(self, context: Mapping[str, Any], texts: str) -> None:
        self._sizes: dict[str, int] = {}
        self._floor = 1
        self._longest = 0
        self._repeated = _repetitions(texts)
        self.spent = 0
        self.total = self._measured(context)
        self.field = self.total
        """What `$` is in a cell of a table."""
        self.node = ""

    def spend(self, work: int) -> None:
        """Count so much; raises `InvalidValue` beyond the limit."""
        self.spent += work
        if self.spent > MODEL_WORK_MAX:
            raise InvalidValue(
                f"the decision model may take more than {MODEL_WORK_MAX:,} steps up to its node {self.node!r} for this "
                f"input, whose longest list or object has {self._longest:,} elements; give it fewer, or let it walk "
                "through fewer lists within lists"
            )

    def name(self, name: str, size: int) -> None:
        """A value of at most this size is known by this name from here on."""
        self._sizes[name] = max(self._sizes.get(name, 1), size)

    def of(self, group: _Group, element: int = 1) -> int:
        """The size of what it gives; what it takes is counted."""
        if group.range:
            raise InvalidValue("the decision model makes a range, which may be of any length; compare with it instead")
        if group.call in WALKS and len(group.parts) > 1:
            size = self._walked(group, element)
        else:
            sizes = [self._part(part, element) for part in group.parts]
            size = max(1, group.constant + sum(sizes) + (group.bracket in ("[", "{")))
            if group.call in _PRODUCTS:
                self.spend(prod(sizes) * (1 if group.call == "fuzzyMatch" else self._repeated))
            elif group.call == "split":
                size *= _CHARACTERS
        # A name by itself, or what only stands in brackets, is there already.
        if group.call or group.signs or group.bracket in ("[", "{"):
            self.spend(size)
        if group.call in _SMALL or (group.signs & _SCALAR_SIGNS and not group.signs & _OTHER_SIGNS):
            size = 1
        for name in group.names:
            self.name(name, size)
        if group.bracket == "{" and any(type(part) is _Group and _has_computed_key(part) for part in group.parts):
            self._floor = max(self._floor, size)
        return size

    def repeated(self, group: _Group, times: int, element: int = 1) -> int:
        """The size of what it gives when it is evaluated so often."""
        before = self.spent
        size = self.of(group, element)
        self.spend((self.spent - before) * (times - 1))
        return size * times

    def _walked(self, group: _Group, element: int) -> int:
        listed, *bodies = group.parts
        length = self.of(listed, element)
        # What only takes as much as it reads takes, of all elements together, as much as the list is long. What may
        # take more could meet everything in a single element.
        inner = length if any(body.walks for body in bodies) else 1
        before = {name: self._sizes.get(name) for name in listed.names}
        self._sizes.update(dict.fromkeys(before, inner))
        size = max(length, sum(self.repeated(body, length, inner) for body in bodies))
        for name, known in before.items():
            self.name(name, known or 1)
        return size

    def _part(self, part: Any, element: int) -> int:
        if type(part) is _Group:
            return self.of(part, element)
        members = part[2:] if part[0] == "$nodes" else part
        # An input may have a member that is called `$root`; what the language calls so is all there is.
        known = [self._sizes[name] for name in members if name in self._sizes and name[0] not in "$#"]
        if part[0] in ("#", "$"):
            known.append(element if part[0] == "#" else self.field)
        if known:
            return max(self._floor, min(known))
        return self.total if part[0].startswith("$") else self._floor

    def _measured(self, value: Any) -> int:
        if type(value) is str:
            return 1 + len(value) // _CHARACTERS
        if type(value) is dict:
            self._longest = max(self._longest, len(value))
            size = 1
            for name, item in value.items():
                of = self._measured(item)
                self._sizes[name] = self._sizes.get(name, 0) + of
                size += of + len(name) // _CHARACTERS
            return size
        if type(value) is list:
            self._longest = max(self._longest, len(value))
            return 1 + sum(map(self._measured, value))
        return 1


def _has_computed_key(entry: _Group) -> bool:
    first = entry.parts[0] if entry.parts else None
    return ":" in entry.signs and type(first) is _Group and first.bracket == "["


def _repetitions(texts: str) -> int:
    """How much a regular expression with these counted repetitions can grow."""
    product = 1
    for least, most in _REPEATED.findall(texts):
        product = min(product * max(1, int(least[:9]), int(most[:9] or 0)), MODEL_WORK_MAX + 1)
    return product


@dataclass(frozen=True)
class _Cell:
    """An expression of a node: what its value is known by, none for a test; ``column`` is that of a table."""

    group: _Group
    names: tuple[str, ...] = ()
    column: str = ""


@dataclass(frozen=True)
class _Step:
    """A node: what it evaluates, how often, and where its output goes."""

    name: str
    cells: list[_Cell]
    fields: dict[str, _Group]
    """What the columns of a table look at."""
    over: _Group | None
    """What it gets instead of everything."""
    loops: bool
    """Whether it runs for each element of that."""
    rows: int
    """Rows of a table that may all give something."""
    path: tuple[str, ...]


class Plan:
    """The expressions of a model in the order in which they may be evaluated."""

    def __init__(self, graph: Mapping[str, Any]) -> None:
        """Raises `InvalidValue` for an expression that cannot be counted."""
        self._steps = [_step(node) for node in _ordered(graph)]
        texts = [text for node in graph["nodes"] for text in texts_of(node.get("content"))]
        self._regexes = any(name in text for text in texts for name in ("matches", "extract"))
        self._patterns = [quoted for text in texts for quoted in re.findall(r"'[^']*'|\"[^\"]*\"", text)]

    def check(self, context: Mapping[str, Any]) -> int:
        """The steps that evaluating the model for this takes at most; `InvalidValue` where they are too many."""
        patterns = (*self._patterns, *texts_of(context)) if self._regexes else ()
        work = Work(context, "\n".join(text for text in patterns if "{" in text))
        for step in self._steps:
            work.node = step.name
            # Each node takes over what there is, and the trace has it once more.
            work.spend(work.total)
            given = _run(step, work)
            for name in step.path:
                work.name(name, work.total + given)
            work.total += given
        return work.spent


def _run(step: _Step, work: Work) -> int:
    """The size of all that the node adds."""
    length = 1 if step.over is None else work.of(step.over)
    fields = {column: work.of(group) for column, group in step.fields.items()}
    given: dict[tuple[str, ...], int] = {}
    added = 0
    for cell in step.cells:
        # In a node of expressions `$` has those before it as well.
        work.field = fields.get(cell.column, work.total + added)
        size = work.repeated(cell.group, length if step.loops else 1)
        if cell.names:
            before = given.get(cell.names, 0)
            given[cell.names] = max(before, size * step.rows)
            added += given[cell.names] - before
            for name in cell.names:
                work.name(name, given[cell.names])
    return added


def _step(node: Mapping[str, Any]) -> _Step:
    content = node.get("content")
    content = content if type(content) is dict else {}
    over, path, rows = content.get("inputField"), content.get("outputPath"), _entries(content, "rules")
    cells = [
        _Cell(expression(text), _parts(entry.get("key"))) for entry, text in _with(content, "expressions", "value")
    ]
    cells += [_Cell(expression(text)) for _, text in _with(content, "statements", "condition")]
    for column, text in _with(content, "outputs", "field"):
        cells += _column(rows, column.get("id"), _parts(text))
    fields = {}
    for column, text in _with(content, "inputs", "field"):
        fields[str(column.get("id"))] = expression(text)
    for column in _entries(content, "inputs"):
        cells += _column(rows, column.get("id"), ())
    return _Step(
        str(node.get("name")),
        cells,
        fields,
        expression(over) if type(over) is str and over else None,
        loops=content.get("executionMode") == "loop",
        rows=len(rows) if content.get("hitPolicy") == "collect" else 1,
        path=_parts(path),
    )


def _column(rows: list[Mapping[str, Any]], column: Any, names: tuple[str, ...]) -> Iterator[_Cell]:
    """The cells of a column: of those without a name in them the largest is enough."""
    largest = 0
    for row in rows:
        text = row.get(column)
        if type(text) is not str or not text.strip():
            continue
        # A cell that tests may be a range as it stands; reading has seen that nothing in it walks through one.
        group = expression(text if names else text.replace("..", ","))
        if not _is_plain(group):
            yield _Cell(group, names, str(column))
        else:
            largest = max(largest, group.constant + sum(part.constant for part in group.parts))
    if names and largest:
        yield _Cell(_Group(constant=largest), names)


def _is_plain(group: _Group) -> bool:
    return all(type(part) is _Group and part.is_constant and not part.call and not part.names for part in group.parts)


def _parts(path: Any) -> tuple[str, ...]:
    return tuple(_WORD.findall(path)) if type(path) is str else ()


def _entries(content: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    listed = content.get(name)
    return [entry for entry in listed if type(entry) is dict] if type(listed) is list else []


def _with(content: Mapping[str, Any], name: str, key: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    for entry in _entries(content, name):
        if type(text := entry.get(key)) is str and text.strip():
            yield entry, text


def _ordered(graph: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The nodes, each after those that lead to it; the graph has no cycle."""
    before: dict[Any, set[Any]] = {node["id"]: set() for node in graph["nodes"]}
    for edge in graph["edges"]:
        before.setdefault(edge.get("targetId"), set()).add(edge.get("sourceId"))
    nodes = {node["id"]: node for node in graph["nodes"]}
    return [nodes[id] for id in TopologicalSorter(before).static_order() if id in nodes]


def texts_of(value: Any) -> Iterator[str]:
    """The texts anywhere inside a value of JSON."""
    if type(value) is str:
        yield value
    elif type(value) in (dict, list):
        for item in value.values() if type(value) is dict else value:
            yield from texts_of(item)
