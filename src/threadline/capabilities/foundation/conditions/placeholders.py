"""Placeholders in what an action is given: ``${event.properties.total}`` takes what a condition would read there."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from threadline.capabilities.foundation.conditions import Path
from threadline.capabilities.foundation.conditions.fields import wrong_path
from threadline.capabilities.foundation.definitions import Place
from threadline.kernel.canonical import canonical_json, format_number
from threadline.kernel.limits import CONDITION_TEXT_LENGTH_MAX

Look = Callable[[Path], Any]
"""The value at a path; None if it is missing."""
Fill = Callable[[Look], Any]
Fail = Callable[[Place, str], None]

OUTPUT = "output"
"""The first step of what the body of the rule computed."""

_HOLE = re.compile(r"\$(\$\{)|\$\{([^{}]*)\}")
_DEPTH_MAX = 8


class Template:
    """A parameter as it is written, ready to be filled in."""

    __slots__ = ("fill", "holes", "plain")

    def __init__(self, plain: Any, fill: Fill, holes: tuple[Path, ...]) -> None:
        self.plain = plain
        self.fill = fill
        self.holes = holes
        """The paths of its placeholders; none: it is what it is."""


def read_template(value: Any, at: Place, fail: Fail) -> Template:
    """The template of a plain value; mistakes are passed to ``fail``."""
    holes: dict[Path, None] = {}
    return Template(value, _compiled(value, at, fail, holes, 0), tuple(holes))


def _compiled(value: Any, at: Place, fail: Fail, holes: dict[Path, None], depth: int) -> Fill:
    if depth > _DEPTH_MAX:
        fail(at, f"a parameter may be nested {_DEPTH_MAX} levels deep")
    elif type(value) is dict:
        filled = {name: _compiled(item, (*at, name), fail, holes, depth + 1) for name, item in value.items()}
        return lambda look: {name: fill(look) for name, fill in filled.items()}
    elif type(value) is list:
        fills = [_compiled(item, (*at, index), fail, holes, depth + 1) for index, item in enumerate(value)]
        return lambda look: [fill(look) for fill in fills]
    elif type(value) is str:
        return _text(value, at, fail, holes)
    elif type(value) is int and not -(2**63) <= value < 2**64:
        fail(at, "a number has 64 bits; write a longer one as a text")
    return lambda look: value


def _text(value: str, at: Place, fail: Fail, holes: dict[Path, None]) -> Fill:
    if len(value) > CONDITION_TEXT_LENGTH_MAX:
        fail(at, f"a text has at most {CONDITION_TEXT_LENGTH_MAX} characters")
    parts: list[str | Path] = []
    end = 0
    for match in _HOLE.finditer(value):
        parts.append(value[end : match.start()])
        end = match.end()
        if match[1]:
            parts.append(match[1])
            continue
        path = tuple(match[2].split("."))
        problem = "" if path[0] == OUTPUT and len(path) > 1 and all(path) else wrong_path(path)
        if problem:
            fail(at, f"{match[0]}: {problem}")
        holes[path] = None
        parts.append(path)
    parts.append(value[end:])
    pieces = [part for part in parts if part]
    if len(pieces) == 1 and type(pieces[0]) is tuple:
        alone = pieces[0]
        return lambda look: look(alone)
    return lambda look: "".join(part if type(part) is str else as_text(look(part)) for part in pieces)  # type: ignore[arg-type]


def as_text(value: Any) -> str:
    """A value inside a longer text; nothing for what is missing."""
    if value is None:
        return ""
    if type(value) is str:
        return value
    return format_number(value) if type(value) is float else canonical_json(value).decode()
