"""The Python API: one object for one workspace, with every operation as a method and plain values as answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from datetime import datetime
from types import TracebackType
from typing import Any

import msgspec

from threadline.capabilities.events.recording import Draft, draft, record, unfit
from threadline.engine.context import Context
from threadline.engine.credentials import fresh_key
from threadline.engine.engine import Engine
from threadline.engine.folding.packing import decode_event, encode_event
from threadline.engine.recording.rejected_log import entry_of
from threadline.kernel.errors import EventRejected, InvalidValue
from threadline.kernel.event import Event, source_type_of
from threadline.kernel.event_limits import is_finite, not_finite
from threadline.kernel.operation import Operation
from threadline.kernel.rejected import RejectedEntry
from threadline.kernel.suggestion import suggestion
from threadline.kernel.time import format_time, from_datetime, parse_time
from threadline.surfaces.operation_calls import call, names_in, path_names, shown, stale_note
from threadline.surfaces.python_help import help_of, signature_of

Moment = datetime | str | int
"""A time: an aware datetime, RFC 3339 text, or microseconds since 1970 UTC."""


class StaleAnswer(UserWarning):
    """An answer goes by what is older than the definitions; the message says by what, and what to do."""


class Threadline:
    """An open store, seen from one workspace. Thread-safe. Use it as a context manager, or `close` it.

    Every operation that is shown on Python is a method of its group, as in ``shop.segments.members("vip")``: path
    parameters come first, in their order, all others by name, and the answer is made of dicts, lists, text and numbers.
    ``dir()`` lists them, ``help()`` tells the parameters of each. Errors are those of docs/errors.md, all of them
    `ThreadlineError`. A fork of this process has to open the store anew.
    """

    def __init__(self, engine: Engine, *, workspace: str = "default", source: str = "direct") -> None:
        self.engine = engine
        self.workspace = workspace
        self.source = source
        self._operations = shown(engine.catalogue.operations, "python")

    def record(self, events: Iterable[Event | Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Record events and answer one receipt each, in order: what is ``accepted`` is durable when this returns.

        A mapping has the fields of docs/events.md, and may have a ``source``; without a ``key`` an event that is sent
        again is recorded again. An event that is not well formed is ``rejected`` and stops no other. Raises
        `Unavailable` when the store cannot take events now.
        """
        if isinstance(events, Event | Mapping | str | bytes):
            raise InvalidValue("events: expected a list of events; put a single one in a list")
        now = self.engine.clock()
        drafts = [self._draft(event, now, f"events[{index}]") for index, event in enumerate(events)]
        return [msgspec.to_builtins(receipt) for receipt in record(self.engine, drafts)]

    def track(
        self,
        user_id: str,
        type: str,
        properties: Mapping[str, Any] | None = None,
        *,
        occurred_at: Moment | None = None,
        key: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Record that a user did something and answer the receipt. ``key`` makes a retry harmless."""
        return self.record([_message(type, user_id, properties, occurred_at, key, context)])[0]

    def identify(
        self,
        user_id: str,
        traits: Mapping[str, Any] | None = None,
        *,
        anonymous_id: str | None = None,
        occurred_at: Moment | None = None,
        key: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Tell traits of a user and answer the receipt.

        ``anonymous_id`` and the trait ``email`` join what was known under these.
        """
        message = _message("identify", user_id, traits, occurred_at, key, context)
        if anonymous_id is not None:
            message["identifiers"]["anonymous_id"] = anonymous_id
        if isinstance(email := (traits or {}).get("email"), str):
            message["identifiers"]["email"] = email
        return self.record([message])[0]

    def close(self) -> None:
        """Release the store. What was answered is durable whether or not this is ever called."""
        self.engine.close()

    def __enter__(self) -> Threadline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *names_in(self._operations.values())})

    def __getattr__(self, name: str) -> Any:
        operations = self.__dict__.get("_operations", {})
        if name in operations and operations[name].group is None:
            return self._method(operations[name])
        verbs = {each.verb: each for each in operations.values() if each.group is not None and each.group.name == name}
        if not verbs:
            known = names_in(operations.values())
            raise AttributeError(f"Threadline has no operation {name!r}; {suggestion(name, known)}")
        return _Operations(name, {verb: self._method(operation) for verb, operation in verbs.items()})

    def _method(self, operation: Operation) -> Callable[..., Any]:
        names = path_names(operation)

        def method(*arguments: Any, **values: Any) -> Any:
            if len(arguments) > len(names):
                raise TypeError(f"{operation.name}() takes {len(names)} positional arguments ({', '.join(names)})")
            values = {**dict(zip(names, arguments, strict=False)), **values}
            context = Context(self.engine, self.workspace, self.engine.now(), self.source)
            plain = {name: _plain(value) for name, value in values.items() if value is not None}
            self.engine.recorder.refuse_forks()
            with self.engine.reading() if operation.method == "GET" else nullcontext():
                result = msgspec.to_builtins(call(operation, context, plain, strict=True))
                stale = stale_note(operation, context)
            if stale:
                warnings.warn(f"{operation.name}: older than the definitions: {stale}", StaleAnswer, stacklevel=2)
            return result

        method.__name__ = method.__qualname__ = operation.name
        method.__doc__ = help_of(operation)
        method.__signature__ = signature_of(operation)  # type: ignore[attr-defined]  # what `inspect` looks for
        return method

    def _draft(self, event: object, now: int, place: str) -> Draft | RejectedEntry:
        """What an event becomes. All of them are read before any is recorded."""
        source = self.source
        try:
            if isinstance(event, Event):
                return Draft(_as_logged(event))
            if not isinstance(event, Mapping):
                message = f"{place}: expected an `Event` or a mapping, got `{type(event).__name__}`"
                raise EventRejected("invalid_value", message)
            fields = {name: value for name, value in event.items() if value is not None}
            source = str(fields.pop("source", source))
            made = draft(
                _as_json({"key": fresh_key(), **fields}, place), workspace=self.workspace, source=source,
                source_type=source_type_of(source), received_at=now, place=place,
            )  # fmt: skip
            return made._replace(event=_as_logged(made.event)) if isinstance(made, Draft) else made
        except EventRejected as error:
            if isinstance(event, Event):
                return entry_of(event, error, now)
            return unfit(event, error, workspace=self.workspace, source=source, received_at=now)


