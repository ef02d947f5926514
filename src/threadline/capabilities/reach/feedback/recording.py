"""Feedback as events: of the person who got the mail, once, with what the mail was about."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.reach.feedback.definition import read_feedback
from threadline.capabilities.reach.feedback.events import (
    ABOUT,
    MAIL_BOUNCED,
    MAIL_COMPLAINED,
    MAIL_DELAYED,
    MAIL_DELIVERED,
    MAIL_FETCHED,
    MAIL_OPENED,
    MAIL_REPLIED,
    MAIL_SCANNED,
    SOURCE,
)
from threadline.capabilities.reach.feedback.fetches import MAIL_FETCHES, State, by_machine, fetch_of, repeated
from threadline.capabilities.reach.feedback.finding import find_mail
from threadline.capabilities.reach.feedback.machines import is_image_proxy, machine_agent
from threadline.capabilities.reach.feedback.repetitions import count_only
from threadline.kernel.address import normal_address
from threadline.kernel.errors import Unavailable
from threadline.kernel.event import BY_MACHINE, Event, Recorded
from threadline.kernel.ids import short_hash
from threadline.kernel.ports import Ports
from threadline.kernel.rejected import RejectedEntry, keepable
from threadline.kernel.time import MINUTE
from threadline.wire.feedback import Feedback, Kind

EARLY = 15 * MINUTE
"""How long after a mail was handed over its outcome may not be recorded yet, because the worker has died meanwhile."""
_TYPES: dict[Kind, str] = {
    "delivered": MAIL_DELIVERED,
    "delayed": MAIL_DELAYED,
    "opened": MAIL_OPENED,
    "clicked": MAIL_FETCHED,
    "bounced": MAIL_BOUNCED,
    "complained": MAIL_COMPLAINED,
    "replied": MAIL_REPLIED,
}


class Taken(NamedTuple):
    """What became of feedback."""

    status: Literal["recorded", "counted", "duplicate", "nothing", "unmatched"]
    """``counted``: a fetch like many before, an event an hour has how many; ``nothing``: it says what is known, or
    nothing about this recipient; ``unmatched``: the rejected log has it."""
    event: str = ""
    message: str = ""


class NotYet(Unavailable):
    """The mail is not recorded yet; the same feedback may be understood in a few minutes."""

    code = "not_yet"


def take(ports: Ports, workspace: str, feedback: Feedback, payload: Any = None) -> Taken:
    """Record feedback. Raises `NotYet` if it is about a mail so new that it may still become known.

    What is about no mail of ours goes to the rejected log, as ``payload`` if that is given.
    """
    sent = find_mail(ports, workspace, feedback.about, feedback.provider_id)
    if sent is None:
        now = ports.recorder.clock()
        if feedback.at is not None and feedback.provider_id and 0 <= now - feedback.at < EARLY:
            raise NotYet
        keep(ports, workspace, feedback.key, "unmatched_feedback", "no mail of ours has this id", payload or feedback)
        return Taken("unmatched")
    if feedback.kind == "sent":
        return Taken("nothing", message=_text(sent.event, "message"))
    return record(ports, sent, feedback)


def record(ports: Ports, sent: Recorded, feedback: Feedback) -> Taken:
    """Record feedback about a mail that is found."""
    message, address = _text(sent.event, "message"), _text(sent.event, "address")
    details = dict(feedback.details)
    if feedback.recipient and normal_address(feedback.recipient) != normal_address(address):
        if feedback.kind != "bounced" or normal_address(address) in map(normal_address, feedback.reached):
            # Such as a complaint that lists everybody at a domain, or a report of a mail that ours was only one of.
            return Taken("nothing", message=message)
        # Behind our recipient somebody else does not exist, to whom the mail was forwarded.
        details |= {"bounce": "transient" if details.get("bounce") == "permanent" else details.get("bounce")}
    workspace = sent.event.workspace
    known = ports.log.of_key(workspace, SOURCE, feedback.key)
    if known is not None:
        return Taken("duplicate", known.id, message)
    person, now = ports.reader.person_of(sent), ports.recorder.clock()
    about = {name: value for name in ABOUT if (value := sent.event.properties.get(name)) is not None}
    event = Event(
        type=_TYPES[feedback.kind],
        identifiers=(person.identifiers[sent.thread],),
        # A provider's clock may be ahead; what has happened counts at once.
        occurred_at=min(feedback.at or now, now),
        key=feedback.key,
        source=SOURCE,
        source_type="internal",
        workspace=workspace,
        properties={"message": message, **about, **details},
        received_at=now,
    )
    if feedback.kind in ("opened", "clicked"):
        fetches = ports.reader.state(person, MAIL_FETCHES.name, ports.recorder.now())
        event = _fetch(event, feedback.kind, _why(ports, sent, event, feedback.kind == "opened", fetches))
        if like := repeated(fetches, fetch_of(event), now):
            count_only(ports, workspace, like, now)
            return Taken("counted", like, message)
    receipt = ports.recorder.record([event], known=True)[0]
    return Taken("recorded" if receipt.status == "accepted" else "duplicate", receipt.id, message)


def keep(ports: Ports, workspace: str, key: str, code: str, message: str, payload: Any) -> None:
    """Keep what could not be read or matched in the rejected log."""
    if isinstance(payload, Feedback):
        payload = {**payload._asdict(), "details": dict(payload.details)}
    storable, whole = keepable(payload)
    ports.rejected.add(
        [
            RejectedEntry(
                id=short_hash(SOURCE, workspace, code, key),
                workspace=workspace,
                source=SOURCE,
                code=code,
                message=message,
                received_at=ports.recorder.clock(),
                payload=storable,
                form="feedback" if whole else "text",
                key=key,
            )
        ]
    )


def _fetch(event: Event, kind: Kind, why: str) -> Event:
    """The event of a fetch. An open is decided here; a click that may be a person's is one only in a few seconds."""
    properties: dict[str, Any] = {**event.properties, **({"why": why} if why else {})}
    if kind == "opened":
        return replace(event, properties={**properties, "machine": bool(why)}, marks=(BY_MACHINE,) if why else ())
    properties["fetch"] = kind
    return (
        replace(event, type=MAIL_SCANNED, properties={**properties, "machine": True})
        if why
        else replace(event, properties=properties)
    )


def _why(ports: Ports, sent: Recorded, event: Event, opened: bool, fetches: State) -> str:
    """Why a fetch is a machine's, as far as is known when it comes in; empty: it may be a person's."""
    agent = str(event.properties.get("agent", ""))
    if why := _text(event, "why") or machine_agent(agent, opened):
        return why
    if opened and is_image_proxy(agent):
        return ""
    definitions = ports.catalogue.definitions
    rules = read_feedback(definitions if isinstance(definitions, Definitions) else None)
    # A mail of which nobody knew whether it was sent is settled by this, as sent now.
    if 0 < event.occurred_at - sent.event.occurred_at < rules.machine_within:
        return "soon"
    return by_machine(fetches, fetch_of(event), event.occurred_at) if opened else ""


def _text(event: Event, name: str) -> str:
    value = event.properties.get(name)
    return value if isinstance(value, str) else ""
