"""Connections to PostgreSQL: few, shared by all threads, replaced when they break; the driver stands here alone."""

from __future__ import annotations

import hashlib
import random
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.types.array import ListBinaryDumper
from psycopg.types.numeric import Int8BinaryDumper

from threadline.kernel.errors import (
    InvalidSetting,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    ThreadlineError,
    Unavailable,
)
from threadline.stores.postgres.rows import Ask, Row
from threadline.stores.postgres.schema import MIGRATE_HINT

T = TypeVar("T")

SCHEMA = "threadline"
_PORTS = frozenset("0123456789,")
PAUSE_SECONDS_FIRST = 0.002
PAUSE_SECONDS_MAX = 0.25

_DEFAULTS = {
    "application_name": "threadline",
    "connect_timeout": "5",
    # A server that vanished without a word is given up after this long, and not after the kernel's quarter of an hour.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}
# Every statement reads what is committed by then, and every answer is synced. Rows are few and found by key, whatever
# the statistics of a table that has just begun to grow may say.
_CONFIGURE = """SELECT set_config('search_path', %s, false), set_config('lock_timeout', %s, false),
    set_config('idle_in_transaction_session_timeout', %s, false),
    set_config('default_transaction_isolation', 'read committed', false), set_config('jit', 'off', false),
    set_config('enable_seqscan', 'off', false), set_config('enable_hashjoin', 'off', false),
    set_config('enable_mergejoin', 'off', false), set_config('synchronous_commit',
        CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END,
        false)"""


_NOTE_SESSION = "SELECT set_config('threadline.connection', %s, false)"
_ADVISORY_LOCK = "SELECT pg_advisory_xact_lock(number) FROM unnest(%b::bigint[]) AS number"

_BYTEAS, _BYTEA, _INT8S, _INT8 = 1001, 17, 1016, 20
"""Object ids of types: https://github.com/postgres/postgres/blob/master/src/include/catalog/pg_type.dat."""
_ARRAY_HEAD = struct.Struct("!5i").pack
"""Dimensions, whether any element is null, type of the elements, their number, the index of the first."""
_LENGTH = struct.Struct("!i").pack
_LENGTH_AND_INT8 = struct.Struct("!iq").pack
_NULL = _LENGTH(-1)


class _ColumnDumper(ListBinaryDumper):
    """Numbers or bytes as an array, put together here: the driver makes three calls for each element."""

    def dump(self, obj: list[Any]) -> Any:
        """See `psycopg.abc.Dumper.dump`."""
        if self.oid == _INT8S and obj:
            parts = [_NULL if value is None else _LENGTH_AND_INT8(8, value) for value in obj]
            return _ARRAY_HEAD(1, None in obj, _INT8, len(obj), 1) + b"".join(parts)
        if self.oid == _BYTEAS and obj:
            parts = [part for value in obj for part in ((_NULL,) if value is None else (_LENGTH(len(value)), value))]
            return _ARRAY_HEAD(1, None in obj, _BYTEA, len(obj), 1) + b"".join(parts)
        return super().dump(obj)


class Lost(Exception):
    """The connection broke: whether the server did what it was asked to is not known."""


class Collided(Exception):
    """Another transaction was in the way: the server did nothing of what it was asked to."""


class Address(NamedTuple):
    """What a URL says."""

    conninfo: dict[str, Any]
    schema: str

    def __str__(self) -> str:
        """Where it is, without user and password."""
        host, port = self.conninfo.get("host", "localhost"), self.conninfo.get("port", "5432")
        return f"{self.conninfo.get('dbname', '')} at {host}:{port}, schema {self.schema}"


def address_of(url: str) -> Address:
    """What a URL of libpq's says, with one parameter of ours, ``schema``.

    See https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING. Raises `InvalidSetting`.
    """
    head, _, query = url.partition("?")
    pairs = query.split("&") if query else []
    schemas = [unquote(pair.partition("=")[2]) for pair in pairs if pair.startswith("schema=")]
    rest = "&".join(pair for pair in pairs if not pair.startswith("schema="))
    try:
        arguments = conninfo_to_dict(f"{head}?{rest}" if rest else head)
    except psycopg.Error as error:
        # The driver repeats what it was given, whole or in part, and a password may be in it.
        reason = str(error).partition('"')[0].strip(" :\n")
        raise InvalidSetting(f"store: this is not the URL of a PostgreSQL database: {reason}") from None
    if "@" in str(arguments.get("host", "")) or set(str(arguments.get("port", ""))) - _PORTS:
        # Then a part of the password stands where the host or port does, and would be in every message.
        hint = "In a user's name or password write / as %2F, @ as %40 and : as %3A."
        raise InvalidSetting("store: the URL of a PostgreSQL database has no such host or port", hint=hint)
    return Address({**_DEFAULTS, **arguments}, schemas[0] if schemas else SCHEMA)


class Patience:
    """For how long something is tried again; the pauses grow and vary, so that those who collided do not meet again."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began = time.monotonic()
        self._pause = PAUSE_SECONDS_FIRST

    def wait(self, refusal: ThreadlineError, since: float | None = None) -> None:
        """Pause before the next try, or raise the refusal if time is over: from the first try on, or from ``since``."""
        if time.monotonic() > min(self._began, self._began if since is None else since) + self._seconds:
            raise refusal
        time.sleep(random.uniform(0, self._pause))
        self._pause = min(2 * self._pause, PAUSE_SECONDS_MAX)


class Connections:
    """At most ``connections_max`` connections to one database, each a thread's own for one statement or transaction.

    ``wait_seconds`` is for locks and for a free connection, ``retry_seconds`` for a server that cannot be reached.
    """

    def __init__(self, address: Address, *, connections_max: int, wait_seconds: float, retry_seconds: float) -> None:
        self.address = address
        self.wait_seconds = wait_seconds
        self._retry_seconds = retry_seconds
        self._idle: deque[psycopg.Connection[Row]] = deque()
        self._room = threading.Semaphore(connections_max)
        self._has_spare = connections_max > 1
        self._away_since: float | None = None
        """Since when the server cannot be reached: whoever asks later has waited for it with those before them."""
        self._closed = False

    def ask(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement that may run twice, and give its rows; a broken connection is replaced."""
        return self._until_done(lambda: self.ask_once(sql, values))

    def together(self, work: Callable[[Ask], T]) -> T:
        """Run statements that take effect together and may all run twice, as `ask` does with one."""

        def try_once() -> T:
            with self.transaction() as ask:
                return work(ask)

        return self._until_done(try_once)

    def _until_done(self, work: Callable[[], T]) -> T:
        patience = Patience(self._retry_seconds)
        while True:
            try:
                return work()
            except Lost as error:
                patience.wait(Unavailable(f"{self.address} cannot be reached: {error}"), self._away_since)
            except Collided as error:
                patience.wait(StoreBusy(f"others are in the way at {self.address}: {error}"))

    def ask_once(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement, a transaction of its own. Raises `Lost` or `Collided` as well as the store's errors."""
        with self._borrowed() as db:
            return _rows(db, sql, values)

    def open(self, check: Callable[[Ask], object]) -> None:
        """Connect for the first time and let ``check`` look around; a server that cannot be reached is told at once."""
        try:
            self._refuse_shared_sessions()
            check(self.ask_once)
        except Lost as error:
            message = f"{self.address} cannot be reached: {error}"
            raise Unavailable(message, hint="Check the URL, and that the server runs and lets you in.") from None

    def _refuse_shared_sessions(self) -> None:
        """Raise `InvalidSetting` for a pooler that gives each transaction another session.

        Settings and prepared statements of one process would be those of another there: two schemas would be crossed.
        A pooler makes up the number of the process that serves a connection, so without one nothing more is asked.
        """
        with self._borrowed() as first:
            ((serving,),) = _rows(first, "SELECT pg_backend_pid()", ())
            if serving == first.info.backend_pid or not self._has_spare:
                return
            _rows(first, _NOTE_SESSION, ("first",))
            with self._borrowed() as second:
                _rows(second, _NOTE_SESSION, ("second",))
            ((noted,),) = _rows(first, "SELECT current_setting('threadline.connection', true)", ())
        if noted != "first":
            hint = "Put the pooler into session mode, or give the URL of the server itself."
            raise InvalidSetting(f"{self.address} is a pooler that gives each transaction another session", hint=hint)

    @contextmanager
    def transaction(self) -> Iterator[Ask]:
        """Statements that take effect together. Raises `Lost` or `Collided` as well as the store's errors."""
        with self._borrowed() as db, db.transaction():
            yield lambda sql, values: _rows(db, sql, values)

    @contextmanager
    def advisory_lock(self, names: Iterable[str]) -> Iterator[None]:
        """Work while others who ask for one of these names wait; without a turn if that takes too long."""
        locks = ExitStack()
        # A lock that cannot be had, or is lost, is no error: whoever works without it may have to work twice.
        with suppress(Lost, Collided, StoreBusy), ExitStack() as taking:
            if self._has_spare:  # the only connection is needed for the work itself
                ask = taking.enter_context(self.transaction())
                # All in one order, so that nobody waits for somebody who waits for them.
                ask(_ADVISORY_LOCK, (sorted({_lock_number(f"{self.address.schema}/{name}") for name in names}),))
            locks = taking.pop_all()
        try:
            yield
        finally:
            with suppress(Lost, Collided, StoreBusy):
                locks.close()

    def close(self) -> None:
        """Close what is idle now, and each other connection when its statement is done."""
        self._closed = True
        self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _borrowed(self) -> Iterator[psycopg.Connection[Row]]:
        if self._closed:
            raise Unavailable("the store is closed")
        if not self._room.acquire(timeout=self.wait_seconds):
            raise StoreBusy(f"all connections to {self.address} are in use")
        try:
            with self._translated():
                # The last one used comes first: what was not needed for long may break without being noticed.
                db = self._idle.pop() if self._idle else self._connect()
                try:
                    yield db
                finally:
                    self._give_back(db)
            self._away_since = None
        except Lost:
            if self._away_since is None:
                self._away_since = time.monotonic()
            # Those that were opened with it are like it: broken, or of a session that may not write, which it stays
            # whatever becomes of the server, or of the name that led to it.
            self._close_idle()
            raise
        finally:
            self._room.release()

    def _give_back(self, db: psycopg.Connection[Row]) -> None:
        if db.info.transaction_status == TransactionStatus.IDLE and not self._closed:
            self._idle.append(db)
        else:
            db.close()

    def _connect(self) -> psycopg.Connection[Row]:
        db: psycopg.Connection[Row] = psycopg.connect(**self.address.conninfo, autocommit=True)
        try:
            db.adapters.register_dumper(int, Int8BinaryDumper)
            db.adapters.register_dumper(list, _ColumnDumper)
            wait_ms = f"{max(1, round(self.wait_seconds * 1_000))}"
            db.execute(_CONFIGURE, (_quoted(self.address.schema), wait_ms, wait_ms))
        except BaseException:
            db.close()
            raise
        return db

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """No error of the driver gets through: each becomes one of ours, or says that it may be tried again."""
        try:
            yield
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise _translation(error, self.address) if error.sqlstate else Lost(" ".join(str(error).split())) from error
        except psycopg.Error as error:
            if error.sqlstate is None:
                raise  # the driver did not understand us: a fault of ours, not the server's
            raise _translation(error, self.address) from error


def _rows(db: psycopg.Connection[Row], sql: str, values: Sequence[Any]) -> list[Row]:
    # Without values a per cent sign is only that.
    cursor = db.execute(sql, values or None, binary=True)
    return cursor.fetchall() if cursor.description is not None else []


def _lock_number(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _translation(error: psycopg.Error, address: Address) -> Exception:
    """By SQLSTATE: https://www.postgresql.org/docs/current/errcodes-appendix.html."""
    message = str(error).strip()
    match error.sqlstate or "":
        case "23505" | "40001" | "40P01" | "55P03":
            return Collided(message)
        # 25006: this server takes no writes now; a new connection may find one that does.
        case "25006" | "25P03" | "57P01" | "57P02" | "57P03" | "57P05":
            return Lost(message)
        case state if state.startswith("08"):
            return Lost(message)
        case "53100":
            return StoreFull(
                f"there is no room left for {address}", hint="Free space, then send the same events again."
            )
        case "57014":
            return StoreBusy(f"{address} cancelled what took too long: {message}")
        case state if state.startswith("53"):
            return StoreBusy(f"{address}: {message}")
        # Whoever runs the store has to see to these two, and no caller: what is sent meanwhile must be sent again.
        case "3F000" | "42P01" | "42883":
            return Unavailable(f"{address} has no Threadline schema, or another one: {message}", hint=MIGRATE_HINT)
        case "42501":
            return Unavailable(f"{address}: {message}", hint="Let the role of this URL read and write the schema.")
        case state if state.startswith("XX"):
            return StoreDamaged(
                f"{address}: {message}", hint="Look at the server's log; restore a backup if a table broke."
            )
    return Unavailable(f"{address}: {message}")
