"""As of which definitions each index is filled that is written for everybody: marks, which readers of its rows ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import msgspec

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.person import PERSON
from threadline.kernel.applied import Filling, IndexPart
from threadline.kernel.errors import StoreDamaged, ThreadlineError, Unavailable
from threadline.kernel.ids import short_hash
from threadline.kernel.operation import Refresh
from threadline.kernel.projection import Projection
from threadline.kernel.store import Batch, Item, Key, Put, Store, scan_pages

MARKS = "index"
"""Table of marks: under the name of a projection, for which definition everybody's rows are written; under ``all`` and
the name of a step, for which everybody is up to date in it."""
PEOPLE = "people"
"""The step that comes first: everybody's states. The others are those of a `Refresh`."""
_NAMES = Key(MARKS, "names of marks")
"""The item that lists every name under which there may be a mark. DynamoDB can only find them by reading everything."""
_NONE = b"-"
"""A mark that is taken back: for no definition. That of a step goes on, after a space, with the parts that are filled
all the same, and how far everybody was looked at since; earlier versions wrote it without."""
_SHARE_DIGITS = 4
"""Digits of a person's id, which is a hash, that say how much of everybody comes before it."""
_ATTEMPTS_MAX = 32


class _Mark(NamedTuple):
    """The mark of a step as it is stored, in words."""

    parts: frozenset[str]
    """``name=version`` of what is filled."""
    version: str
    """The beginning of a hash of the definitions by which everybody is being looked at; empty: nobody was."""
    share: float
    """How much of everybody was looked at."""


def prepare(store: Store, catalogue: Catalogue, besides: Put) -> None:
    """Mark a store without people as complete: whoever comes will get their rows as they come. ``besides`` says the
    same of the definitions as a whole.

    In one with people take back every mark of another definition. What is written from now on keeps that definition's
    rows no longer current, and it may be in force again one day.
    """
    for _ in range(_ATTEMPTS_MAX):
        try:
            writes = _writes_of_marks(store, catalogue, besides)
        except StoreDamaged:
            return  # who reads the marks will hear of it, and `verify` of all that is damaged
        try:
            if not writes or store.commit([Batch(writes=writes)])[0] is None:
                return
        except ThreadlineError:
            return  # it cannot be written to from here; then nothing is said about it either
    raise Unavailable("other processes keep opening the store with other definitions; try again")


def is_complete(store: Store, projection: Projection) -> bool:
    """Whether the rows of this projection, as it is declared now, are written for everybody."""
    return _is_whole(rows_mark(projection), store.get([rows_mark(projection).key])[0])


def is_done(store: Store, catalogue: Catalogue, step: str) -> bool:
    """Whether everybody is up to date in a step, `PEOPLE` or the name of a `Refresh`, by the definitions in force."""
    wanted = _marks_of_step(catalogue, step)
    return all(map(_is_whole, wanted, store.get([mark.key for mark in wanted])))


def filling(store: Store, catalogue: Catalogue, parts: Iterable[IndexPart]) -> list[Filling]:
    """Which of these are not filled as of the definitions in force, and how far each is.

    What is written with each event and never for everybody, such as the state of a person, is always filled.
    """
    asked = {part: _marks_of_step(catalogue, part.name, part.rows) for part in parts}
    keys = dict.fromkeys(mark.key for marks in asked.values() for mark in marks)
    keys |= {_step_key(PEOPLE): None} if keys else {}
    items = dict(zip(keys, store.get(list(keys)), strict=True)) if keys else {}
    unfilled = []
    for part, marks in asked.items():
        lacking = [mark for mark in marks if not _is_whole(mark, items[mark.key])]
        step = items.get(_step_key(part.name))
        if any(mark.key != _step_key(part.name) or not _has(catalogue, step, part) for mark in lacking):
            unfilled.append(_filling(catalogue, part, step))
    people = _step_mark(catalogue, PEOPLE)
    if unfilled and not _is_whole(people, items[people.key]) and IndexPart(PEOPLE) not in asked:
        # It comes first: how far it is says how far the others are.
        unfilled.insert(0, _filling(catalogue, IndexPart(PEOPLE), items[people.key]))
    return unfilled


def unfilled(store: Store, catalogue: Catalogue) -> list[tuple[Refresh, frozenset[str]]]:
    """The steps after the first that are not done, each with those of its parts that are not filled."""
    refreshes = catalogue.refreshes
    items = store.get([_step_key(refresh.name) for refresh in refreshes]) if refreshes else []
    lacking = []
    for refresh, item in zip(refreshes, items, strict=True):
        if not _is_whole(_step_mark(catalogue, refresh.name), item):
            parts = (name for name in refresh.parts if not _has(catalogue, item, IndexPart(refresh.name, name)))
            lacking.append((refresh, frozenset(parts)))
    return lacking


