"""The PostgreSQL store obeys the store laws, on the newest version of the server and on the oldest that is served."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers.postgres import SWITCH_15, VERSIONS, server, store_in
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

else:

    @pytest.mark.skip(reason=f"{SWITCH_15}=0 leaves PostgreSQL 15 out")
    def test_the_oldest_version_is_left_out() -> None:
        pass
