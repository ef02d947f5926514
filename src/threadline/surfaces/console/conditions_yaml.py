"""The conditions in a text of YAML: read as a tree, and put back in the place where they stand."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import yaml

from threadline.capabilities.conditions import Node, plain
from threadline.capabilities.conditions.reading import read_tree
from threadline.capabilities.definitions import Document, Noted, Plain

WIDTH = 100


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Items of a list stand further in than its key."""
        super().increase_indent(flow, False)


def yaml_of(value: Any) -> str:
    """Plain data, what is innermost in one line."""
    return yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH, default_flow_style=None
    )  # fmt: skip


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


def with_tree(text: str, key: str, tree: Node) -> str:
    """The text with another tree under a key. Whatever else stands in it stays as it is, comments too, unless the text
    is written in one line."""
    if _says(text, key, tree):
        return text
    written = yaml_of({key: plain(tree)})
    before = _values(text)
    spliced = _spliced(text, key, written)
    if _says(spliced, key, tree) and _without(_values(spliced), key) == _without(before, key):
        return spliced
    return yaml_of({**before, key: plain(tree)}) if isinstance(before, dict) else text


def _says(text: str, key: str, tree: Node) -> bool:
    """Whether the text has this very tree: to Python a condition on 1 equals one on true."""
    there = tree_in(text, key)
    return not isinstance(there, str) and repr(plain(there)) == repr(plain(tree))


def _values(text: str) -> Any:
    try:
        return yaml.safe_load(text) or {}
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _without(values: Any, key: str) -> Any:
    return {name: value for name, value in values.items() if name != key} if isinstance(values, dict) else None


def _spliced(text: str, key: str, written: str) -> str:
    root = Document("").compose(text)
    if root is not None and (not isinstance(root, yaml.MappingNode) or root.flow_style):
        return ""
    keys = [] if root is None else [node for node, _ in root.value]
    place = next((place for place, node in enumerate(keys) if node.value == key), None)
    if place is None:
        return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{written}"
    begin = keys[place].start_mark.index
    end = keys[place + 1].start_mark.index if place + 1 < len(keys) else len(text)
    lines = text[begin:end].splitlines(keepends=True)
    rest: list[str] = []
    while lines and (not lines[-1].strip() or lines[-1].startswith("#")):
        rest.insert(0, lines.pop())
    return f"{text[:begin]}{written}{''.join(rest)}{text[end:]}"
