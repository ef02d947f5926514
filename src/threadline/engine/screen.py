"""What an event must satisfy before anyone looks for its person: checks that need no store, its id, its bytes."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from threadline.engine.names import Named, Names
from threadline.engine.packing import nested_beyond, pack_body, payload_digest, unpack_body
from threadline.kernel import limits
from threadline.kernel.errors import EventRejected, InvalidValue
from threadline.kernel.event import CLAMPED, WORKSPACE_FORM, Event, event_id, is_workspace, thread_id
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.requirement import Requirement
from threadline.kernel.store import Check, Delete, Put
from threadline.kernel.time import EARLIEST, LATEST, SECOND


class Request(NamedTuple):
    """One event to record and what must hold or be written with it."""

    event: Event
    cause: str = ""
    expected: int | None = None
    """The position its person must be at, for callers that decide on what they have read."""
    writes: tuple[Put | Delete | Check, ...] = ()
    """Further writes of the same batch, such as taking a fired timer away under a lease."""
    known: bool = False
    """Whether the identifiers are those of a person as they are kept: whoever has their threads is meant, whatever the
    definitions say of such identifiers by now."""


class Care(NamedTuple):
    """Positions of requests that were unfit in some way, and how they are placed from then on."""

    alone: set[int]
    """They share no batch with those after them."""
    apart: set[int]
    """They join nobody, because no batch could hold what that would change."""


class Screened(NamedTuple):
    """A request whose event has passed every check that needs no store."""

    position: int
    """Of its request in the call."""
    request: Request
    event: Event
    id: str
    digest: int
    body: bytes
    named: tuple[Named, ...]
    """Who is meant, the strongest identifier first."""


def checked_request(request: Request, now: int, never_ahead: Container[str] = ()) -> Request:
    """The request with a clamped time, or `EventRejected` for what no log may hold."""
    event = request.event
    if not is_workspace(event.workspace):
        # Whoever calls us has chosen it, not the producer of the event: there is no workspace to reject it in.
        raise InvalidValue(f"{event.workspace[:80]!r} cannot name a workspace: {WORKSPACE_FORM}")
    if not event.type or len(event.type) > limits.EVENT_TYPE_LENGTH_MAX:
        raise EventRejected("invalid_type", f"an event type has 1 to {limits.EVENT_TYPE_LENGTH_MAX} characters")
    if event.type.startswith(SYSTEM_PREFIX) and event.source_type != "internal":
        raise EventRejected("reserved_type", f"types that begin with {SYSTEM_PREFIX} are Threadline's own")
    if not event.key or len(event.key) > limits.LOGGED_KEY_LENGTH_MAX:
        raise EventRejected(
            "invalid_key", f"an event needs an idempotency key of 1 to {limits.LOGGED_KEY_LENGTH_MAX} characters"
        )
    if "\0" in event.source:
        # An event's id is made of both, with a NUL between them: so no other source and key have the same.
        raise EventRejected("invalid_value", "the source of an event may hold no NUL")
    if len(event.identifiers) > limits.IDENTIFIERS_PER_EVENT_MAX:
        raise EventRejected(
            "too_many_identifiers", f"an event has at most {limits.IDENTIFIERS_PER_EVENT_MAX} identifiers"
        )
    if not EARLIEST <= event.occurred_at <= LATEST:
        raise EventRejected("invalid_time", "the time is outside the years 1 to 9999")
    at_once = event.type in never_ahead and event.source_type != "external"
    if event.occurred_at > now + (0 if at_once else limits.FUTURE_MAX_SECONDS * SECOND):
        return request._replace(event=_clamped(event, event.received_at or now))
    return request


def _clamped(event: Event, received_at: int) -> Event:
    """The event at the time of its receipt, marked: its own time lies too far ahead to be believed."""
    sent = event.sent_time if event.sent_time is not None else event.occurred_at
    return msgspec.structs.replace(event, occurred_at=received_at, sent_time=sent, marks=(*event.marks, CLAMPED))


def thread_of(event: Event, names: Names) -> str:
    """The thread of an event's strongest identifier, in which it would stand; "" if nothing usable names anybody."""
    try:
        found = [names.of(event.workspace, each) for each in event.identifiers]
    except EventRejected:
        return ""
    named = _meant([known for known in found if known is not None])
    return named[0].thread if named else ""


def _meant(found: Sequence[Named]) -> tuple[Named, ...]:
    """Those that find the event's person, the strongest first."""
    named = tuple([known for known in found if known.identifies])
    if len(named) > 1:
        joining = {known: None for known in named if known.joins}
        # What joins nobody to anybody counts only where nothing else names anybody, and then once.
        return tuple(sorted(joining, key=Named.rank)) or (min(named, key=Named.rank),)
    return named


def screen(position: int, request: Request, names: Names, now: int, sent_time: int | None) -> Screened:
    """Check what needs no store; raises `EventRejected`. Identifiers come out normalised and without junk.

    ``sent_time`` is the one that the producer told, whatever has been made of it since: a retry must have the same
    digest.
    """
    event = request.event
    if request.known:
        found = [Named(i, thread_id(event.workspace, i), 0, True) for i in event.identifiers]
    else:
        found = [each for i in event.identifiers if (each := names.of(event.workspace, i)) is not None]
    named = _meant(found)
    if not named:
        raise EventRejected(
            "no_identifier", "no usable identifier: give a user_id, anonymous_id, email, phone or external id"
        )
    kept = tuple([known.identifier for known in found])
    if kept != event.identifiers or not event.received_at:
        event = msgspec.structs.replace(event, identifiers=kept, received_at=event.received_at or now)
    try:
        same = sent_time == event.sent_time
        digest = payload_digest(event if same else msgspec.structs.replace(event, sent_time=sent_time))
        id = event_id(event.workspace, event.source, event.key)
        body = pack_body(event, now, request.cause)
        if event.source_type == "direct":
            # From Python anything may come: what is folded now must be what a refold will read from the log.
            event = unpack_body(body)
    except (ValueError, TypeError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise EventRejected("invalid_value", f"the event cannot be written as JSON: {error}") from None
    if len(body) > limits.LOGGED_EVENT_BYTES_MAX:
        raise EventRejected(
            "too_large",
            f"the event has {len(body)} bytes as the log keeps it; at most {limits.LOGGED_EVENT_BYTES_MAX} are taken",
        )
    # Counting brackets is cheap and nearly always enough: without so many of them nothing is nested so deeply.
    if body.count(b"[") + body.count(b"{") > limits.JSON_DEPTH_MAX and nested_beyond(
        (event.properties, event.context, event.wire), limits.JSON_DEPTH_MAX + 1
    ):
        raise EventRejected("too_deep", f"the event is nested more than {limits.JSON_DEPTH_MAX} levels deep")
    return Screened(position, request, event, id, digest, body, named)


def unmet(screened: Iterable[Screened], requirements: Mapping[str, Requirement]) -> dict[int, EventRejected]:
    """By position, why events do not meet the requirements of their type. What Threadline adds itself is exempt."""
    found: dict[int, EventRejected] = {}
    for one in screened:
        requirement = requirements.get(one.event.type)
        if requirement is not None and one.event.source_type != "internal":
            try:
                requirement.check(one.event)
            except EventRejected as error:
                found[one.position] = error
    return found
