"""Which answers to a call are a success."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.definitions.declaring import Form, Problems, listed, parsed, text
from threadline.kernel.errors import InvalidValue

_RANGE = re.compile(r"([1-5])xx|([1-5][0-9]{2})(?:-([1-5][0-9]{2}))?")
_WANTED = "a status such as 202, 200-204 or 2xx"
PATH_FORM = text(
    "a path into JSON, such as results.0.id", r"[A-Za-z0-9_$@-]{1,100}(\.[A-Za-z0-9_$@-]{1,100}){0,9}", most=300
)


def _read_range(written: str) -> tuple[int, int]:
    match = _RANGE.fullmatch(written)
    if match is None:
        raise InvalidValue("it is no status")
    if match[1]:
        return int(match[1]) * 100, int(match[1]) * 100 + 99
    first, last = int(match[2]), int(match[3] or match[2])
    if last < first:
        raise InvalidValue("it ends before it begins")
    return first, last


_STATUS = parsed(_read_range, _WANTED, (str, int), type=["string", "integer"])
_VALUE: Form[Any] = Form(
    (str, int, float, bool),
    "a text, a number, true or false",
    lambda part: part.value,
    {"type": ["string", "number", "boolean"]},
    quotable=False,
)


class Success(msgspec.Struct, frozen=True, kw_only=True):
    """Which answers are a success."""

    statuses: Annotated[
        tuple[tuple[int, int], ...], listed(_STATUS, 1, 20), Meta(description="Statuses, such as 2xx, 202 or 200-204.")
    ] = ((200, 299),)
    path: Annotated[str, PATH_FORM, Meta(description="Where in the JSON of the answer `value` must stand.")] = ""
    value: Annotated[Any, _VALUE, Meta(description="What must stand there.")] = None

    def problems(self, written: Collection[str]) -> Problems:
        """A path without a value, or a value without a path."""
        if ("path" in written) != ("value" in written):
            yield ("path" if "path" in written else "value"), "`path` and `value` belong together; give both or none"
