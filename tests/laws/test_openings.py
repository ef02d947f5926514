"""Law: what leaves the log leaves its sum behind. A state before expiry is the state after it, at every instant since,
with merges, splits and late events, by discovery over the projections that carry theirs over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from random import Random
from typing import Any

import msgspec
import pytest

from tests.laws.staging import event
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.engine.folding.packing import unpack_event
from threadline.engine.folding.person import Person
from threadline.engine.folding.refold import folded_before
from threadline.engine.maintenance.rebuild import refold_everybody
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.identity import MERGED, SYSTEM_PREFIX
from threadline.kernel.opening import OPENING, opening_of
from threadline.kernel.policy import Policy
from threadline.kernel.projection import Projection
from threadline.kernel.store import Store, feed_pages, is_erased
from threadline.kernel.time import DAY
from threadline.stores.memory import MemoryStore
from threadline.testing import scenarios
from threadline.testing.probing import asked_of, events_for
from threadline.testing.scenarios import NOW

DECLARED = """
consent: {topics: {news: {}}}
features:
  spent: {aggregate: sum, events: purchase_completed, of: total, currency: currency}
  largest: {aggregate: max, events: purchase_completed, of: total, currency: currency}
  kinds: {aggregate: distinct, events: product_viewed, of: category}
  first_kind: {aggregate: first, events: product_viewed, of: category}
leaderboards:
  points: {score: points.earned, periods: [day, week, month, all], per: plan, tags: [vip]}
  purse: {score: points.balance}
