"""JSON of producers: looked over without parsing it, read a message at a time within the limits, placed in time."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from threadline.kernel.canonical import format_number
from threadline.kernel.errors import EventRejected, InvalidValue, MalformedBody
from threadline.kernel.event import CLAMPED, CLOCK_CORRECTED, TIME_IGNORED, Identifier
from threadline.kernel.event_limits import check_event_count, check_identifier_count, too_deep
from threadline.kernel.limits import (
    EVENT_BYTES_MAX,
    FUTURE_MAX_SECONDS,
    JSON_DEPTH_MAX,
    REQUEST_BYTES_MAX,
    SENDING_SECONDS_MAX,
)
from threadline.kernel.rejected import Unreadable
from threadline.kernel.time import EARLIEST, SECOND, parse_time

# A string that never ends is one token up to the end of the text. Were it none, each quote inside it would be tried
# as the beginning of a string again, which takes quadratic time on hostile text.
# --- text that is not parsed -----------------------------------------------------------------------

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


# --- one message -----------------------------------------------------------------------------------

_FUTURE_MAX = FUTURE_MAX_SECONDS * SECOND
_SENDING_MAX = SENDING_SECONDS_MAX * SECOND
_decode = msgspec.json.Decoder().decode
_pack = msgspec.msgpack.Encoder().encode


def read_json(raw: bytes, bytes_max: int = EVENT_BYTES_MAX) -> Any:
    """The value of JSON text. Raises `EventRejected` with the code of the limit or rule that it breaks."""
    if len(raw) > bytes_max:
        raise EventRejected("too_large", f"the message has {len(raw)} bytes; at most {bytes_max} are taken")
    if depth_bound(raw) > JSON_DEPTH_MAX and depth(raw) > JSON_DEPTH_MAX:
        raise too_deep()
    try:
        value = _decode(raw)
        # What MessagePack cannot hold could not be stored: integers beyond 64 bits, and nothing else that JSON has.
        _pack(value)
    except msgspec.ValidationError as error:
        raise EventRejected("number_out_of_range", str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise EventRejected("invalid_json", str(error)) from None
    except OverflowError:
        raise EventRejected("number_out_of_range", "an integer does not fit into 64 bits; send it as text") from None
    return value


def read_object(raw: bytes, bytes_max: int = EVENT_BYTES_MAX) -> dict[str, Any]:
    """As `read_json`, for text that must be an object."""
    value = read_json(raw, bytes_max)
    if type(value) is not dict:
        raise EventRejected("not_an_object", f"a message is a JSON object; this is {json_type(value)}")
    return value


def read_array(text: bytes, member: bytes | None) -> tuple[list[Any], bytes]:
    """The elements of a batch that cannot be read as a whole, each by itself, and the text without them.

    Raises `MalformedBody` if no element can be made out, and `LimitExceeded` for too many.
    """
    elements, rest = split_array(text, member)
    return [_element(raw) for raw in elements], rest


def _element(raw: bytes) -> Any:
    try:
        return read_json(raw, REQUEST_BYTES_MAX)
    except EventRejected as error:
        return Unreadable(raw.decode("utf-8", "backslashreplace"), error)


def is_no_message(body: bytes, code: str) -> bool:
    """Whether a body that was refused for ``code`` could be no message even without that fault: it is no object.

    What is too large is not looked into.
    """
    return code in ("invalid_json", "not_an_object") or (code != "too_large" and body.lstrip(BLANKS)[:1] != b"{")


def json_type(value: Any) -> str:
    """What JSON calls the type of a value, for messages."""
    return _TYPE_NAMES.get(type(value), "a value of another kind")


_TYPE_NAMES = {
    dict: "an object",
    list: "an array",
    str: "text",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
}


def wrong_type(field: str, expected: str, value: Any) -> EventRejected:
    """The refusal of a field that holds another type than it should."""
    return EventRejected("wrong_type", f"`{field}` must be {expected}, not {json_type(value)}")


def text_field(message: dict[str, Any], field: str) -> str:
    """A field that may hold text or a number, as text; null and absence are the empty text."""
    value = message.get(field)
    if value is None:
        return ""
    if type(value) is str:
        return value
    if type(value) is int:
        return str(value)
    if type(value) is float:
        # As JavaScript would print it, so that 12.0 and 12 name the same user.
        return format_number(value)
    raise wrong_type(field, "text or a number", value)


def time_field(message: dict[str, Any], field: str) -> int | None:
    """The instant in a field, microseconds; None if it is null or absent."""
    value = message.get(field)
    if value is None:
        return None
    if type(value) is not str:
        raise wrong_type(field, "a time as text, like 2026-03-01T12:00:00Z", value)
    try:
        return parse_time(value)
    except InvalidValue as error:
        raise EventRejected("invalid_time", f"`{field}`: {error}") from None


def usable_time(message: dict[str, Any], field: str, marks: list[str]) -> int | None:
    """As `time_field`, for one of several clocks: one that cannot be read is marked, and as good as absent."""
    if field not in message:
        return None
    try:
        return time_field(message, field)
    except EventRejected:
        if TIME_IGNORED not in marks:
            marks.append(TIME_IGNORED)
        return None


def place_in_time(stamped: int | None, sent: int | None, received_at: int) -> tuple[int, tuple[str, ...]]:
    """When it occurred, and the marks of what was done to the time that the producer told.

    ``said`` and ``sent`` are the producer's clock, at the event and at sending. If that clock is ahead by more than a
    second, or behind by more than a message can be under way, the age of the event is kept instead of its time:
    received_at − (sent − said).
    """
    if stamped is None:
        return received_at, ()
    at, marks = stamped, ()  # type: int, tuple[str, ...]
    behind = 0 if sent is None else received_at - sent
    if sent is not None and not -SECOND <= behind <= _SENDING_MAX:
        if sent < stamped - SECOND or stamped + behind < EARLIEST:
            # Nothing is sent before it happens, or thousands of years after: such a clock says nothing.
            marks = (TIME_IGNORED,)
        else:
            at, marks = stamped + behind, (CLOCK_CORRECTED,)
    if at > received_at + _FUTURE_MAX:
        return received_at, (*marks, CLAMPED)
    return at, marks


def check_identifiers(identifiers: list[Identifier]) -> tuple[Identifier, ...]:
    """The identifiers, if there is one and they are not too many."""
    if not identifiers:
        raise EventRejected("no_identifier", "nothing says whose event it is; give a user id or an anonymous id")
    check_identifier_count(len(identifiers))
    return tuple(identifiers)
