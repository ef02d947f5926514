"""A store that is open in this process, seen from one workspace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from types import TracebackType
from typing import Any

import msgspec

from threadline.capabilities.foundation.events.recording import Draft, draft, record, unfit
from threadline.engine.context import Context
from threadline.engine.credentials import fresh_key
from threadline.engine.engine import Engine
from threadline.engine.folding.packing import decode_event, encode_event
from threadline.engine.recording.rejected_log import entry_of
from threadline.kernel.errors import EventRejected, InvalidValue
from threadline.kernel.event import Event, Receipt, source_type_of
from threadline.kernel.event_limits import is_finite, not_finite
from threadline.kernel.rejected import RejectedEntry
from threadline.kernel.time import format_time
from threadline.surfaces.operation_calls import convert, run, stale_note
from threadline.surfaces.python.call import Answer, Call, warn_if_stale
from threadline.surfaces.python.messages import instant_of
from threadline.surfaces.python.operations import Operations
from threadline.surfaces.python.recording import Recording


class Threadline(Operations, Recording):
    """An open store, seen from one workspace. Thread-safe. Use it as a context manager, or `close` it.

    Every operation is a method of its group, as in ``shop.segments.members("vip")``: parameters of the address come
    first, in their order, all others by name, and the answer is a msgspec Struct. Errors are those of docs/errors.md,
    all of them `ThreadlineError`. A fork of this process has to open the store anew.
    """

    def __init__(self, engine: Engine, *, workspace: str = "default", source: str = "direct") -> None:
        self.engine = engine
        self.workspace = workspace
        self.source = source
        super().__init__(engine.catalogue.operations)

    def record(self, events: Iterable[Event | Mapping[str, Any]]) -> list[Receipt]:
        """Record events and answer one receipt each, in order: what is ``accepted`` is durable when this returns.

        A mapping has the fields of docs/events.md, and may have a ``source``; without a ``key`` an event that is sent
        again is recorded again. An event that is not well formed is ``rejected`` and stops no other. Raises
        `Unavailable` when the store cannot take events now.
        """
        if isinstance(events, Event | Mapping | str | bytes):
            raise InvalidValue("events: expected a list of events; put a single one in a list")
        now = self.engine.clock()
        drafts = [self._draft(event, now, f"events[{index}]") for index, event in enumerate(events)]
        return record(self.engine, drafts)

    def close(self) -> None:
        """Release the store. What was answered is durable whether or not this is ever called."""
        self.engine.close()

    def __enter__(self) -> Threadline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def call(self, call: Call[Answer], values: Mapping[str, Any], /) -> Answer:
        """Carry out one operation on the store."""
        operation = self.engine.catalogue.operation(call.name)
        context = Context(self.engine, self.workspace, self.engine.now(), self.source)
        self.engine.recorder.refuse_forks()
        with self.engine.recorder.readers.reading() if operation.method == "GET" else nullcontext():
            params = convert(operation, call.given(values), strict=True)
            ran = run(operation, context, params)
            result = b"".join(ran) if operation.media_type else msgspec.to_builtins(ran)
            stale = stale_note(operation, context, params)
        warn_if_stale(call, stale)
        # A copy of its own: what the caller does to it changes nothing that the engine remembers.
        answer: Answer = msgspec.convert(result, call.answer)
        return answer

    def _draft(self, event: object, now: int, label: str) -> Draft | RejectedEntry:
        """What an event becomes. All of them are read before any is recorded."""
        source = self.source
        try:
            if isinstance(event, Event):
                return Draft(_as_logged(event))
            if not isinstance(event, Mapping):
                message = f"{label}: expected an `Event` or a mapping, got `{type(event).__name__}`"
                raise EventRejected("invalid_value", message)
            fields = {name: value for name, value in event.items() if value is not None}
            source = str(fields.pop("source", source))
            made = draft(
                _as_json({"key": fresh_key(), **fields}, label),
                workspace=self.workspace,
                source=source,
                source_type=source_type_of(source),
                received_at=now,
                label=label,
            )
            return made._replace(event=_as_logged(made.event)) if isinstance(made, Draft) else made
        except EventRejected as error:
            if isinstance(event, Event):
                return entry_of(event, error, now)
            return unfit(event, error, workspace=self.workspace, source=source, received_at=now)


def _as_json(fields: dict[str, Any], label: str) -> dict[str, Any]:
    """The fields as JSON has them, without datetimes and decimals: what is folded now is what the log will say."""
    try:
        if (moment := fields.get("occurred_at")) is not None:
            fields["occurred_at"] = format_time(instant_of(moment))
    except InvalidValue as error:
        raise EventRejected("invalid_time", f"{label}.occurred_at: {error}") from None
    try:
        plain: dict[str, Any] = msgspec.to_builtins(fields)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise EventRejected("invalid_value", f"{label}: {error}") from None
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
