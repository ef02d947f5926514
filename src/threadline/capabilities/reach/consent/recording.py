"""Words and suppressions as events: in the thread of the person, else of whoever is known by the address alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from threadline.capabilities.foundation.events.requests import derived_key
from threadline.capabilities.reach.consent.addresses import KnownAddress
from threadline.capabilities.reach.consent.definition import Consent
from threadline.capabilities.reach.consent.events import SUBSCRIBED, UNSUBSCRIBED
from threadline.capabilities.reach.consent.links import Recipient
from threadline.capabilities.reach.consent.rows import Statements, statements_about
from threadline.capabilities.reach.consent.standing import Status, statements_of_person, status_of
from threadline.kernel.address import normal_address
from threadline.kernel.errors import NotFound, Unavailable
from threadline.kernel.event import Event, Identifier
from threadline.kernel.identity import former_addresses
from threadline.kernel.ports import Person, Ports
from threadline.kernel.time import parse_time

SOURCE = "threadline.consent"
"""The source of what pages record."""


def identifier_for(engine: Ports, known: KnownAddress) -> Identifier:
    """The identifier under which events about an address alone are recorded."""
    workspace, address = known
    rules, given = engine.catalogue.rules, Identifier("email", address)
    identifier: Identifier | None = rules.normalise(given)
    if former_addresses(normal_address(address)) and (person := person_of(engine, workspace, str(given))) is not None:
        # Known since an earlier version, under another form of the address.
        return next((own for own in person.identifiers.values() if rules.normalise(own) == identifier), given)
    # An address that is shared, or that names nobody, is blocked as an identifier and must be suppressible.
    return identifier or Identifier("external_id", f"mailto:{address}")


def after(last: str, event: Event) -> Event:
    """The event, dated after the last word (as text, empty: none), even where a producer's clock was ahead."""
    return msgspec.structs.replace(event, occurred_at=max(event.occurred_at, parse_time(last) + 1)) if last else event


def person_of(engine: Ports, workspace: str, id: str) -> Person | None:
    """The person of an id, who may have been merged; None if there is none any more."""
    try:
        return engine.reader.person(workspace, id)
    except NotFound:
        return None


class Standing(NamedTuple):
    """How a recipient stands to a topic, and what was said about it."""

    status: Status
    statements: Statements


def standings(engine: Ports, consent: Consent, recipient: Recipient) -> dict[str, Standing]:
    """How the recipient stands to each declared topic."""
    views = _views(engine, recipient)
    signalled = views.get("privacy", {}).get("global_privacy_control", False)
    return {
        name: Standing(status_of(consent.topics[name], statements, signalled=signalled), statements)
        for name, statements in _statements(engine, recipient, consent.topics, views).items()
    }


def statements_for(engine: Ports, recipient: Recipient, topics: Iterable[str]) -> dict[str, Statements]:
    """What was said about these topics, of the address by anybody and by the person."""
    return _statements(engine, recipient, topics, _views(engine, recipient))


def _statements(
    engine: Ports, recipient: Recipient, topics: Iterable[str], views: Mapping[str, Any]
) -> dict[str, Statements]:
    address = normal_address(recipient.address)
    statements = statements_about(engine.store, recipient.workspace, address, list(topics))
    if shown := views.get("consent"):
        for topic, of_address in statements.items():
            statements[topic] = statements_of_person(shown, topic, address, of_address)
    return statements


def _views(engine: Ports, recipient: Recipient) -> dict[str, Any]:
    """What is known of the recipient; empty if there is no such person any more."""
    person = person_of(engine, recipient.workspace, recipient.person)
    if person is None:
        return {}
    return engine.reader.views(person, engine.recorder.now(), names=["consent", "privacy"])


def unsubscribe(engine: Ports, consent: Consent, recipient: Recipient, **more: Any) -> None:
    """Record that the recipient wants no more of the topic, or of any; nothing if that was the last word already."""
    topics = [recipient.topic] if recipient.topic else ["", *consent.topics]
    statements = statements_for(engine, recipient, topics)
    unsubscribed = statements[recipient.topic].unsubscribed
    subscribed = max(statement.counted.subscribed for statement in statements.values())
    if not unsubscribed or unsubscribed < subscribed:
        _record(engine, recipient, UNSUBSCRIBED, more, max(unsubscribed, subscribed))


def subscribe(engine: Ports, recipient: Recipient, **more: Any) -> None:
    """Record that the recipient wants the topic, by a link that came to the address and so confirms it."""
    statements = statements_for(engine, recipient, [recipient.topic])[recipient.topic]
    if statements.counted.confirmed <= statements.unsubscribed:
        _record(engine, recipient, SUBSCRIBED, {**more, "confirmed": True}, max(statements))


def _record(engine: Ports, recipient: Recipient, type: str, more: dict[str, Any], last: str) -> None:
    person = person_of(engine, recipient.workspace, recipient.person)
    identifier = (
        person.identifiers[person.id]
        if person is not None
        else identifier_for(engine, KnownAddress(recipient.workspace, recipient.address))
    )
    received_at = engine.recorder.clock()
    topic = {"topic": recipient.topic} if recipient.topic else {}
    event = Event(
        type=type,
        identifiers=(identifier,),
        occurred_at=received_at,
        # Clicked twice, or by two processes at once, it is the same word: the last word names it.
        key=engine.log.unerased_key(recipient.workspace, SOURCE, derived_key(type, *recipient, last)),
        source=SOURCE,
        source_type="internal",
        workspace=recipient.workspace,
        properties={"address": recipient.address, **topic, **more},
        received_at=received_at,
    )
    receipt = engine.recorder.record([after(last, event)], known=True)[0]
    if receipt.status == "rejected":
        # A provider that was answered with 200 would not ask again, and we would write on.
        raise Unavailable(f"this could not be recorded: {receipt.message}")
