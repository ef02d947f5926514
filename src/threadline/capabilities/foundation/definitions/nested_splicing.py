"""Values inside of a definition, such as the steps of a journey: put in, taken out and written anew in its text.

A path leads to a value by keys and positions: ``("steps", 2, "then", 0)``. All else stays as it is written. Comments
stay too: those right above an item of a list belong to it, and go with it. What stands in brackets on one line, or is
written in a way that cannot be cut by lines, is written anew, the innermost such value alone.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from textwrap import indent
from typing import Any, NamedTuple

import yaml

from threadline.capabilities.foundation.definitions.document import Document
from threadline.capabilities.foundation.definitions.splicing import entry_lines, value_of
from threadline.capabilities.foundation.definitions.writing import yaml_of

Path = tuple[str | int, ...]


class _Entry(NamedTuple):
    """An item of a list or a key of a mapping with its value, and the lines that it takes."""

    node: yaml.Node
    begin: int
    """With the comments right above it, if it is an item."""
    line: int
    """Where its dash or its key stands."""
    column: int
    """Of its dash or its key."""
    stop: int
    """The line after its last one."""


def value_at(values: Any, path: Path) -> Any:
    """The value at a path; None where there is none."""
    for key in path:
        try:
            values = values[key]
        except (KeyError, IndexError, TypeError):
            return None
    return values


def item_text(text: str, path: Path) -> str:
    """The text of an item of a list with the comments above it, as it can be put in elsewhere."""
    lines, entry = _cut(text, path)
    if entry is None or not isinstance(path[-1], int):
        return _body(value_at(value_of(text), path))
    above = [line.lstrip() for line in lines[entry.begin : entry.line]]
    column = entry.node.start_mark.column
    first, *rest = lines[entry.line : entry.stop]
    item = "".join([*above, first[column:], *(_dedented(line, column) for line in rest)])
    wanted = value_at(value_of(text), path)
    return item if repr(value_of(item)) == repr(wanted) else _body(wanted)


def with_item(text: str, path: Path, item: str) -> str:
    """The text with ``item``, which is YAML, before the item at a path; a position after the last puts it at the end.
    The list may be missing."""
    *rest, position = path
    within = tuple(rest)
    values = value_of(text)
    items = value_at(values, within) or []
    assert isinstance(position, int)
    wanted = _changed(values, within, [*items[:position], value_of(item), *items[position:]])
    if not items:
        return _replaced(text, within, _as_list(item), wanted)
    lines, entry = _cut(text, (*within, min(position, len(items) - 1)))
    if entry is None:
        return _rewritten(text, within, wanted)
    at = entry.begin if position < len(items) else entry.stop
    made = "".join([*lines[:at], *_shifted(_as_list(item), entry.column), *lines[at:]])
    return made if repr(value_of(made)) == repr(wanted) else _rewritten(text, within, wanted)


def with_item_instead(text: str, path: Path, item: str) -> str:
    """The text with ``item``, which is YAML, in the place of the item of a list and of the comments above it."""
    lines, entry = _cut(text, path)
    wanted = _changed(value_of(text), path, value_of(item))
    if entry is None:
        return _rewritten(text, path, wanted)
    made = "".join([*lines[: entry.begin], *_shifted(_as_list(item), entry.column), *lines[entry.stop :]])
    return made if repr(value_of(made)) == repr(wanted) else _rewritten(text, path, wanted)


def without(text: str, path: Path) -> str:
    """The text without the value at a path; of a mapping its key goes with it."""
    values = value_of(text)
    wanted = _without(values, path)
    lines, entry = _cut(text, path)
    left = value_at(wanted, path[:-1])
    is_first_of_item = entry is not None and lines[entry.line][: entry.column].strip()
    if entry is None or not left or is_first_of_item:
        return _rewritten(text, path[:-1], wanted)
    made = "".join([*lines[: entry.begin], *lines[entry.stop :]])
    return made if repr(value_of(made)) == repr(wanted) else _rewritten(text, path[:-1], wanted)


def _replaced(text: str, path: Path, body: str, wanted: Any) -> str:
    """The text with a body at a path, so that it says what is wanted."""
    if not path:
        return body
    lines, entry = _cut(text, path)
    if entry is not None:
        before = lines[entry.line][: entry.column]
        first, *rest = _shifted(_entry_text(path[-1], body), entry.column)
        first = f"{before}{first[entry.column :].rstrip()}{_comment_behind(lines, entry)}\n"
        made = "".join([*lines[: entry.line], first, *rest, *lines[entry.stop :]])
        return made if repr(value_of(made)) == repr(wanted) else _rewritten(text, path[:-1], wanted)
    made = _appended(text, path, body)
    return made if repr(value_of(made)) == repr(wanted) else _rewritten(text, path[:-1], wanted)


def _appended(text: str, path: Path, body: str) -> str:
    """The text with one more key at the end of the mapping that a path leads into, if it is one on lines of its own."""
    lines, outer = _cut(text, path[:-1])
    node = outer.node if outer is not None else Document("").compose(text) if len(path) == 1 else None
    if not isinstance(node, yaml.MappingNode) or node.flow_style or not node.value:
        return text
    column = node.value[0][0].start_mark.column
    stop = _content_end(lines, 0, len(lines), column) if outer is None else outer.stop
    return "".join([*lines[:stop], *_shifted(_entry_text(path[-1], body), column), *lines[stop:]])


def _rewritten(text: str, path: Path, wanted: Any) -> str:
    """The text with the value at a path written anew, which may be missing in it; all of it as a last resort."""
    return _replaced(text, path, _body(value_at(wanted, path)), wanted)


# --- lines ------------------------------------------------------------------------------------------


def _cut(text: str, path: Path) -> tuple[list[str], _Entry | None]:
    """The lines of a text, and the entry at a path; None where it does not stand on lines of its own."""
    lines = [line if line.endswith("\n") else f"{line}\n" for line in text.splitlines(keepends=True)]
    document = Document("")
    node = document.compose(text)
    entry: _Entry | None = None
    stop = len(lines)
    for key in path:
        if node is None or document.problems:
            return lines, None
        entry = _inner(lines, node, key, stop)
        if entry is None:
            return lines, None
        node, stop = entry.node, entry.stop
    return lines, entry


def _inner(lines: Sequence[str], node: yaml.Node, key: str | int, stop: int) -> _Entry | None:
    """The entry of a list or mapping that ends before a line; None where it is in brackets, or there is no such one."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style:
        starts = [name.start_mark for name, _ in node.value]
        number = next((number for number, (name, _) in enumerate(node.value) if name.value == key), None)
        if number is None:
            return None
        line, column = starts[number].line, starts[number].column
        end = starts[number + 1].line if number + 1 < len(starts) else stop
        return _Entry(node.value[number][1], line, line, column, _content_end(lines, line + 1, end, column))
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and isinstance(key, int) and key < len(node.value):
        column = node.start_mark.column
        dashes = [item.start_mark.line for item in node.value]
        if any(lines[line][: column + 1].strip() != "-" for line in dashes):
            return None
        begins = [_comments_above(lines, line, column) for line in dashes]
        end = begins[key + 1] if key + 1 < len(begins) else _content_end(lines, dashes[key] + 1, stop, column)
        return _Entry(node.value[key], begins[key], dashes[key], column, end)
    return None