def _has(catalogue: Catalogue, step: Item | None, part: IndexPart) -> bool:
    """Whether a part is filled of a step that is not done."""
    version = catalogue.filled_as.get(part.name, {}).get(part.of)
    return step is not None and version is not None and f"{part.of}={version}" in _read(step.value).parts


def _filling(catalogue: Catalogue, part: IndexPart, item: Item | None) -> Filling:
    stored = _read(_NONE if item is None else item.value)
    return Filling(part, stored.share if stored.version == _version(catalogue, part.name) else 0.0)


def mark(store: Store, catalogue: Catalogue, step: str) -> None:
    """Note that everybody is up to date in a step: `PEOPLE` or the name of a `Refresh`."""
    wanted = _step_mark(catalogue, step)
    _list(store, wanted.key.partition)
    store.commit([Batch(writes=[wanted])])


def note_share(store: Store, catalogue: Catalogue, step: str, after: str) -> None:
    """Note that in a step that is not done everybody was looked at whose id is not after this one. It is news and no
    more: where somebody else writes the same mark, theirs stands."""
    key = _step_key(step)
    item = store.get([key])[0]
    if item is not None and item.value[:1] == _NONE:
        read = _read(item.value)._replace(version=_version(catalogue, step), share=_share(after))
        store.commit([Batch(writes=[Put(key, _written(read), item.version)])])


def begin(store: Store, projection: Projection) -> tuple[Projection, int]:
    """Take the mark of a projection back; answers the version that it has then."""
    key = rows_mark(projection).key
    _list(store, key.partition)
    for _ in range(_ATTEMPTS_MAX):
        item = store.get([key])[0]
        version = 0 if item is None else item.version
        if store.commit([Batch(writes=[Put(key, _NONE, version)])])[0] is None:
            return projection, version + 1
    raise Unavailable("other processes keep writing the same rows anew; try again")


def rows_mark(projection: Projection) -> Put:
    """The mark that says that the rows of a projection, as it is declared now, are written for everybody."""
    value = f"{projection.version}:{projection.fingerprint}"
    return Put(Key(MARKS, projection.name), value.encode())


def indexed(catalogue: Catalogue) -> Iterator[Projection]:
    """The projections that have tables of rows of their own."""
    return (projection for projection in catalogue.projections if projection.index.tables)


def step_version(catalogue: Catalogue, step: str) -> str:
    """What changes with the definitions that a step goes by: `PEOPLE` or the name of a `Refresh`."""
    refresh = _refresh(catalogue, step)
    if refresh is None:
        return catalogue.layout
    return " ".join(f"{name}={version}" for name, version in catalogue.filled_as[step].items()) or refresh.fingerprint


def part_version(catalogue: Catalogue, part: IndexPart) -> str:
    """What changes with the definitions that decide a part."""
    version = catalogue.filled_as.get(part.name, {}).get(part.of)
    return step_version(catalogue, part.name) if version is None else version


# --- the marks of a step ----------------------------------------------------------------------


def _refresh(catalogue: Catalogue, step: str) -> Refresh | None:
    return next((refresh for refresh in catalogue.refreshes if refresh.name == step), None)


def _step_key(step: str) -> Key:
    return Key(MARKS, f"all {step}")


def _step_mark(catalogue: Catalogue, step: str) -> Put:
    return Put(_step_key(step), step_version(catalogue, step).encode())


def _marks_of_step(catalogue: Catalogue, step: str, rows: bool = True) -> list[Put]:
    """The marks that stand where a step is done: that everybody was looked at, and that the rows are written."""
    is_step = step == PEOPLE or _refresh(catalogue, step) is not None
    projections = (projection for projection in indexed(catalogue) if rows and projection.name == step)
    return [*([_step_mark(catalogue, step)] if is_step else []), *map(rows_mark, projections)]


def _is_whole(wanted: Put, item: Item | None) -> bool:
    return item is not None and item.value == wanted.value


def _version(catalogue: Catalogue, step: str) -> str:
    return short_hash(step_version(catalogue, step))[:8]


def _share(person: str) -> float:
    digits = person[:_SHARE_DIGITS]
    return int(digits, 16) / 16 ** len(digits) if digits else 0.0


def _read(value: bytes) -> _Mark:
    words = value.decode().split()
    far = next((word[1:].partition(":") for word in words if word.startswith("@")), ("", "", ""))
    return _Mark(frozenset(word for word in words if "=" in word), far[0], float(far[2] or 0))


