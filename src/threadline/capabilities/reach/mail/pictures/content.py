"""What a file of a picture is, by its bytes: its type and its size. The name of the file and what sends it say nothing.

A PNG, GIF or WebP is read to its end, and nothing may stand behind it; a JPEG is read up to its picture and has to end
as one does. SVG is none of them: it may hold scripts, and mail programs do not show it.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

from threadline.kernel.errors import InvalidValue
from threadline.kernel.limits import PICTURE_PIXELS_MAX


class Kind(NamedTuple):
    """What a picture is, and how large."""

    type: str
    """``png``, ``jpg``, ``gif`` or ``webp``."""
    width: int
    height: int


MEDIA_TYPES = {"png": "image/png", "jpg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"}


class _NoPicture(Exception):
    """The bytes are not what they begin as."""


def kind_of(content: bytes) -> Kind:
    """The kind of a picture. Raises `InvalidValue` for what is none, or is damaged."""
    known = next((reader for reader in _READERS if content.startswith(reader[0])), None)
    if known is None:
        raise InvalidValue("this is no PNG, JPEG, GIF or WebP; mail programs show no other pictures", param="content")
    _, type, read = known
    try:
        width, height = read(content)
    except (_NoPicture, IndexError):
        raise InvalidValue(f"this {type} is damaged, or something else stands behind it", param="content") from None
    if not (0 < width <= PICTURE_PIXELS_MAX and 0 < height <= PICTURE_PIXELS_MAX):
        raise InvalidValue(
            f"the picture has {width:,} by {height:,} pixels; up to {PICTURE_PIXELS_MAX:,} by {PICTURE_PIXELS_MAX:,} "
            "are taken, and 1,200 are twice the width of a mail",
            param="content",
        )
    return Kind(type, width, height)


def _png(content: bytes) -> tuple[int, int]:
    """Chunks of length, name, data and checksum, the first IHDR, the last IEND (PNG, 5)."""
    at, size, names = 8, (0, 0), list[bytes]()
    while names[-1:] != [b"IEND"]:
        length = _number(content, at, 4, "big")
        name, data = content[at + 4 : at + 8], content[at + 8 : at + 8 + length]
        if len(data) < length or zlib.crc32(name + data) != _number(content, at + 8 + length, 4, "big"):
            raise _NoPicture
        if name == b"IHDR" and not names:
            size = _number(data, 0, 4, "big"), _number(data, 4, 4, "big")
        names.append(name)
        at += length + 12
    if at != len(content) or names[0] != b"IHDR" or b"IDAT" not in names:
        raise _NoPicture
    return size


def _gif(content: bytes) -> tuple[int, int]:
    """A screen, then blocks up to the trailer (GIF89a)."""
    size = _number(content, 6, 2, "little"), _number(content, 8, 2, "little")
    at, pictures = 13 + _table(content[10]), 0
    while (introducer := content[at]) != 0x3B:
        if introducer == 0x2C:
            at, pictures = at + 11 + _table(content[at + 9]), pictures + 1
        elif introducer == 0x21:
            at += 2
        else:
            raise _NoPicture
        while content[at]:
            at += content[at] + 1
        at += 1
    if at + 1 != len(content) or not pictures:
        raise _NoPicture
    return size


def _table(flags: int) -> int:
    return 3 * 2 ** ((flags & 7) + 1) if flags & 0x80 else 0


def _jpeg(content: bytes) -> tuple[int, int]:
    """Segments up to that of the frame, which has the size, and to the picture itself (JPEG, B.1)."""
    at, size = 2, (0, 0)
    if not content.endswith(b"\xff\xd9"):
        raise _NoPicture
    while True:
        while content[at] == 0xFF and content[at + 1] == 0xFF:
            at += 1  # fill bytes
        marker = content[at + 1]
        if content[at] != 0xFF or marker in (0x00, 0xD8, 0xD9):
            raise _NoPicture
        length = _number(content, at + 2, 2, "big")
        if length < 2:
            raise _NoPicture
        if marker == 0xDA:
            if size == (0, 0):
                raise _NoPicture
            return size
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            size = _number(content, at + 7, 2, "big"), _number(content, at + 5, 2, "big")
        at += 2 + length


def _webp(content: bytes) -> tuple[int, int]:
    """A RIFF file whose first chunk has the size (RFC 9649)."""
    if content[8:12] != b"WEBP" or _number(content, 4, 4, "little") + 8 != len(content):
        raise _NoPicture
    at, chunks = 12, dict[bytes, bytes]()
    while at < len(content):
        length = _number(content, at + 4, 4, "little")
        chunks.setdefault(content[at : at + 4], content[at + 8 : at + 8 + length])
        at += 8 + length + length % 2
    if at != len(content):
        raise _NoPicture
    if (canvas := chunks.get(b"VP8X")) is not None:
        if not chunks.keys() & {b"VP8 ", b"VP8L", b"ANMF"}:
            raise _NoPicture
        return _number(canvas, 4, 3, "little") + 1, _number(canvas, 7, 3, "little") + 1
    if (lossless := chunks.get(b"VP8L")) is not None and lossless[0] == 0x2F:
        bits = _number(lossless, 1, 4, "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    frame = chunks.get(b"VP8 ", b"")
    if frame[3:6] != b"\x9d\x01\x2a":
        raise _NoPicture
    return _number(frame, 6, 2, "little") & 0x3FFF, _number(frame, 8, 2, "little") & 0x3FFF


def _number(content: bytes, at: int, size: int, order: str) -> int:
    part = content[at : at + size]
    if len(part) < size:
        raise _NoPicture
    return int.from_bytes(part, "big" if order == "big" else "little")


_READERS = (
    (b"\x89PNG\r\n\x1a\n", "png", _png),
    (b"\xff\xd8\xff", "jpg", _jpeg),
    (b"GIF87a", "gif", _gif),
    (b"GIF89a", "gif", _gif),
    (b"RIFF", "webp", _webp),
)
