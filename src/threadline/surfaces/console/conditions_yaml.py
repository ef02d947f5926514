"""The parts of a definition in a text of YAML that have a form: read, and put back in the place where they stand."""

from __future__ import annotations

import re
from contextlib import suppress
from math import inf
from typing import Any

from threadline.capabilities.foundation.conditions import Node, plain
from threadline.capabilities.foundation.conditions.reading import read_tree
from threadline.capabilities.foundation.definitions import Document, Noted, Plain
from threadline.capabilities.foundation.definitions.splicing import spliced, value_of
from threadline.capabilities.foundation.definitions.writing import yaml_of

_BROKEN = re.compile(r"[\0\r\n]")


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
    made = spliced(text, (key,), yaml_of(plain(tree), is_compact=True))
    if made is not None and _says(made, key, tree):
        return made
    return _rewritten(text, key, plain(tree))


def value_in(text: str, key: str) -> Any:
    """The plain value under a key; None where there is none."""
    values = value_of(text)
    return values.get(key) if isinstance(values, dict) else None


def with_value(text: str, key: str, value: Any) -> str:
    """The text with another value under a key. What else stands in it stays as it is, as in `with_tree`."""
    made = spliced(text, (key,), yaml_of(value, is_compact=True))
    return made if made is not None else _rewritten(text, key, value)


def text_in(text: str, key: str) -> str | None:
    """The text under a key, empty where there is none; None for one of several lines, and for what is no text."""
    values = value_of(text)
    value = values.get(key, "") if isinstance(values, dict) else "" if not text.strip() else None
    return value if isinstance(value, str) and not _BROKEN.search(value) else None


def with_text(text: str, key: str, value: str) -> str:
    """The text with another one under a key."""
    if text_in(text, key) in (value, None):
        return text
    written = yaml_of(value, width=inf).removesuffix("...\n")
    made = spliced(text, (key,), written)
    return made if made is not None and text_in(made, key) == value else _rewritten(text, key, value)


def _rewritten(text: str, key: str, value: Any) -> str:
    """The text written anew with another value; as it is where it is no mapping."""
    values = value_of(text)
    return yaml_of({**values, key: value}, is_compact=True) if isinstance(values, dict) else text


def _says(text: str, key: str, tree: Node) -> bool:
    """Whether the text has this very tree: to Python a condition on 1 equals one on true."""
    there = tree_in(text, key)
    return not isinstance(there, str) and repr(plain(there)) == repr(plain(tree))
