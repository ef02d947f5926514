"""What outlives a person: that an address of theirs gets no mail, or none about a topic, under its pseudonym."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from threadline.capabilities.reach.consent.addresses import KnownAddress
from threadline.capabilities.reach.consent.events import SUPPRESSION, WORDS, statement_of, suppressed_of
from threadline.kernel.identity import address_in_event
from threadline.kernel.personal import Remainder, Subject
from threadline.kernel.projection import Row
from threadline.kernel.pseudonym import pseudonym, pseudonym_keys
from threadline.kernel.store import Range, Store

REMAINING_TABLE = "consent_remaining"
SUPPRESSED = "suppressed"
_UNSUBSCRIBED = "unsubscribed"


class Remaining(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What holds for an address of somebody who was erased since."""

    at: int
    reason: str = ""
    """Why it is suppressed."""
    over: bool = False
    """Whether this was taken back by somebody who was erased as well."""


_remaining = msgspec.json.Decoder(Remaining)


def remaining_about(store: Store, addresses: Sequence[KnownAddress]) -> list[dict[str, Remaining]]:
    """What is kept of each address: that it is `SUPPRESSED`, or by topic ("": all) when it was unsubscribed."""
    results: list[dict[str, Remaining]] = [{} for _ in addresses]
    forms = [(stored, form) for stored, address in zip(results, addresses, strict=True) for form in address.forms()]
    for key in pseudonym_keys(store):
        names = [(workspace, pseudonym(key, workspace, address)) for _, (workspace, address) in forms]
        wanted = [Range(REMAINING_TABLE, f"{workspace}/{name[0]}", f"{name} ", f"{name}!") for workspace, name in names]
        for (stored, _), items in zip(forms, store.ranges(wanted), strict=True):
            for item in items:
                about = item.key.sort.partition(" ")[2]
                remaining = _remaining.decode(item.value)
                if about not in stored or stored[about].at < remaining.at:
                    stored[about] = remaining
    return [{about: remaining for about, remaining in stored.items() if not remaining.over} for stored in results]


def unsubscribed_since(remaining: Mapping[str, Remaining], topic: str) -> int | None:
    """When an address was unsubscribed from a topic or from all; None if nothing of that kind is kept."""
    times = [remaining[name].at for scope in {topic, ""} if (name := _about(scope)) in remaining]
    return max(times, default=None)


def _topic_of(about: str) -> str:
    return about.removeprefix(f"{_UNSUBSCRIBED}:")


def _about(topic: str) -> str:
    return f"{_UNSUBSCRIBED}:{topic}"


# --- what is kept -------------------------------------------------------------------------------


class _Words:
    """The newest words of a person, by address."""

    def __init__(self) -> None:
        self.addresses: set[str] = set()
        self.suppressed: dict[str, tuple[int, bool, str]] = {}
        """Address -> when, whether it holds, why."""
        self.unsubscribed: dict[tuple[str, str], int] = {}
        """(Address, topic) -> when; address "": every address of the person."""
        self.subscribed: dict[tuple[str, str], int] = {}

    def unsubscribe(self, address: str, topic: str, at: int) -> None:
        """Note that an address was unsubscribed at an instant, unless it was later as well."""
        self.unsubscribed[address, topic] = max(at, self.unsubscribed.get((address, topic), at))

    def since(self, address: str, topic: str) -> int | None:
        """Since when an address gets nothing about a topic; None if it does."""
        times = [self.unsubscribed[key] for key in ((address, topic), ("", topic)) if key in self.unsubscribed]
        at = max(times, default=None)
        return at if at is not None and at >= self.subscribed_at(address, topic) else None

    def subscribed_at(self, address: str, topic: str) -> int:
        """When an address was last subscribed to a topic; long ago if it never was."""
        return max(
            (at for (of, about), at in self.subscribed.items() if of in (address, "") and topic in (about, "")),
            default=-(1 << 62),
        )


def _words_of(subject: Subject) -> _Words:
    words = _Words()
    for identifier in subject.person.identifiers.values():
        if identifier.kind == "email" and (address := address_in_event(identifier.value)):
            words.addresses.add(address)
    for recorded in subject.events(SUPPRESSION | WORDS):
        event = recorded.event
        if (verdict := suppressed_of(event)) is not None and event.type in SUPPRESSION:
            words.addresses.add(verdict.address)
            latest = (event.occurred_at, not verdict.lifted, verdict.reason)
            words.suppressed[verdict.address] = max(latest, words.suppressed.get(verdict.address, latest))
        elif event.type in WORDS and (statement := statement_of(event)) is not None:
            words.addresses.update({statement.address} - {""})
            key, at = (statement.address, statement.topic), event.occurred_at
            if statement.kind == "unsubscribed":
                words.unsubscribe(*key, at)
            else:
                words.subscribed[key] = max(at, words.subscribed.get(key, at))
    return words


def _rows(subject: Subject, pseudonym_of: Callable[[str], str]) -> Iterable[Row]:
    words = _words_of(subject)
    for address in sorted(words.addresses):
        # What was kept when somebody with this address was erased before.
        [earlier] = remaining_about(subject.engine.store, [KnownAddress(subject.workspace, address)])
        remaining = dict(earlier)
        if address in words.suppressed:
            at, holds, reason = words.suppressed[address]
            if holds or SUPPRESSED in earlier:
                remaining[SUPPRESSED] = Remaining(at=at, reason=reason if holds else "", over=not holds)
        for topic in sorted(
            {*(topic for _, topic in words.unsubscribed), *map(_topic_of, earlier.keys() - {SUPPRESSED})}
        ):
            about = _about(topic)
            if about in earlier:
                words.unsubscribe(address, topic, earlier[about].at)
            since = words.since(address, topic)
            if since is not None:
                remaining[about] = Remaining(at=since)
            elif about in earlier:
                remaining[about] = Remaining(at=words.subscribed_at(address, topic), over=True)
        name = pseudonym_of(address)
        for about, what in sorted(remaining.items()):
            yield Row(REMAINING_TABLE, f"{subject.workspace}/{name[0]}", f"{name} {about}", msgspec.json.encode(what))


REMAINDER = Remainder("addresses that get no mail, or none about a topic", _rows)
