"""Reads the body of a request, never more of it than its limit, and unpacks what is compressed."""

from __future__ import annotations

import zlib
from codecs import BOM_UTF8

from starlette.requests import ClientDisconnect, Request

from threadline.kernel.errors import LimitExceeded, MalformedBody
from threadline.kernel.limits import REQUEST_BYTES_MAX
from threadline.surfaces.http.answers.in_flight import share_of
from threadline.surfaces.http.answers.problem import UnsupportedEncoding

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
