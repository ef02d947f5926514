"""The parts of a definition in a text of YAML that have a form: read, and put back in the place where they stand."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import yaml

from threadline.capabilities.foundation.conditions import Node
from threadline.capabilities.foundation.conditions.reading import read_tree
from threadline.capabilities.foundation.definitions import Document, Noted, Plain
from threadline.capabilities.foundation.definitions.splicing import saying, value_of


def tree_in(text: str, key: str) -> Node | str:
    """The tree under a key of a definition; ``absent`` where there is no such key, ``wrong`` where it is no tree."""
    document = Document("")
    root = document.compose(text)
    if root is None:
        return "wrong" if document.problems else "absent"
    keys = document.mapping(root, "")
    if document.problems or key not in keys:
        return "wrong" if document.problems else "absent"
    with suppress(Noted):
        return read_tree(Plain(document, key).part(keys[key][1]))
    return "wrong"


def value_in(text: str, key: str) -> Any:
    """The plain value under a key; None where there is none."""
    values = value_of(text)
    return values.get(key) if isinstance(values, dict) else None


def with_value(text: str, key: str, value: Any) -> str:
    """The text with another value under a key; as it is where it is no mapping. What else stands in it stays as it is
    written, as in `saying`."""
    values = value_of(text) if text.strip() else {}
    return saying(text, {**values, key: value}) if isinstance(values, dict) else text


def path_at(text: str, line: int, column: int) -> list[str | int]:
    """The keys, and places in lists, that lead to what stands at a line and a column of a text, both from 1."""
    path: list[str | int] = []
    node, at = Document("").compose(text), (line, column)
    while isinstance(node, yaml.MappingNode | yaml.SequenceNode):
        inside = (
            [(key, value) for key, value in node.value]
            if isinstance(node, yaml.MappingNode)
            else ([(item, item) for item in node.value])
        )
        begun = [number for number, (key, _) in enumerate(inside) if _begin(key) <= at]
        if not begun:
            break
        key, node = inside[begun[-1]]
        path.append(str(key.value) if key is not node else begun[-1])
    return path


def _begin(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1
