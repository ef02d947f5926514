"""Broadcasts, their recipients and what stops them, as they are stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from threadline.capabilities.reach.broadcasts.definition import Broadcast
from threadline.kernel.documents import Documents, Stored
from threadline.kernel.errors import Conflict, NotFound
from threadline.kernel.job import Job
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.names import NameKind
from threadline.kernel.ports import Ports
from threadline.kernel.store import Batch, Check, Delete, Item, Key, Put, Store, query_pages
from threadline.kernel.time import time_key
from threadline.kernel.typed import prepared

BROADCAST = "broadcast"
"""Table: the broadcasts of each workspace by id. None is ever removed: an id is used once, for ever."""
BROADCAST_CREATED = "broadcast_created"
"""Table: their ids by when they are sent; drafts, and those that earlier versions have started, by when they were
created."""
STOPPED = "broadcast_stopped"
"""Table: which of them are paused or cancelled, so that mails that wait do not leave."""
RECIPIENT = "broadcast_recipient"
"""Table: who is in the audience of one, and in which arm."""
SHARDS = "0123456789abcdef"
"""The first digits of people's ids: no single partition takes all recipients of a broadcast."""
JOB_KIND = "broadcast"


@prepared
class Created(msgspec.Struct, frozen=True, kw_only=True):
    """A broadcast, and who created it when."""

    id: str
    broadcast: Broadcast
    at: int
    by: str
    subject: str = ""
    """The subject before it is filled in, of the broadcast or its template when it was created."""
    sender: str = ""
    """The sender, of the broadcast or its template when it was created."""


_BROADCASTS = Documents(BROADCAST, Created)


class Recipient(NamedTuple):
    """Somebody in the audience."""

    person: str
    """The id at the time of resolving."""
    arm: str
    """Empty: of the rest, to which the winner rule gives an arm later."""


def job_id(id: str) -> str:
    """The id of the job that resolves and sends a broadcast."""
    return f"{JOB_KIND}.{id}"


def create(store: Store, workspace: str, created: Created) -> Created:
    """Store a broadcast; the one that is there if it is the same. Raises `Conflict` for another one under its id."""
    writes = [
        _BROADCASTS.put(workspace, created.id, created, 0),
        _listed(workspace, created.id, created.at),
    ]
    if store.commit([Batch(writes=writes)])[0] is None:
        return created
    existing = get(store, workspace, created.id)
    if msgspec.json.encode(existing.broadcast) != msgspec.json.encode(created.broadcast):
        raise Conflict(
            f"there was another broadcast {created.id!r}, and an id is used once, for ever", hint="Take a new id."
        )
    return existing


def edit(engine: Ports, workspace: str, made: Created) -> Created:
    """Store another content of a draft; who created it when stays. Raises `Conflict` for one that is no draft."""
    stored = _stored(engine.store, workspace, made.id)
    state = state_of(engine, workspace, made.id, engine.jobs.find(workspace, job_id(made.id)))
    if state != "draft":
        raise Conflict(
            f"broadcast {made.id!r} is {state}, and only a draft can be changed", hint="Make a new one like it."
        )
    changed = replace(made, at=stored.document.at, by=stored.document.by)
    free = Check(stopped_key(workspace, made.id), 0)
    put = _BROADCASTS.put(workspace, made.id, changed, stored.version)
    if engine.store.commit([Batch(writes=[put, free])])[0] is not None:
        raise Conflict(f"broadcast {made.id!r} was changed or started meanwhile; read it again")
    return changed


def begun(store: Store, workspace: str, id: str, now: int) -> tuple[int, list[Put | Delete]]:
    """When a broadcast is sent that is started now, and what the commit that starts it writes: it is listed by that
    instant from then on, and whoever changes it at that moment is refused."""
    stored = _stored(store, workspace, id)
    due = stored.document.broadcast.begins_at(now)
    draft, listed = _listed(workspace, id, stored.document.at), _listed(workspace, id, due)
    moved: list[Put | Delete] = [] if draft.key == listed.key else [Delete(draft.key), listed]
    return due, [_BROADCASTS.put(workspace, id, stored.document, stored.version), *moved]


def _listed(workspace: str, id: str, at: int) -> Put:
    """The row by which a broadcast is listed."""
    return Put(Key(BROADCAST_CREATED, workspace, f"{time_key(at)}.{id}"), id.encode())


def get(store: Store, workspace: str, id: str) -> Created:
    """A broadcast of a workspace; raises `NotFound`."""
    return _stored(store, workspace, id).document


def _stored(store: Store, workspace: str, id: str) -> Stored[Created]:
    stored = _BROADCASTS.find(store, workspace, id)
    if stored is None:
        raise NotFound(f"there is no broadcast {id[:64]!r}")
    return stored


def page(store: Store, workspace: str, start: int | None, stop: str, limit: int) -> tuple[list[Created], str]:
    """Broadcasts sent, or drafts created, from an instant on and before a cursor, the newest first, and the cursor to
    go on behind."""
    first = "" if start is None else time_key(start)
    rows = store.query(BROADCAST_CREATED, workspace, first, stop or None, limit, reverse=True)
    created = _BROADCASTS.some(store, workspace, [row.value.decode() for row in rows])
    return created, rows[-1].key.sort if len(rows) == limit else ""


