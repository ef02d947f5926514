"""What the answer to a written webhook means, and what of it the outcome has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from threadline.kernel.limits import WEBHOOK_RESULT_BYTES_MAX

_NOTHING = object()


class Reading(NamedTuple):
    """How the answers of a destination are read."""

    statuses: tuple[tuple[int, int], ...] = ((200, 299),)
    path: str = ""
    value: Any = None
    result: Mapping[str, str] = {}

    @property
    def wants_body(self) -> bool:
        """Whether the body of a success is to be read."""
        return bool(self.path or self.result)

    def is_success(self, status: int, body: bytes) -> bool:
        """Whether an answer is a success."""
        if not any(first <= status <= last for first, last in self.statuses):
            return False
        return not self.path or _same(_at(_content(body), self.path), self.value)

    def taken(self, body: bytes) -> dict[str, Any]:
        """What the outcome has of a success: ``result``, and in ``result_left_out`` what is not there or too long."""
        if not self.result:
            return {}
        content = _content(body)
        values = {name: _at(content, path) for name, path in self.result.items()}
        fitting = {name: value for name, value in values.items() if value is not _NOTHING and _fits(value)}
        left_out = sorted(values.keys() - fitting.keys())
        return {"result": fitting, **({"result_left_out": left_out} if left_out else {})}


def _same(value: Any, wanted: Any) -> bool:
    """Equal, and no number for a switch."""
    return value is not _NOTHING and isinstance(value, bool) == isinstance(wanted, bool) and bool(value == wanted)


def _content(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _NOTHING


def _fits(value: Any) -> bool:
    return len(msgspec.json.encode(value)) <= WEBHOOK_RESULT_BYTES_MAX


def _at(value: Any, path: str) -> Any:
    """What stands at a path; `_NOTHING` where nothing does."""
    for step in path.split("."):
        if isinstance(value, dict):
            value = value.get(step, _NOTHING)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return _NOTHING
    return value
