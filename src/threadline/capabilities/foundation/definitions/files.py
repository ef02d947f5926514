"""Files of definitions and the top-level sections in them."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from textwrap import dedent
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import yaml

from threadline.capabilities.foundation.definitions.document import BY_HAND, Document, Keys
from threadline.capabilities.foundation.definitions.joining import Found, at, merged, without
from threadline.capabilities.foundation.definitions.plain import Plain
from threadline.capabilities.foundation.definitions.problem import Problem, problem_of
from threadline.capabilities.foundation.definitions.writing import yaml_of
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.names import EVENT_TYPE, Mention, Reference
from threadline.kernel.policy import Read

_SHIPPED = "shipped.yaml"
_MAPPING, _TEXT = "tag:yaml.org,2002:map", "tag:yaml.org,2002:str"
MISTAKES_MAX = 1_000
"""Told in one message."""


class Written(NamedTuple):
    """A definition as it is written."""

    text: str
    """What stands under its name, with the comments in it."""
    file: str
    """File and line that declare it; empty: it is made by hand."""


class Definitions:
    """What users declared, as pairs of a name for messages and the text of each file.

    A capability asks for its sections and notes what is wrong in their documents; whoever asks for a section makes it
    known. `refuse` ends the reading when something is wrong.
    """

    def __init__(self, texts: Iterable[tuple[str, str]] = ()) -> None:
        self._documents: list[Document] = []
        self._sections: list[tuple[Document, Keys]] = []
        self._known: set[str] = set()
        self.problems: list[str] = []
        """What is wrong with several files together; what stands in one is noted in its document."""
        self.failed: set[str] = set()
        """Names of what is declared wrongly. Whatever reads one of them is not wrong because of that as well."""
        self.warnings: list[str] = []
        """What is no mistake and yet hardly meant, of several files together; see `warned`."""
        self.known_names: dict[str, set[str]] = defaultdict(set)
        """Names of free kinds that ship, or that what is declared makes, by their `NameKind`."""
        self.read: dict[object, Any] = {}
        """What was read of sections with names, by the form that reads them."""
        self.texts = tuple(texts)
        """As they were given."""
        for name, text in self.texts:
            document, root = _composed(name, text)
            self._add(document.unread(), root)

    def _add(self, document: Document, root: yaml.Node | None) -> None:
        self._documents.append(document)
        if root is not None:
            self._sections.append((document, document.mapping(root, "a file of definitions")))

    @classmethod
    def load(cls, paths: Iterable[str | Path] = (), by_hand: str = "") -> Definitions:
        """The definitions of these files, or of all ``*.yaml`` and ``*.yml`` in these folders, and those made by hand.

        What is wrong with them, and files that cannot be read, `refuse` raises.
        """
        texts, problems = [], []
        for file in (file for path in paths for file in _files(Path(path))):
            try:
                texts.append((str(file), file.read_text(encoding="utf-8")))
            except (OSError, UnicodeDecodeError) as error:
                texts.append((str(file), ""))
                problems.append(f"{file}:1: the file cannot be read as UTF-8 text: {error}")
        definitions = cls([*texts, *([(BY_HAND, by_hand)] if by_hand else [])])
        definitions.problems += problems
        return definitions

    @classmethod
    def shipped(cls, package: str) -> Definitions:
        """The definitions that ship with a capability, in the file ``shipped.yaml`` of its package."""
        definitions = cls()
        definitions._add(Document(_SHIPPED), _shipped(package))
        return definitions

    def with_candidate(self, name: str, text: str, aside: Collection[str] = ()) -> Definitions:
        """The same with a candidate: each section that it holds stands in the place of all there is of that section.

        Sections ``aside`` stay as they are, whatever the candidate says of them.
        """
        definitions = Definitions([*self.texts, (name, text)])
        document, sections = (
            definitions._sections[-1] if len(definitions._sections) > len(self._sections) else (None, {})
        )
        if document is not None:
            for untouched in aside:
                sections.pop(untouched, None)
            for _, others in definitions._sections[:-1]:
                for replaced in sections:
                    others.pop(replaced, None)
        return definitions

    def with_draft(self, name: str, text: str, by_name: Collection[str], keys: tuple[str, ...] = ()) -> Definitions:
        """The same with what somebody is writing: each definition stands in the place of the one of its name.

        Sections that are not ``by_name`` are replaced whole. With ``keys`` the text is no file but what stands under
        these, each inside the one before.
        """
        definitions = Definitions(self.texts)
        document = Document(name)
        root = document.compose(text)
        if keys and not document.problems:
            for key in reversed(keys):
                root = _under(key, root)
        definitions._add(document, root)
        written = definitions._sections[-1][1] if root is not None else {}
        for _, others in definitions._sections[:-1]:
            for section, (_, value) in written.items():
                if section not in others or (section not in by_name and not keys[1:]):
                    others.pop(section, None)
                    continue
                head, node = others[section]
                for inner in [keys[1:]] if keys else [(key.value,) for key, _ in _members(value)]:
                    node = without(node, inner)
                others[section] = head, node
        return definitions

    def declared_in(self, name: str) -> dict[str, list[str]]:
        """Section -> the names under it in the document of this name, rightly or wrongly declared."""
        return {
            section: [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            for document, sections in self._sections
            if document.name == name
            for section, (_, node) in sections.items()
            if isinstance(node, yaml.MappingNode)
        }

    def column(self, problem: str) -> int:
        """The column at which a problem begins, from 1; 0 where only its line is known."""
        return next((document.columns[problem] for document in self._documents if problem in document.columns), 0)

    @property
    def warned(self) -> list[str]:
        """What is no mistake and yet hardly meant, of each file and of several together."""
        return [*self.warnings, *(warning for document in self._documents for warning in document.warnings)]

    @property
    def known_types(self) -> set[str]:
        """Types of events that ship, or that what is declared makes."""
        return self.known_names[EVENT_TYPE]

    @property
    def mentions(self) -> list[Mention]:
        """The names of free kinds that are written, wherever a form has noted one."""
        return [mention for document in self._documents for mention in document.mentions]

    def names_in(self, section: str, *inside: str) -> frozenset[str] | None:
        """The names that stand in a section, or in a mapping inside it, rightly declared or wrongly; None: no file has
        the section."""
        mappings = [node for _, _, node in self.section(section)]
        if not mappings:
            return None
        for step in inside:
            mappings = [value for node in mappings for key, value in _members(node) if key.value == step]
        return frozenset(str(key.value) for node in mappings for key, _ in _members(node))

    def note_unknown(self, unknown: Callable[[Reference], str], unread: Callable[[Read], str]) -> None:
        """Note every name and every path that leads nowhere where it stands. Both tell what is wrong, or nothing."""
        for document in self._documents:
            for reference, node in document.names.items():
                problem = unknown(reference) if reference.name not in self.failed else ""
                if problem:
                    document.fail(node, f"{reference.what}: {problem}")
            for (projection, path, what), node in document.paths.items():
                problem = unread(Read(projection, path))
                if problem:
                    document.fail(node, f"{what}: {problem}")

    @property
    def noted_paths(self) -> frozenset[tuple[str, tuple[str, ...]]]:
        """The paths into views of which it is known where they stand."""
        return frozenset((projection, path) for document in self._documents for projection, path, _ in document.paths)

    def contents(self) -> dict[str, dict[str, str]]:
        """Section -> name -> a hash of what is declared under it; a section that holds no names is one without."""
        values: dict[str, Any] = {}
        for _, sections in self._sections:
            for section, (_, node) in sections.items():
                value = Plain(Document(""), section).value(node)
                values[section] = merged(values[section], value) if section in values else value
        named = {section: value if isinstance(value, dict) else {"": value} for section, value in values.items()}
        return {
            section: {name: _digest(content) for name, content in names.items()} for section, names in named.items()
        }

    def written(self, keys: tuple[str, ...]) -> Written | None:
        """What stands under keys, in a file before the store; None: in neither."""
        texts = dict(self.texts)
        for document, key, value in self._standing(keys):
            if document.name in texts:
                file = "" if document.name == BY_HAND else document.place(key)
                return Written(_as_written(texts[document.name], key, value), file)
        return None

    def _standing(self, keys: tuple[str, ...]) -> Iterator[Found]:
        for document, sections in self._sections:
            key, node = sections.get(keys[0], (None, None))
            if key is None or node is None:
                continue
            pair = at(node, keys[1:]) if keys[1:] else (key, node)
            if pair is not None:
                yield Found(document, *pair)

    @property
    def names(self) -> frozenset[str]:
        """The names of all sections there are."""
        return frozenset(name for _, sections in self._sections for name in sections)

    def section(self, name: str) -> list[Found]:
        """A top-level section, once for each file that has it, in the order of the files."""
        self._known.add(name)
        return [Found(document, *sections[name]) for document, sections in self._sections if name in sections]

    def refuse(self) -> None:
        """Raise `InvalidDefinition` with every problem noted so far, one a line; nothing happens if there is none."""
        problems = [problem for document in self._documents for problem in document.problems] + self.problems
        if problems:
            ordered = self.in_order(problems)
            more = [f"and {len(ordered) - MISTAKES_MAX:,} more"] if len(ordered) > MISTAKES_MAX else []
            columns = {str(problem): problem.column for problem in ordered[:MISTAKES_MAX]}
            raise InvalidDefinition("\n".join([*columns, *more]), columns=columns)

    def in_order(self, lines: Iterable[str], columns: Mapping[str, int] = MappingProxyType({})) -> list[Problem]:
        """Problems or warnings, each once, in the order of the files and their lines; what has no place comes last.
        ``columns``: those of lines that were noted nowhere."""
        # Two capabilities may read one section, and each notes what is wrong with it.
        problems = [problem_of(line, columns.get(line) or self.column(line)) for line in dict.fromkeys(lines)]
        return in_order_of([document.name for document in self._documents], problems)

    def refuse_unknown(self, off: Mapping[str, str] = MappingProxyType({})) -> None:
        """The same with every section that nobody has asked for; to be called when all capabilities have read.

        ``off``: section -> its capability, which is switched off.
        """
        for document, sections in self._sections:
            for name in sorted(sections.keys() & off.keys() - self._known):
                owner = f"the capability {off[name]!r}, which the setting `capabilities` switches off"
                document.fail(sections[name][0], f"top level: {name!r} is of {owner}; take one of the two out")
            document.known(sections, {*self._known, *off}, "top level")
        self.refuse()


def in_order_of(files: Sequence[str], problems: Iterable[Problem]) -> list[Problem]:
    """Problems in the order of these files and their lines; what has no place comes last."""
    order = {file: number for number, file in enumerate(files)}
    return sorted(problems, key=lambda problem: (order.get(problem.file, len(order)), problem.line, problem.column))


@lru_cache(maxsize=64)
def _composed(name: str, text: str) -> tuple[Document, yaml.Node | None]:
    """A text as nobody has read it yet. A draft is checked beside all that is in force at every pause of who writes it,
    and to compose six thousand lines takes a second. Nobody changes a node."""
    document = Document(name)
    return document, document.compose(text)


@cache
def _shipped(package: str) -> yaml.Node | None:
    """Read once in a process: it would be most of the time that opening a store takes. Nobody changes a node."""
    text = resources.files(package).joinpath(_SHIPPED).read_text(encoding="utf-8")
    # libyaml reads them ten times faster; it words mistakes otherwise, and there are none in what ships.
    return Document(_SHIPPED).compose(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _members(node: yaml.Node) -> list[tuple[yaml.Node, yaml.Node]]:
    return node.value if isinstance(node, yaml.MappingNode) else []


def _under(key: str, value: yaml.Node | None) -> yaml.MappingNode:
    """A mapping with this key alone, at the place of its value; an empty value is an empty mapping."""
    start = yaml.Mark("", 0, 0, 0, None, 0) if value is None else value.start_mark
    inner = yaml.MappingNode(_MAPPING, [], start, start) if value is None else value
    return yaml.MappingNode(_MAPPING, [(yaml.ScalarNode(_TEXT, key, start, start), inner)], start, start)


def _as_written(text: str, key: yaml.Node, node: yaml.Node) -> str:
    """The part of a text that stands under a key, as far to the left as it goes; written anew where it is not by itself
    what it is there, as with an alias."""
    start, stop = node.start_mark, node.end_mark
    if start.line > key.start_mark.line:  # comments above it belong to it
        lines = text[: stop.index].rstrip().split("\n")[key.start_mark.line + 1 :]
    else:
        lines = (" " * start.column + text[start.index : stop.index]).rstrip().split("\n")
    while lines[1:] and _is_outside(lines[-1], start.column):
        lines.pop()
    dedented = f"{dedent(chr(10).join(lines)).rstrip()}\n"
    value, alone = Plain(Document(""), "").value(node), Document("")
    root = alone.compose(dedented)
    is_same = root is not None and repr(Plain(alone, "").value(root)) == repr(value)
    return dedented if is_same else yaml_of(value)


def _is_outside(line: str, column: int) -> bool:
    """Whether a line is blank or a comment further to the left, which is about what follows."""
    inner = line.lstrip()
    return not inner or (inner.startswith("#") and len(line) - len(inner) < column)


def _digest(value: object) -> str:
    return hashlib.blake2b(msgspec.json.encode(value, order="deterministic"), digest_size=8).hexdigest()


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.iterdir() if file.suffix in (".yaml", ".yml"))
