"""The public keys of a token issuer (JWKS), from an address or a file: kept for a while, read anew when they rotate."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from threadline.outgoing.fetching import content, fetched
from threadline.surfaces.http.answers.in_flight import without_mark
from threadline.surfaces.http.answers.problem import NotNow

FETCH_SECONDS_MAX = 5
KEYS_BYTES_MAX = 1_000_000
KEYS_MAX = 100
AGAIN_SECONDS = 10.0
"""Not sooner than this is asked again, so that tokens with invented key ids cannot make us press the issuer."""

log = logging.getLogger("threadline.http")


def fetch(source: str) -> bytes:
    """The content at an http address or in a file. Raises `OSError`."""
    if source.startswith(("https://", "http://")):
        return fetched(source, "application/json", FETCH_SECONDS_MAX, KEYS_BYTES_MAX)
    with Path(source).open("rb") as file:
        return content(file.read, FETCH_SECONDS_MAX, KEYS_BYTES_MAX)


class KeyFile:
    """One JWKS. Lives on the server's event loop; it is read beside it, once at a time, and waited for no longer than
    `FETCH_SECONDS_MAX`: then the keys of before stay good."""

    def __init__(
        self, name: str, source: str, cache_seconds: float, load: Callable[[str], bytes], seconds: Callable[[], float]
    ) -> None:
        self._name = name
        """The setting that names them, for the log."""
        self._source = source
        self._cache_seconds = cache_seconds
        self._load = load
        self._seconds = seconds
        self._keys: list[dict[str, Any]] = []
        self._tried_at: float | None = None
        self._reading: asyncio.Task[None] | None = None

    async def keys(self) -> list[dict[str, Any]]:
        """The keys, at most as old as the setting allows. Raises `Unavailable` if there never were any."""
        return await self._not_older(self._cache_seconds)

    async def newer_keys(self) -> list[dict[str, Any]]:
        """The keys as they are now, unless somebody has just looked."""
        return await self._not_older(AGAIN_SECONDS)

    async def _not_older(self, seconds: float) -> list[dict[str, Any]]:
        if self._is_older(seconds):
            if self._reading is None:
                self._reading = asyncio.create_task(self._read())
            done, _ = await asyncio.wait([self._reading], timeout=FETCH_SECONDS_MAX)
            if not done:
                log.warning("the keys at %s are still being read; they are not waited for", self._name)
                self._tried_at = self._seconds()
        if not self._keys:
            raise NotNow("the keys of the token issuer cannot be fetched now; send the same again in a while")
        return self._keys

    def _is_older(self, seconds: float) -> bool:
        if self._tried_at is None:
            return True
        # Without any key it is tried again soon, however long keys are kept.
        limit = seconds if self._keys else min(seconds, AGAIN_SECONDS)
        return self._seconds() - self._tried_at >= limit

    async def _read(self) -> None:
        try:
            self._keys = _published(await aside(partial(self._load, self._source)))
        except (OSError, ValueError, RecursionError) as error:
            # The keys of before stay good: an issuer that is away for a while must not lock everybody out.
            log.warning("the keys at %s cannot be read: %s", self._name, error)
        finally:
            self._tried_at = self._seconds()
            self._reading = None


async def aside(work: Callable[[], bytes]) -> bytes:
    """What work gives, done in a thread that nobody waits for when the server ends: an issuer may never have done."""
    loop = asyncio.get_running_loop()
    given: asyncio.Future[bytes] = loop.create_future()

    def tell(body: bytes, error: Exception | None) -> None:
        if not given.done():
            given.set_result(body) if error is None else given.set_exception(error)

    def do() -> None:
        body, error = b"", None
        try:
            body = work()
        except Exception as caught:  # noqa: BLE001 — it is raised again where it is waited for
            error = caught
        with suppress(RuntimeError):  # the server has ended
            loop.call_soon_threadsafe(tell, body, error)

    threading.Thread(target=do, name="threadline-keys", daemon=True).start()
    return await given


def _published(body: bytes) -> list[dict[str, Any]]:
    content = msgspec.json.decode(without_mark(body))
    keys = content.get("keys") if isinstance(content, dict) else None
    if not isinstance(keys, list):
        raise ValueError("there is no list `keys` in it")
    return [key for key in keys[:KEYS_MAX] if isinstance(key, dict)]
