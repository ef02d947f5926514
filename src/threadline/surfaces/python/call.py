"""What a method hands on: which operation, with which values, and what type its answer has."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

from threadline.kernel.errors import InvalidValue
from threadline.kernel.operation import Operation
from threadline.surfaces.operation_calls import field_names

Answer = TypeVar("Answer")
Item = TypeVar("Item")
Many: TypeAlias = list[Item] | tuple[Item, ...]
"""Several values of one parameter."""
Moment: TypeAlias = datetime | str
"""A time: an aware datetime or RFC 3339 text."""


class StaleAnswer(UserWarning):
    """An answer goes by what is older than the definitions; the message says by what, and what to do."""


def warn_if_stale(call: Call[Any], note: str, frames: int = 4) -> None:
    """Warn whoever called the method that made this call, so many frames up: one less where it is awaited."""
    if note:
        warnings.warn(f"{call.name}: older than the definitions: {note}", StaleAnswer, stacklevel=frames)


@dataclass(frozen=True, slots=True)
class Call(Generic[Answer]):
    """One operation, as the Python API calls it here or over HTTP."""

    name: str
    method: Literal["GET", "POST", "DELETE"]
    path: str
    answer: Any
    """The type of the answer: `Answer`, which may be no class."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """The optional parameters with what holds where they are not given."""
    repeatable: bool = True
    """Whether sending it twice changes nothing that sending it once does not."""

    def given(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values that a caller has chosen, as JSON has them."""
        chosen = {name: value for name, value in values.items() if not self._is_default(name, value)}
        return {name: _plain(value) for name, value in chosen.items()}

    def _is_default(self, name: str, value: Any) -> bool:
        if name not in self.defaults:
            return False
        default = self.defaults[name]
        return value is None or value is default or (type(value) is type(default) and bool(value == default))


def call_of(operation: Operation) -> Call[Any]:
    """The call of an operation that is known at run time only."""
    fields = [field for field in msgspec.structs.fields(operation.params) if not field.required]
    defaults = {
        param.encode_name: param.default if param.default_factory is msgspec.NODEFAULT else param.default_factory()
        for param in fields
    }
    repeatable = is_repeatable(operation)
    return Call(operation.name, operation.method, operation.path, operation.result, defaults, repeatable)


def is_repeatable(operation: Operation) -> bool:
    """Whether calling it twice changes nothing that calling it once does not."""
    # What names its request is done once; see `threadline.capabilities.foundation.events.requests`.
    return operation.method != "POST" or "request" in field_names(operation)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InvalidValue(f"{value!r} has no time zone; attach one, e.g. tzinfo=timezone.utc")
        return value.isoformat()
    return msgspec.to_builtins(value)
