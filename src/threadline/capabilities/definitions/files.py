"""Files of definitions and the top-level sections in them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import yaml

from threadline.capabilities.definitions.document import PROBLEMS_MAX, Document, Keys
from threadline.kernel.errors import InvalidDefinition


class Found(NamedTuple):
    """A section as one file has it: the document, for messages, and the nodes of its name and of what it holds."""

    document: Document
    key: yaml.Node
    value: yaml.Node


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
        self._texts = tuple(texts)
        for name, text in self._texts:
            document = Document(name)
            self._documents.append(document)
            root = document.compose(text)
            if root is not None:
                self._sections.append((document, document.mapping(root, "a file of definitions")))

    @classmethod
    def load(cls, paths: Iterable[str | Path] = ()) -> Definitions:
        """The definitions of these files, or of all ``*.yaml`` and ``*.yml`` in these folders.

        Raises `InvalidDefinition` for a file that cannot be read; what is wrong inside one is told by `refuse`.
        """
        texts = []
        for file in (file for path in paths for file in _files(Path(path))):
            try:
                texts.append((str(file), file.read_text(encoding="utf-8")))
            except (OSError, UnicodeDecodeError) as error:
                raise InvalidDefinition(f"{file}:1: the file cannot be read as UTF-8 text: {error}") from None
        return cls(texts)

    @classmethod
    def shipped(cls, package: str) -> Definitions:
        """The definitions that ship with a capability, in the file ``shipped.yaml`` of its package."""
        text = resources.files(package).joinpath("shipped.yaml").read_text(encoding="utf-8")
        return cls([("shipped.yaml", text)])

    def with_candidate(self, name: str, text: str, aside: Collection[str] = ()) -> Definitions:
        """The same with a candidate: each section that it holds stands in the place of all there is of that section.

        Sections ``aside`` stay as they are, whatever the candidate says of them.
        """
        found = Definitions([*self._texts, (name, text)])
        document, sections = found._sections[-1] if len(found._sections) > len(self._sections) else (None, {})
        if document is not None:
            for kept in aside:
                sections.pop(kept, None)
            for _, others in found._sections[:-1]:
                for replaced in sections:
                    others.pop(replaced, None)
        return found

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
        problems = [problem for document in self._documents for problem in document.in_order()]
        problems += self.problems
        if problems:
            # Two capabilities may read one section, and each notes what is wrong with it.
            raise InvalidDefinition("\n".join(list(dict.fromkeys(problems))[:PROBLEMS_MAX]))

    def refuse_unknown(self) -> None:
        """The same with every section that nobody has asked for; to be called when all capabilities have read."""
        for document, sections in self._sections:
            document.known(sections, self._known, "top level")
        self.refuse()


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.iterdir() if each.suffix in (".yaml", ".yml"))
