"""What a producer says happened (`Event`), and its place in one thread (`Recorded`).

The schema of an event: every fact about a customer, user or contact enters as one, over HTTP, from a queue, an import
or Python. It is immutable, and idempotent by its key: sent twice it is recorded once.

    >>> from threadline.kernel.event import Event, Identifier
    >>> order = Event(
    ...     type="purchase_completed", identifiers=(Identifier("user_id", "ada"),), key="order-1",
    ...     occurred_at=1_767_225_600_000_000, properties={"total": 30, "currency": "EUR"},
    ... )
    >>> order.why, order.is_news
    ('live', True)

Options of an `Event`: ``source`` (deduplication is by source and key), ``workspace`` (the tenant), ``context``,
``historical`` (a back-fill: recorded, and nothing is sent because of it), ``schema_version``. Its ``marks`` say what
was corrected on the way in. A `Receipt` answers for each event whether it was accepted, a duplicate, a conflict or
rejected.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import Annotated, Any, Literal, cast

import msgspec

from threadline.kernel.disclosure import SENTENCE
from threadline.kernel.ids import short_hash
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import EVENT_KEY_LENGTH_MAX, WORKSPACE_LENGTH_MAX
from threadline.kernel.why import HISTORY, LIVE, NEWS, REASONS, Why

_THREAD_ID = re.compile("[0-9a-f]{32}")
WORKSPACE_FORM = f"1 to {WORKSPACE_LENGTH_MAX} printable characters without /"
"""What a workspace may be named, in words."""


@lru_cache(maxsize=1_024)
def is_workspace(name: str) -> bool:
    """Whether this is a valid name for a workspace."""
    # Rows are kept under workspace/name, so a slash would let one workspace reach into another.
    return 0 < len(name) <= WORKSPACE_LENGTH_MAX and name.isprintable() and "/" not in name


CLAMPED = "clamped"
"""The mark of an event whose own time cannot be believed, since it lay too far ahead, or before 1990: the time of
receipt stands in its place."""
CLOCK_CORRECTED = "clock_corrected"
"""The mark of an event whose time was shifted by what the producer's clock was off."""
TIME_IGNORED = "time_ignored"
"""The mark of an event that came with a time which cannot be read or contradicts another; the others stand."""
IDENTIFIER_IGNORED = "identifier_ignored"
"""The mark of an event with an identifier that names nobody: no address, no number, or junk. It is in `Event.wire`."""
ZONE_IGNORED = "zone_ignored"
"""The mark of an event whose `context.timezone` names no zone: it counts as one that names none."""
ZONE_TRANSLATED = "zone_translated"
"""The mark of an event whose `context.timezone` is a name of Windows: the zone it was taken for is in `Event.wire`."""
VALUE_IGNORED = "value_ignored"
"""The mark of an event with a value that something reads and cannot, such as an amount of `29 EUR`. Its path is in
`Event.wire`, and it counts as one that is missing."""
CLAIMED_HISTORY = "claimed_history"
"""The mark of a back-filled event that came with a write key. Those are public: anybody can claim this of any event."""

NOT_COUNTED = "not_counted"
"""The mark of an event that says what its source may not say: it stands in the log and counts for nothing."""
BY_MACHINE = "by_machine"
"""The mark of an event that Threadline knows a machine to have caused: no view and no question takes it for what a
person did, see `threadline.kernel.event_type.EventType.of_machine`."""
GLOBAL_PRIVACY_CONTROL = "global_privacy_control"
"""The mark of an event that a browser sent with the header `Sec-GPC: 1`: its user has agreed to nothing by default."""
MARKS = (
    CLAMPED,
    CLOCK_CORRECTED,
    TIME_IGNORED,
    IDENTIFIER_IGNORED,
    ZONE_IGNORED,
    ZONE_TRANSLATED,
    VALUE_IGNORED,
    CLAIMED_HISTORY,
    NOT_COUNTED,
    BY_MACHINE,
    GLOBAL_PRIVACY_CONTROL,
)
"""All of them; an event that Threadline makes may have the reason for it beside them, see `Event.why`."""


class Identifier(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """One way to name a person: a kind such as ``user_id`` and the value under that kind."""

    kind: str
    value: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}"


