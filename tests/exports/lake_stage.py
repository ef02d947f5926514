"""The stage of the tests of the lake: people who join and part, an engine, a lake in a folder, and what is in it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

from tests.laws import staging
from tests.mortal import Killed
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.engine.folding.packing import unpack_event
from threadline.exports.lake.files import read_table
from threadline.exports.lake.folder import FolderStorage
from threadline.exports.lake.lake import EVENTS, IDENTITIES, Lake
from threadline.exports.lake.schema import recorded_of
from threadline.kernel.event import Event, Recorded
from threadline.kernel.store import Store, feed_pages, is_erased, scan_pages
from threadline.kernel.time import DAY

HOSTILE = (
    "page",
    "Order Completed",
    "order_completed",
    "..",
    "a/b",
    "select",
    "Ünïcödé ☃",
    "x=y&z",
    "con",
    "dt=2026",
    "n\nl",
    "'; drop table events; --",
    "p" * 200,
    "%2e%2e",
    " ",
    "~",
)
"""Types of events, and names of workspaces as far as those may be called so."""
WORKSPACES = ("default", "..", "Ünï", "a b", "W" * 100, "'quoted'", ".hidden", "~2e.")


def lake_in(folder: Path) -> Lake:
    return Lake(FolderStorage(folder))


def happenings(random: Random, count: int) -> list[Event]:
    """Events of a few people of two workspaces, under one or two identifiers that join them in time."""
    made = []
    run = random.randrange(10**6)
    workspaces, types = ["default", random.choice(WORKSPACES)], random.sample(HOSTILE, 3)
    for number in range(count):
        person = random.randrange(6)
        names = {"user_id": f"user {person}"} if random.random() < 0.6 else {"anonymous_id": f"device-{person}"}
        if random.random() < 0.2:
            names = {"user_id": f"user {person}", "anonymous_id": f"device-{person}", "email": f"p{person}@example.com"}
        made.append(
            staging.event(
                random.choice(types),
                names,
                f"key {run} {number}",
                staging.NOW - random.randrange(3 * DAY),
                workspace=random.choice(workspaces),
                properties={"total": random.choice([1, 2.5, "3", None, [1], {"a": "☃"}, 10**18, True]), "n": number},
                context={"page": {"url": 'https://example.com/?a="b"'}} if number % 2 else {},
                sent_time=random.choice([None, staging.NOW - 5, -1]),
                historical=random.random() < 0.2,
                schema_version="v1",
                object_id="o",
                object_ref="r\u2028",
                wire={"channel": "x"} if number % 3 else {},
                marks=("clamped",) if number % 5 == 0 else (),
            )
        )
    return made


def with_schemas(store: Store, schemas: str = "") -> Engine:
    """An engine with event schemas."""
    declared = Definitions([("threadline.yaml", f"event_schemas:\n{schemas}")] if schemas else [])
    return Engine(store, Catalogue(discover(definitions=declared), rules(), declared), staging.frozen)


def rows(lake: Lake, table: str = EVENTS) -> list[dict[str, Any]]:
    """All rows of the files that count."""
    files = [file for file in lake.manifest().files if file.table == table]
    return [row for file in files for row in read_table(lake, file).to_pylist()]


def in_lake(lake: Lake) -> list[tuple[int, Recorded]]:
    """Positions and events of the files."""
    return sorted(((row["position"], recorded_of(row)) for row in rows(lake)), key=lambda one: one[0])


def in_log(store: Store, upto: int | None = None) -> list[tuple[int, Recorded]]:
    """The same by the log itself."""
    entries = [one.entry for one in feed_pages(store)][:upto]
    return [(at, unpack_event(entry)) for at, entry in enumerate(entries, 1) if not is_erased(entry)]


def assert_is_log(lake: Lake, store: Store) -> None:
    """Every event once and equal, and everybody's threads."""
    assert in_lake(lake) == in_log(store)
    assert lake.manifest().position == sum(1 for _ in feed_pages(store))
    last: dict[str, tuple[int, str]] = {}
    for row in rows(lake, IDENTITIES):
        last[row["thread"]] = max(last.get(row["thread"], (0, "")), (row["position"], row["person"]))
    known = {item.key.partition: item.value.decode() for item in scan_pages(store, "thread")}
    assert {thread: person for thread, (_, person) in last.items()} == known


class MortalStorage(FolderStorage):
    """A folder whose process is killed at one of its writing calls, before it or after it."""

    def __init__(self, folder: Path, killed_at: int, *, after: bool) -> None:
        super().__init__(folder)
        self.calls = 0
        self._killed_at = killed_at
        self._after = after

    def write(self, name: str, content: bytes) -> None:
        """As the folder, or die."""
        self._count()
        super().write(name, content)
        self._die()

    def delete(self, names: Iterable[str]) -> None:
        """As the folder, name by name, or die between two of them."""
        for name in names:
            self._count()
            super().delete([name])
            self._die()

    def _count(self) -> None:
        self.calls += 1
        if self.calls == self._killed_at and not self._after:
            raise Killed

    def _die(self) -> None:
        if self.calls == self._killed_at and self._after:
            raise Killed
