"""Looks over JSON text without parsing it: how deep it is nested, where the messages of a batch begin and end."""

from __future__ import annotations

import re

from threadline.kernel.errors import MalformedBody
from threadline.kernel.event_limits import check_event_count

# A string that never ends is one token up to the end of the text. Were it none, each quote inside it would be tried
# as the beginning of a string again, which takes quadratic time on hostile text.
_STRING = rb'"(?:[^"\\]++|\\.)*+"?'
_TOKEN = re.compile(_STRING + rb"|[\[\]{},:]", re.DOTALL)
_to_bracket = re.compile(rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+([\[\]{}])?", re.DOTALL).match
_to_sign = re.compile(rb'(?:[^"\[\]{},]++|' + _STRING + rb")*+([\[\]{},])?", re.DOTALL).match
_OBJECT, _ARRAY, _COMMA = b"{[,"
_BRACKETS_MAX = 200_000
"""Text with more brackets is not looked into for messages: each costs a step, and honest text has far fewer."""

BLANKS = b" \t\n\r"
"""What may stand between JSON's tokens. Python's `strip` takes more for blank, such as a form feed."""

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
    position = brackets = 0
    while brackets <= _BRACKETS_MAX:
        within = len(stack) == inside and begin >= 0 > end
        # Commas count between messages only. Whatever else stands between two brackets is passed over in one step.
        match = (_to_sign if within else _to_bracket)(text, position)
        assert match is not None, "it may match nothing at all, but match it does"
        before, position = position, match.end()
        if match.lastindex is None:
            if stack or end < 0:
                break
            return elements, text[:begin] + text[end:]
        sign = text[position - 1]
        if sign == _COMMA:
            _take(elements, text[start : position - 1])
            start = position
            continue
        brackets += 1
        if sign in b"[{":
            opens = begin < 0 and sign == _ARRAY and len(stack) == inside - 1
            if opens and (member is None or (stack[0] == _OBJECT and _names(text[before : position - 1], member))):
                start = begin = position
            stack.append(sign)
            continue
        # "[" and "]", "{" and "}" stand two apart in ASCII.
        if not stack or sign - stack.pop() != 2:
            break
        if within:
            end = position - 1
            _take(elements, text[start:end], last=True)
    raise MalformedBody("the body is not a batch in JSON, and none can be made out in it")


def _names(before: bytes, member: bytes) -> bool:
    """Whether what stands before a value ends with the name of this member."""
    name = before.rstrip(BLANKS).removesuffix(b":").rstrip(BLANKS)
    return name.endswith(b'"' + member + b'"') and not name.endswith(b'\\"' + member + b'"')


def _take(elements: list[bytes], element: bytes, last: bool = False) -> None:
    element = element.strip(BLANKS)
    # An array without elements has no last one; a comma without an element is one that is empty, and rejected.
    if element or not last or elements:
        elements.append(element)
        check_event_count(len(elements))
