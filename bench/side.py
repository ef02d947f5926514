"""A side of a comparison: something that can record events durably, be it Threadline or a peer."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from threadline.kernel.event import Event

SYNCED_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 16000", "cache_size = -262144")
"""What every SQLite peer gets: the durability that Threadline has, a checkpoint each 16,000 pages, 256 MB of cache."""

FILLING_PRAGMAS = ("synchronous = OFF", "wal_autocheckpoint = 16000", "cache_size = -1048576")
"""While a file is filled before the clock starts, nothing needs to be durable."""


class Side(Protocol):
    """One opened file and the code that writes to it."""

    def fill(self, batches: Iterable[list[Event]]) -> None:
        """Take in history as fast as may be; nothing of it is measured or needs to be durable."""
        ...

    def record(self, events: list[Event]) -> None:
        """Record one batch. Returns when it is synced: this is what the clock measures."""
        ...

    def count(self) -> int:
        """Events held: a benchmark that loses events must not look fast."""
        ...

    def close(self) -> None:
        """Release the file."""
        ...


def file_bytes(path: Path) -> int:
    """Bytes of a database with whatever its engine keeps beside it (WAL, indexes)."""
    return sum(part.stat().st_size for part in path.parent.glob(f"{path.name}*") if not part.name.endswith("-shm"))


def strongest(event: Event) -> str:
    """The one name under which a peer without identity resolution files an event: the first identifier given.

    A world puts the user id first, so signed-in events of one person meet; anonymous ones stay apart. Peers are
    spared the joining that Threadline does.
    """
    return event.identifiers[0].value
