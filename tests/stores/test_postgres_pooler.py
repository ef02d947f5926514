"""A pooler before PostgreSQL: one that gives each transaction another session is refused when a store is opened."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.servers import postgres
from threadline.kernel.errors import InvalidSetting
from threadline.settings import Settings
from threadline.stores.postgres.store import PostgresStore, migrate

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="PgBouncer is not installed: the package pgbouncer of Debian")


@pytest.fixture
def pooled(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Starts PgBouncer in a mode before a server, and answers the URL of a migrated store behind it."""
    server, processes = postgres.server("18"), list[subprocess.Popen[bytes]]()
    folder = server.folder / f"pooler-{os.getpid()}"
    folder.mkdir()
    folder.chmod(0o777)

    def start(mode: str) -> str:
        schema = postgres.schema_of(tmp_path)
        server.made(schema)
        (folder / "users").write_text('"postgres" ""\n')
        (folder / "ini").write_text(
            f"[databases]\npostgres = host={server.folder}\n[pgbouncer]\npool_mode = {mode}\nauth_type = trust\n"
            f"auth_file = {folder}/users\nunix_socket_dir = {folder}\nlisten_port = 6432\n"
            "ignore_startup_parameters = extra_float_digits\n"
        )
        assert PGBOUNCER is not None
        # It refuses to run as root.
        user = "nobody" if os.getuid() == 0 else None
        silent = subprocess.DEVNULL
        command = [PGBOUNCER, "--quiet", str(folder / "ini")]
        processes.append(subprocess.Popen(command, user=user, stdout=silent, stderr=silent))
        for _ in range(100):
            if (folder / ".s.PGSQL.6432").exists():
                break
            time.sleep(0.05)
        return f"postgresql://postgres@:6432/postgres?host={folder}&schema={schema}"

    yield start
    for process in processes:
        process.terminate()
        process.wait()
    shutil.rmtree(folder)


def test_a_pooler_in_transaction_mode_is_refused_with_what_to_do(pooled: Callable[[str], str]) -> None:
    url = pooled("transaction")
    for opened in (lambda: PostgresStore(url), lambda: migrate(url, Settings())):
        with pytest.raises(InvalidSetting, match="pooler that gives each transaction another session") as refused:
            opened()
        assert "session mode" in refused.value.hint


def test_a_pooler_in_session_mode_is_a_server_like_any_other(pooled: Callable[[str], str]) -> None:
    store = PostgresStore(pooled("session"))
    try:
        assert store.get([]) == []
    finally:
        store.close()


def test_a_pooler_makes_up_the_process_that_serves_a_connection(pooled: Callable[[str], str]) -> None:
    """What the store looks at to know that there is one."""
    with psycopg.connect(pooled("session").partition("&schema=")[0]) as db:
        assert db.execute("SELECT pg_backend_pid()").fetchone() != (db.info.backend_pid,)
