"""The files of the gallery: each has what it says of itself, a line of dashes, and a file of definitions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

import yaml

from threadline.capabilities.decide.drafts.sections import entries_of, keys_in
from threadline.capabilities.foundation.definitions import Definitions, Document
from threadline.capabilities.foundation.definitions.ready_made import ready_made_files
from threadline.capabilities.foundation.definitions.splicing import value_of
from threadline.kernel.errors import NotFound
from threadline.kernel.suggestion import suggestion

_PATH = re.compile(r"\b(features|segments)\.(\w+)")
"""Fields in which a name stands second, as in ``segments.lapsed.since``: in conditions, and inside of mails."""
JOURNEYS, TEMPLATES, SENDERS = "journeys", "mail.templates", "mail.senders"


class Piece(NamedTuple):
    """One definition."""

    section: str
    name: str
    text: str
    """What stands under its name in a file."""


class Entry(NamedTuple):
    """A journey of the gallery."""

    name: str
    title: str
    description: str
    order: int
    """Its place in the gallery."""
    needs: dict[str, str]
    """An event type, or the path of a trait, and what the store has to bring of it."""
    text: str
    """The file of definitions."""


@cache
def entries() -> tuple[Entry, ...]:
    """Every entry, in the order of the gallery."""
    return tuple(
        Entry(name, says["title"], says["description"], says["order"], says["needs"], text)
        for name, says, text in ready_made_files(__name__.rpartition(".")[0])
    )


def entry_named(name: str) -> Entry:
    """The entry of this name; raises `NotFound` with the nearest one."""
    entry = next((entry for entry in entries() if entry.name == name), None)
    if entry is None:
        known = [entry.name for entry in entries()]
        raise NotFound(f"the gallery has no {name[:64]!r}; {suggestion(name, known)}", param="name")
    return entry


def pieces_of(entry: Entry, suffix: str = "") -> list[Piece]:
    """The definitions of an entry, each under its name with the suffix."""
    return [*_pieces(entry.name, entry.text, suffix)]


@lru_cache(maxsize=64)  # the list of the gallery asks for all of them
def _pieces(file: str, text: str, suffix: str) -> tuple[Piece, ...]:
    text = _renamed(text, {name: f"{name}{suffix}" for _, name in _names(text)}) if suffix else text
    definitions, content = Definitions([(file, text)]), value_of(text)
    made = []
    for section, name in _names(text):
        written = definitions.written(keys_in(content, section, name))
        assert written is not None, "it was found in this text"
        made.append(Piece(section, name, written.text))
    return tuple(made)


def _names(text: str) -> Iterator[tuple[str, str]]:
    """(section, name) of each definition of a text."""
    content = value_of(text)
    for definition, _ in entries_of(content, content):  # the gallery has nothing that is declared once
        yield definition


def _renamed(text: str, names: dict[str, str]) -> str:
    """The text with other names, wherever a value or a key is one, or the path of a field leads to one."""
    root = Document("").compose(text)
    assert root is not None, "it is a file of definitions"
    for node in sorted(_scalars(root), key=lambda node: node.start_mark.index, reverse=True):
        if node.value in names:
            text = f"{text[: node.start_mark.index]}{names[node.value]}{text[node.end_mark.index :]}"
    return _PATH.sub(lambda path: f"{path[1]}.{names.get(path[2], path[2])}", text)


def _scalars(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    if isinstance(node, yaml.ScalarNode):
        yield node
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from (*_scalars(key), *_scalars(value))
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _scalars(item)
