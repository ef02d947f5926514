"""What definitions declare in versions: each is remembered when first seen, and never changes under its number."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.errors import InvalidDefinition, ThreadlineError
from threadline.kernel.policy import Declared, Shared
from threadline.kernel.store import Batch, Key, Put, Store, query_pages
from threadline.kernel.time import Clock

DECLARED = "declared"
"""Table: for each name of a `Shared` which versions were seen and when each was in force."""
CONTENT = "declared_content"
"""Table: the content of each version."""

_BATCH_PUTS = 90


class Transition(msgspec.Struct, frozen=True, array_like=True):
    """From ``at`` on this version was declared; 0: none was."""

    at: int
    version: int


class Declarations(msgspec.Struct, array_like=True):
    """The versions of one name. Transitions are only ever added."""

    hashes: dict[str, str]
    """Version, as text -> SHA-256 of its content."""
    transitions: list[Transition]


class _Seen(NamedTuple):
    item_version: int
    history: Declarations


_decode = msgspec.json.Decoder(Declarations).decode


def remember(store: Store, catalogue: Catalogue, clock: Clock) -> None:
    """Store the versions that are declared now. Raises `InvalidDefinition` for a version whose content has changed.

    A read-only store is checked, and nothing is stored.
    """
    for policy in catalogue.policies:
        if policy.shared is not None:
            _remember(store, policy.shared, clock())


def refuse_changed(store: Store, catalogue: Catalogue) -> None:
    """Raise `InvalidDefinition` for a version whose content has changed; nothing is stored."""
    for policy in catalogue.policies:
        if policy.shared is not None:
            _new(store, policy.shared, 0)


def _remember(store: Store, shared: Shared, now: int) -> None:
    for batch in _batches(_new(store, shared, now)):
        try:
            store.commit([batch])
        except ThreadlineError:
            return


def _new(store: Store, shared: Shared, now: int) -> list[list[Put]]:
    items = query_pages(store, DECLARED, shared.name)
    seen = {item.key.sort: _Seen(item.version, _decode(item.value)) for item in items}
    problems: list[str] = []
    puts: list[list[Put]] = []
    for declared in shared.declared:
        seen_before = seen.pop(declared.name, None)
        digest = hashlib.sha256(declared.content).hexdigest()
        hashes = {} if seen_before is None else seen_before.history.hashes
        known = hashes.get(str(declared.version))
        if known not in (None, digest):
            problems.append(
                f"{declared.place}: version {declared.version} of {declared.name!r} has changed since it was first "
                "seen; a version never changes, so raise its number"
            )
        elif seen_before is None or known is None or seen_before.history.transitions[-1].version != declared.version:
            puts.append(_puts(shared.name, declared, seen_before, digest, now))
    if problems:
        raise InvalidDefinition("\n".join(problems))
    gone = [name for name, was in seen.items() if was.history.transitions[-1].version]
    return [*puts, *(_withdrawn(shared.name, name, seen[name], now) for name in gone)]


def _puts(shared: str, declared: Declared, seen_before: _Seen | None, digest: str, now: int) -> list[Put]:
    history = Declarations({}, []) if seen_before is None else seen_before.history
    history.hashes[str(declared.version)] = digest
    if not history.transitions or history.transitions[-1].version != declared.version:
        history.transitions.append(Transition(now, declared.version))
    key = Key(DECLARED, shared, declared.name)
    return [
        Put(key, msgspec.json.encode(history), 0 if seen_before is None else seen_before.item_version),
        Put(Key(CONTENT, f"{shared}/{declared.name}", f"{declared.version:08d}"), declared.content),
    ]


def _withdrawn(shared: str, name: str, seen_before: _Seen, now: int) -> list[Put]:
    seen_before.history.transitions.append(Transition(now, 0))
    return [Put(Key(DECLARED, shared, name), msgspec.json.encode(seen_before.history), seen_before.item_version)]


def _batches(puts: list[list[Put]]) -> Iterator[Batch]:
    # A process that opens the store at the same moment stores the same; the second commit is refused.
    writes: list[Put] = []
    for group in puts:
        if len(writes) + len(group) > _BATCH_PUTS:
            yield Batch(writes=writes)
            writes = []
        writes += group
    if writes:
        yield Batch(writes=writes)


def contents(store: Store, shared: str) -> Iterator[tuple[str, bytes]]:
    """The content of every version that was ever declared, with ``NAME/VERSION``; and with ``NAME/0`` nothing, where
    the name is not declared any more."""
    for declared in query_pages(store, DECLARED, shared):
        if not _decode(declared.value).transitions[-1].version:
            yield f"{declared.key.sort}/0", b""
        for item in query_pages(store, CONTENT, f"{shared}/{declared.key.sort}"):
            yield f"{declared.key.sort}/{int(item.key.sort)}", item.value


class DefinitionHistory:
    """The versions of definitions in one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def names(self, shared: str) -> list[str]:
        """Every name that was ever declared."""
        return [item.key.sort for item in query_pages(self._store, DECLARED, shared)]

    def transitions(self, shared: str, name: str) -> list[tuple[int, int]]:
        """(instant, version) of each change of what the definitions declare, oldest first; version 0: nothing
        declared."""
        item = self._store.get([Key(DECLARED, shared, name)])[0]
        return (
            []
            if item is None
            else [(transition.at, transition.version) for transition in _decode(item.value).transitions]
        )

    def content(self, shared: str, name: str, version: int) -> bytes | None:
        """The content of a version that was declared at some time; None if it never was."""
        item = self._store.get([Key(CONTENT, f"{shared}/{name}", f"{version:08d}")])[0]
        return None if item is None else item.value
