"""Law: whoever may be written to follows from what was said and when, whatever the order in which it came to be known.

The reckoner below knows the facts, and nothing of the code: no rows, no states, no views.
"""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.capabilities.asked import STARTS_AT, Asked
from threadline.capabilities.foundation.events.requests import derived_key
from threadline.capabilities.reach.consent.refusal import Mailing, refusals
from threadline.engine.engine import Engine
from threadline.kernel.event import Event, Identifier
from threadline.stores.memory import MemoryStore

DEFINITIONS = """
consent:
  topics:
    news: {default: opted_in}
    offers: {}
    club: {confirm: welcome}
"""
CATALOGUE = Asked(definitions=DEFINITIONS).engine.catalogue
DEFAULTS = {"news": "opted_in", "offers": "opted_out", "club": "opted_out"}
NEVER = -(10**9)
USERS = ("ada", "bob", "eve")
ADDRESSES = tuple(f"{user}@example.com" for user in USERS)
SPELLINGS = {"ada@example.com": " Ada@EXAMPLE.com ", "bob@example.com": "BOB@example.com."}


class Fact(NamedTuple):
    """Something that was said of a user, by whom that may say it or by anybody."""

    user: str
    type: str
    at: int
    trusted: bool
    topic: str
    address: str
    confirmed: bool
    named: bool
    """Whether the event itself is identified by the user's address."""
    historical: bool = False

    @property
    def event(self) -> Event:
        identifiers = [Identifier("user_id", self.user)]
        if self.named:
            identifiers.append(Identifier("email", f"{self.user}@example.com"))
        properties: dict[str, object] = {"reason": "bounce"}
        if self.topic:
            properties["topic"] = self.topic
        if self.address:
            properties["address"] = SPELLINGS.get(self.address, self.address)
        if self.confirmed:
            properties["confirmed"] = True
        return Event(
            type=self.type,
            identifiers=tuple(identifiers),
            occurred_at=STARTS_AT + self.at,
            key=derived_key(repr(self)),
            source_type="internal" if self.trusted else "external",
            properties=properties,
            historical=self.historical,
        )


