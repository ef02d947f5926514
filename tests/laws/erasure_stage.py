"""The stage of the laws of erasure: a person in every table of the store, beside others, and a grep over all of it."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.context import Context
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.engine.folding.packing import pack
from threadline.engine.signer import SIGNING_KEY
from threadline.kernel.erasure import Erasure
from threadline.kernel.event import Event, Identifier
from threadline.kernel.policy import Effect
from threadline.kernel.sender import Outcome
from threadline.kernel.store import Batch, Key, Put, Store, feed_pages, scan_pages
from threadline.kernel.time import SECOND, Clock
from threadline.senders.inbox import InboxSender
from threadline.stores.memory import MemoryStore
from threadline.surfaces.operation_calls import call

NOW = 1_772_445_600 * SECOND
MARKER = "zq7x"
"""Stands in every value that names the person, and in nothing else."""
DEFINITIONS = """
segments:
  pros: {when: {field: traits.plan, equals: pro}}
consent:
  topics: {news: {}, offers: {}}
mail:
  senders: {shop: {from: shop@shop.example}}
  templates:
    hello: {subject: "Hello {{ person.traits.name }}", text: "{{ person.email }}", topic: news}
    later: {subject: Later, text: "{{ person.traits.name }}", topic: news}
    receipt: {subject: "Receipt", text: "{{ person.traits.name }}", transactional: true}
journeys:
  welcome:
    trigger: {event: signed_up}
    steps: [{send: receipt}, {wait: 2d}, {send: later}]
  refused: {trigger: {event: ask_refused}, steps: [{send: receipt}]}
  cut: {trigger: {event: ask_cut}, steps: [{send: receipt}]}
  paused: {trigger: {event: ask_paused}, steps: [{send: receipt}]}
  waiting: {trigger: {event: ask_waiting}, steps: [{send: receipt}]}
leaderboards:
  points: {score: points.earned, periods: [day, all]}
