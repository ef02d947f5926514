"""A definition put into a text of YAML in the place of the one of its name; all else stays as it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from textwrap import indent
from typing import Any

import yaml

from threadline.capabilities.foundation.definitions.document import Document
from threadline.capabilities.foundation.definitions.plain import Noted, Plain
from threadline.capabilities.foundation.definitions.writing import text_of, yaml_of

_INDENT = 2
_PLAIN_KEY = re.compile(r"[A-Za-z_][\w-]*")


def spliced(text: str, keys: Sequence[str], body: str) -> str | None:
    """The text with ``body``, which is YAML, under these keys, each inside the one before.

    None where that cannot be done without writing other things anew, as in a mapping on one line. Comments stay, those
    inside of what is replaced excepted.
    """
    document = Document("")
    root = document.compose(text)
    if document.problems or (root is not None and not _is_block(root)):
        return None
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    made = _added(lines, len(lines), 0, keys, body) if root is None else _put(lines, root, len(lines), 0, keys, body)
    result = "".join(made) if made is not None else None
    return result if result is not None and _is_exact(text, result, keys, body) else None


def removed(text: str, keys: Sequence[str]) -> str | None:
    """The text without what stands under these keys, the comments right above it, and what would be empty then.

    None where that cannot be done without writing other things anew. Something has to stand there.
    """
    values = value_of(text)
    inner = _at(values, keys[:-1])
    if len(keys) > 1 and len(inner) == 1:
        return removed(text, keys[:-1])
    root = Document("").compose(text)
    lines = text.splitlines(keepends=True)
    made = None if root is None else _cut(lines, root, len(lines), keys)
    result = None if made is None else "".join(made)
    is_exact = result is not None and repr(value_of(result) or {}) == repr(_less(values, keys))
    return result if is_exact else None


def _cut(lines: list[str], node: yaml.Node, stop: int, keys: Sequence[str]) -> list[str] | None:
    """The lines without what stands under keys of a mapping that ends before line ``stop``."""
    if not _is_block(node):
        return None
    index = next(index for index, (key, _) in enumerate(node.value) if key.value == keys[0])
    start = node.value[index][0].start_mark
    end = node.value[index + 1][0].start_mark.line if index + 1 < len(node.value) else stop
    if len(keys) > 1:
        return _cut(lines, node.value[index][1], end, keys[1:])
    begin, end = start.line, _without_rest(lines, start.line + 1, end)
    while begin and lines[begin - 1].startswith(f"{' ' * start.column}#"):
        begin -= 1
    return [*lines[:begin], *lines[end:]]


def _less(values: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """The values without the one under keys."""
    if len(keys) > 1:
        return {**values, keys[0]: _less(values[keys[0]], keys[1:])}
    return {name: value for name, value in values.items() if name != keys[0]}


def saying(text: str, value: dict[str, Any]) -> str:
    """The text, changed so that it says this mapping and no more: what it says already stays as it is written, with its
    comments, unless it is written on one line."""
    before = value_of(text)
    made = _changed(text, (), before if isinstance(before, dict) else {}, value)
    if made is not None and repr(value_of(made) or {}) == repr(value):
        return made
    is_same = made is not None and repr(_in_order(value_of(made) or {})) == repr(_in_order(value))
    return made if made is not None and is_same else yaml_of(value, is_compact=True) if value else ""


def _changed(text: str, keys: tuple[str, ...], before: dict[str, Any], after: dict[str, Any]) -> str | None:
    """The text with all that has changed under keys; None where that cannot be done without writing it anew."""
    made: str | None = text
    for name, value in after.items():
        if made is None:
            return None
        old, at = before.get(name), (*keys, name)
        if name in before and repr(old) == repr(value):
            continue
        inner = _changed(made, at, old, value) if isinstance(old, dict) and isinstance(value, dict) and value else None
        made = inner if inner is not None else spliced(made, at, body_of(value))
    for name in before:  # last: a mapping that would be empty meanwhile would go, too
        if made is not None and name not in after:
            made = removed(made, (*keys, name))
    return made


def body_of(value: Any) -> str:
    """The YAML of a value that stands under a key, or alone."""
    return text_of(value) if isinstance(value, str) else yaml_of(value, is_compact=True).removesuffix("...\n")


def _in_order(value: Any) -> Any:
    """Mappings in the order of their keys, so that only what they say counts."""
    if isinstance(value, dict):
        return {key: _in_order(inner) for key, inner in sorted(value.items(), key=repr)}
    return [*map(_in_order, value)] if isinstance(value, list) else value


def _is_block(node: yaml.Node) -> bool:
    return isinstance(node, yaml.MappingNode) and not node.flow_style


def _put(lines: list[str], node: yaml.Node, stop: int, column: int, keys: Sequence[str], body: str) -> list[str] | None:
    """The lines with the body under keys of a mapping that ends before line ``stop``."""
    assert isinstance(node, yaml.MappingNode)
    starts = [key.start_mark for key, _ in node.value]
    if any(lines[mark.line][: mark.column].strip() for mark in starts):
        return None
    column = starts[0].column if starts else column
    index = next((index for index, (key, _) in enumerate(node.value) if key.value == keys[0]), None)
    if index is None:
        return _added(lines, stop, column, keys, body)
    begin = starts[index].line
    end = starts[index + 1].line if index + 1 < len(starts) else stop
    value = node.value[index][1]
    if len(keys) > 1 and _is_block(value):
        return _put(lines, value, end, column + _INDENT, keys[1:], body)
    if len(keys) > 1 and not (isinstance(value, yaml.ScalarNode) and not value.value):
        return None
    end = _without_rest(lines, begin + 1, end)
    return [*lines[:begin], *_written(column, keys, body), *lines[end:]]


def _added(lines: list[str], stop: int, column: int, keys: Sequence[str], body: str) -> list[str]:
    line = stop if stop == len(lines) else _without_rest(lines, 0, stop)
    return [*lines[:line], *_written(column, keys, body), *lines[line:]]


def _without_rest(lines: Sequence[str], begin: int, end: int) -> int:
    """Before the blank lines and comments that stand at the end: they belong to what follows."""
    while end > begin and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return end


def _written(column: int, keys: Sequence[str], body: str) -> list[str]:
    for key in reversed(keys):
        body = "".join(entry_lines(key, body))
    return [line if line == "\n" else f"{' ' * column}{line}" for line in body.splitlines(keepends=True)]


def entry_lines(key: str, body: str) -> list[str]:
    """The lines of a mapping with ``body``, which is YAML, under one key."""
    if body[:1] in ("|", ">"):  # a text of several lines begins behind its key
        return f"{_key(key)}: {body.rstrip(chr(10))}\n".splitlines(keepends=True)
    is_short = "\n" not in body.strip() and _is_one_line(body)
    inner = body.strip() if is_short else indent(body.strip("\n"), " " * _INDENT)
    return f"{_key(key)}:{' ' if is_short else chr(10)}{inner}\n".splitlines(keepends=True)


def _key(key: str) -> str:
    """A key as it is written: in quotes where YAML would read it otherwise."""
    return key if _PLAIN_KEY.fullmatch(key) and yaml.safe_load(key) == key else json.dumps(key)


def _is_one_line(body: str) -> bool:
    """Whether this may stand behind its key: a mapping such as ``a: 1`` may not."""
    node = Document("").compose(body)
    return node is None or isinstance(node, yaml.ScalarNode) or bool(getattr(node, "flow_style", False))


def _is_exact(before: str, after: str, keys: Sequence[str], body: str) -> bool:
    """Whether the text says what it said before, and the body under the keys."""
    was, now, wanted = value_of(before) or {}, value_of(after), value_of(body)
    if not isinstance(was, dict) or repr(_at(now, keys)) != repr(wanted):
        return False
    return repr(_with(was, keys, wanted)) == repr(_with(now, keys, wanted))


def _with(values: Any, keys: Sequence[str], value: Any) -> Any:
    """The values with another one under keys; in the order of names, so that only what they say counts."""
    inner = values if isinstance(values, dict) else {}
    rest = value if len(keys) == 1 else _with(inner.get(keys[0]), keys[1:], value)
    return dict(sorted({**inner, keys[0]: rest}.items(), key=lambda item: repr(item[0])))


def _at(values: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def value_of(text: str) -> Any:
    """The plain value of a text, as definitions read it; None for an empty text and for one that is wrong."""
    document = Document("")
    root = document.compose(text)
    if root is None:
        return None
    with suppress(Noted):
        return Plain(document, "").part(root).value
    return None
