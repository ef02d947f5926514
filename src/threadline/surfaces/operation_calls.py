"""How every surface calls an operation: which it shows, parameters by name, problems in the caller's words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from threadline.engine.context import Context
from threadline.kernel.errors import InvalidValue
from threadline.kernel.operation import Operation, Surface
from threadline.kernel.suggestion import suggestion
from threadline.kernel.typed import readable


def shown(operations: Iterable[Operation], surface: Surface) -> dict[str, Operation]:
    """The operations that a surface shows, by name."""
    return {operation.name: operation for operation in operations if surface in operation.shown_on}


def path_names(operation: Operation) -> tuple[str, ...]:
    """The names of the path's parameters, in the order of the path."""
    return tuple(part[1:-1] for part in operation.path.split("/") if part.startswith("{"))


def field_names(operation: Operation) -> tuple[str, ...]:
    """The names of all parameters."""
    return tuple(_attributes_of(operation.params))


@lru_cache(maxsize=1_000)
def _attributes_of(params: type) -> dict[str, str]:
    # Resolving a struct's annotations takes a tenth of a millisecond: a tenth of what it costs to read a person.
    return {field.encode_name: field.name for field in msgspec.structs.fields(params)}


def convert(operation: Operation, values: Mapping[str, Any], *, strict: bool) -> Any:
    """The operation's parameters from values by name. ``strict=False`` reads numbers and switches from text as well.

    Raises `InvalidValue` that names the parameter and, for an unknown one, the nearest known.
    """
    known = field_names(operation)
    for name in values:
        if name not in known:
            hint = suggestion(str(name), known)
            raise InvalidValue(f"{str(name)[:64]!r} is not a parameter of {operation.name!r}; {hint}")
    try:
        params: Any = msgspec.convert(values, operation.params, strict=strict)
    except msgspec.ValidationError as error:
        raise InvalidValue(readable(error)) from None
    except (ValueError, OverflowError, RecursionError) as error:
        raise InvalidValue(f"the parameters cannot be read: {error}") from None
    if not strict:
        _refuse_nulls(operation, values, params)
    return params


def _refuse_nulls(operation: Operation, values: Mapping[str, Any], params: Any) -> None:
    # Of numbers and choices, msgspec takes the text null for no value, which no document of ours says.
    for name in values:
        if values[name] is not None and getattr(params, _attributes_of(operation.params)[name]) is None:
            raise InvalidValue(f"{name}: expected a value, got `null`; leave it out where none is meant")


def call(operation: Operation, context: Context, values: Mapping[str, Any], *, strict: bool) -> Any:
    """Run an operation and answer its result as the operation gives it."""
    return operation.run(context, convert(operation, values, strict=strict))


def stale_note(operation: Operation, context: Context) -> str:
    """What an answer relies on that is older than the definitions in force, and what to do; empty: nothing is."""
    stale = context.engine.maintenance.stale() if operation.relies_on else ()
    older = [name for name in stale if name in operation.relies_on]
    return f"{', '.join(older)}; run `threadline apply` or call `definitions_apply`" if older else ""
