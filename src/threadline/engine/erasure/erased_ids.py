"""The ids of erased events in the order of their erasure, for whoever has copies of events outside the store.

A page of ids is noted before its events are taken out of the log, so that a kill between the two loses none. A reader
may come between the two as well: it is given no id that is not erased yet, and its mark stays before that page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from threadline.engine.folding.packing import pack, unpack
from threadline.kernel.erasure import ERASED_LOG
from threadline.kernel.errors import Unavailable
from threadline.kernel.limits import ERASED_IDS_MAX
from threadline.kernel.store import ERASED_DIGEST, Batch, Key, Put, Store, query_pages

_ATTEMPTS_MAX = 256
_DIGITS = 16
_ID_BYTES = 16


class ErasedPage(NamedTuple):
    """Events that were erased together."""

    ids: frozenset[str]
    recorded: tuple[int, int] | None
    """When the first and the last of them were recorded; None: unknown."""


def note_erased(store: Store, ids: Sequence[str], recorded: Sequence[int] = ()) -> None:
    """Note events that are erased right after this; ``recorded`` are the times of all of them, or none."""
    if not ids:
        return
    bounds = (min(recorded), max(recorded)) if len(recorded) == len(ids) else None
    value = pack((b"".join(map(bytes.fromhex, ids)), bounds))
    for _ in range(_ATTEMPTS_MAX):
        # Numbers have no gaps and no page is added before another: a mark never passes over one.
        last = store.query(ERASED_LOG, "-", limit=1, reverse=True)
        if last and last[0].value == value:
            return  # done again after a kill
        number = int(last[0].key.sort) + 1 if last else 1
        if store.commit([Batch(writes=[Put(Key(ERASED_LOG, "-", f"{number:0{_DIGITS}}"), value, 0)])])[0] is None:
            return
    raise Unavailable("other processes keep erasing events; go on later")


def erased_since(store: Store, mark: str = "") -> tuple[frozenset[str], str]:
    """The ids of the events that erasures and retention have erased since a mark ("": ever), and the mark from which
    to go on. Some may come again, none is left out.

    Ask after reading the events that are to be copied, not before: what was read may be erased since.
    """
    pages, reached = erased_pages(store, mark)
    return frozenset().union(*(page.ids for page in pages)), reached


def erased_pages(store: Store, mark: str = "") -> tuple[list[ErasedPage], str]:
    """As `erased_since`, page by page."""
    pages, reached, complete = [], mark, True
    for item in query_pages(store, ERASED_LOG, "-", mark):
        packed, bounds = unpack(item.value)
        noted = [packed[at : at + _ID_BYTES].hex() for at in range(0, len(packed), _ID_BYTES)]
        digests = _seen(store, noted)
        erased = frozenset(id for id in noted if digests.get(id, ERASED_DIGEST) == ERASED_DIGEST)
        complete = complete and len(erased) == len(set(noted))
        reached = item.key.sort if complete else reached
        if erased:
            pages.append(ErasedPage(erased, None if bounds is None else tuple(bounds)))
    return pages, reached


def _seen(store: Store, ids: Iterable[str]) -> dict[str, int]:
    wanted, digests = list(ids), dict[str, int]()
    for start in range(0, len(wanted), ERASED_IDS_MAX):
        digests |= store.seen(wanted[start : start + ERASED_IDS_MAX])
    return digests