class Event(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """Something that happened to one person, as a producer reports it. Immutable.

    ``key`` is the producer's idempotency key: (workspace, source, key) is unique for ever, so the
    same event sent twice is recorded once. All times are microseconds since 1970-01-01 UTC. It is stored as
    an array: new fields go at the end.
    """

    type: str
    identifiers: tuple[Identifier, ...]
    occurred_at: int
    key: str
    source: str = "direct"
    source_type: str = "direct"
    """``external`` (came over a wire), ``internal`` (made by Threadline) or ``direct`` (Python)."""
    workspace: str = "default"
    properties: dict[str, Any] = {}
    context: dict[str, Any] = {}
    received_at: int = 0
    """When it reached us. 0 means: stamp it with the clock when it is recorded."""
    sent_time: int | None = None
    """The time as the producer gave it, before any correction; None if it gave none. Part of the payload."""
    marks: tuple[str, ...] = ()
    """What was done to it on the way in, e.g. `CLOCK_CORRECTED`, `CLAMPED`, `CLAIMED_HISTORY`; of an event that
    Threadline made for another reason than that something live came in, the reason as well (`Event.why`)."""
    historical: bool = False
    """True for back-filled history: it counts as known from `occurred_at` where that is before `recorded_at`."""
    schema_version: str = ""
    object_id: str = ""
    object_ref: str = ""
    """The provider's own name of the object that the event is about."""
    wire: dict[str, Any] = {}
    """Fields of the wire message with no place of their own, so that the message can be restored as it came."""

    @property
    def why(self) -> Why:
        """Why it happened."""
        for mark in self.marks:
            if mark in REASONS:
                return cast(Why, mark)
        return HISTORY if self.historical else LIVE

    @property
    def is_news(self) -> bool:
        """Whether it happened now, and is not only noticed now: what is sent because of an event asks this first."""
        return self.why in NEWS

    @property
    def is_activity(self) -> bool:
        """Whether somebody did it, as far as is known: what Threadline made of an event, or noted, is no second thing
        that the person did."""
        return self.source_type != "internal"


def marks_of(why: Why) -> tuple[str, ...]:
    """The marks of an event that Threadline makes for a reason."""
    return () if why == LIVE else (why,)


class Recorded(msgspec.Struct, frozen=True, gc=False):
    """An `Event` with its place in one thread. Sequences run 1, 2, 3 … without gaps per thread."""

    event: Event
    id: str
    thread: str
    sequence: int
    recorded_at: int
    cause: str = ""
    """The id of the event that made this one (policies, timers); empty for what came from outside."""

    @property
    def known_at(self) -> int:
        """The instant from which this event counts as known in reads of the past, microseconds."""
        return min(self.event.occurred_at, self.recorded_at) if self.event.historical else self.recorded_at


@key_fields("status", "id", "code", "message")
class Receipt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one event that was handed in. Once a receipt is returned, that is durable."""

    status: Literal["accepted", "duplicate", "conflict", "rejected"]
    id: str = ""
    """The event's id; for a duplicate or a conflict the first event's."""
    person: str = ""
    thread: str = ""
    sequence: int = 0
    code: str = ""
    """Why it was rejected, machine-readable; ``erased`` for a duplicate of an event that was erased."""
    message: Annotated[str, SENTENCE] = ""


def source_type_of(source: str) -> str:
    """The `Event.source_type` of what is told in this process under a source: its own name, or that of somebody else.

    Of what came over a wire no name says anything: whoever makes a credential may give it any.
    """
    return "direct" if source == "direct" else "external"


def event_id(workspace: str, source: str, key: str) -> str:
    """The id of the event with this idempotency key: 128 bits, 32 hex digits, the same for ever.

    Because the id is a function of the key, a duplicate finds the first event by its own id, and the
    uniqueness of ids in the log *is* the uniqueness of keys.
    """
    # `short_hash` of the three, written out: this is asked of every event.
    text = f"{workspace}\0{source}\0{key}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def key_of_name(name: str) -> str:
    """The key of an event that its producer names on a wire; a name that is too long for a key is hashed."""
    if len(name) <= EVENT_KEY_LENGTH_MAX:
        return name
    # CloudEvents came first, hence the letters. Without a blank, so that no hash is taken for a pair of theirs.
    return f"ce:{short_hash(name)}"


def identifier_named(text: str) -> Identifier:
    """The identifier that a text names: ``kind:value``, or by a value alone a user id."""
    kind, colon, value = text.partition(":")
    return Identifier(kind, value) if colon else Identifier("user_id", text)


def is_thread_id(text: str) -> bool:
    """Whether a text has the form of a thread's id. A user id may have it too."""
    return _THREAD_ID.fullmatch(text) is not None


def thread_id(workspace: str, identifier: Identifier) -> str:
    """The id of the thread that belongs to an identifier: 128 bits, 32 hex digits.

    A thread is a function of its identifier, so two simultaneous first contacts meet in one thread, and the
    order in which events arrive never decides where one is kept.
    """
    text = f"{workspace}\0{identifier.kind}\0{identifier.value}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, person=b"thread").hexdigest()
