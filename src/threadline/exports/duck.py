"""DuckDB, where it is installed: the one file of the curated zone that imports it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from threadline.exports.lake.storage import Storage
from threadline.kernel.errors import InvalidSetting, InvalidValue, LimitExceeded, Unavailable
from threadline.kernel.extra import from_source

MEMORY = "1GB"
"""What a query may take before it goes on in files."""


def duckdb() -> Any:
    """The library. Raises `InvalidSetting` where it is missing."""
    try:
        import duckdb as found
    except ImportError:
        hint = from_source("lake")
        raise InvalidSetting("SQL over the lake needs DuckDB, which is not installed", hint=hint) from None
    return found


def connected(scratch: str, storage: Storage | None) -> Any:
    """A connection in memory that reads a storage, and spills into a folder."""
    # Extensions go there as well: the folder of the user may be read-only, as it is on Lambda.
    folders = {"temp_directory": scratch, "extension_directory": scratch}
    # A query that names what only an extension has would fetch it from the internet before anything refuses the query.
    fetched = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    connection = duckdb().connect(config={**folders, **fetched, "memory_limit": MEMORY})
    connection.execute("SET TimeZone = 'UTC'; SET preserve_insertion_order = false; SET enable_progress_bar = false")
    connection.execute("SET python_enable_replacements = false")
    # An instant that is cast to a date goes through the calendar of a time zone, which takes four times as long.
    connection.execute("CREATE MACRO utc_day(instant) AS make_timestamp(epoch_us(instant))::DATE")
    if storage is not None and storage.url().startswith("s3://"):
        _read_s3(connection, urlsplit(storage.url()).netloc)
    return connection


def lock(connection: Any, folders: list[str]) -> None:
    """Let queries read nothing but these folders, and change no setting: a query may come from somebody else."""
    connection.execute(f"SET allowed_directories = [{', '.join(map(text, folders))}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


@contextmanager
def explained() -> Iterator[None]:
    """A context whose errors of DuckDB's say what to do."""
    database = duckdb()
    try:
        yield
    except database.Error as error:
        problem, _, _ = str(error).partition("\n\n")  # after an empty line it repeats the query
        message = f"DuckDB: {' '.join(problem.split())}"
        if isinstance(error, database.HTTPException):
            hint = "let the credentials read the lake: s3:GetObject and s3:ListBucket on its bucket"
            raise Unavailable(message, hint=hint) from None
        raise InvalidValue(message) from None


@contextmanager
def ended_after(connection: Any, seconds: float) -> Iterator[None]:
    """A context that ends a connection's query after so many seconds, and then raises `LimitExceeded`."""
    over = threading.Event()

    def end() -> None:
        over.set()
        connection.interrupt()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (duckdb().Error, OSError):  # a reader of batches raises what Arrow makes of it
        if over.is_set():
            message = f"the question was given up after {seconds:g} s, because others wait for it"
            hint = "Ask about a shorter time or fewer kinds of events, or ask the lake with `threadline sql`."
            raise LimitExceeded(message, hint=hint) from None
        raise
    finally:
        timer.cancel()


def text(value: str) -> str:
    """A text as SQL writes it."""
    escaped = value.replace("'", "''")
    return f"'{escaped}'"


def name(value: str) -> str:
    """A name as SQL writes it, whatever it contains."""
    escaped = value.replace('"', '""')
    return f'"{escaped}"'


def _read_s3(connection: Any, bucket: str) -> None:
    """Let a connection read a bucket with the credentials that boto3 finds."""
    _imported("duckdb_extensions", "DuckDB needs its extension httpfs for S3").import_extension(
        "httpfs", con=connection
    )
    connection.execute("LOAD httpfs")
    session = _imported("boto3", "S3 needs boto3").Session()
    client = session.client("s3")
    credentials = session.get_credentials()
    if credentials is None:
        raise InvalidSetting("no AWS credentials were found", hint="set AWS_PROFILE, or run where a role gives some")
    frozen, endpoint = credentials.get_frozen_credentials(), urlsplit(client.meta.endpoint_url)
    options = {
        "TYPE": "s3",
        "KEY_ID": text(frozen.access_key),
        "SECRET": text(frozen.secret_key),
        "REGION": text(client.meta.region_name or "us-east-1"),
        "ENDPOINT": text(endpoint.netloc),
        "URL_STYLE": "'path'",
        "USE_SSL": str(endpoint.scheme == "https").lower(),
        "SCOPE": text(f"s3://{bucket}"),
    }
    if frozen.token:
        options["SESSION_TOKEN"] = text(frozen.token)
    connection.execute(f"CREATE SECRET ({', '.join(f'{key} {value}' for key, value in options.items())})")


def _imported(module: str, why: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise InvalidSetting(f"{why}, which is not installed", hint=from_source("lake")) from None
