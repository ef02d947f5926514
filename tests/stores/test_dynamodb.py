"""The DynamoDB store obeys the store laws, on an emulator."""

from __future__ import annotations

from pathlib import Path

from tests.servers.dynamodb import ministack
from threadline.kernel.store import Store
from threadline.testing.store_laws import StoreLaws


class TestDynamoStore(StoreLaws):
    durable = True

    def open(self, folder: Path) -> Store:
        return ministack().open(folder)
