"""Answers of bounded length: what does not fit is left out, and a list says where to go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from threadline.kernel.errors import InvalidValue, LimitExceeded

AT = "answer_at"
FROM = "answer_from"
"""The arguments of every tool that ask for a part of its answer."""
SHARE_MIN = 512
"""The least that a member of an object gets. With less for each, the object is cut after some of its members."""


class Cut(NamedTuple):
    """Something that was not shown whole."""

    at: str
    """JSON Pointer in the whole answer."""
    start: int
    """The first element, member or character that is missing."""
    of: int
    """How many there are."""


def part(value: Any, at: str, start: int) -> Any:
    """What a JSON Pointer names, from an element, member or character on. Raises `InvalidValue`."""
    for name in map(_name, at.split("/")[1:]):
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isascii() and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            raise InvalidValue(f"{AT}: this answer has nothing at {at[:100]!r}", param=AT)
    if at and not at.startswith("/"):
        raise InvalidValue(f"{AT}: {at[:100]!r} is no JSON Pointer, such as /events/0", param=AT)
    if not start:
        return value
    if not isinstance(value, list | dict | str) or start >= len(value):
        raise InvalidValue(f"{FROM}: there is nothing from {start} on", param=FROM)
    return dict(list(value.items())[start:]) if isinstance(value, dict) else value[start:]


def bounded(value: Any, size_max: int, at: str = "", start: int = 0) -> tuple[Any, list[Cut]]:
    """As much of a JSON value as fits into so many bytes of JSON, and what is missing, in the order of the answer.

    ``at`` and ``start`` say which part of the whole answer the value is. Each call shows more than nothing of the
    value itself, so whoever follows the cuts comes to an end. Raises `LimitExceeded` for a name longer than that.
    """
    shown, cuts = _bounded(value, size_max, at, start)
    if cuts and cuts[0] == Cut(at, start, start + len(value)):
        raise LimitExceeded("a name in this answer is longer than an answer may be; ask for less of it")
    return shown, cuts


def _bounded(value: Any, size_max: int, at: str, start: int) -> tuple[Any, list[Cut]]:
    if size(value) <= size_max:
        return value, []
    if isinstance(value, str):
        shown = _beginning(value, size_max)
        return shown, [Cut(at, start + len(shown), start + len(value))]
    if isinstance(value, dict):
        left = size_max - 2 - sum(size(name) + 2 for name in value)
        if left >= SHARE_MIN * len(value):
            return _members(value, left, at)
    names = list(value) if isinstance(value, dict) else [str(start + index) for index in range(len(value))]
    elements = list(value.values()) if isinstance(value, dict) else value
    left, shown_elements = size_max - 2, []
    cuts: list[Cut] = []
    for name, element in zip(names, elements, strict=True):
        label = size(name) + 2 if isinstance(value, dict) else 1
        if label + size(element) <= left:
            left -= label + size(element)
            shown_elements.append(element)
            continue
        if not shown_elements and left - label >= SHARE_MIN // 4 and isinstance(element, list | dict | str):
            # Of an element that alone is too large the beginning is shown, or nobody would ever come past it.
            beginning, cuts = _bounded(element, left - label, _pointer(at, name), 0)
            shown_elements.append(beginning)
        break
    count = len(shown_elements)
    if count < len(elements):
        cuts = [*cuts, Cut(at, start + count, start + len(elements))]
    if isinstance(value, dict):
        return dict(zip(names, shown_elements, strict=False)), cuts
    return shown_elements, cuts


def _members(value: dict[str, Any], left: int, at: str) -> tuple[dict[str, Any], list[Cut]]:
    """An object with all its members, the small ones whole and the large ones each with the same share of ``left``."""
    sizes = {name: size(element) for name, element in value.items()}
    waiting = sorted(value, key=lambda name: sizes[name])
    while waiting and sizes[waiting[0]] * len(waiting) <= left:
        left -= sizes[waiting.pop(0)]
    share = left // len(waiting) if waiting else 0
    shown, cuts = {}, []
    for name, element in value.items():
        if name in waiting and isinstance(element, list | dict | str):
            shown[name], missing = _bounded(element, max(share, 2), _pointer(at, name), 0)
            cuts += missing
        else:
            shown[name] = element
    return shown, cuts


def size(value: Any) -> int:
    """Bytes of a value as JSON."""
    return len(msgspec.json.encode(value))


def _beginning(text: str, size_max: int) -> str:
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if size(text[:middle]) <= size_max else (low, middle - 1)
    return text[:low]


def _pointer(at: str, name: str) -> str:
    return f"{at}/{name.replace('~', '~0').replace('/', '~1')}"


def _name(escaped: str) -> str:
    return escaped.replace("~1", "/").replace("~0", "~")


def shown_cuts(cuts: Sequence[Cut]) -> list[dict[str, Any]]:
    """The arguments that show what is missing."""
    return [{AT: cut.at, FROM: cut.start, "of": cut.of} for cut in cuts]
