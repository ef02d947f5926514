"""From files of definitions to one `DerivationSet`: what ships, and what users add, replace or leave out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import yaml

from threadline.capabilities.definitions import Definitions, Document
from threadline.capabilities.memory.definition import PERMANENT, Derivation, DerivationSet
from threadline.capabilities.memory.reading import NAME, DerivationReader
from threadline.kernel.limits import DERIVATIONS_MAX
from threadline.kernel.suggestion import suggestion


def load_derivations(paths: Iterable[str | Path] = ()) -> DerivationSet:
    """The shipped derivations with what these files, or all ``*.yaml`` and ``*.yml`` in these folders, declare.

    Raises `InvalidDefinition` with every problem in their section ``memory``, one a line.
    """
    return _alone(Definitions.load(paths))


def read_derivations(texts: Iterable[tuple[str, str]] = ()) -> DerivationSet:
    """As `load_derivations`, from pairs of a name for messages and the text."""
    return _alone(Definitions(texts))


def _alone(definitions: Definitions) -> DerivationSet:
    derivations = derivations_of(definitions)
    definitions.refuse()
    return derivations


def derivations_of(definitions: Definitions) -> DerivationSet:
    """The shipped derivations with what these definitions declare. Problems are noted in them, not raised."""
    ours = Definitions.shipped("threadline.capabilities.memory")
    shipped: dict[str, Derivation | None] = {}
    _read(ours, shipped, frozenset())
    ours.refuse()
    found = dict(shipped)
    _read(definitions, found, frozenset(shipped))
    derivations = [found[name] for name in sorted(found)]
    if len(derivations) > DERIVATIONS_MAX:
        definitions.problems.append(
            f"memory has {len(derivations)} derivations, at most {DERIVATIONS_MAX} are allowed; remove some"
        )
    return DerivationSet(tuple(each for each in derivations if each is not None))


def _read(definitions: Definitions, found: dict[str, Derivation | None], shipped: frozenset[str]) -> None:
    places: dict[str, str] = {}
    for document, _, section in definitions.section("memory"):
        reader = DerivationReader(document)
        for name, (key, value) in document.mapping(section, "`memory`").items():
            if not NAME.fullmatch(name):
                document.fail(
                    key, f"{name!r} is not a valid name; use lower-case letters, digits and _, such as shoe_size"
                )
            elif not document.once(key, f"memory {name!r}", places):
                continue
            elif name in shipped and name in PERMANENT:
                document.fail(key, f"memory {name!r} is what `remember` is read by; take another name")
            elif document.literal(value) is False:
                _leave_out(document, key, name, found, shipped)
            else:
                found[name] = reader.read(name, value)


def _leave_out(
    document: Document, key: yaml.Node, name: str, found: dict[str, Derivation | None], shipped: frozenset[str]
) -> None:
    if name in shipped:
        found[name] = None
    else:
        document.fail(key, f"memory {name!r} does not ship and cannot be left out; {suggestion(name, shipped)}")
