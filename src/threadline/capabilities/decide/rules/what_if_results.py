"""Saved results: items of a table of their own, so that an activation can require one."""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import msgspec

from threadline.kernel.documents import numbered_key
from threadline.kernel.errors import LimitExceeded, NotFound
from threadline.kernel.limits import ITEM_BYTES_MAX, KEY_BYTES_MAX
from threadline.kernel.operation import Context
from threadline.kernel.store import Key, Put, beyond
from threadline.kernel.typed import prepared

SAVED = "what_if"
"""Table: the results of a workspace, by id."""
NEWEST = "what_if_of"
"""Table: for each rule which result is the newest of each version."""

BYTES_MAX = ITEM_BYTES_MAX - 2 * KEY_BYTES_MAX
"""The longest result, and the longest progress, as it is stored."""


class About(msgspec.Struct, frozen=True, kw_only=True):
    """Which version of a rule a result is about; all that an activation goes by."""

    rule: str
    version: int
    hash: str
    """Of its content."""
    against: int
    """The version that stood against it, as it was in force then; 0: there was none."""
    whole: bool
    """Whether everybody was looked at, and every event type."""
    asked: int
    changed: int
    errors: int
    """Of the rule, and people whose history could not be replayed."""


@prepared
class Saved(msgspec.Struct, frozen=True, kw_only=True):
    """A result as it is kept."""

    id: str
    at: int
    by: str
    note: str
    about: About | None
    view: dict[str, Any]


def writes_of(workspace: str, saved: Saved) -> list[Put]:
    """The writes that keep a result. Raises `LimitExceeded` for one that is too long with all its samples."""
    data = packed(saved)
    if len(data) > BYTES_MAX:
        raise LimitExceeded("the result is too long to be kept; ask for fewer `samples`")
    writes = [Put(Key(SAVED, workspace, saved.id), data)]
    if saved.about is not None:
        about = saved.about
        where = numbered_key(NEWEST, workspace, about.rule, about.version)
        writes.append(Put(where, msgspec.json.encode((saved.id, about))))
    return writes


def saved(context: Context, id: str) -> Saved:
    """A result that was kept. Raises `NotFound`."""
    item = context.engine.store.get([Key(SAVED, context.workspace, id)])[0] if id else None
    if item is None:
        raise NotFound(f"no what-if {id[:64]!r} was saved", hint="One that was waited for is kept only with `save`.")
    return unpacked(item.value)


def all_saved(context: Context, after: str, limit: int) -> list[Saved]:
    """A page of what was kept, by id."""
    items = context.engine.store.query(SAVED, context.workspace, start=beyond(after), limit=limit)
    return [unpacked(item.value) for item in items]


def packed(saved: Saved) -> bytes:
    """A result as it lies in the store."""
    return zlib.compress(msgspec.json.encode(saved))


def unpacked(data: bytes) -> Saved:
    """The other way."""
    return msgspec.json.decode(zlib.decompress(data), type=Saved)


@prepared
class Newest(NamedTuple):
    """The newest result about a version."""

    id: str
    about: About


def newest(context: Context, rule: str, version: int) -> Newest | None:
    """The newest result about a version of a rule; None if none was kept."""
    where = numbered_key(NEWEST, context.workspace, rule, version)
    item = context.engine.store.get([where])[0]
    return None if item is None else msgspec.json.decode(item.value, type=Newest)
