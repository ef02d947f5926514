"""How another process comes to the same folds: the definitions as text, and what makes a catalogue of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

from threadline.engine.folding.catalogue import Catalogue
from threadline.exports.lake.storage import Storage
from threadline.kernel.errors import InvalidSetting, NotFound
from threadline.kernel.ids import short_hash

Texts = Sequence[tuple[str, str]]
"""Files of definitions: a name for messages, and the text."""


class MakeCatalogue(Protocol):
    """Makes a catalogue of texts, in any process: it can be pickled, and is equal to itself in another one."""

    def __call__(self, texts: Texts, /) -> Catalogue:
        """Raises `InvalidDefinition`."""
        ...


class Recipe(NamedTuple):
    """What makes a catalogue, in any process. It can be pickled: ``make`` goes by its name."""

    make: MakeCatalogue
    texts: tuple[tuple[str, str], ...]
    layout: str
    """That of the catalogue where the work began."""

    @property
    def definitions(self) -> str:
        """A hash that changes with every definition, and every version of Threadline, that makes other states."""
        return definitions_of(self.layout)

    def catalogue(self) -> Catalogue:
        """The catalogue, made once in a process.

        Raises `InvalidSetting` where this process has another version of Threadline: its states would differ.
        """
        return _made(self)


def definitions_of(layout: str) -> str:
    """See `Recipe.definitions`."""
    return short_hash(layout)


def recipe(make: MakeCatalogue, texts: Texts = ()) -> Recipe:
    """The recipe of these definitions. Raises `InvalidDefinition` for mistakes in them."""
    return Recipe(make, tuple(texts), make(texts).layout)


def texts_in(storage: Storage) -> Texts:
    """The files of definitions right in a storage, in the order of their names. Raises `NotFound` if there is none."""
    names = [file.name for file in storage.list() if file.name.endswith((".yaml", ".yml")) and "/" not in file.name]
    if not names:
        raise NotFound(f"there are no definitions (*.yaml) in {storage.url()}")
    return [(name, storage.read(name).decode()) for name in names]


@lru_cache(maxsize=4)
def _made(recipe: Recipe) -> Catalogue:
    catalogue = recipe.make(recipe.texts)
    if catalogue.layout != recipe.layout:
        hint = "install the same version of Threadline on every machine that takes part"
        raise InvalidSetting("this process folds otherwise than the one that began the work", hint=hint)
    return catalogue