def _comments_above(lines: Sequence[str], line: int, column: int) -> int:
    """Where the comments begin that stand right above a line, as far in as it."""
    while line and lines[line - 1].lstrip().startswith("#") and _indent_of(lines[line - 1]) == column:
        line -= 1
    return line


def _content_end(lines: Sequence[str], begin: int, end: int, column: int) -> int:
    """Before the blank lines and comments at the end, those excepted that stand further in."""
    while end > begin:
        line = lines[end - 1]
        if line.strip() and not (line.lstrip().startswith("#") and _indent_of(line) <= column):
            break
        end -= 1
    return end


def _comment_behind(lines: Sequence[str], entry: _Entry) -> str:
    """The comment behind a value on one line, with the blanks before it."""
    end = entry.node.end_mark
    rest = lines[entry.line][end.column :].rstrip() if end.line == entry.line else ""
    return rest if rest.lstrip().startswith("#") else ""


def _indent_of(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _dedented(line: str, column: int) -> str:
    return line[column:] if not line[:column].strip() and line.strip() else line.lstrip(" ")


def _entry_text(key: str | int, body: str) -> str:
    return _as_list(body) if isinstance(key, int) else "".join(entry_lines(key, body))


def _as_list(item: str) -> str:
    """A text of YAML as the only item of a list, with the comments above it above its dash."""
    lines = item.splitlines(keepends=True)
    count = next((number for number, line in enumerate(lines) if not line.startswith("#")), 0)
    body = indent("".join(lines[count:]), "  ")
    return "".join([*lines[:count], f"- {body[2:].rstrip(chr(10))}\n"])


def _shifted(text: str, column: int) -> list[str]:
    return [f"{' ' * column}{line}" if line.strip() else line for line in text.splitlines(keepends=True)]


# --- values -----------------------------------------------------------------------------------------


def _body(value: Any) -> str:
    return yaml_of(value, is_compact=True).removesuffix("...\n")


def _changed(values: Any, path: Path, value: Any) -> Any:
    """The values with another one at a path."""
    if not path:
        return value
    key, *rest = path
    made = copy.copy(values) if values is not None else {}
    made[key] = _changed(value_at(values, (key,)), tuple(rest), value)
    return made


def _without(values: Any, path: Path) -> Any:
    made = copy.copy(values)
    key, *rest = path
    if rest:
        made[key] = _without(values[key], tuple(rest))
    else:
        del made[key]
    return made
