"""What the clients of one server may take of it: bytes of requests and answers in memory, connections, streams."""

from __future__ import annotations

import logging
import time
import zlib
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from starlette.requests import ClientDisconnect, Request

from threadline.kernel.errors import LimitExceeded, MalformedBody
from threadline.kernel.limits import REQUEST_BYTES_MAX
from threadline.surfaces.http.answers.descriptors import Room
from threadline.surfaces.http.answers.problem import NotNow, UnsupportedEncoding

log = logging.getLogger("threadline.http")

UNKNOWN_PART = 4
"""Of the bytes of requests, one part in so many is for those that have shown no credential yet."""
SMALL_ANSWER_BYTES = 64 * 1_024
"""A smaller answer is not counted: a connection buffers as much in any case."""
STALLED_SECONDS = 5.0
"""An answer that has been waiting for its reader for so long gives way to another one when there is no room."""
IDLE_SECONDS = 1.0
"""A connection that has had no request in flight for so long gives way to another one when there is no room. So does
one whose request has not come in that time, without a credential."""
LOG_SECONDS = 10.0
"""How often the log is told that clients are refused."""


class Holder(Protocol):
    """A connection, as far as what it holds can be taken from it."""

    def is_arriving(self) -> bool:
        """Whether it holds part of a request, of which more must come before anybody can work on it."""

    def give_way(self, error: NotNow) -> None:
        """Answer the request with this error, or end the connection, and hold nothing more."""

    def abort(self) -> None:
        """End the connection, whatever the client has not yet read."""


class InFlight:
    """What all connections hold together. Lives on the server's event loop."""

    def __init__(
        self,
        request_bytes_max: int = 64_000_000,
        answer_bytes_max: int = 64_000_000,
        streams_max: int = 200,
        room: Room = Room(),  # noqa: B008 — immutable
    ) -> None:
        self.request_bytes_max = request_bytes_max
        self.answer_bytes_max = answer_bytes_max
        self.streams_max = streams_max
        self.room = room
        self.request_bytes = self.unknown_bytes = self.answer_bytes = 0
        self.streams = 0
        self.connections = 0
        self.refused: Counter[str] = Counter()
        """Clients that were refused for want of room, by what there was no room for."""
        self.count: Callable[[str], None] = lambda what: None
        """Called with it each time."""
        self.is_draining = self.is_ending = False
        """Whether the server is about to stop and clients should go elsewhere; whether only answers are still due."""
        self._shares: dict[Share, None] = {}
        self.idle: dict[Share, float] = {}
        """Connections for which nothing is done, and since when; the oldest first."""
        self.over: dict[Share, None] = {}
        """Connections that have been answered for the last time, and whose clients are still to close them."""
        self.waiting: dict[Share, float] = {}
        """Shares with an answer that its reader has not yet taken, and since when; the oldest first."""
        self._logged_at = -LOG_SECONDS

    def share(self, holder: Holder) -> Share:
        """The share of a connection, empty; it ends with `Share.end`."""
        made = Share(self, holder)
        self._shares[made] = None
        self.connections = len(self._shares)
        self.idle[made] = time.monotonic()
        return made

    def is_crowded(self) -> bool:
        """Whether the newest connection is one too many. Whoever is over or has long idled gives way to it."""
        long_ago = time.monotonic() - IDLE_SECONDS
        while self.connections > self.room.connections:
            share = next(iter(self.over), None) or next(iter(self.idle))
            if share not in self.over and self.idle[share] > long_ago:
                return True
            share.holder.abort()
            share.end()
        return False

    def refuse(self, what: str) -> NotNow:
        """The refusal of a client for which there is no room; counted, and logged once in a while."""
        self.refused[what] += 1
        self.count(what)
        now = time.monotonic()
        if now - self._logged_at >= LOG_SECONDS:
            self._logged_at = now
            log.warning(
                "no room for %s: clients are told 503 (%s since the start; %d connections, %d bytes of requests and %d "
                "of answers in memory)",
                what,
                ", ".join(f"{count} for {name}" for name, count in self.refused.items()),
                self.connections,
                self.request_bytes,
                self.answer_bytes,
            )
        return NotNow(f"the server has no room for more {what} now; come again in a moment")

    def forget(self, share: Share) -> None:
        """Let a share go, which holds nothing."""
        self._shares.pop(share, None)
        self.idle.pop(share, None)
        self.over.pop(share, None)
        self.connections = len(self._shares)

    def make_room(self, newest: Share) -> None:
        """While requests hold more than they may, the largest of those still arriving gives way: small ones pass."""
        while newest.request_bytes and self.is_full():
            largest = newest
            for share in self._shares:
                if (
                    share.request_bytes > largest.request_bytes
                    and (self.request_bytes > self.request_bytes_max or not share.is_known)
                    and share.holder.is_arriving()
                ):
                    largest = share
            largest.give_way(self.refuse("requests"))

    def is_full(self) -> bool:
        """Whether requests hold more than they may, all of them or those without a credential."""
        return self.request_bytes > self.request_bytes_max or self.unknown_bytes > self.unknown_bytes_max

    @property
    def unknown_bytes_max(self) -> int:
        """What all requests without a credential may hold."""
        return self.request_bytes_max // UNKNOWN_PART

    def has_room_for_answer(self, size: int) -> bool:
        """Whether another answer fits. Clients who have let theirs wait for long are cut off first."""
        now = time.monotonic()
        while self.answer_bytes and self.answer_bytes + size > self.answer_bytes_max:
            share = next(iter(self.waiting))
            if now - self.waiting[share] < STALLED_SECONDS:
                return False
            self.refuse("answers")
            share.holder.abort()
            share.taken()
        return True


