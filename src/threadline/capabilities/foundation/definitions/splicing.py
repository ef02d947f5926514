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
    first, *rest = map(_key, keys)
    inner = "".join(_written(_INDENT, keys[1:], body)) if rest else f"{indent(body.strip(chr(10)), ' ' * _INDENT)}\n"
    is_short = not rest and "\n" not in body.strip() and _is_one_line(body)
    written = f"{first}: {body.strip()}\n" if is_short else f"{first}:\n{inner}"
    return [line if line == "\n" else f"{' ' * column}{line}" for line in written.splitlines(keepends=True)]


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
