"""The parts of a raw message. Bounded: no message takes longer than its first `BYTES_MAX` bytes, or nests deeper."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from email.header import decode_header
from email.message import Message
from email.parser import HeaderParser
from typing import NamedTuple

BYTES_MAX = 2 * 1_024 * 1_024
"""What is read of a message; the rest is the copy of something larger."""
HEADER_BYTES_MAX = 64 * 1_024
"""Header bytes read of one part."""
HEADER_LENGTH_MAX = 4_000
"""Characters read of one header."""
TEXT_LENGTH_MAX = 64 * 1_024
DEPTH_MAX = 8
PARTS_MAX = 64

_BLANK_LINE = re.compile(rb"\r?\n\r?\n|\r\r")
_TAG = re.compile(r"<(?>[^<>]{0,2000})>")
_BREAK = re.compile(r"(?i)<(?:br|/p|/div|/tr|/li|/h\d|/blockquote|/title)\b(?>[^<>]{0,2000})>")
_UNSHOWN = tuple(
    (re.compile(rf"(?i)<{name}[\s>]"), re.compile(rf"(?i)</{name}\b")) for name in ("head", "style", "script")
)
_ADDRESS = re.compile(r"[^\s<>()\[\]\"',;:]{1,64}@[^\s<>()\[\]\"',;:@]{1,255}")
_QUOTED = re.compile(r'"[^"]*"')
_ADDRESS_IN_TAG = re.compile(r"<([^<>@\s]{1,64}@[^<>@\s]{1,255})>")


class Part(NamedTuple):
    """One part, with its own headers."""

    headers: Message
    body: bytes
    depth: int

    @property
    def type(self) -> str:
        """The content type in lower case, ``text/plain`` where it cannot be read."""
        return self.headers.get_content_type()

    @property
    def text(self) -> str:
        """The body as text; of HTML what is shown of it."""
        text = _decoded(self.headers, self.body[: 2 * TEXT_LENGTH_MAX])[:TEXT_LENGTH_MAX]
        return shown(text) if self.type == "text/html" else text

    def header(self, name: str) -> str:
        """The first header of this name, decoded and on one line; empty if there is none."""
        return decoded(self.headers.get(name))

    def addresses(self, *names: str) -> list[str]:
        """The addresses in all headers of these names."""
        text = ", ".join(decoded(value) for name in names for value in self.headers.get_all(name, ())[:20])
        # Not `email.utils.getaddresses`: nested comments exhaust its recursion.
        bracketed = _ADDRESS_IN_TAG.findall(text)
        return bracketed + _ADDRESS.findall(_ADDRESS_IN_TAG.sub(" ", _QUOTED.sub(" ", text)))


def decoded(value: object) -> str:
    """A header's value as text on one line, whatever its encoded words say."""
    text = " ".join(str(value or "")[:HEADER_LENGTH_MAX].split())
    if "=?" not in text:
        return text.encode("utf-8", "replace").decode()
    try:
        pieces = decode_header(text)
    except Exception:  # noqa: BLE001 — encoded words that are none stand as they are
        return text.encode("utf-8", "replace").decode()
    return "".join(piece if isinstance(piece, str) else _charset(piece, name or "ascii") for piece, name in pieces)


def read_part(raw: bytes, depth: int = 0) -> Part:
    """The headers and the body of a message or of a part of one."""
    end = _BLANK_LINE.search(raw, 0, HEADER_BYTES_MAX)
    if raw[:1] in (b"\n", b"\r"):  # a part without headers
        head, body = b"", raw.lstrip(b"\r\n")
    elif end is None:
        head, body = raw[:HEADER_BYTES_MAX], b""
    else:
        head, body = raw[: end.start()], raw[end.end() :]
    # As UTF-8, which RFC 6532 allows; the parser for bytes gives what is no ASCII as objects of another type.
    headers = HeaderParser().parsestr(head.decode("utf-8", "replace") + "\n\n")
    return Part(headers, body, depth)


def parts(message: Part) -> Iterator[Part]:
    """A message and all its parts, outermost first; a message that is enclosed is a part whose body is not read."""
    waiting = [message]
    for _ in range(PARTS_MAX):
        if not waiting:
            return
        part = waiting.pop(0)
        yield part
        if part.type.startswith("multipart/") and part.depth < DEPTH_MAX:
            waiting[:0] = [read_part(raw, part.depth + 1) for raw in _split(part)]


def enclosed(part: Part) -> Part:
    """The message that a part of the type ``message/rfc822`` or ``text/rfc822-headers`` holds."""
    body = part.body
    if (part.headers.get("content-transfer-encoding") or "").strip().lower() in ("base64", "quoted-printable"):
        body = _decoded(part.headers, body[:BYTES_MAX]).encode("utf-8", "replace")
    return read_part(body.lstrip(b"\r\n"), part.depth + 1)


def shown(text: str) -> str:
    """What is shown of HTML."""
    for start, end in _UNSHOWN:
        text = _without(text, start, end)
    text = _BREAK.sub("\n", text)
    # Some servers write an address in angle brackets into HTML without escaping them.
    return html.unescape(_TAG.sub("", _ADDRESS_IN_TAG.sub(r"&lt;\1&gt;", text)))


def _without(text: str, start: re.Pattern[str], end: re.Pattern[str]) -> str:
    pieces, at = [], 0
    while (opened := start.search(text, at)) is not None and (closed := end.search(text, opened.end())) is not None:
        pieces.append(text[at : opened.start()])
        at = closed.start()
    return "".join((*pieces, text[at:]))


def _split(part: Part) -> list[bytes]:
    boundary = _boundary(part.headers)
    if not boundary:
        return []
    line = re.compile(rb"(?:^|\r?\n)--" + re.escape(boundary) + rb"(--)?[ \t]*(?=\r?\n|$)")
    pieces: list[bytes] = []
    start = -1
    for match in line.finditer(part.body):
        if start >= 0:
            pieces.append(part.body[start : match.start()])
        start = -1 if match[1] else match.end()
        if start < 0 or len(pieces) >= PARTS_MAX:
            return [_without_break(piece) for piece in pieces]
    if start >= 0:  # cut off: what is there of the last part
        pieces.append(part.body[start:])
    return [_without_break(piece) for piece in pieces]


def _without_break(piece: bytes) -> bytes:
    return piece[2:] if piece.startswith(b"\r\n") else piece[1:]


def _boundary(headers: Message) -> bytes:
    try:
        boundary = headers.get_boundary() or ""
    except Exception:  # noqa: BLE001 — a parameter that cannot be read names no boundary
        return b""
    return boundary.encode("utf-8", "replace")


def _decoded(headers: Message, body: bytes) -> str:
    encoding = (headers.get("content-transfer-encoding") or "").strip().lower()
    if encoding in ("base64", "quoted-printable"):
        holder = Message()
        holder["content-transfer-encoding"] = encoding
        holder.set_payload(body.decode("ascii", "surrogateescape"))
        try:
            payload = holder.get_payload(decode=True)
            body = payload if isinstance(payload, bytes) else body
        except Exception:  # noqa: BLE001 — what is no Base64 stands as it is
            pass
    try:
        charset = headers.get_content_charset() or "utf-8"
    except Exception:  # noqa: BLE001 — a charset that cannot be read is none
        charset = "utf-8"
    return _charset(body, charset)


def _charset(body: bytes, name: str) -> str:
    try:
        text = body.decode(name)
    except Exception:  # noqa: BLE001 — unknown charsets and bytes that are not theirs
        text = body.decode("utf-8", "replace")
    return text.encode("utf-8", "replace").decode()