_NEAR_MAX = 200
"""The newest broadcasts, among which the one is sought that a misspelt id means."""
KIND = NameKind(
    "broadcast",
    lambda definitions: (),
    stored=lambda engine, workspace: [created.id for created in page(engine.store, workspace, None, "", _NEAR_MAX)[0]],
    has=lambda engine, workspace, id: _BROADCASTS.find(engine.store, workspace, id) is not None,
    listed_by="broadcasts_list",
)
"""Broadcasts by their ids."""


# --- what stops one ---------------------------------------------------------------------------


def stopped(engine: Ports, workspace: str, id: str) -> str:
    """``paused`` or ``cancelled`` if no mail of a broadcast may leave now; else empty."""
    item = engine.store.get([stopped_key(workspace, id)])[0]
    if item is not None:
        return item.value.decode()
    job = engine.jobs.find(workspace, job_id(id))
    return job.state if job is not None and job.state in ("paused", "cancelled") else ""


def stop(engine: Ports, workspace: str, id: str, how: str) -> None:
    """Let no mail leave that still waits; ``how`` is paused or cancelled."""
    key = stopped_key(workspace, id)
    item = engine.store.get([key])[0]
    if item is not None and item.value == b"cancelled" and how != "cancelled":
        raise Conflict(f"broadcast {id!r} was cancelled, which is for ever")
    # Conditional: of two who pause and cancel it at the same time, neither undoes what the other did.
    put = Put(key, how.encode(), 0 if item is None else item.version)
    if engine.store.commit([Batch(writes=[put])])[0] is not None:
        raise Conflict(f"broadcast {id!r} was changed meanwhile; read it again")


def unstop(engine: Ports, workspace: str, id: str) -> None:
    """Let mails leave again, if it was paused. Raises `Conflict` if it was cancelled."""
    item = engine.store.get([stopped_key(workspace, id)])[0]
    if item is not None and item.value != b"paused":
        raise Conflict(f"broadcast {id!r} was cancelled, which is for ever")
    if item is not None and engine.store.commit([Batch(writes=[Delete(item.key, item.version)])])[0] is not None:
        raise Conflict(f"broadcast {id!r} was changed meanwhile; read it again")


def stopped_key(workspace: str, id: str) -> Key:
    """The key of what stops a broadcast."""
    return Key(STOPPED, workspace, id)


def state_of(engine: Ports, workspace: str, id: str, job: Job | None) -> str:
    """The state of a broadcast as its author sees it."""
    how = stopped(engine, workspace, id)
    if how:
        return how
    if job is None:
        return "draft"
    if job.state == "running":
        return "resolving" if not job.cursor or job.cursor.startswith("resolve") else "sending"
    return job.state


# --- recipients -------------------------------------------------------------------------------


def recipient_put(workspace: str, id: str, recipient: Recipient) -> Put:
    """The row of a recipient."""
    return Put(recipient_key(workspace, id, recipient.person), _arm(recipient.arm))


def recipient_key(workspace: str, id: str, person: str) -> Key:
    """Where it says that somebody is a recipient."""
    return Key(RECIPIENT, _partition(workspace, id, person[0]), person)


def recipient_of(store: Store, workspace: str, id: str, threads: Iterable[str]) -> Recipient | None:
    """The recipient of a broadcast who has these threads now; None: nobody has who was in its audience."""
    items = store.get([recipient_key(workspace, id, thread) for thread in sorted(threads)])
    return next((_recipient(item) for item in items if item is not None), None)


def _recipient(item: Item) -> Recipient:
    return Recipient(item.key.sort, item.value.decode().strip("-"))


def recipients(store: Store, workspace: str, id: str, after: str, size: int, through: str = "") -> Iterator[Recipient]:
    """The recipients of a broadcast whose ids come after ``after``, by id, read ``size`` at a time.

    The last is the one with the id ``through``; empty: the last of all.
    """
    size = min(size, PAGE_ITEMS_MAX)
    first = SHARDS.find(after[:1]) if after else 0
    last = SHARDS.find(through[:1]) if through else len(SHARDS) - 1
    for shard in SHARDS[first : last + 1]:
        for item in query_pages(store, RECIPIENT, _partition(workspace, id, shard), after, size=size):
            if through and item.key.sort > through:
                return
            yield _recipient(item)


def recipient_delete(workspace: str, id: str, person: str) -> Delete:
    """Take the row of a recipient away."""
    return Delete(recipient_key(workspace, id, person))


def rows_of(store: Store, table: str, workspace: str, id: str, people: Sequence[str]) -> Iterator[Item]:
    """The rows of a table that begin with the ids of these people, who are a page of `recipients`."""
    for shard in dict.fromkeys(person[0] for person in people):
        of_shard = [person for person in people if person[0] == shard]
        stop = f"{of_shard[-1]}0"  # the sign after "/"
        yield from query_pages(store, table, _partition(workspace, id, shard), of_shard[0], stop)


def _partition(workspace: str, id: str, shard: str) -> str:
    return f"{workspace}/{id}/{shard}"


def _arm(name: str) -> bytes:
    return name.encode() or b"-"
