"""What could not be recorded as it came, and what is kept of it until somebody decides about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import msgspec

from threadline.kernel.errors import EventRejected
from threadline.kernel.event import Event, Receipt
from threadline.kernel.event_limits import is_finite
from threadline.kernel.typed import prepared

KEY_LENGTH_MAX = 2_000
"""Characters of a key by which an entry can be found; no event has one of that length."""

TEXT_LENGTH_MAX = 32_768
"""Characters of a payload that is kept as text because JSON has no form for it."""

ROW_FORM = "row"
"""The form of entries that came of rows of an import, which are history: so are their corrections, made as events."""

Status = Literal["open", "resubmitted", "dismissed"]


class Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a request said about all its messages. Without it a message would be read as a different event."""

    kind: str = ""
    """The call that the request's path named; empty for a batch, whose messages name their own."""
    sent: int | None = None
    """The producer's clock when it sent, microseconds."""
    context: dict[str, Any] | None = None
    integrations: dict[str, Any] | None = None
    historical: bool = False


@prepared
class RejectedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An event that was not recorded, why, and what was done about it since."""

    id: str
    workspace: str
    source: str
    code: str
    message: str
    received_at: int
    payload: Any
    """The event as it came: the wire's JSON, or Threadline's own form for an event that could be read."""
    form: str = "event"
    """How to read `payload` again: ``segment``, ``cloudevents``, ``native`` for what was to be an event in Threadline's
    own form, ``event`` for one that could be read, ``text`` for what is not JSON."""
    key: str = ""
    """The key that the event has, or would have if it could be read; empty if it has none."""
    envelope: Envelope | None = None
    """What the request said besides the payload; None if the wire has no such thing, or the event could be read."""
    event_id: str = ""
    """For a conflict: the event that holds the same key with another payload."""
    status: Status = "open"
    """``open``, or ``resubmitted`` once a correction was accepted, or ``dismissed``."""
    resolution: str = ""
    """The id of the event that a resubmission recorded, or why the entry was dismissed."""

    @property
    def receipt(self) -> Receipt:
        """The outcome for whoever sent it."""
        return Receipt(status="rejected", code=self.code, message=self.message)


class StoredEntry(NamedTuple):
    """An entry and the version at which it was read: a decision about it holds for that version only."""

    entry: RejectedEntry
    version: int


class Unreadable(NamedTuple):
    """A message of a batch that could not even be read as JSON, in its place among its neighbours."""

    text: str
    error: EventRejected


def keepable(payload: Any) -> tuple[Any, bool]:
    """What the rejected log keeps of a payload, and whether that is the payload itself; else it is what it looks like.

    JSON would turn NaN into null, and whoever corrects the payload could not see what was wrong with it.
    """
    try:
        msgspec.json.encode(payload)
        if is_finite(payload):
            return payload, True
    except (ValueError, TypeError, RecursionError):
        pass
    return as_text(payload), False


def as_text(value: Any) -> str:
    """What a value looks like, cut, as text that every store can hold."""
    return writable(shown(value)[:TEXT_LENGTH_MAX])


def shown(value: Any) -> str:
    """What a value looks like, whole."""
    try:
        return repr(value)
    except RecursionError:
        return "(nested too deeply to be shown)"


def writable(text: str) -> str:
    """Text with what is no Unicode in it written out."""
    return text.encode("utf-8", "backslashreplace").decode()


Reader = Callable[[Any, RejectedEntry], Event]
"""How a payload of one form is read again: (payload, entry) -> event. Raises `EventRejected` if it still is none."""
