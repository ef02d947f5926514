"""The limits of one event, each with the one code and message by which every door refuses what breaks it."""

from __future__ import annotations

from math import isfinite
from typing import Any

from threadline.kernel import limits
from threadline.kernel.errors import EventRejected, LimitExceeded
from threadline.kernel.identity import KIND_FORM, SYSTEM_PREFIX, is_kind


def check_type(type: str, *, internal: bool = False) -> str:
    """The type of an event. Raises `EventRejected`; ``internal``: Threadline itself records it."""
    if not 0 < len(type) <= limits.EVENT_TYPE_LENGTH_MAX:
        message = f"an event type has 1 to {limits.EVENT_TYPE_LENGTH_MAX} characters, not {len(type):,}"
        raise EventRejected("invalid_type", message)
    if not internal and type.startswith(SYSTEM_PREFIX):
        raise EventRejected("reserved_type", f"types that start with {SYSTEM_PREFIX} are Threadline's own")
    return type


def check_key(key: str, *, internal: bool = False) -> str:
    """The idempotency key of an event. Raises `EventRejected`; ``internal``: Threadline itself records it."""
    most = limits.LOGGED_KEY_LENGTH_MAX if internal else limits.EVENT_KEY_LENGTH_MAX
    if not 0 < len(key) <= most:
        raise EventRejected("invalid_key", f"an idempotency key has 1 to {most} characters, not {len(key):,}")
    return key


def check_identifier_count(count: int) -> None:
    """Raise `EventRejected` for more identifiers than an event may have."""
    if count > limits.IDENTIFIERS_PER_EVENT_MAX:
        message = f"an event has at most {limits.IDENTIFIERS_PER_EVENT_MAX} identifiers, not {count:,}"
        raise EventRejected("too_many_identifiers", message)


def check_kind(kind: str) -> None:
    """Raise `EventRejected` for what no kind of identifiers can be called."""
    if not is_kind(kind):
        shown = kind[: limits.IDENTIFIER_KIND_LENGTH_MAX]
        raise EventRejected("invalid_identifier", f"{shown!r} is not an identifier kind: {KIND_FORM}")


def too_deep() -> EventRejected:
    """The refusal of JSON that is nested too deeply."""
    return EventRejected("too_deep", f"JSON may be nested {limits.JSON_DEPTH_MAX} levels deep")


def check_event_count(count: int) -> None:
    """Raise `LimitExceeded` for more events than one request may hold; nothing of it is taken then."""
    if count > limits.BATCH_EVENTS_MAX:
        message = f"a request holds at most {limits.BATCH_EVENTS_MAX:,} events, and nothing of this one was taken"
        raise LimitExceeded(message, hint="send fewer at a time")


def is_finite(value: Any) -> bool:
    """Whether no number in a value of JSON's kinds is NaN or an infinity, which JSON would make null."""
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    return not isinstance(value, list | tuple) or all(map(is_finite, value))


def not_finite() -> EventRejected:
    """The refusal of a number for which JSON has no form."""
    message = "NaN and infinities have no form in JSON; leave the value out, or send it as text"
    return EventRejected("number_out_of_range", message)
