"""A store in a file with a search index beside it, as processes of tests open them."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import NamedTuple

from threadline.capabilities.ask.search.documents import document_of
from threadline.capabilities.ask.search.words import phrases_of
from threadline.engine.credentials import Credentials
from threadline.engine.damage import DamagedEvents
from threadline.engine.erasure.erased_ids import erased_since, note_erased
from threadline.engine.folding.packing import encode_event, log_entry, payload_digest
from threadline.engine.reading.event_log import EventLog
from threadline.exports.search.embedded import EmbeddedIndex
from threadline.kernel.event import Event, Identifier, Recorded, event_id, thread_id
from threadline.kernel.ids import short_hash
from threadline.kernel.search import Query
from threadline.kernel.store import Batch, Store
from threadline.stores.sqlite.store import SqliteStore

AT = 1_767_225_600_000_000


class Stage(NamedTuple):
    store: Store
    index: EmbeddedIndex

    def found(self, *phrases: str, workspace: str = "default") -> list[str]:
        return self.index.search(Query(workspace, phrases_of(" ".join(phrases)), limit=1_000)).ids

    def contents(self) -> list[tuple[object, ...]]:
        self.index.catch_up(1_000_000)
        return list(self.index.contents())

    def rebuilt(self) -> list[tuple[object, ...]]:
        """What an index has that is built of the same log by nobody else."""
        other = on(self.store, None).index
        other.catch_up(1_000_000)
        return list(other.contents())

    def close(self) -> None:
        self.index.close()
        self.store.close()


def on(store: Store, path: Path | None) -> Stage:
    clock = lambda: AT  # noqa: E731
    people_of = lambda threads: {}  # noqa: E731 — these entries are written without people
    log = EventLog(store, Credentials(store, clock), DamagedEvents(store, clock))
    return Stage(store, EmbeddedIndex(path, log, document_of, partial(erased_since, store), people_of))


def opened(path: Path, *, readonly: bool = False) -> Stage:
    return on(SqliteStore(path, readonly=readonly), path.with_name(f"{path.name}-search"))


def secret(number: int) -> str:
    """A word that shares no long beginning with another: an index stores beginnings once."""
    return short_hash(str(number))


def recorded(number: int, *, workspace: str = "default", text: str = "") -> Recorded:
    person = Identifier("user_id", f"u{number % 7}")
    event = Event(
        type=f"type_{number % 3}",
        identifiers=(person,),
        occurred_at=AT + number * 777 % 5_000,
        key=str(number),
        workspace=workspace,
        properties={"note": text or f"marker{number} word{number % 5}", "key": secret(number)},
    )
    id = event_id(workspace, event.source, event.key)
    return Recorded(event, id, thread_id(workspace, person), number, AT + number)


def write(store: Store, numbers: range, **more: str) -> list[str]:
    events = [recorded(number, **more) for number in numbers]
    entries = [log_entry(each, encode_event(each.event), payload_digest(each.event)) for each in events]
    for start in range(0, len(entries), 40):
        assert store.commit([Batch(entries[start : start + 40])]) == [None]
    return [each.id for each in events]


def erase(store: Store, ids: list[str]) -> None:
    note_erased(store, ids)
    assert store.erase(ids) == len(ids)


if __name__ == "__main__":
    # A process to be killed: it takes in a few entries at a time and says how far it is.
    stage = opened(Path(sys.argv[1]), readonly=True)
    sys.stdout.write("open\n")
    sys.stdout.flush()
    while not (progress := stage.index.catch_up(int(sys.argv[2]))).is_complete:
        sys.stdout.write(f"{progress.position}\n")
        sys.stdout.flush()
    sys.stdout.write("done\n")
    sys.stdout.flush()