"""
WHO = ("user_id:user-0", "user_id:user-1")
MUST_CARRY = {"activity", "attribution", "features", "identifiers", "interests", "leaderboards", "points", "privacy"}


def made(definitions: str = DECLARED) -> Catalogue:
    """Everything that ships, without policies: what follows from an event is then the same whatever was erased."""
    values = discover(definitions=Definitions([("threadline.yaml", definitions)]))
    declared = [value for value in values if not isinstance(value, Policy)]
    return Catalogue(declared, rules(Definitions([("threadline.yaml", "identifiers: {}")])))


CATALOGUE = made()
CARRYING = [projection for projection in CATALOGUE.projections if projection.carries is not None]
ASKED = [asked_of(projection) for projection in CARRYING]
every_carrying = pytest.mark.parametrize("projection", CARRYING, ids=lambda projection: projection.name)


def written(state: Any) -> bytes:
    """A state as it is stored, whatever the order in which it was filled."""
    return msgspec.msgpack.encode(msgspec.msgpack.decode(msgspec.msgpack.encode(state)), order="sorted")


class Shop:
    """A store, asked for the states that are carried over."""

    def __init__(self, store: Store | None = None, catalogue: Catalogue = CATALOGUE) -> None:
        self.now = NOW
        self.store = MemoryStore() if store is None else store
        self.engine = Engine(self.store, catalogue, lambda: self.now)

    def person(self, who: str) -> Person:
        person = self.engine.reader.person("default", who)
        assert isinstance(person, Person)
        return person

    def states(self, who: str) -> dict[str, bytes]:
        """As they are stored."""
        person, index = self.person(who), self.engine.catalogue.index
        return {projection.name: written(person.states[index[projection.name]]) for projection in CARRYING}

    def states_at(self, who: str, at: int) -> dict[str, bytes]:
        """As of an instant."""
        catalogue = self.engine.catalogue
        only = [catalogue.index[projection.name] for projection in CARRYING]
        states = folded_before(catalogue, self.engine.reader.history(self.person(who)), at, only)
        return {catalogue.projections[index].name: written(states[index]) for index in only}

    def views(self, who: str) -> dict[str, Any]:
        views = self.engine.reader.views(self.person(who), self.now)
        return {projection.name: views[projection.name] for projection in CARRYING}

    def expire(self, who: str, types: Sequence[str], before: int) -> int:
        return self.engine.erasures.expiry.expire(self.person(who).id, types, before)

    @property
    def events(self) -> Iterator[Recorded]:
        """What is left in the log."""
        entries = (fed.entry for fed in feed_pages(self.store))
        return (unpack_event(entry) for entry in entries if not is_erased(entry))

    def undamaged(self) -> None:
        """Everybody is the fold of what the log has."""
        done = refold_everybody(self.store, self.engine.catalogue, write=False)
        assert (done.differing, done.rows_amiss) == ((), ())


def history(random: Random, number: int, now: int) -> list[Event]:
    """Plausible events up to now, and of each carrying projection some of its own."""
    events = scenarios.history(random, people=2, count=20)
    for asked in ASKED:
        who = Identifier("user_id", f"user-{random.randrange(2)}")
        events += [msgspec.structs.replace(drawn, identifiers=(who,)) for drawn in events_for(asked, random, 4)]
    events = [drawn for drawn in events if not drawn.type.startswith(SYSTEM_PREFIX)]
    return [
        msgspec.structs.replace(
            drawn,
            key=f"{number}-{place}",
            source="direct",
            source_type="direct",
            occurred_at=drawn.occurred_at - NOW + now - random.choice((0, 0, 200 * DAY)),
        )
        for place, drawn in enumerate(events)
    ]


def change_who_is_who(shops: Sequence[Shop], random: Random, request: str) -> None:
    """Join the two, or split one of them, in all shops alike."""
    split_off = random.choice((0, 0, 1, 2))
    for shop in shops:
        with suppress(ThreadlineError):  # they are one already, or there is nothing to split off
            if split_off:
                known = [str(i) for i in sorted(shop.person(WHO[0]).identifiers.values()) if str(i) != WHO[0]]
                shop.engine.identity.split("default", WHO[0], known[:split_off], request=request)
            else:
                shop.engine.identity.merge("default", *WHO, request=request, force=True)


def test_projections_that_carry_over_are_those_that_are_known_to() -> None:
    assert {projection.name for projection in CARRYING} == MUST_CARRY


@every_carrying
@pytest.mark.parametrize("run", range(20))
def test_any_two_states_that_are_carried_over_can_be_merged(projection: Projection, seed: int, run: int) -> None:
    random = Random(f"{seed}/{run}")
    events = scenarios.recorded([*history(random, 0, NOW), *history(random, 1, NOW)])
    events = [recorded for recorded in events if projection.fold_of(recorded.event.type) is not None]
    states = []
    for chosen in (events, *(random.sample(events, len(events) // 2) for _ in range(2))):
        state = projection.empty()
        for recorded in chosen:
            state = projection.after(state, recorded)
        states.append(state)
    assert projection.faster.merge is not None
    assert not projection.ordered
    for first, second in pairwise(states):
        copies = [msgspec.msgpack.decode(msgspec.msgpack.encode(state)) for state in (first, second)]
        assert projection.faster.merge(*copies) is not None


@pytest.mark.parametrize("run", range(12))
def test_states_are_the_same_with_and_without_expiry(seed: int, run: int) -> None:
    random = Random(f"{seed}/{run}")
    shops = plain, expiring = Shop(), Shop()
    gone = 0
    for number in range(4):
        events = history(random, number, plain.now - random.choice((0, 30 * DAY)))  # from the second time on: late
        for shop in shops:
            shop.engine.recorder.record(events)
        change_who_is_who(shops, random, f"request-{number}")
        types = random.sample(sorted({drawn.type for drawn in events}), 8)
        for who in WHO:
            gone += expiring.expire(who, types, expiring.now - random.choice((0, 30, 90)) * DAY)
        change_who_is_who(shops, random, f"again-{number}")
        since = max((opening_of(e).until for e in expiring.events if e.event.type == OPENING), default=0)
        for who in WHO:
            assert expiring.states(who) == plain.states(who)
            for at in (since + 1, *(since + 1 + random.randrange(max(1, plain.now - since)) for _ in range(4))):
                assert expiring.states_at(who, at) == plain.states_at(who, at)
        expiring.undamaged()
        plain.now = expiring.now = plain.now + random.randrange(60) * DAY
    for shop in shops:
        shop.now += 4_000 * DAY  # after every window: of what lies in one, rules have to keep the events
    assert gone > 20
    for who in WHO:
        assert expiring.views(who) == plain.views(who)


def test_people_who_are_unmerged_after_expiry_are_as_never_merged() -> None:
    shops = plain, expiring = Shop(), Shop()
    for shop in shops:
        for number in range(6):
            paid = {"points": 10 + number, "total": 3, "currency": "EUR"}
            for type in ("points_earned", "purchase_completed"):
                who, at = {"user_id": f"user-{number % 2}"}, NOW - (9 - number) * DAY
                shop.engine.recorder.record([event(type, who, f"{type}-{number}", at, properties=paid)])
        shop.engine.identity.merge("default", *WHO, request="join", force=True)
        # While they are one; that the device is user 0's is seen from an event that leaves.
        device = {"user_id": "user-0", "anonymous_id": "device"}
        shop.engine.recorder.record([event("purchase_completed", device, "link", NOW - 9 * DAY)])
    assert expiring.expire(WHO[0], ["points_earned", "purchase_completed"], NOW - 4 * DAY) == 11
    assert expiring.states(WHO[0]) == plain.states(WHO[0])
    for shop in shops:
        (merge,) = (recorded for recorded in shop.events if recorded.event.type == MERGED)
        shop.engine.identity.unmerge("default", merge.id, request="apart")
    for who in WHO:
        assert expiring.states(who) == plain.states(who)
        assert expiring.person(who).identifiers == plain.person(who).identifiers
    assert expiring.views(WHO[0])["points"]["earned"] == 10 + 12 + 14