class _Operations:
    """The operations of one group, by verb."""

    def __init__(self, group: str, methods: Mapping[str, Callable[..., Any]]) -> None:
        self._group = group
        self._methods = methods

    def __dir__(self) -> list[str]:
        return sorted(self._methods)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        methods = self.__dict__.get("_methods", {})
        if name not in methods:
            raise AttributeError(f"{self._group} has no operation {name!r}; {suggestion(name, methods)}")
        method: Callable[..., Any] = methods[name]
        return method


def _as_json(fields: dict[str, Any], place: str) -> dict[str, Any]:
    """The fields as JSON has them, without datetimes and decimals: what is folded now is what the log will say."""
    try:
        if (moment := fields.get("occurred_at")) is not None:
            fields["occurred_at"] = format_time(_instant(moment))
    except InvalidValue as error:
        raise EventRejected("invalid_time", f"{place}.occurred_at: {error}") from None
    try:
        plain: dict[str, Any] = msgspec.to_builtins(fields)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise EventRejected("invalid_value", f"{place}: {error}") from None
    return plain


def _as_logged(event: Event) -> Event:
    """The event as the log will tell it, for JSON gives some of what Python can hold another form.

    What comes without a source of its own is read like this where it is recorded. Raises `EventRejected` for a number
    that JSON would make null.
    """
    if event.source_type == "direct":
        return event
    try:
        encoded = encode_event(event)
        if b"null" in encoded and not is_finite((event.properties, event.context, event.wire)):
            raise not_finite()
        return decode_event(encoded)
    except (ValueError, TypeError, OverflowError, RecursionError, msgspec.MsgspecError):
        return event  # which is refused for that where it is recorded


def _message(
    type: str,
    user_id: str,
    properties: Mapping[str, Any] | None,
    occurred_at: Moment | None,
    key: str | None,
    context: Mapping[str, Any] | None,
) -> dict[str, Any]:
    if not isinstance(user_id, str):
        raise InvalidValue(f"user_id: expected text, got {user_id!r}; a number names people as str(number)")
    return {
        "type": type,
        "identifiers": {"user_id": user_id},
        "properties": properties,
        "occurred_at": occurred_at,
        "key": key,
        "context": context,
    }


def _instant(moment: Moment) -> int:
    if isinstance(moment, datetime):
        return from_datetime(moment)
    if isinstance(moment, str):
        return parse_time(moment)
    if type(moment) is int:
        return moment
    raise InvalidValue(f"{moment!r} is not a time: give a datetime with a zone, RFC 3339 text or microseconds")


def _plain(value: Any) -> Any:
    """A parameter as operations take it: times are text there."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InvalidValue(f"{value!r} has no time zone; attach one, e.g. tzinfo=timezone.utc")
        return value.isoformat()
    return msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else value
