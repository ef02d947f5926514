"""Looks over JSON text without parsing it: how deep it is nested, where the messages of a batch begin and end."""

from __future__ import annotations

import re

from threadline.kernel.errors import LimitExceeded, MalformedBody
from threadline.kernel.limits import REQUEST_MESSAGES_MAX

# A string that never ends is one token up to the end of the text. Were it none, each quote inside it would be tried
# as the beginning of a string again, which takes quadratic time on hostile text.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{},:]', re.DOTALL)
_NESTED_MAX = 250_000
"""Brackets that may be open at once; text that is nested deeper is not looked into for messages."""

_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[{")


def depth_bound(text: bytes) -> int:
    """A number that the depth of the text cannot exceed; cheap, and exact enough for nearly every message."""
    return len(text.translate(None, _NOT_BRACKETS))


def depth(text: bytes) -> int:
    """How deep objects and arrays are nested in JSON text. Brackets within strings do not count."""
    level = deepest = 0
    for match in _TOKEN.finditer(text):
        token = text[match.start()]
        if token in b"[{":
            level += 1
            deepest = max(deepest, level)
        elif token in b"]}":
            level -= 1
    return deepest


def split_array(text: bytes, member: bytes | None) -> tuple[list[bytes], bytes]:
    """The elements of the batch in a body that a strict parser gave up on, and the body without them.

    ``member`` names the array within the outermost object; None means that the text is the array. Whatever is wrong
    inside an element (NaN, a lone surrogate, a depth of a thousand) stays its own trouble, as long as its brackets
    and quotes are balanced. Raises `MalformedBody` if there is no such array or the brackets do not match, and
    `LimitExceeded` for too many elements.
    """
    stack = bytearray()
    inside = 1 if member is None else 2
    elements: list[bytes] = []
    start = begin = end = -1
    name = b""
    for match in _TOKEN.finditer(text):
        token = text[match.start()]
        if token in b"[{":
            stack.append(token)
            if len(stack) > _NESTED_MAX:
                break
            opened = len(stack) == inside and token == ord("[") and begin < 0
            if opened and (member is None or (stack[0] == ord("{") and name == member)):
                start = begin = match.end()
        elif token in b"]}":
            # "[" and "]", "{" and "}" stand two apart in ASCII.
            if not stack or token - stack.pop() != 2:
                break
            if len(stack) == inside - 1 and begin >= 0 > end:
                end = match.start()
                _take(elements, text[start:end], last=True)
        elif token == ord(",") and len(stack) == inside and begin >= 0 > end:
            _take(elements, text[start : match.start()])
            start = match.end()
        elif token == ord('"') and len(stack) == 1:
            name = match.group()[1:-1]
    else:
        if not stack and end >= 0:
            return elements, text[:begin] + text[end:]
    raise MalformedBody("the body is not a batch in JSON, and none can be made out in it")


def check_count(messages: int) -> None:
    """Raise `LimitExceeded` for more messages than any client sends at once."""
    if messages > REQUEST_MESSAGES_MAX:
        hint = "send fewer at a time"
        raise LimitExceeded(f"a request holds at most {REQUEST_MESSAGES_MAX} messages", hint=hint)


def _take(elements: list[bytes], element: bytes, last: bool = False) -> None:
    element = element.strip()
    # An array without elements has no last one; a comma without an element is one that is empty, and rejected.
    if element or not last or elements:
        elements.append(element)
        check_count(len(elements))
