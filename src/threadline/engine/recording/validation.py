"""Validation, without a store: what an event must satisfy, its identifiers in their normal form, its id and digest."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from threadline.engine.folding.packing import body_bytes_max, decode_event, encode_event, nested_beyond, payload_digest
from threadline.engine.two_generation_cache import TwoGenerationCache
from threadline.kernel import limits
from threadline.kernel.calendar import zone_named, zone_translated
from threadline.kernel.errors import EventRejected, InvalidValue
from threadline.kernel.event import (
    CLAIMED_HISTORY,
    CLAMPED,
    IDENTIFIER_IGNORED,
    NOT_COUNTED,
    VALUE_IGNORED,
    WORKSPACE_FORM,
    ZONE_IGNORED,
    ZONE_TRANSLATED,
    Event,
    Identifier,
    event_id,
    is_workspace,
    thread_id,
)
from threadline.kernel.event_limits import (
    check_identifier_count,
    check_key,
    check_kind,
    check_type,
    is_finite,
    not_finite,
    too_deep,
)
from threadline.kernel.event_type import UNSPOKEN, EventTypes
from threadline.kernel.identity import IdentityRules
from threadline.kernel.reading import UNREAD_MAX, Reading, ReadValues
from threadline.kernel.requirement import Requirement
from threadline.kernel.store import Check, Delete, Put
from threadline.kernel.time import EARLIEST, LATEST, SECOND

NAMES_REMEMBERED = 30_000
KINDS_REMEMBERED = 1_000
RESOLVED_REMEMBERED = 50_000
"""Sets of identifiers of one workspace."""
WORKSPACES_REMEMBERED = 16
PROBLEM_LENGTH_MAX = 500

_BELIEVED_FROM = limits.BELIEVED_FROM_SECONDS * SECOND
_SMALL_BYTES = limits.LOGGED_EVENT_BYTES_MAX // 2

TOO_MANY_CHANGES = "too_many_changes"
"""Code of an event whose consequences no batch can hold."""
PROJECTION_FAILED = "projection_failed"
"""Code of an event about which a projection has raised."""
BEING_ERASED = "being_erased"
"""Code of an event that names a person who is being erased; it is not logged as rejected."""
FENCED = "fenced"
"""Code of a request whose own conditions (a lease, a pending timer) no longer hold; it is not logged as rejected."""

# --- identifiers ------------------------------------------------------------------------------


class ResolvedIdentifier(msgspec.Struct, frozen=True, gc=False):
    """An identifier in its normal form and its thread."""

    identifier: Identifier
    thread: str
    priority: int
    identifies: bool
    joins: bool = True
    former: tuple[str, ...] = ()
    """The threads of other forms, in which an earlier version may know the same person. Events go into none of them."""

    def rank(self) -> tuple[int, str, str]:
        """The strongest identifier has the lowest rank; the order is the same for everyone."""
        return (self.priority, self.identifier.kind, self.identifier.value)


class IdentifierResolver:
    """Identifiers as given -> `ResolvedIdentifier`; the latest are cached."""

    def __init__(self, rules: IdentityRules) -> None:
        self._rules = rules
        # Keyed by text and holding structs that the garbage collector does not track: tens of thousands of
        # cached names must not lengthen its passes.
        self._known: TwoGenerationCache[str, ResolvedIdentifier] = TwoGenerationCache(NAMES_REMEMBERED)
        self._kinds: set[str] = set()

    def of(self, workspace: str, identifier: Identifier) -> ResolvedIdentifier | None:
        """The resolved identifier, or None for junk. Raises `EventRejected` for an invalid kind."""
        if identifier.kind not in self._kinds:
            self._admit(identifier.kind)
        key = f"{workspace}\0{identifier.kind}\0{identifier.value}"
        named = self._known.get(key)
        if named is None:
            normal = self._rules.normalise(identifier)
            if normal is None:
                return None
            priority = self._rules.kind(normal.kind).priority
            identifies, joins = self._rules.identifies(normal), self._rules.joins(normal)
            former = tuple([thread_id(workspace, form) for form in self._rules.former_forms(identifier, normal)])
            named = ResolvedIdentifier(normal, thread_id(workspace, normal), priority, identifies, joins, former)
            self._known.put(key, named)
        return named

    def forms(self, workspace: str, identifier: Identifier) -> list[ResolvedIdentifier]:
        """Each form of an identifier under which its person may be known, with its own thread; for recorded events."""
        forms = (identifier, *self._rules.forms(identifier))
        priority = self._rules.kind(identifier.kind).priority
        return [
            ResolvedIdentifier(form, thread_id(workspace, form), priority, self._rules.identifies(form))
            for form in dict.fromkeys(forms)
        ]

    def nobody(self, identifiers: Iterable[Identifier]) -> str:
        """Why none of these identifiers finds anybody."""
        rules = self._rules
        why = [rules.problem(identifier) or f"{identifier.kind} does not identify" for identifier in identifiers]
        usable = "no usable identifier: give a user_id, anonymous_id, email, phone or external id"
        return "; ".join((usable, *why))[:PROBLEM_LENGTH_MAX]

    def _admit(self, kind: str) -> None:
        check_kind(kind)
        if len(self._kinds) >= KINDS_REMEMBERED:  # producers choose kinds freely, so the cache is bounded
            self._kinds.clear()
        self._kinds.add(kind)


# --- events -----------------------------------------------------------------------------------


class RecordRequest(NamedTuple):
    """One event to record and what must hold or be written with it."""

    event: Event
    cause: str = ""
    expected: int | None = None
    """The position its person must be at, for callers that decide on what they have read."""
    writes: tuple[Put | Delete | Check, ...] = ()
    """Further writes of the same batch, such as taking a fired timer away under a lease."""
    known: bool = False
    """Whether the identifiers are in their stored form: the definitions in force are not applied to them."""


class ValidatedEvent(msgspec.Struct, gc=False):
    """A request whose event has passed every check that needs no store."""

    position: int
    """Of its request in the call that records it; -1 outside of one."""
    request: RecordRequest
    event: Event
    counts_as: str
    """The type as which it counts, see `EventTypes.counts_as`."""
    id: str
    digest: int
    encoded: bytes
    """The event as JSON, without the time of recording."""
    names: tuple[ResolvedIdentifier, ...]
    """Who is meant, the strongest identifier first."""
    threads: tuple[str, ...] = ()
    """The threads under which the people of an event may be known: those of its names, then those of former forms."""


class RefusedEvent(NamedTuple):
    """A request whose event cannot be recorded, and why."""

    request: RecordRequest
    error: EventRejected


class UnrecordableEvents(Exception):
    """Some events of an attempt cannot be recorded, which only its work has shown."""

    def __init__(self, positions: Sequence[int], code: str, message: str) -> None:
        super().__init__(message)
        self.positions = positions
        """Of their requests in the call; empty where only the caller knows them."""
        self.code = code


Checked = ValidatedEvent | RefusedEvent
"""What validation makes of a request."""


class _Resolved(msgspec.Struct, frozen=True, gc=False):
    """The identifiers of an event."""

    normal: tuple[Identifier, ...]
    """In their normal form, without junk."""
    names: tuple[ResolvedIdentifier, ...]
    """Those that find the event's person, the strongest first."""
    threads: tuple[str, ...]
    """Of these names, then of their former forms."""
    ignored: tuple[Identifier, ...] = ()
    """Those that name nobody, as they were given."""


