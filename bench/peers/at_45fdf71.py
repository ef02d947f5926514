"""Our side: the few calls of Threadline that the benchmarks make, in one place."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from threadline.app import open_engine
from threadline.engine.rebuilding import Parts
from threadline.kernel.event import Event

WORKSPACE = "default"
WRITE_KEY = "bench-write-key"
READ_TOKEN = "bench-read-token"


class Threadline:
    """The engine with everything that ships switched on."""

    def __init__(self, path: Path) -> None:
        self.engine = open_engine(path)
        self._accepted = 0

    def fill(self, batches: Iterable[list[Event]]) -> None:
        """Record the history as anything else is recorded, synced: there is no faster door."""
        for batch in batches:
            self.record(batch)

    def record(self, events: list[Event]) -> None:
        """Record one batch; anything but acceptance or a duplicate ends the benchmark."""
        for receipt in self.engine.record(events):
            if receipt.status == "accepted":
                self._accepted += 1
            elif receipt.status != "duplicate":
                raise AssertionError(f"an event of the world was not accepted: {receipt}")

    def count(self) -> int:
        """Events accepted since the file was opened. An accepted event is durable."""
        return self._accepted

    def close(self) -> None:
        """Release the file."""
        self.engine.close()


def open_parts(path: Path) -> Parts:
    """Store and catalogue for one process of a refold, which only reads."""
    engine = open_engine(path, readonly=True)
    return engine.store, engine.catalogue


def read_person(engine: Any, user_id: str, now: int) -> Any:
    """Everything that is known of one person."""
    with engine.reading():
        person = engine.person(WORKSPACE, f"user_id:{user_id}")
        return engine.views(person, now)


def read_features(engine: Any, user_id: str, now: int) -> Any:
    """One person's feature vector."""
    with engine.reading():
        person = engine.person(WORKSPACE, f"user_id:{user_id}")
        return engine.views(person, now, names=("features",))


def serve_command(path: Path, port: int) -> tuple[list[str], dict[str, str]]:
    """How the server is started on a file: arguments and environment. All else is as it ships."""
    settings = {"STORE": str(path), "PORT": str(port), "WRITE_KEYS": WRITE_KEY, "TOKENS": READ_TOKEN}
    environment = {f"THREADLINE_{name}": value for name, value in settings.items()}
    return [sys.executable, "-m", "threadline.surfaces.cli", "serve"], {**os.environ, **environment}


def person_path(user_id: str) -> str:
    """Where one person is read over HTTP."""
    return f"/v1/people/user_id:{user_id}"
