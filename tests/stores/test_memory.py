"""The memory store obeys the store laws."""

from pathlib import Path

from threadline.kernel.store import Store
from threadline.stores.memory import MemoryStore
from threadline.testing.store_laws import StoreLaws


class TestMemoryStore(StoreLaws):
    def open(self, folder: Path) -> Store:
        return MemoryStore()
