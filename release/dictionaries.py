"""Trains the dictionaries of `threadline/stores/compression.py`: ``python -m release.dictionaries``, once for a number.

They are made of what a made-up world stores, by the definitions that ship, and never of anybody's data: a dictionary is
in every installation and is never erased. A number that was released is never trained again, because rows name it.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from random import Random

import zstandard

from threadline.app import catalogue
from threadline.engine.engine import Engine
from threadline.kernel.store import Batch, Put, Refusal
from threadline.stores.compression import BODIES, BYTES_MIN, VALUES, dictionary_path
from threadline.stores.memory import MemoryStore
from threadline.testing.world import World

WORLD = World(seed=37, people=4_000, history=40_000, late=0.05)
EVENTS = 40_000
SAMPLES = 8_000
DICTIONARY_BYTES = {BODIES: 32_768, VALUES: 65_536}
"""Twice as much saves less than a hundredth more, and is loaded by every process."""


class _Overheard(MemoryStore):
    """A store in memory that keeps all that is ever committed."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[bytes] = []
        self.values: list[bytes] = []

    def commit(self, batches: Sequence[Batch]) -> list[Refusal | None]:
        for batch in batches:
            self.bodies += [entry.body for entry in batch.events]
            self.values += [write.value for write in batch.writes if isinstance(write, Put)]
        return super().commit(batches)


def train() -> None:
    """Write the dictionaries of the numbers in force, and print their SHA-256."""
    store = _Overheard()
    engine = Engine(store, catalogue(), lambda: WORLD.ends_at(EVENTS))
    for batch in WORLD.batches(EVENTS, 100):
        engine.recorder.record(batch)
    for number, stored in ((BODIES, store.bodies), (VALUES, store.values)):
        long = [value for value in stored if len(value) >= BYTES_MIN]
        samples = Random(number).sample(long, SAMPLES)
        dictionary = zstandard.train_dictionary(DICTIONARY_BYTES[number], samples, dict_id=number)
        dictionary_path(number).write_bytes(dictionary.as_bytes())
        sys.stdout.write(f"{number}: {hashlib.sha256(dictionary.as_bytes()).hexdigest()}\n")


if __name__ == "__main__":
    train()