FACTS = st.builds(
    Fact,
    st.sampled_from(USERS),
    st.sampled_from(["subscribed", "unsubscribed", "address_suppressed", "address_unsuppressed"]),
    st.integers(0, 4),
    st.booleans(),
    st.sampled_from(["", "news", "offers", "club"]),
    st.sampled_from(["", *ADDRESSES]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


def address_meant(fact: Fact) -> str:
    own = f"{fact.user}@example.com" if fact.named else ""
    # Somebody may ask for mail at an address of which it is not known whose it is; there it reaches nobody else.
    return (fact.address or own) if fact.trusted or fact.type == "subscribed" else own


def leaves(fact: Fact, topic: str) -> bool:
    return fact.type == "unsubscribed" and fact.topic in ("", topic)


def opens_again(fact: Fact, facts: set[Fact], address: str, topic: str, people: set[str]) -> bool:
    """Whether a subscription counts although somebody has closed the topic before or after."""
    left = [other for other in facts if leaves(other, topic)]
    if fact.historical and any(
        not other.historical and (other.user in people or address_meant(other) == address) for other in left
    ):
        return False
    if address_meant(fact) == address:
        return True
    if any(other.user in people - {fact.user} for other in left):
        return False
    own = [other.at for other in left if other.user == fact.user]
    return max([NEVER, *(other.at for other in left if address_meant(other) == address)]) <= max([NEVER, *own])


def expected(facts: set[Fact], address: str, topic: str, people: set[str]) -> str:
    """What must come out, reckoned from scratch."""
    verdicts = [
        (fact.at, fact.type == "address_suppressed")
        for fact in facts
        if fact.type.startswith("address") and fact.trusted and fact.address == address
    ]
    if verdicts and max(verdicts)[1]:
        return "suppressed:bounce"
    left, asked, confirmed = [NEVER], [NEVER], [NEVER]
    for fact in facts:
        meant = address_meant(fact)
        if leaves(fact, topic) and (fact.user in people or meant == address):
            left.append(fact.at)
        if fact.type == "subscribed" and topic and fact.topic == topic:
            theirs = fact.user in people and meant in ("", address)
            if (theirs or (fact.trusted and meant == address)) and opens_again(fact, facts, address, topic, people):
                asked.append(fact.at)
                if (fact.trusted or fact.historical) and fact.confirmed:
                    confirmed.append(fact.at)
    if max(confirmed if topic == "club" else asked) > max(left):
        return ""
    if topic == "club" and max(asked) > max(left):
        return "unconfirmed"
    if max(left) > NEVER:
        return "unsubscribed"
    return "" if DEFAULTS.get(topic, "opted_in") == "opted_in" else "opted_out"


class World:
    """An engine, and the groups of users who are one person by now."""

    def __init__(self) -> None:
        self.engine = Engine(MemoryStore(), CATALOGUE, lambda: STARTS_AT + 100)
        self.groups = [{user} for user in USERS]
        for user in USERS:
            self.record(Event(type="x", identifiers=(Identifier("user_id", user),), occurred_at=STARTS_AT, key=user))

    def record(self, event: Event) -> None:
        assert self.engine.recorder.record([event])[0].status in ("accepted", "duplicate")

    def of(self, user: str) -> set[str]:
        return next(group for group in self.groups if user in group)

    def merge(self, one: str, other: str) -> None:
        if self.of(one) is not self.of(other):
            self.engine.identity.merge(
                "default", f"user_id:{one}", f"user_id:{other}", request=one + other + str(self.groups), force=True
            )
            both = self.of(one) | self.of(other)
            self.groups = [both, *(group for group in self.groups if not group & both)]

    def part(self, user: str) -> None:
        if len(self.of(user)) > 1:
            self.engine.identity.split(
                "default", f"user_id:{user}", [f"user_id:{user}"], request=user + str(self.groups)
            )
            self.of(user).discard(user)
            self.groups.append({user})

    def refusal(self, address: str, topic: str, user: str, transactional: bool = False) -> str:
        person = self.engine.reader.person("default", f"user_id:{user}")
        view = self.engine.reader.as_of(person, self.engine.recorder.now())
        return refusals(self.engine, [Mailing("default", address, topic, transactional, view)])[0]


@given(st.data())
def test_who_may_be_written_to_is_what_the_facts_say_in_any_order(data: st.DataObject) -> None:
    world = World()
    facts: set[Fact] = set()
    # An address that identifies somebody stays with one of the people of a split, which no fact says.
    splits = data.draw(st.booleans())
    for _ in range(data.draw(st.integers(1, 12))):
        action = data.draw(st.sampled_from(["say", "say", "say", "again", "merge", "part"]))
        if action == "merge":
            world.merge(data.draw(st.sampled_from(USERS)), data.draw(st.sampled_from(USERS)))
        elif action == "part" and splits:
            world.part(data.draw(st.sampled_from(USERS)))
        elif action == "again" and facts:
            world.record(data.draw(st.sampled_from(sorted(facts))).event)
        else:
            fact = data.draw(FACTS)
            fact = fact._replace(named=fact.named and not splits)
            facts.add(fact)
            world.record(fact.event)
    for user in USERS:
        for address in ADDRESSES:
            for topic in ("", "news", "offers", "club"):
                wanted = expected(facts, address, topic, world.of(user))
                assert world.refusal(address, topic, user) == wanted, (user, address, topic)
            suppressed = wanted if wanted.startswith("suppressed") else ""
            assert world.refusal(address.upper(), topic, user, transactional=True) == suppressed


@settings(max_examples=15)
@given(st.lists(FACTS, max_size=6), st.randoms(use_true_random=False))
def test_an_address_with_more_rows_than_are_read_at_once_has_the_same_answers(facts, random) -> None:
    for number in range(70):
        type, topic = random.choice(["subscribed", "unsubscribed"]), random.choice(["club", "offers", "news"])
        facts.append(Fact("ada", type, -1 - number, True, topic, "ada@example.com", number % 2 == 0, named=False))
    random.shuffle(facts)
    world = World()
    for fact in facts:
        world.record(fact.event)
    for user in USERS:
        for topic in ("", *DEFAULTS):
            wanted = expected(set(facts), "ada@example.com", topic, {user})
            assert world.refusal("ada@example.com", topic, user) == wanted


def test_suppression_outlives_merge_split_import_subscription_and_a_forged_lift() -> None:
    world = World()
    address = "ada@example.com"
    world.record(Fact("ada", "address_suppressed", 1, True, "", address, False, False).event)
    world.record(Fact("ada", "subscribed", 2, True, "news", address, True, True).event)
    world.record(Fact("bob", "address_unsuppressed", 3, False, "", address, False, False).event)
    for change in (lambda: None, lambda: world.merge("ada", "bob"), lambda: world.part("ada")):
        change()
        for user in USERS:
            assert world.refusal(address, "news", user, transactional=True) == "suppressed:bounce"
    world.record(Fact("eve", "address_unsuppressed", 4, True, "", address, False, False).event)
    assert world.refusal(address, "news", "ada") == ""
