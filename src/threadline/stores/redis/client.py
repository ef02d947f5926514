"""The one file that knows the Redis driver: one server, short time-outs, scripts, and its failures as ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from threadline.kernel.errors import InvalidSetting
from threadline.settings import without_secret

Key = str | bytes
Argument = str | bytes | int | float
Script = Callable[[Sequence[Key], Sequence[Argument]], Any]

_SCHEMES = ("redis://", "rediss://", "unix://")


class RedisUnreachable(Exception):
    """It did not answer in time. What was asked of it may or may not have been done."""


class RedisLost(RedisUnreachable):
    """It is not the server it was, or what it held is gone: nothing that it held before can be relied on."""


class RedisServer:
    """One Redis or Valkey server. Thread-safe. Connects when it is first asked something.

    With ``run_id`` it talks only to the server that had this id when it started: a server that was restarted may have
    come back with an older state, and a replica that took over may lack the newest one. Nothing is tried twice here,
    because whoever asks has another way.
    """

    def __init__(self, url: str, timeout_seconds: float, run_id: str = "") -> None:
        # Valkey speaks the same protocol; the driver knows only the older name.
        address = "redis" + url.removeprefix("valkey") if url.startswith("valkey") else url
        if not address.startswith(_SCHEMES):
            raise InvalidSetting(
                f"cache: {without_secret(url)!r:.80} is not the URL of a Redis server; write it like redis://127.0.0.1:6379/0"
            )
        self._run_id = run_id
        try:
            pool = redis.ConnectionPool.from_url(
                address,
                socket_timeout=timeout_seconds,
                socket_connect_timeout=timeout_seconds,
                retry=Retry(NoBackoff(), 0),
                protocol=2,
                decode_responses=False,
                redis_connect_func=self._greet,
            )
        except ValueError as error:
            raise InvalidSetting(f"cache: {error}") from None
        self._client = redis.Redis(connection_pool=pool)

    def _greet(self, connection: Any) -> None:
        """Log in, and see whether this is still the same server: once per connection, which lives no longer than it."""
        connection.on_connect()
        if self._run_id:
            connection.send_command("INFO", "server")
            if _run_id(connection.read_response()) != self._run_id:
                raise _Another()

    def script(self, text: str) -> Script:
        """A Lua script that runs atomically: called with its keys and arguments, it answers what the script returns."""
        run = self._client.register_script(text)

        def call(keys: Sequence[Key], arguments: Sequence[Argument]) -> Any:
            with _translated():
                return run(keys=list(keys), args=list(arguments))

        return call

    def set(self, key: Key, value: Argument) -> None:
        """Write a key that does not expire."""
        with _translated():
            self._client.set(key, value)

    def run_id(self) -> str:
        """What tells this start of this server from any other."""
        with _translated():
            return _run_id(self._client.info("server"))

    def close(self) -> None:
        """Give the connections up."""
        with _translated():
            self._client.close()
            self._client.connection_pool.disconnect()


class _Another(redis.ConnectionError):
    """Another server answers at this address."""


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except _Another:
        raise RedisLost("another Redis answers at this address, or it was restarted") from None
    except redis.ResponseError as error:
        if "LOST" in str(error):
            raise RedisLost("what was kept in Redis is gone") from None
        raise RedisUnreachable(str(error)) from error
    except (redis.RedisError, OSError) as error:
        raise RedisUnreachable(str(error)) from error


def _run_id(info: Any) -> str:
    """From the answer to INFO: the driver gives a mapping where it parses, the text where it does not."""
    if isinstance(info, dict):
        return str(info.get("run_id", ""))
    lines = bytes(info).decode("ascii", "replace").splitlines()
    return next((line.removeprefix("run_id:").strip() for line in lines if line.startswith("run_id:")), "")