class Share:
    """What one connection holds."""

    __slots__ = ("_has_ended", "_whole", "answer_bytes", "holder", "is_known", "request_bytes")

    def __init__(self, whole: InFlight, holder: Holder) -> None:
        self._whole = whole
        self.holder = holder
        self.request_bytes = self.answer_bytes = 0
        self._has_ended = False
        self.is_known = False
        """Whether the request in flight has shown a credential."""

    def add(self, size: int) -> bool:
        """Hold more of a request; it, or another one, may have to give way for it. False if it was this one."""
        if self._has_ended:
            return False  # the application goes on for a while after the client has gone
        whole = self._whole
        self.request_bytes += size
        whole.request_bytes += size
        if not self.is_known:
            whole.unknown_bytes += size
        if whole.is_full():
            whole.make_room(self)
        return self.request_bytes > 0

    def begin(self) -> None:
        """A request has come, or shown that it may."""
        self._whole.idle.pop(self, None)

    def finish(self) -> None:
        """The last answer is given: no request is held."""
        self.answered()
        if not self._has_ended:
            self._whole.over[self] = None

    def rest(self) -> None:
        """No request is in flight, and the client has taken the last answer."""
        if self._has_ended:
            return
        self._whole.idle.pop(self, None)
        self._whole.idle[self] = time.monotonic()

    def know(self) -> None:
        """The request in flight has a credential that is valid."""
        if not self.is_known:
            self.is_known = True
            self.begin()
            self._whole.unknown_bytes -= self.request_bytes

    def answered(self, left: int = 0) -> None:
        """Hold no request any more, but for what has come already of those that follow it."""
        whole = self._whole
        whole.request_bytes += left - self.request_bytes
        whole.unknown_bytes += left - (0 if self.is_known else self.request_bytes)
        self.request_bytes, self.is_known = left, False

    def hold_answer(self, size: int) -> bool:
        """Hold an answer until the client has taken it; False if there is no room for it."""
        if size <= SMALL_ANSWER_BYTES or self._has_ended:
            return True
        whole = self._whole
        if not whole.has_room_for_answer(size):
            return False
        self.answer_bytes += size
        whole.answer_bytes += size
        whole.waiting[self] = time.monotonic()
        return True

    def taken(self) -> None:
        """The client has taken what it was answered."""
        if self.answer_bytes:
            self._whole.answer_bytes -= self.answer_bytes
            self.answer_bytes = 0
            del self._whole.waiting[self]

    def give_way(self, error: NotNow) -> None:
        """Hold no request any more: it is refused."""
        self.holder.give_way(error)
        self.answered()

    def end(self) -> None:
        """The connection has ended. A second end does nothing."""
        self.answered()
        self.taken()
        self._has_ended = True
        self._whole.forget(self)


SHARE = "share"


def share_of(scope: Any) -> Share | None:
    """The share of the connection on which a request came; None under a server that is not ours."""
    share: Share | None = scope.get("state", {}).get(SHARE)
    return share


# --- the body of a request: never more of it than its limit, and unpacked --------------------------

_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
MEMBERS_MAX = 100
"""Of a packed body. After each one the rest is copied, so a body of nothing but empty ones would cost minutes."""


async def read_body(request: Request, bytes_max: int = REQUEST_BYTES_MAX, *, known: bool = False) -> bytes:
    """The body as the client meant it, unpacked. ``known``: the request has shown a valid credential, and may take its
    part of the memory for those that have.

    Raises `LimitExceeded` as soon as it is known to be too long, packed or unpacked, `MalformedBody` for what cannot
    be unpacked, `UnsupportedEncoding`.
    """
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and (len(announced) > 18 or int(announced) > bytes_max):
        raise _too_long(bytes_max)
    share = share_of(request.scope)
    if known and share is not None:
        share.know()
    # Not a list of parts: a client that sends byte by byte would have fifty bytes of memory for each.
    body, longer = b"", bytearray()
    async for part in request.stream():
        if len(body) + len(longer) + len(part) > bytes_max:
            raise _too_long(bytes_max)
        if body or longer:
            longer += part
        else:
            body = part
    body = bytes(body + longer) if longer else body
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise UnsupportedEncoding(f"Content-Encoding {encoding[:32]!r} is not read here; send gzip or plain JSON")
    unpacked = unpack(body, bytes_max)
    if share is not None and not share.add(len(unpacked)):
        raise ClientDisconnect  # it was refused for want of memory
    return unpacked


def without_mark(body: bytes) -> bytes:
    """JSON without the byte order mark that some programs put in front; a reader may pass over it (RFC 8259, 8.1)."""
    return body.removeprefix(BOM_UTF8)


def unpack(body: bytes, bytes_max: int) -> bytes:
    """Unpack gzip or zlib data, also of several members, without ever making more than is allowed."""
    parts: list[bytes] = []
    left = bytes_max
    while body:
        if len(parts) == MEMBERS_MAX:
            raise LimitExceeded(f"the body is packed in more than {MEMBERS_MAX} pieces", hint="pack it in one")
        unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)
        try:
            part = unpacker.decompress(body, left + 1)
        except zlib.error as error:
            raise MalformedBody(f"the body says that it is compressed, but cannot be unpacked: {error}") from None
        left -= len(part)
        if left < 0:
            raise _too_long(bytes_max)
        if not unpacker.eof:
            raise MalformedBody("the compressed body ends too early")
        parts.append(part)
        body = unpacker.unused_data
    return b"".join(parts)


def _too_long(bytes_max: int) -> LimitExceeded:
    return LimitExceeded(f"the body is larger than {bytes_max} bytes", hint="send fewer events at a time")
