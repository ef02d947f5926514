"""The PostgreSQL store obeys the store laws, on every version of the server that is there."""

from __future__ import annotations

from pathlib import Path

from tests.servers.postgres import VERSIONS, server, store_in
from threadline.kernel.store import Store
from threadline.testing.store_laws import StoreLaws


class TestPostgresStore(StoreLaws):
    durable = True

    def open(self, folder: Path) -> Store:
        return store_in(server("18"), folder)


if "15" in VERSIONS:

    class TestPostgresStoreOnDebians15(StoreLaws):
        durable = True

        def open(self, folder: Path) -> Store:
            return store_in(server("15"), folder)