def _written(mark: _Mark) -> bytes:
    far = [f"@{mark.version}:{mark.share:.4f}"] if mark.version else []
    return _NONE + b" " + " ".join([*sorted(mark.parts), *far]).encode()


# --- marks taken back -------------------------------------------------------------------------


def _writes_of_marks(store: Store, catalogue: Catalogue, besides: Put) -> list[Put]:
    """Refused if anybody else writes marks meanwhile: of two processes that open a store without people with different
    definitions, the later one would leave marks of the other, for which it will write no rows."""
    steps = (PEOPLE, *(refresh.name for refresh in catalogue.refreshes))
    marks = [*map(rows_mark, indexed(catalogue)), *(_step_mark(catalogue, step) for step in steps)]
    wanted = {mark.key.partition: mark for mark in marks}
    # Before the marks: whoever changes these after that changes what was applied as well.
    applied, listing = store.get([besides.key, _NAMES])
    listed = frozenset() if listing is None else _names(listing)
    if listing is None:  # a new store, or one of an earlier version
        items: Iterable[Item | None] = (item for item in scan_pages(store, MARKS) if item.key != _NAMES)
    else:
        items = store.get([Key(MARKS, name) for name in sorted(listed | wanted.keys())])
    stored = {item.key.partition: item for item in items if item is not None}
    missing = [mark for name, mark in wanted.items() if name not in stored or stored[name].value != mark.value]
    right = {(mark.key, mark.value) for mark in wanted.values()}
    other = {item.key: item.value for item in stored.values() if (item.key, item.value) not in right}
    # A step that an earlier version did not have is done where its definitions are those that everybody is up to.
    new = [mark for mark in map(partial(_step_mark, catalogue), steps[1:]) if mark.key.partition not in stored]
    is_applied = applied is not None and applied.value == besides.value
    other |= {mark.key: _NONE for mark in new if not is_applied}
    left = {key: _left(catalogue, key, value, stored) for key, value in other.items()}
    writes = {key: Put(key, left[key]) for key, value in other.items() if left[key] != value}
    writes |= {mark.key: mark for mark in new if is_applied}
    versions = {item.key: item.version for item in stored.values()}
    if applied is None or applied.value != besides.value:
        missing.append(besides)
    if missing and not store.scan(PERSON, limit=1):
        writes |= {mark.key: mark for mark in missing}
    if listing is None or not listed >= wanted.keys():
        writes[_NAMES] = _listing(listed.union(wanted, stored))
    versions |= {item.key: item.version for item in (applied, listing) if item is not None}
    return [put._replace(expected=versions.get(put.key, 0)) for put in writes.values()]


def _left(catalogue: Catalogue, key: Key, value: bytes, stored: Mapping[str, Item]) -> bytes:
    """What is left of a mark of other definitions: what these have in common with those in force."""
    step = key.partition.removeprefix("all ")
    refresh = _refresh(catalogue, step)
    if key != _step_key(step) or (refresh is None and step != PEOPLE):
        return _NONE
    if refresh is not None and _is_of_earlier_version(refresh, value, stored):
        return _step_mark(catalogue, step).value
    read, versions = _read(value), catalogue.filled_as.get(step, {})
    parts = read.parts & {f"{name}={version}" for name, version in versions.items()}
    if read.version != _version(catalogue, step):
        read = read._replace(version="", share=0.0)
    return _written(read._replace(parts=parts))


def _is_of_earlier_version(refresh: Refresh, value: bytes, stored: Mapping[str, Item]) -> bool:
    """Whether an earlier version, which did not tell the parts of a step apart, has found everybody up to date."""
    if not refresh.parts:
        return False
    rows = stored.get(refresh.name)
    is_written = rows is not None and rows.value.decode().partition(":")[2] == refresh.fingerprint
    return value == refresh.fingerprint.encode() or (value == _NONE and is_written)


def _names(listing: Item) -> frozenset[str]:
    return msgspec.json.decode(listing.value, type=frozenset[str])


def _listing(names: Iterable[str]) -> Put:
    return Put(_NAMES, msgspec.json.encode(sorted(names)))


def _list(store: Store, name: str) -> None:
    """See to it that a name is listed before there is a mark under it; without a list all of them are found yet."""
    for _ in range(_ATTEMPTS_MAX):
        listing = store.get([_NAMES])[0]
        if listing is None or name in (names := _names(listing)):
            return
        if store.commit([Batch(writes=[_listing({*names, name})._replace(expected=listing.version)])])[0] is None:
            return
    raise Unavailable("other processes keep opening the store with other definitions; try again")
