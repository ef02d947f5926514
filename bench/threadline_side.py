"""Our side: the calls of Threadline's insides that the benchmarks make, in one place.

Where the earlier commit runs, `bench/peers/at_45fdf71.py` stands in its place, with the same names.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from threadline.app import open_engine
from threadline.engine.maintenance.dump import dump
from threadline.engine.maintenance.rebuild import Parts, refold_everybody
from threadline.kernel.event import Event
from threadline.kernel.time import Clock, system_clock

WORKSPACE = "default"


class Threadline:
    """The engine with everything that ships switched on."""

    def __init__(self, path: Path | str, clock: Clock = system_clock) -> None:
        self.engine = open_engine(path, clock=clock)
        self._accepted = 0

    def fill(self, batches: Iterable[list[Event]]) -> None:
        """Record the history as anything else is recorded, synced: there is no faster door."""
        for batch in batches:
            self.record(batch)

    def record(self, events: list[Event]) -> None:
        """Record one batch; anything but acceptance or a duplicate ends the benchmark."""
        for receipt in self.engine.recorder.record(events):
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


def read_person(engine: Any, user_id: str, now: int) -> Any:
    """Everything that is known of one person."""
    with engine.recorder.readers.reading():
        person = engine.reader.person(WORKSPACE, f"user_id:{user_id}")
        return engine.reader.views(person, now)


def read_features(engine: Any, user_id: str, now: int) -> Any:
    """One person's feature vector."""
    with engine.recorder.readers.reading():
        person = engine.reader.person(WORKSPACE, f"user_id:{user_id}")
        return engine.reader.views(person, now, names=("features",))


def refold(side: Threadline, path: Path, jobs: int) -> int:
    """Derive everybody's state again from the log by so many processes; answers how many events that were."""
    opener = partial(_open_parts, path)
    return refold_everybody(side.engine.store, side.engine.catalogue, jobs=jobs, opener=opener).events


def _open_parts(path: Path) -> Parts:
    """Store and catalogue for one process of a refold, which only reads."""
    engine = open_engine(path, readonly=True)
    return engine.store, engine.catalogue


def canonical_dump(side: Threadline) -> list[str]:
    """All that is known, as lines that are the same in whichever order the same events arrived."""
    return dump(side.engine.store, side.engine.catalogue, arrival=False)
