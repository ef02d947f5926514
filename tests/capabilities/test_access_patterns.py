"""The questions that an e-mail tool asks all day are each one look-up, however many people there are."""

from __future__ import annotations

from collections import Counter
from typing import Any

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.context import Context
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.event import Event, Identifier
from threadline.kernel.policy import Effect
from threadline.kernel.sender import Outcome
from threadline.kernel.time import SECOND, format_time, parse_time
from threadline.stores.memory import MemoryStore
from threadline.surfaces.operation_calls import call

NOW = parse_time("2026-03-02T08:00:00Z")
READS = frozenset({"get", "query", "ranges", "scan", "find", "seen", "spans", "histories", "feed"})
DECLARED = """
mail:
  provider: {url: 'inbox:', at_once: 16}
  senders: {shop: {from: shop@shop.example}}
  templates: {hello: {subject: Hello, text: Hello}, sale: {subject: Sale, text: Sale}}
journeys:
  welcome: {trigger: {event: signed_up}, steps: [{send: hello}, {wait: 3d}, {send: sale}]}
"""
DEFINITIONS = Definitions([("threadline.yaml", DECLARED)])
CATALOGUE = Catalogue(discover(definitions=DEFINITIONS), rules(), DEFINITIONS)
FEW, MANY = 3, 60
ADA = {"id": "user_id:p0"}
DAY = {"start": format_time(NOW)[:10]}

PATTERNS: dict[str, tuple[str, dict[str, Any]]] = {
    "profile": ("person", ADA),
    "what people are called": ("people_names", {"people": ["user_id:p0", "email:p1@example.com"]}),
    "one execution": ("journeys_history", {**ADA, "name": "welcome"}),
    "all executions of somebody": ("journeys_of", ADA),
    "people in a journey": ("journeys_people", {"name": "welcome", "limit": 2}),
    "how many are in a journey": ("journeys_show", {"name": "welcome"}),
    "what somebody was sent": ("mail_history", ADA),
    "was this template sent": ("mail_sent", {**ADA, "template": "hello"}),
    "suppression": ("suppression_get", {"address": "p1@example.com"}),
    "people of a tag": ("people_list", {"tag": "news", "limit": 2}),
    "broadcast by id": ("broadcasts_show", {"id": "april"}),
    "broadcasts, newest first": ("broadcasts_list", {"limit": 2}),
    "broadcasts of a range of dates": ("broadcasts_list", {**DAY, "limit": 2}),
    "counters of a broadcast": ("feedback_counters", {"broadcast": "april"}),
    "events of a template": ("feedback_events", {**DAY, "template": "hello", "limit": 2}),
    "events of a broadcast": ("feedback_events", {**DAY, "broadcast": "april", "limit": 2}),
}
"""Question -> the operation that answers it. ``person`` with everything of somebody is one of them."""


class Counting:
    """A store that counts what is read of it."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.reads: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        if name in READS:
            self.reads[name] += 1
        return getattr(self._store, name)


class Post:
    """Takes every mail."""

    kind, taken = "mail", 0

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """Take it."""
        self.taken += 1
        return Outcome(type="mail_sent", properties=effect.data["record"])


def test_mails_that_are_sent_together_read_the_store_as_often_as_one_alone() -> None:
    def reads(people: int) -> Counter[str]:
        store = MemoryStore()
        engine = Engine(store, CATALOGUE, lambda: NOW)
        for n in range(people):
            who = (Identifier("user_id", f"p{n}"),)
            for type, properties in ("identify", {"email": f"p{n}@example.com"}), ("signed_up", {}):
                events = [Event(type=type, identifiers=who, occurred_at=NOW, key=f"{type}-{n}", properties=properties)]
                assert [each.status for each in engine.recorder.record(events)] == ["accepted"]
        counting, post = Counting(store), Post()
        engine = Engine(counting, CATALOGUE, lambda: NOW + SECOND)
        engine.public_address.use_local("http://shop.example")
        dispatcher = Dispatcher(engine, {"mail": post}, "test")
        while dispatcher.run_once():
            pass
        assert post.taken == people
        return counting.reads

    assert reads(1) == reads(16)


def store_of(people: int) -> Any:
    """A store in which so many signed up, are in a journey and have had a broadcast."""
    store = MemoryStore()
    engine = Engine(store, CATALOGUE, lambda: NOW)
    engine.public_address.use_local("http://shop.example")
    events = []
    for n in range(people):
        who = (Identifier("user_id", f"p{n}"),)
        for type, properties in (
            ("identify", {"email": f"p{n}@example.com"}),
            ("tag_added", {"tag": "news"}),
            ("signed_up", {}),
        ):
            key = f"{type}-{n}"
            events.append(Event(type=type, identifiers=who, occurred_at=NOW, key=key, properties=properties))
    engine.recorder.record(events)
    ask(engine, "suppression_add", address="p1@example.com", reason="manual")
    ask(engine, "broadcasts_create", id="april", template="sale", audience={"tags": ["news"]})
    ask(engine, "broadcasts_start", id="april")
    dispatcher = Dispatcher(engine, {"mail": Post()}, "test")
    while dispatcher.run_once():
        pass
    return store


def ask(engine: Engine, name: str, /, **given: Any) -> Any:
    return call(CATALOGUE.operation(name), Context(engine, "default", NOW + 1, "test"), given, strict=True)


def reads_of(people: int) -> dict[str, Counter[str]]:
    """Question -> what is read of a store with so many people to answer it."""
    counting = Counting(store_of(people))
    found = {}
    for question, (name, given) in PATTERNS.items():
        engine = Engine(counting, CATALOGUE, lambda: NOW + 1)
        counting.reads.clear()
        ask(engine, name, **given)
        found[question] = counting.reads.copy()
    return found


def test_each_question_is_answered_without_a_scan_and_by_as_many_reads_whoever_else_is_there() -> None:
    found = reads_of(MANY)
    for question, reads in found.items():
        assert reads["scan"] == 0, question
        assert reads["query"] + reads["ranges"] <= 3, (question, reads)
        # One of them looks whether the name that a call has is of something, such as of a broadcast.
        assert reads.total() - reads["query"] - reads["ranges"] <= 5, (question, reads)
    assert found == reads_of(FEW)


def test_the_questions_have_answers() -> None:
    engine = Engine(store_of(MANY), CATALOGUE, lambda: NOW + 1)
    answers = {question: ask(engine, name, **given) for question, (name, given) in PATTERNS.items()}
    assert answers["profile"].identifiers
    assert len(answers["people in a journey"].people) == 2
    assert answers["was this template sent"].sent
    assert len(answers["what somebody was sent"].mails) == 2
    assert len(answers["people of a tag"].people) == 2
    assert answers["counters of a broadcast"].counts.sent.unique == MANY - 1  # all but the one who is suppressed
    assert answers["broadcast by id"].id == answers["broadcasts, newest first"].broadcasts[0].id == "april"
    assert len(answers["events of a broadcast"].events) == len(answers["events of a template"].events) == 2
