"""What the audit log says of a call: who, what, about what, with which parameters in short."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from threadline.engine.context import Context
from threadline.kernel.audit import AuditEntry
from threadline.kernel.errors import ThreadlineError, Unavailable
from threadline.kernel.limits import AUDIT_LIST_LENGTH_MAX, AUDIT_TEXT_LENGTH_MAX
from threadline.kernel.operation import Operation

_PLAIN = re.compile(rf"[\w.:@+*-]{{1,{AUDIT_TEXT_LENGTH_MAX}}}")
"""Names, addresses, instants: what has no blank. Anything else is text that somebody wrote, perhaps about somebody."""
_WRITTEN = frozenset({"reason", "note", "comment", "request"})
"""Parameters of any operation in which somebody writes what they like."""


def entry_of(operation: Operation, path: tuple[str, ...], context: Context, params: Any, outcome: str) -> AuditEntry:
    """The entry of a call with these parameters; ``path`` are the names of those in the path."""
    given = _given(operation, params)
    return AuditEntry(
        at=context.engine.clock(),
        who=context.caller.name or context.source,
        credential=context.caller.credential,
        surface=context.caller.surface,
        operation=operation.name,
        outcome=outcome,
        object={name: str(given[name]) for name in path if name in given},
        given={name: value for name, value in given.items() if name not in path},
    )


def note(operation: Operation, path: tuple[str, ...], context: Context, params: Any, outcome: str) -> None:
    """Write the entry of a call that has ended. Raises `Unavailable` if that cannot be done."""
    try:
        context.engine.audit_log.note(context.workspace, entry_of(operation, path, context, params, outcome))
    except ThreadlineError as error:
        raise Unavailable(
            f"{operation.name} ended with {outcome!r}, but the audit log could not be written: {error}",
            hint="Look whether it was done before you send it again.",
        ) from error


def _default(field: msgspec.structs.FieldInfo) -> Any:
    made = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return msgspec.to_builtins(made, enc_hook=str)


def _given(operation: Operation, params: Any) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for field in msgspec.structs.fields(operation.params):
        value = msgspec.to_builtins(getattr(params, field.name), enc_hook=str)
        hidden = field.encode_name in operation.private or field.encode_name in _WRITTEN
        if not hidden and value is not None and (field.required or value != _default(field)):
            given[field.encode_name] = _short(value)
    return given


def _short(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) else f"text of {len(value)}"
    if isinstance(value, Mapping):
        return f"object of {len(value)}"
    if isinstance(value, list | tuple):
        return [_short(item) for item in value] if len(value) <= AUDIT_LIST_LENGTH_MAX else f"list of {len(value)}"
    return type(value).__name__
