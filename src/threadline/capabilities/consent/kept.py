"""What outlives a person: that an address of theirs gets no mail, or none about a topic, under its pseudonym."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from threadline.capabilities.consent.addresses import normal_address
from threadline.capabilities.consent.events import SUPPRESSION, WORDS, suppressed_of, word_of
from threadline.kernel.personal import Remainder, Subject
from threadline.kernel.projection import Row
from threadline.kernel.pseudonym import pseudonym, pseudonym_keys
from threadline.kernel.store import Store

KEPT_TABLE = "consent_kept"
SUPPRESSED = "suppressed"
_UNSUBSCRIBED = "unsubscribed"


class Kept(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was said of an address by somebody who was erased since."""

    at: int
    reason: str = ""
    """Why it is suppressed."""


_kept = msgspec.json.Decoder(Kept)


def kept_about(store: Store, workspace: str, address: str) -> dict[str, Kept]:
    """What is kept of an address: that it is `SUPPRESSED`, or by topic ("": all) when it was unsubscribed."""
    found: dict[str, Kept] = {}
    for key in pseudonym_keys(store):
        name = pseudonym(key, workspace, address)
        for item in store.query(KEPT_TABLE, f"{workspace}/{name[0]}", f"{name} ", f"{name}!"):
            about = item.key.sort.partition(" ")[2]
            kept = _kept.decode(item.value)
            if about not in found or found[about].at < kept.at:
                found[about] = kept
    return found


def unsubscribed_kept(kept: Mapping[str, Kept], topic: str) -> int | None:
    """When an address was unsubscribed from a topic or from all; None if nothing of that kind is kept."""
    times = [kept[name].at for each in {topic, ""} if (name := _about(each)) in kept]
    return max(times, default=None)


def _about(topic: str) -> str:
    return f"{_UNSUBSCRIBED}:{topic}"


# --- what is kept -------------------------------------------------------------------------------


class _Said:
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
        told = [self.unsubscribed[each] for each in ((address, topic), ("", topic)) if each in self.unsubscribed]
        again = max(
            (at for (of, about), at in self.subscribed.items() if of in (address, "") and topic in (about, "")),
            default=None,
        )
        at = max(told, default=None)
        return None if at is None or (again is not None and again > at) else at


def _said(subject: Subject) -> _Said:
    said = _Said()
    for identifier in subject.person.identifiers.values():
        if identifier.kind == "email" and (address := normal_address(identifier.value)):
            said.addresses.add(address)
    for recorded in subject.events(SUPPRESSION | WORDS):
        event = recorded.event
        if (verdict := suppressed_of(event)) is not None and event.type in SUPPRESSION:
            said.addresses.add(verdict.address)
            told = (event.occurred_at, not verdict.lifted, verdict.reason)
            said.suppressed[verdict.address] = max(told, said.suppressed.get(verdict.address, told))
        elif event.type in WORDS and (word := word_of(event)) is not None:
            said.addresses.update({word.address} - {""})
            place, at = (word.address, word.topic), event.occurred_at
            if word.kind == "unsubscribed":
                said.unsubscribe(*place, at)
            else:
                said.subscribed[place] = max(at, said.subscribed.get(place, at))
    return said


def _rows(subject: Subject, pseudonym_of: Callable[[str], str]) -> Iterable[Row]:
    said = _said(subject)
    for address in sorted(said.addresses):
        # What was kept when somebody with this address was erased before.
        earlier = kept_about(subject.engine.store, subject.workspace, address)
        suppressed = earlier.pop(SUPPRESSED, None)
        if address in said.suppressed:
            at, holds, reason = said.suppressed[address]
            suppressed = Kept(at=at, reason=reason) if holds else None
        kept = {} if suppressed is None else {SUPPRESSED: suppressed}
        for about, what in earlier.items():
            said.unsubscribe(address, about.removeprefix(f"{_UNSUBSCRIBED}:"), what.at)
        for topic in sorted({topic for _, topic in said.unsubscribed}):
            since = said.since(address, topic)
            if since is not None:
                kept[_about(topic)] = Kept(at=since)
        name = pseudonym_of(address)
        for about, what in kept.items():
            yield Row(KEPT_TABLE, f"{subject.workspace}/{name[0]}", f"{name} {about}", msgspec.json.encode(what))


REMAINDER = Remainder("addresses that get no mail, or none about a topic", _rows)
