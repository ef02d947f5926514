"""A YAML document whose every value knows its line, so that a mistake can be named where it stands."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import yaml

from threadline.kernel.limits import (
    DEFINITIONS_DEPTH_MAX,
    DEFINITIONS_NUMBER_LENGTH_MAX,
    DEFINITIONS_REPEATED_MAX,
)
from threadline.kernel.names import Mention, Reference
from threadline.kernel.suggestion import suggestion

Keys = dict[str, tuple[yaml.Node, yaml.Node]]
"""The keys of a mapping by name, each with its own node and that of its value."""

_OCTAL = re.compile(r"[-+]?0[0-9_]")
"""How a number begins that YAML takes for an octal one, such as a postcode."""
PROBLEMS_MAX = 50
"""Problems told in one message; whoever has more starts with these."""

ANY_TYPE = "any"
"""Stands for every type where definitions name one."""

BY_HAND = "definitions in the store"
"""What messages call the text of all that is made by hand, which lies in no file."""
DRAFT = "draft.yaml"
"""What they call a text that somebody is writing; an answer calls it by an empty name."""
_UNNAMED = ("", "<unicode string>")
"""What marks call a text without a name."""


class _Loader(yaml.SafeLoader):
    """Refuses what is nested without end: it would take seconds to find out by recursion."""

    def fetch_flow_collection_start(self, token_class: Any) -> None:
        """A list or mapping in brackets begins."""
        self._refuse_beyond(self.flow_level)
        super().fetch_flow_collection_start(token_class)

    def add_indent(self, column: int) -> bool:
        """A list or mapping on lines of its own begins, if this column is further in."""
        self._refuse_beyond(len(self.indents))
        return bool(super().add_indent(column))

    def _refuse_beyond(self, depth: int) -> None:
        if depth > DEFINITIONS_DEPTH_MAX:
            raise yaml.scanner.ScannerError(None, None, "it is nested too deeply", self.get_mark())


@dataclass
class Document:
    """One file of definitions, what is wrong with it and what it names."""

    name: str
    problems: list[str] = field(default_factory=list)
    mentions: dict[Mention, None] = field(default_factory=dict)
    """Names of free kinds, each once, however often a section is read."""
    warnings: dict[str, None] = field(default_factory=dict)
    """What is no mistake and hardly meant, likewise."""
    names: dict[Reference, yaml.Node] = field(default_factory=dict)
    """The names that stand for something declared elsewhere, each with where it stands; of several places the first
    that was read."""
    paths: dict[tuple[str, tuple[str, ...], str], yaml.Node] = field(default_factory=dict)
    """The same of paths into views: a projection, the steps in its view, and what reads it."""
    columns: dict[str, int] = field(default_factory=dict)
    """Problem or warning -> the column at which it begins, from 1; of those that are noted at a node, or that YAML
    finds."""

    def compose(self, text: str, loader: Any = _Loader) -> yaml.Node | None:
        """The root node; None for an empty document or one that is no YAML, which then is a problem."""
        try:
            root = _root(loader, text, self.name)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self._note(f"{self.name}:{mark.line + 1 if mark else 1}: this is not YAML: {error.problem}", mark)
            return None
        except (yaml.YAMLError, RecursionError) as error:
            self.problems.append(f"{self.name}:1: this is not YAML: {str(error).splitlines()[0]}")
            return None
        halved = None if root is None else _halved(root)
        if halved is not None:
            self.fail(halved, "this text holds half a character (\\ud800 to \\udfff); write the whole one")
            return None
        repeated = _repeated(root) if root is not None and "*" in text and "&" in text else None
        if repeated is not None:
            most = f"{DEFINITIONS_REPEATED_MAX:,}"
            self.fail(repeated, f"aliases make more than {most} values of this; write out what is meant")
            return None
        return root

    def unread(self) -> Document:
        """The same, for others to read: with what is wrong with it so far."""
        return Document(self.name, [*self.problems], columns={**self.columns})

    def place(self, node: yaml.Node) -> str:
        """File and line of a node. A section may be of several texts, so that each node knows its own."""
        name = node.start_mark.name
        return f"{self.name if name in _UNNAMED else name}:{node.start_mark.line + 1}"

    def fail(self, node: yaml.Node, text: str) -> None:
        """Note a problem at a node."""
        self._note(f"{self.place(node)}: {text}", node.start_mark)

    def warn(self, node: yaml.Node, text: str) -> None:
        """Note at a node what is no mistake and hardly meant."""
        warning = f"{self.place(node)}: {text}"
        self.warnings[warning] = None
        self.columns.setdefault(warning, node.start_mark.column + 1)

    def _note(self, problem: str, mark: Any) -> None:
        self.problems.append(problem)
        if mark is not None:
            self.columns.setdefault(problem, mark.column + 1)

    def mapping(self, node: yaml.Node, what: str) -> Keys:
        """Keys with their key and value nodes; anything that is no mapping of texts is a problem."""
        keys: Keys = {}
        if not isinstance(node, yaml.MappingNode):
            self.fail(node, f"{what} must be a mapping, `key: value` on lines of its own")
            return keys
        for key, value in node.value:
            name = self.literal(key)
            if name is True or name is False:
                # YAML 1.1 reads on, off, yes and no as booleans; as a key they are meant as written.
                name = key.value
            if not isinstance(name, str):
                self.fail(key, f"{what}: a key must be text; write it in quotes")
            elif name in keys:
                self.fail(key, f"{what}: {name!r} is listed twice; keep one")
            else:
                keys[name] = (key, value)
        return keys

    def known(self, keys: Keys, allowed: Collection[str], what: str) -> None:
        """Every key that is not allowed is a problem, told with the nearest one that is."""
        for name, (key, _) in keys.items():
            if name not in allowed:
                self.fail(key, f"{what}: unknown key {name!r}; {suggestion(name, allowed)}")

    def once(self, node: yaml.Node, what: str, places: dict[str, str]) -> bool:
        """Whether this is declared for the first time; the second time is a problem, told with the place of the first.

        ``places`` tells where each thing was declared before, in whichever file, and is told where this one is.
        """
        if what in places:
            self.fail(node, f"{what} is already declared at {places[what]}; keep one")
            return False
        places[what] = self.place(node)
        return True

    def literal(self, node: yaml.Node) -> Any:
        """The plain value of a scalar node; the node itself if it is none."""
        if not isinstance(node, yaml.ScalarNode):
            return node
        if len(node.value) > DEFINITIONS_NUMBER_LENGTH_MAX:
            return node.value
        try:
            value = yaml.constructor.SafeConstructor().construct_object(node)
        except (yaml.YAMLError, ValueError):
            return node.value
        # Dates have no place in definitions; one that is not in quotes is meant as its text.
        return value if value is None or isinstance(value, (str, bool, int, float)) else node.value

    def misread(self, node: yaml.Node) -> str:
        """What YAML makes of a value without quotes that looks like another, such as NO or 12:30; empty otherwise."""
        if not isinstance(node, yaml.ScalarNode) or node.style is not None:
            return ""
        value, written = self.literal(node), node.value
        if isinstance(value, bool):
            return "" if written.lower() in ("true", "false") else _reads(written, str(value).lower())
        number = isinstance(value, (int, float)) and (":" in written or _OCTAL.match(written))
        return _reads(written, str(value)) if number else ""


def twice(what: str, before: str, section: str, name: str) -> str:
    """What is wrong where something is made by hand and declared in a file as well, and what to do about it."""
    return (
        f"{what} is also declared at {before}; take it out of that file, or out of the store with "
        f"`threadline definitions delete {section} {name}` (`threadline definitions export` keeps a copy)"
    )


def _root(loader: Any, text: str, name: str) -> yaml.Node | None:
    parser = loader(text)
    parser.name = name
    try:
        root: yaml.Node | None = parser.get_single_node()
    finally:
        parser.dispose()
    return root


def _reads(written: str, value: str) -> str:
    return f"YAML reads {written} as {value}; write {value}, or put '{written}' in quotes"


def _halved(root: yaml.Node) -> yaml.Node | None:
    """The first text with a lone surrogate, which an escape can write but nothing can keep; None: there is none."""
    waiting, seen = [root], {id(root)}
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.ScalarNode):
            if not node.value.isascii() and any("\ud800" <= character <= "\udfff" for character in node.value):
                return node
            continue
        inner = [child for pair in node.value for child in pair] if isinstance(node, yaml.MappingNode) else node.value
        # An alias is the very node that it names: each is looked at once.
        fresh = [child for child in reversed(inner) if id(child) not in seen]
        seen.update(map(id, fresh))
        waiting += fresh
    return None


def _repeated(root: yaml.Node) -> yaml.Node | None:
    """A value of which aliases make too many; None: there is none. One that is part of itself is named where it is
    read."""
    sizes: dict[int, int] = {}
    """Values that a node stands for, written out."""
    within: set[int] = set()
    written: set[int] = set()
    waiting = [(root, False)]
    while waiting:
        node, is_done = waiting.pop()
        written.add(id(node))
        if isinstance(node, yaml.ScalarNode) or (id(node) in sizes and not is_done):
            continue
        inner = [child for pair in node.value for child in pair] if isinstance(node, yaml.MappingNode) else node.value
        if is_done:
            within.discard(id(node))
            sizes[id(node)] = 1 + sum(sizes.get(id(child), 1) for child in inner)
            if sizes[id(node)] - len(written) > DEFINITIONS_REPEATED_MAX:
                return node
        elif id(node) not in within:
            within.add(id(node))
            waiting.append((node, True))
            waiting += [(child, False) for child in inner]
    return None
