"""Questions of DNS for texts, and their answers (RFC 1035), as far as the records of mail need them."""

from __future__ import annotations

import struct
from collections.abc import Iterator

TXT, _IN = 16, 1
NAME_LENGTH_MAX = 253
_HEADER = struct.Struct("!6H")
_RECORD = struct.Struct("!HHIH")
_TRUNCATED, _CODE = 0x0200, 0x000F
_NO_SUCH_NAME = 3
_HOPS_MAX = 64


class Truncated(Exception):
    """The answer is longer than the datagram: it is to be asked for again over TCP."""


class NoAnswer(Exception):
    """The answer is none, or the server could not give one."""


def question(id: int, name: str) -> bytes:
    """A question for the texts of a name. Raises `ValueError` for what is no name."""
    labels = name.rstrip(".").encode("idna").split(b".") if name else []
    if not labels or len(name) > NAME_LENGTH_MAX or not all(0 < len(label) < 64 for label in labels):
        raise ValueError(f"{name[:80]!r} is no name of DNS")
    asked = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    return _HEADER.pack(id, 0x0100, 1, 0, 0, 0) + asked + struct.pack("!HH", TXT, _IN)


def texts(message: bytes, id: int) -> list[str]:
    """The texts in an answer, in its order; none where there is no such name. Raises `Truncated` and `NoAnswer`."""
    try:
        return list(_texts(message, id))
    except (struct.error, IndexError):
        raise NoAnswer("the answer is broken") from None


def _texts(message: bytes, id: int) -> Iterator[str]:
    answered, flags, questions, answers, _, _ = _HEADER.unpack_from(message)
    if answered != id or not flags & 0x8000:
        raise NoAnswer("the answer belongs to another question")
    if flags & _TRUNCATED:
        raise Truncated
    if flags & _CODE not in (0, _NO_SUCH_NAME):
        raise NoAnswer(f"the server answered with code {flags & _CODE}")
    at = _HEADER.size
    for _ in range(questions):
        at = _behind_name(message, at) + 4
    for _ in range(answers):
        at = _behind_name(message, at)
        type, _, _, length = _RECORD.unpack_from(message, at)
        at += _RECORD.size
        if at + length > len(message):
            raise NoAnswer("the answer is cut off")
        if type == TXT:
            yield b"".join(_strings(message[at : at + length])).decode("utf-8", "replace")
        at += length


def _behind_name(message: bytes, at: int) -> int:
    for _ in range(_HOPS_MAX * 2):
        length = message[at]
        if length >= 0xC0:  # a pointer ends a name
            return at + 2
        at += length + 1
        if length == 0:
            return at
    raise NoAnswer("a name in the answer has no end")


def _strings(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        length = data[at]
        yield data[at + 1 : at + 1 + length]
        at += length + 1
