"""The conditions in a text of YAML: read as a tree, and put back in the place where they stand."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import yaml

from threadline.capabilities.conditions import Node, plain
from threadline.capabilities.conditions.reading import read_tree
from threadline.capabilities.definitions import Document, Noted, Plain
from threadline.capabilities.definitions.splicing import spliced

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
    made = spliced(text, (key,), yaml_of(plain(tree)))
    if made is not None and _says(made, key, tree):
        return made
    values = Document("").compose(text) and yaml.safe_load(text)
    return yaml_of({**values, key: plain(tree)}) if isinstance(values, dict) else text


def _says(text: str, key: str, tree: Node) -> bool:
    """Whether the text has this very tree: to Python a condition on 1 equals one on true."""
    there = tree_in(text, key)
    return not isinstance(there, str) and repr(plain(there)) == repr(plain(tree))
