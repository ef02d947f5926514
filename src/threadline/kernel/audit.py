"""An entry of the audit log, and the port that reads and writes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from threadline.kernel.typed import prepared

AUDIT_LOG = "audit_log"
"""Table: entries of a workspace by the instant at which they were written."""


@prepared
class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One call of an operation that may change something."""

    at: int
    """When the call had ended, microseconds."""
    who: str
    """The name of the account, the token or the user of the operating system."""
    credential: str
    """``account``, ``token``, ``os_user``; empty for a program that has the store open itself."""
    surface: str
    """``http``, ``console``, ``mcp``, ``cli`` or ``python``."""
    operation: str
    object: dict[str, str]
    """The parameters of its path: what it was about."""
    given: dict[str, Any]
    """The other parameters in short: no free text, no secrets."""
    outcome: str
    """``done``; ``refused`` where the result says that nothing was done; else the code of the error."""
    id: str = ""


def encode_entry(entry: AuditEntry) -> bytes:
    """An entry as the store has it; its id is the item's sort key."""
    return msgspec.json.encode(msgspec.structs.replace(entry, id=""))


def decode_entry(value: bytes, id: str) -> AuditEntry:
    """The entry of an item with this sort key."""
    return msgspec.structs.replace(msgspec.json.decode(value, type=AuditEntry), id=id)


class AuditLog(Protocol):
    """Who changed what."""

    def note(self, workspace: str, entry: AuditEntry) -> None:
        """Write an entry; it is durable when this returns."""
        ...

    def page(
        self,
        workspace: str,
        *,
        start: int | None = None,
        stop: int | None = None,
        before: str = "",
        limit: int = 100,
        wanted: Callable[[AuditEntry], bool] = ...,
    ) -> tuple[list[AuditEntry], str]:
        """Entries with start <= at < stop, the newest first, before an id, and the id to go on from ("": that is all).

        A page may be short, or empty, and still not be the last.
        """
        ...