class Validator:
    """Validates requests. Needs no lock: a cache entry that a race loses is computed again."""

    def __init__(
        self, rules: IdentityRules, never_ahead: Container[str], types: EventTypes, values: ReadValues
    ) -> None:
        self.identifiers = IdentifierResolver(rules)
        self._types = types
        self._values = values
        self._never_ahead = never_ahead
        self._resolved: dict[str, dict[tuple[Identifier, ...], _Resolved]] = {}

    def check(self, requests: Iterable[RecordRequest], now: int) -> list[Checked]:
        """The result for each request, in order. Raises `InvalidValue` where the caller is at fault, not the event."""
        checked: list[Checked] = []
        for request in requests:
            try:
                checked.append(self.validate(request, now))
            except EventRejected as error:
                checked.append(RefusedEvent(request, error))
        return checked

    def validate(self, request: RecordRequest, now: int) -> ValidatedEvent:
        """The event with its id, digest and bytes, its identifiers normalised and without junk; raises
        `EventRejected`. ``now`` is the time of receipt of an event that bears none."""
        event = request.event
        self._check(event)
        workspace, identifiers = event.workspace, event.identifiers
        # The digest covers the producer's own time, before correction, so that a retry has the same one.
        sent_time = event.sent_time
        if event.occurred_at > now:
            event = self._not_too_far_ahead(event, now)
        elif event.occurred_at < _BELIEVED_FROM:
            event = _not_too_long_ago(event, now)
        if request.known:
            resolved = _resolved([ResolvedIdentifier(i, thread_id(workspace, i), 0, True) for i in identifiers])
        else:
            resolved = self._identifiers_of(workspace, identifiers)
        if not resolved.names:
            raise EventRejected("no_identifier", self.identifiers.nobody(identifiers))
        if not event.received_at or resolved.normal != identifiers:
            event = msgspec.structs.replace(event, identifiers=resolved.normal, received_at=event.received_at or now)
        if resolved.ignored:
            event = _without(event, resolved.ignored)
        if (zone := event.context.get("timezone")) and event.source_type != "internal":
            event = _with_zone(event, zone)
        if (counts_as := self._types.counts_as(event)) is UNSPOKEN:
            event = msgspec.structs.replace(event, marks=(*event.marks, NOT_COUNTED))
        try:
            same = sent_time == event.sent_time
            digest = payload_digest(event if same else msgspec.structs.replace(event, sent_time=sent_time))
            id = event_id(workspace, event.source, event.key)
            encoded = encode_event(event)
            if event.source_type == "direct":
                event = _as_read(event, encoded)
            if unread := self._unread(event):
                # Not before: what a program gives may be a number or a time only once it is JSON.
                event = _without_values(event, unread)
                encoded = encode_event(event)
        except (ValueError, TypeError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
            raise EventRejected("invalid_value", f"the event cannot be written as JSON: {error}") from None
        if (
            len(encoded) > _SMALL_BYTES
            and (size := body_bytes_max(encoded, now, request.cause)) > limits.LOGGED_EVENT_BYTES_MAX
        ):
            raise EventRejected(
                "too_large",
                f"the event has {size} bytes as the log keeps it; at most {limits.LOGGED_EVENT_BYTES_MAX} are taken",
            )
        # Counting brackets is cheap and nearly always enough: fewer brackets cannot nest deeper.
        if encoded.count(b"[") + encoded.count(b"{") > limits.JSON_DEPTH_MAX and nested_beyond(
            (event.properties, event.context, event.wire), limits.JSON_DEPTH_MAX + 1
        ):
            raise too_deep()
        return ValidatedEvent(-1, request, event, counts_as, id, digest, encoded, resolved.names, resolved.threads)

    def _unread(self, event: Event) -> Sequence[Reading]:
        """The values of an event that something reads and cannot."""
        if event.source_type == "internal" or NOT_COUNTED in event.marks:
            return ()
        return self._values.unread(event)

    def _identifiers_of(self, workspace: str, identifiers: tuple[Identifier, ...]) -> _Resolved:
        """The resolved identifiers of an event, cached."""
        known = self._resolved.get(workspace)
        if known is None or len(known) >= RESOLVED_REMEMBERED:
            if len(self._resolved) >= WORKSPACES_REMEMBERED:
                self._resolved.clear()
            known = self._resolved[workspace] = {}
        resolved = known.get(identifiers)
        if resolved is None:
            names = [self.identifiers.of(workspace, identifier) for identifier in identifiers]
            ignored = [i for i, name in zip(identifiers, names, strict=True) if name is None]
            resolved = known[identifiers] = _resolved([name for name in names if name is not None], ignored)
        return resolved

    def _check(self, event: Event) -> None:
        """Raise `EventRejected` for what no log may hold."""
        if not is_workspace(event.workspace):
            # The caller has chosen the workspace, not the producer: there is no rejected log to put it in.
            raise InvalidValue(f"{event.workspace[:80]!r} cannot name a workspace: {WORKSPACE_FORM}")
        internal = event.source_type == "internal"
        check_type(event.type, internal=internal)
        check_key(event.key, internal=internal)
        if "\0" in event.source:
            # An event's id is made of both with a NUL between them; without NULs in them no two pairs share one.
            raise EventRejected("invalid_value", "the source of an event may hold no NUL")
        check_identifier_count(len(event.identifiers))
        if not EARLIEST <= event.occurred_at <= LATEST:
            raise EventRejected("invalid_time", "the time is outside the years 1 to 9999")

    def _not_too_far_ahead(self, event: Event, now: int) -> Event:
        """The event; if its time lies too far ahead, at the time of receipt, and marked."""
        at_once = event.type in self._never_ahead and event.source_type != "external"
        if event.occurred_at <= now + (0 if at_once else limits.FUTURE_MAX_SECONDS * SECOND):
            return event
        return _clamped(event, now)


def _not_too_long_ago(event: Event, now: int) -> Event:
    """The event; if no clock can have meant its time, at the time of receipt, and marked. History is believed, unless
    anybody may have claimed it."""
    is_history = event.historical and CLAIMED_HISTORY not in event.marks
    if is_history or event.source_type == "internal" or (event.received_at or now) < _BELIEVED_FROM:
        return event
    return _clamped(event, now)


def _clamped(event: Event, now: int) -> Event:
    sent = event.sent_time if event.sent_time is not None else event.occurred_at
    received_at, marks = event.received_at or now, (*event.marks, CLAMPED)
    return msgspec.structs.replace(event, occurred_at=received_at, sent_time=sent, marks=marks)


def _resolved(resolved: Sequence[ResolvedIdentifier], ignored: Sequence[Identifier] = ()) -> _Resolved:
    names = tuple([name for name in resolved if name.identifies])
    if len(names) > 1:
        joining = {name: None for name in names if name.joins}
        # If an event has only non-joining identifiers, the strongest one is used.
        names = tuple(sorted(joining, key=ResolvedIdentifier.rank)) or (min(names, key=ResolvedIdentifier.rank),)
    threads = tuple([name.thread for name in names] + [thread for name in names for thread in name.former])
    return _Resolved(tuple([name.identifier for name in resolved]), names, threads, tuple(ignored))


def _without(event: Event, ignored: Iterable[Identifier]) -> Event:
    """The event marked as one with identifiers that name nobody. They stay readable beside what its wire adds."""
    wire = {**event.wire, "ignored": {identifier.kind: identifier.value for identifier in ignored}}
    return msgspec.structs.replace(event, marks=(*event.marks, IDENTIFIER_IGNORED), wire=wire)


def _with_zone(event: Event, zone: Any) -> Event:
    """The event marked if the zone that it names is none, or one that had to be translated."""
    if zone_named(zone) is None:
        return msgspec.structs.replace(event, marks=(*event.marks, ZONE_IGNORED))
    translated = zone_translated(zone)
    if translated is None:
        return event
    wire = {**event.wire, "zone": translated}
    return msgspec.structs.replace(event, marks=(*event.marks, ZONE_TRANSLATED), wire=wire)


def _without_values(event: Event, readings: Iterable[Reading]) -> Event:
    """The event marked as one with values that cannot be read. They stay where they are, and are named."""
    zones = [reading for reading in readings if reading.meaning == "zone"]
    names = sorted({reading.name for reading in readings if reading.meaning != "zone"})[:UNREAD_MAX]
    new = [mark for mark, unread in ((ZONE_IGNORED, zones), (VALUE_IGNORED, names)) if unread]
    marks = (*event.marks, *(mark for mark in new if mark not in event.marks))
    wire = {**event.wire, "unread": names} if names else event.wire
    return msgspec.structs.replace(event, marks=marks, wire=wire)


def former_digest(event: ValidatedEvent, rules: IdentityRules) -> int:
    """The digest of an event as version 0.1 recorded it, whose identifiers had other forms: a retry has another one."""
    given = event.request.event
    former = tuple([form for identifier in given.identifiers if (form := rules.former(identifier)) is not None])
    return payload_digest(msgspec.structs.replace(given, identifiers=former))


def unmet(events: Iterable[ValidatedEvent], requirements: Mapping[str, Requirement]) -> dict[int, EventRejected]:
    """By position, why events do not meet the requirements of their type. What Threadline adds itself is exempt."""
    errors: dict[int, EventRejected] = {}
    for event in events:
        requirement = requirements.get(event.event.type)
        if requirement is not None and event.event.source_type != "internal":
            try:
                requirement.check(event.event)
            except EventRejected as error:
                errors[event.position] = error
    return errors


def _as_read(event: Event, encoded: bytes) -> Event:
    """An event from Python as a refold reads it from the log: its caller may pass any object."""
    read = decode_event(encoded)
    # Looked through only if there is a null that may have been a number.
    is_altered = encoded.count(b"null") > (event.sent_time is None) and read != event
    if is_altered and not is_finite((event.properties, event.context, event.wire)):
        raise not_finite()
    return read