"""


@cache
def catalogue(definitions: str = DEFINITIONS) -> Catalogue:
    """What is declared."""
    declared = Definitions([("threadline.yaml", definitions)])
    return Catalogue(discover(definitions=declared), rules(), declared)


class Post:
    """Takes mail, or answers that it cannot."""

    kind = "mail"

    def __init__(self, inbox: InboxSender) -> None:
        self.inbox = inbox
        self.how = "sent"

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """As `how` says."""
        if self.how == "refused":
            return Outcome(type="mail_parked", parked="refused")
        if self.how == "cut":
            raise RuntimeError("the wire was cut")
        return self.inbox.send(effect, effect_id, person)


class Stage:
    """An engine on a store, with a clock that is moved by hand."""

    def __init__(self, store: Store | None = None, clock: Clock | None = None) -> None:
        self.now = NOW
        self.store = MemoryStore() if store is None else store
        self.keys = 0
        # Links in mails are signed: with keys of its own no two stores would have equal ones.
        self.store.commit([Batch(writes=[Put(Key(SIGNING_KEY, "all"), pack([b"k" * 32]))])])
        self.reopen()

    def reopen(self, store: Store | None = None, definitions: str = DEFINITIONS) -> None:
        """As after a restart."""
        self.store = self.store if store is None else store
        self.engine = Engine(self.store, catalogue(definitions), lambda: self.now)
        self.engine.public_address.use_local("http://shop.example")
        self.post = Post(InboxSender(self.store, lambda: self.now))
        self.dispatcher = Dispatcher(self.engine, {"mail": self.post}, "test")

    def tell(self, type: str, who: dict[str, str], key: str = "", **fields: Any) -> str:
        """Record an event; what became of it."""
        self.keys += 1
        self.now += SECOND
        named = tuple(Identifier(kind, value) for kind, value in who.items())
        fields = {"occurred_at": self.now, "key": key or f"k{self.keys}", **fields}
        [receipt] = self.engine.recorder.record([Event(type=type, identifiers=named, **fields)])
        return receipt.code or receipt.status

    def ask(self, name: str, /, **given: Any) -> Any:
        """What an operation answers."""
        operation = self.engine.catalogue.operation(name)
        return call(operation, Context(self.engine, "default", self.engine.now(), "ops"), given, strict=True)

    def work(self, how: str = "sent") -> None:
        """Do what is due."""
        self.post.how = how
        while self.dispatcher.run_once():
            self.now += 1

    def erase(self, ref: str, **given: Any) -> Erasure:
        """Erase a person to the end."""
        begun = self.engine.erasures.begin("default", ref, **given)
        return self.engine.erasures.run("default", begun.id)


def person(stage: Stage, name: str, tag: str) -> dict[str, str]:
    """Somebody who is in as many tables as a person alone can be."""
    who = {"user_id": name, "email": f"{name}@example.com"}
    traits = {"name": name, "plan": "pro", "email": f"{name}@example.com", "bio": f"about {name}"}
    assert stage.tell("identify", who, properties=traits) == "accepted"
    assert stage.tell("identify", {"user_id": name, "anonymous_id": f"device-{name}"}, properties={}) == "accepted"
    stage.tell("tag_added", {"user_id": name}, properties={"tag": tag})
    stage.tell("group", {"user_id": name}, object_ref="acme", properties={"seat": name})
    stage.tell("product_viewed", {"user_id": name}, properties={"product": f"lamp of {name}", "category": "lamps"})
    stage.tell("purchase_completed", {"user_id": name}, properties={"total": 30, "order": f"order-{name}"})
    stage.tell("points_earned", {"user_id": name}, properties={"points": 12, "reason": f"for {name}"})
    stage.tell("fact_remembered", {"user_id": name}, properties={"key": "likes", "value": f"songs of {name}"})
    stage.tell("subscribed", {"user_id": name}, properties={"topic": "news", "address": who["email"]})
    stage.tell("signed_up", {"user_id": name}, properties={"from": name})
    stage.tell(f"asked for by {name}", {"user_id": name})
    stage.work()
    return who


def crowded(stage: Stage, name: str = f"ada-{MARKER}") -> dict[str, str]:
    """A person in every table, beside Bob and Carol, who are in as many."""
    bob = person(stage, "bob", "vip")
    carol = person(stage, "carol", "vip")
    ada = person(stage, name, f"tag {name}")
    for how in ("refused", "cut", "paused"):
        stage.tell(f"ask_{how}", ada, properties={"of": name})
        if how == "paused":
            stage.ask("journeys_pause", name="paused")
        stage.work(how)
    # Two who were one, one who was merged, and joins that wait for review or were decided about.
    stage.tell("identify", {"user_id": f"{name}-2"}, properties={"note": name})
    stage.engine.identity.merge(
        "default", f"user_id:{name}", f"user_id:{name}-2", request="one", reason=name, force=True
    )
    stage.tell("page", {"anonymous_id": f"other device of {name}"})
    stage.engine.identity.merge(
        "default", f"user_id:{name}", f"anonymous_id:other device of {name}", request="two", reason=name
    )
    # What others have said stays theirs, with the identifier in it: so the one in it has no marker.
    stage.tell("page", {"user_id": name, "anonymous_id": "shared-device"})
    for other in (bob, carol):
        stage.tell("page", {"user_id": other["user_id"], "anonymous_id": "shared-device"})
    for number, entry in enumerate(stage.engine.identity.quarantined("default")):
        if number == 0:
            stage.engine.identity.review("default", entry["id"], join=False, by="ops")
    # Rejected: a conflict, and what is too deep or of a reserved type.
    stage.tell("page", ada, "same", properties={"n": 1})
    assert stage.tell("page", ada, "same", properties={"n": name}) == "conflict"
    assert stage.tell("threadline.forged", ada, properties={"n": name}) == "reserved_type"
    assert stage.tell("threadline.forged", bob, properties={"n": 1}) == "reserved_type"
    # A mail that waits, one that is postponed, a broadcast, a suppression.
    stage.ask("broadcasts_create", id="sale", template="hello", audience={"segment": "pros"})
    stage.ask("broadcasts_start", id="sale")
    stage.work()
    for address in (ada["email"], "dora@example.com"):
        stage.ask("suppression_add", address=address, note=f"by hand for {address}")
    stage.tell("unsubscribed", ada, properties={"topic": "offers", "address": ada["email"]}, source_type="internal")
    stage.tell("ask_waiting", ada, properties={})
    return ada


def contents(store: Store) -> dict[Key, bytes]:
    """Every item of a store."""
    return {item.key: item.value for table in store.tables() for item in scan_pages(store, table)}


def found(store: Store, needles: Iterable[bytes]) -> Iterator[str]:
    """Every place of items and log in which one of these stands, in whatever case."""
    sought = [needle.lower() for needle in needles]
    for key, value in contents(store).items():
        read = value + (zlib.decompress(value) if value[:1] == b"\x78" and key.table == "what_if" else b"")
        for needle in sought:
            if needle in ("\n".join(key).encode() + b"\n" + read).lower():
                yield f"{needle!r} in {key}"
    for each in feed_pages(store):
        for needle in sought:
            if needle in repr(each.entry).encode().lower() or needle in each.entry.body.lower():
                yield f"{needle!r} in event {each.entry.id}"


def ids_of(stage: Stage, ref: str) -> list[bytes]:
    """The ids of a person and of their threads, as text and as bytes."""
    threads = stage.engine.reader.person("default", ref).heads
    return [form for thread in threads for form in (thread.encode(), bytes.fromhex(thread))]
