"""What is made by hand: one text of definitions for a store, and every version that it ever had.

The newest version is in force beside the files. A version is only ever added: whoever makes one says by its number
which it builds on, so that of two at once one is refused. To go back is a new version with the text of an old one.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from threadline.kernel.documents import Numbered
from threadline.kernel.errors import LimitExceeded, NotFound
from threadline.kernel.limits import DEFINITIONS_BY_HAND_BYTES_MAX
from threadline.kernel.personal import StoreTable
from threadline.kernel.store import Put, Store
from threadline.kernel.typed import prepared

VERSION = "definitions_version"
"""Table: who made each version, when and why."""
TEXT = "definitions_text"
"""Table: the text of each version, in parts."""
CHANGES_MAX = 50
"""Of one version that are noted by name."""
_PART_LENGTH = 60_000
"""Characters of an item, which is of at most four bytes each and as JSON of six."""
_STORE, _ID = "store", "definitions"
"""They hold in every workspace, as files do."""


class Change(msgspec.Struct, frozen=True, array_like=True):
    """What became of one definition."""

    change: str
    """``added``, ``changed`` or ``removed``."""
    section: str
    name: str


@prepared
class Version(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A version, without its text."""

    number: int
    by: str
    at: int
    note: str = ""
    changes: tuple[Change, ...] = ()
    """What is different from the version before; the first `CHANGES_MAX`."""
    changed: int = 0
    """How many there are."""
    parts: int = 0
    """Of its text; 0: it is empty."""
    proposed_by: str = ""
    restores: int = 0
    """The version that it goes back to."""


class Made(msgspec.Struct, frozen=True):
    """The text that is in force, and the number of its version; 0: nothing was ever made by hand."""

    number: int = 0
    text: str = ""


class _Text(msgspec.Struct, frozen=True):
    text: str


_VERSIONS, _TEXTS = Numbered(VERSION, Version), Numbered(TEXT, _Text)


def newest_number(store: Store) -> int:
    """The number of the version in force; 0: there is none."""
    return _VERSIONS.last_number(store, _STORE, _ID)


def newest(store: Store) -> Made:
    """What is in force."""
    number = newest_number(store)
    return Made(number, text_of(store, number)) if number else Made()


def find(store: Store, number: int) -> Version | None:
    """A version; None: there is none of this number."""
    return _VERSIONS.find(store, _STORE, _ID, number)


def version(store: Store, number: int) -> Version:
    """A version; raises `NotFound`."""
    made = find(store, number)
    if made is None:
        raise NotFound(f"there is no version {number} of what is made by hand")
    return made


def text_of(store: Store, number: int) -> str:
    """The text of a version; 0 is the empty one before the first. Raises `NotFound`."""
    parts = version(store, number).parts if number else 0
    return "".join(part.text for part in _TEXTS.after(store, _STORE, f"{_ID}.{number}", 0)) if parts else ""


def versions(store: Store, before: int, limit: int) -> list[Version]:
    """Those below a number, the newest first; 0: from the newest."""
    return _VERSIONS.before(store, _STORE, _ID, before, limit)


def puts(made: Version, text: str) -> Sequence[Put]:
    """The writes of a new version, which one commit takes whole; refused where there is one of its number.

    Raises `LimitExceeded` for a text that is too large.
    """
    if len(text.encode()) > DEFINITIONS_BY_HAND_BYTES_MAX:
        raise LimitExceeded(
            f"what is made by hand would have more than {DEFINITIONS_BY_HAND_BYTES_MAX:,} bytes",
            hint="`threadline definitions export` writes it into files, which have no such limit; delete it then.",
        )
    parts = [text[begin : begin + _PART_LENGTH] for begin in range(0, len(text), _PART_LENGTH)]
    whole = msgspec.structs.replace(made, parts=len(parts))
    id = f"{_ID}.{made.number}"
    texts = [_TEXTS.put(_STORE, id, number, _Text(part)) for number, part in enumerate(parts, 1)]
    return [_VERSIONS.put(_STORE, _ID, made.number, whole), *texts]


TABLES = (
    StoreTable(VERSION, "nobody", why="who made which version of the definitions, for everybody"),
    StoreTable(TEXT, "nobody", why="definitions that are made by hand, for everybody"),
)
