"""The erasure of a person as callers see it: its preview, how far it has come, and its certificate."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from threadline.kernel.typed import prepared

ERASURE = "erasure"
"""Table: the ledger, one certificate for each erasure that is done, under its workspace. None is ever removed."""
ERASURE_OPEN = "erasure_open"
"""Table: the erasures that are not done."""
ERASURE_IDS = "erasure_ids"
"""Table: the ids of the events that an erasure has taken out of the log, in pages; ids are hashes."""
ERASED_LOG = "erased_log"
"""Table: the ids of all events that were ever erased, in pages, numbered in their order."""
LEDGER_HEAD = "erasure_head"
"""Table: under each workspace the number and the hash of the last certificate."""
EXPIRING = "expiring"
"""Table: the people whose events are being taken out of the log, and who have not been folded again."""
JOB_KIND = "erasure"


@prepared
class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """What an erasure has removed, as it stands in the ledger. It names nobody."""

    erasure: str
    workspace: str
    sequence: int
    """Of the workspace's ledger, from 1."""
    begun_at: str
    at: str
    by: str
    reason: str
    threads: list[str]
    """Pseudonyms of the person's threads."""
    events: int
    events_digest: str
    """SHA-256 of the ids of the erased events, sorted, 32 hex digits each, without anything between them."""
    recorded: list[str]
    """When the first and the last of these events was recorded; empty if there was none."""
    before: dict[str, int]
    """What was there, by kind; the items of a table have its name."""
    after: dict[str, int]
    """What was found of it in the end."""
    remaining: dict[str, dict[str, str]]
    """Table -> sort key -> content: what outlives the person, as pseudonyms."""
    version: str
    """Of Threadline."""
    previous: str
    """SHA-256 of the certificate before this one; empty for the first."""
    signature: str = ""
    """HMAC-SHA256 of all the rest under the store's own key."""


class Erasure(msgspec.Struct, frozen=True, kw_only=True):
    """An erasure and how far it has come."""

    id: str
    workspace: str
    state: Literal["running", "done"]
    begun_at: int
    by: str
    reason: str
    events: int
    """Events that are erased so far."""
    events_total: int
    certificate: bytes = b""
    """The certificate as it stands in the ledger, once it is done."""


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What an erasure would remove, and what it would leave."""

    person: str
    removed: dict[str, int]
    remaining: dict[str, int]


class Expiry(Protocol):
    """Takes events out of the log by their type and age; see docs/retention.md."""

    def expired(self, people: Iterable[Any], types: Collection[str], before: int, limit: int) -> dict[str, int]:
        """Person -> events of these types that occurred before an instant, counted to ``limit`` in each thread; people
        without one are left out. One read for all."""
        ...

    def uncounted(self, people: Iterable[Any]) -> dict[str, int]:
        """Projection -> how many of these people have an opening with what other definitions than those in force have
        made of events that are gone: it does not count."""
        ...

    def expire(self, person: str, types: Collection[str], before: int) -> int:
        """Erase a person's events of these types that occurred before an instant; how many there were. An opening with
        what is carried of them takes their place. It may be killed at any point and repeated.

        Raises `LimitExceeded` if more would change than one commit holds, and `StoreDamaged` if a state that is carried
        over would be another one than before; the events are still there then.
        """
        ...

    def finish(self) -> None:
        """Finish what a process was killed at."""
        ...


class Erasures(Protocol):
    """Erases people for good; see docs/erasure.md."""

    @property
    def expiry(self) -> Expiry:
        """Erases events that are past their time."""
        ...

    def preview(self, workspace: str, ref: str) -> Preview:
        """What the erasure of a person would remove. Raises `NotFound`."""
        ...

    def begin(self, workspace: str, ref: str, *, request: str = "", by: str = "", reason: str = "") -> Erasure:
        """Seal a person: from then on nothing is recorded about them, and `advance` removes what there is.

        One ``request`` erases once. Raises `NotFound`.
        """
        ...

    def advance(self, workspace: str, id: str) -> Erasure:
        """Do the next part of an erasure; it may be repeated at any time, by any process. Raises `NotFound`."""
        ...

    def find(self, workspace: str, id: str) -> Erasure:
        """An erasure of a workspace; raises `NotFound`."""
        ...

    def page(self, workspace: str, after: str = "", limit: int = 100) -> Sequence[Erasure]:
        """Erasures of a workspace by id, after one: those that are done and those that are not."""
        ...

    def ids(self, workspace: str, id: str) -> Sequence[str]:
        """The ids of the events that an erasure has taken out of the log, sorted."""
        ...

    def unfinished(self) -> Sequence[tuple[str, str]]:
        """Workspace and id of every erasure that is not done."""
        ...


def certificate_of(content: bytes) -> Mapping[str, Any]:
    """A certificate as plain data."""
    certificate: Mapping[str, Any] = msgspec.json.decode(content)
    return certificate
