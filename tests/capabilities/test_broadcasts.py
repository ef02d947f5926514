"""Broadcasts: everybody of the audience is addressed once, at whatever commit a process dies, and stopped when told."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from tests.mortal import Fate, Killed
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.capabilities.reach.broadcasts.definition import Arm, Broadcast
from threadline.capabilities.reach.broadcasts.events import BROADCAST_ADDRESSED, HOLDOUT
from threadline.capabilities.reach.broadcasts.operations import estimating
from threadline.capabilities.reach.broadcasts.policy import PAUSED
from threadline.capabilities.reach.broadcasts.repository import BROADCAST_CREATED, RECIPIENT
from threadline.capabilities.reach.broadcasts.sending import KIND
from threadline.engine.context import Context
from threadline.engine.delivery import job_worker
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.engine.scheduled import OUTBOX, pending_effect
from threadline.kernel.errors import Conflict, InvalidValue, NotFound
from threadline.kernel.event import Event, Identifier
from threadline.kernel.policy import Effect
from threadline.kernel.sender import Outcome
from threadline.kernel.store import Batch, Delete, Put, scan_pages
from threadline.kernel.time import DAY, HOUR, MINUTE, SECOND, format_time, parse_time
from threadline.stores.memory import MemoryStore
from threadline.surfaces.operation_calls import call

NOW = parse_time("2026-03-02T08:00:00Z")
PEOPLE = 23
DEFINITIONS = """
segments:
  pros: {when: {field: traits.plan, equals: pro}}
mail:
  senders: {shop: {from: shop@shop.example}}
  templates:
    sale: {subject: Sale, text: "{{ percent }} % off", variables: {percent: {default: 10}}}
    receipt: {subject: Receipt, text: Thanks, transactional: true}
    other: {subject: Other, text: "{{ until }}", variables: {until: {}}}
"""

_DECLARED = Definitions([("threadline.yaml", DEFINITIONS)])
_CATALOGUE = Catalogue(discover(definitions=_DECLARED), rules(), _DECLARED)


class Post:
    """Takes every mail."""

    kind = "mail"

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.subjects: set[str] = set()

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """Keep the address."""
        self.taken.append(effect.data["to"])
        self.subjects.add(effect.data["record"]["subject"])
        return Outcome(type="mail_sent", properties=effect.data["record"])


class World:
    """A store with people of two plans, three zones and a tag, and whoever works on it."""

    def __init__(self, people: int = PEOPLE) -> None:
        self.now = NOW
        self.post = Post()
        self.store = MemoryStore()
        self.fate = Fate(self.store)
        self.catalogue = _CATALOGUE
        self.reopen()
        self.record(*(event for n in range(people) for event in self.person(n)))

    def person(self, n: int) -> list[Event]:
        traits = {"plan": "pro" if n % 2 else "free", "email": f"p{n}@example.com"}
        traits |= {"timezone": ("Asia/Tokyo", "Europe/Rome")[n % 3]} if n % 3 < 2 else {}
        tagged = [self.event("tag_added", n, f"t{n}", tag="news")] if n % 4 == 0 else []
        return [self.event("identify", n, f"i{n}", **traits), *tagged]

    def event(self, type: str, n: int, key: str, **properties: Any) -> Event:
        return Event(
            type=type,
            identifiers=(Identifier("user_id", f"p{n}"),),
            occurred_at=self.now,
            key=key,
            properties=properties,
        )

    def record(self, *events: Event) -> None:
        assert {receipt.status for receipt in self.engine.recorder.record(events)} <= {"accepted"}

    def reopen(self) -> None:
        self.engine = Engine(self.store, self.catalogue, lambda: self.now)
        self.engine.public_address.use_local("http://shop.example")
        self.worker = Dispatcher(self.engine, {}, f"worker {self.fate.commits}")
        self.mailer = Dispatcher(self.engine, {"mail": self.post}, f"mailer {self.fate.commits}", page=10)

    def call(self, name: str, /, **given: Any) -> Any:
        operation = next(each for each in self.catalogue.operations if each.name == f"broadcasts_{name}")
        return call(operation, Context(self.engine, "default", self.engine.now()), given, strict=True)

    def start(self, **given: Any) -> None:
        self.call("create", id="sale", template="sale", **given)
        self.call("start", id="sale")

    def work(self) -> None:
        while self.worker.run_once():
            pass

    def send(self, **given: Any) -> None:
        self.start(**given)
        self.work()

    def addressed(self) -> list[Event]:
        log = [self.engine.log.read(entry) for entry in self.store.feed()]
        return [each.event for each in log if each.event.type == BROADCAST_ADDRESSED]

    def mails(self) -> list[Any]:
        return [pending_effect(item) for item in scan_pages(self.store, OUTBOX)]

    def of(self, n: int) -> Any:
        return self.engine.reader.person("default", f"p{n}")


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_worker, "JOB_PAGE", 5)
    monkeypatch.setattr(job_worker, "WRITES_MAX", 2)


AUDIENCES = {
    "everybody": ({}, range(PEOPLE)),
    "a segment": ({"segment": "pros"}, range(1, PEOPLE, 2)),
    "a tag": ({"tags": ["news"]}, range(0, PEOPLE, 4)),
    "conditions": ({"when": {"field": "traits.timezone", "equals": "Asia/Tokyo"}}, range(0, PEOPLE, 3)),
    "a segment and conditions": (
        {"segment": "pros", "when": {"not": {"field": "traits.timezone", "exists": True}}},
        range(5, PEOPLE, 6),
    ),
    "a tag and conditions": (
        {"tags": ["news"], "when": {"field": "traits.timezone", "equals": "Asia/Tokyo"}},
        range(0, PEOPLE, 12),
    ),
    "attributes": ({"attributes": {"timezone": "Asia/Tokyo"}}, range(0, PEOPLE, 3)),
    "attributes, a tag and conditions": (
        {
            "tags": ["news"],
            "attributes": {"timezone": "Asia/Tokyo"},
            "when": {"field": "traits.timezone", "exists": True},
        },
        range(0, PEOPLE, 12),
    ),
    "an attribute of another type": ({"attributes": {"timezone": True}}, ()),
    "a tag that nobody has": ({"tags": ["olds"]}, ()),
}


@pytest.mark.parametrize("name", AUDIENCES)
def test_the_preview_counts_whom_the_broadcast_then_addresses(name: str) -> None:
    audience, expected = AUDIENCES[name]
    world = World()
    world.call("create", id="sale", template="sale", audience=audience)
    preview = world.call("preview", id="sale")
    world.call("start", id="sale")
    world.work()
    people = {world.of(n).id for n in expected}
    assert {event.key for event in world.addressed()} == {f"sale/{person}" for person in people}
    assert len(world.mails()) == preview.people == len(people)
    assert {each.person for each in preview.sample} == set(sorted(people)[:10])
    shown = world.call("show", id="sale")
    assert (shown.state, shown.audience, shown.done) == ("done", len(people), len(people))


def test_a_mail_says_all_that_its_sender_needs() -> None:
    world = World(1)
    arms = [{"name": "a", "subject": "Hello"}]
    world.send(sender="shop", topic="news", variables={"percent": 20}, arms=arms)
    (mail,) = world.mails()
    assert (mail.effect.kind, mail.policy, mail.effect.key) == ("mail", "broadcasts", "sale")
    assert mail.effect.data == {
        "template": "sale",
        "subject": "Hello",
        "sender": "shop",
        "topic": "news",
        "variables": {"percent": 20},
        "arm": "a",
        "broadcast": "sale",
        "occurrence": "broadcast/sale",
    }


@pytest.mark.parametrize("through", [1, 1_000])
def test_killed_at_any_commit_everybody_is_addressed_once(through: int) -> None:
    def picture(world: World) -> Any:
        events = sorted((event.key, str(event.properties)) for event in world.addressed())
        return events, sorted(mail.id for mail in world.mails()), world.call("show", id="sale").addressed

    given: dict[str, Any] = {
        "arms": [{"name": "a"}, {"name": "b"}],
        "holdout": 0.2,
        "winner": {"share": 0.5, "after": "1h", "metric": "clicks"},
    }

    def lived(killed_at: int) -> tuple[World, bool]:
        world = World()
        world.start(**given)
        world.fate.through = through
        world.fate.killed_at = world.fate.commits + killed_at
        killed = False
        for hours in (0, 2):
            world.now += hours * HOUR
            try:
                world.work()
            except Killed:
                killed = True
                world.now += MINUTE
                world.reopen()
                world.work()
        return world, killed

    whole = picture(lived(0)[0])
    assert len(whole[0]) == PEOPLE
    kills = 1
    while True:
        world, killed = lived(kills)
        assert picture(world) == whole, f"killed after commit {kills}"
        if not killed:
            break
        kills += 1
    assert kills > PEOPLE / 5 * 3


def test_who_leaves_the_audience_while_its_killed_page_waits_gets_nothing_and_is_not_counted() -> None:
    rows: list[Any] = []
    kill = 0
    while not rows:  # killed at the first commit that leaves rows of a page behind
        kill += 1
        world = World()
        world.start(audience={"when": {"field": "traits.plan", "equals": "pro"}})
        world.fate.through, world.fate.killed_at = 1, world.fate.commits + kill
        with pytest.raises(Killed):
            world.work()
        rows = list(scan_pages(world.store, RECIPIENT))
    leaver = next(n for n in range(PEOPLE) if world.of(n).id == rows[0].key.sort)
    world.now += MINUTE
    world.reopen()
    world.record(world.event("identify", leaver, "leaves", plan="free"))
    world.work()
    rest = {world.of(n).id for n in range(1, PEOPLE, 2) if n != leaver}
    assert {event.key for event in world.addressed()} == {f"sale/{person}" for person in rest}
    shown = world.call("show", id="sale")
    assert (shown.audience, shown.done) == (len(rest), len(rest))


def test_arms_and_holdout_are_drawn_by_weight_and_the_same_every_time() -> None:
    broadcast = Broadcast(template="sale", holdout=0.1, arms=[Arm(name="a", weight=3), Arm(name="b")])
    drawn = Counter(broadcast.arm_of("sale", f"{n:032x}") for n in range(20_000))
    assert drawn[HOLDOUT] == pytest.approx(2_000, rel=0.1)
    assert drawn["a"] == pytest.approx(13_500, rel=0.05)
    assert drawn["b"] == pytest.approx(4_500, rel=0.05)
    assert broadcast.arm_of("sale", "0" * 32) == broadcast.arm_of("sale", "0" * 32)
    other = Counter(
        (broadcast.arm_of("sale", f"{n:032x}"), broadcast.arm_of("other", f"{n:032x}")) for n in range(2_000)
    )
    assert len(other) == 9


def test_nobody_held_out_gets_a_mail_and_all_are_recorded_as_such() -> None:
    world = World()
    world.send(holdout=0.5)
    held_out = {event.key for event in world.addressed() if event.properties["arm"] == HOLDOUT}
    assert 0 < len(held_out) < PEOPLE
    assert len(world.mails()) == PEOPLE - len(held_out)
    assert world.call("show", id="sale").addressed[HOLDOUT] == len(held_out)


@pytest.mark.parametrize("better", ["a", "b"])
@pytest.mark.parametrize("metric", ["opens", "conversions"])
def test_the_rest_gets_the_arm_that_did_better_in_the_test(better: str, metric: str) -> None:
    world = World()
    goes_by = {"event": "bought"} if metric == "conversions" else {}
    winner = {"share": 0.6, "after": "4h", "metric": metric, **goes_by}
    world.send(arms=[{"name": "a"}, {"name": "b"}], winner=winner)
    tested = world.addressed()
    assert 0 < len(tested) < PEOPLE
    assert world.call("show", id="sale").winner == ""
    world.now += HOUR
    for event in tested:
        arm, (who,) = event.properties["arm"], event.identifiers
        machine = arm != better
        type = "bought" if metric == "conversions" else "mail_opened"
        if metric == "opens" or not machine:
            # The machines of the worse arm open everything, which counts for nothing.
            properties = {"broadcast": "sale", "arm": arm, "machine": machine}
            world.record(
                Event(type=type, identifiers=(who,), occurred_at=world.now, key=event.key, properties=properties)
            )
    world.now += 2 * HOUR
    world.work()
    assert len(world.addressed()) == len(tested)
    world.now += HOUR
    world.work()
    rest = world.addressed()[len(tested) :]
    assert len(tested) + len(rest) == PEOPLE
    assert {event.properties["arm"] for event in rest} == {better}
    shown = world.call("show", id="sale")
    assert (shown.winner, shown.state) == (better, "done")
    assert {each.arm: each.gained for each in shown.test} == {
        arm: sum(event.properties["arm"] == arm == better for event in tested) for arm in ("a", "b")
    }


def test_a_local_time_is_each_recipients_own() -> None:
    world = World()
    world.start(at="2026-03-03T09:00", zone="America/New_York", in_zone_of_recipient=True)
    assert world.call("show", id="sale").state == "scheduled"
    world.now = parse_time("2026-03-02T18:59:59Z")
    assert world.worker.run_once() == 0
    world.now += SECOND
    world.work()
    due = Counter(format_time(mail.effect.due_at) for mail in world.mails())
    assert due == {"2026-03-03T00:00:00.000000Z": 8, "2026-03-03T08:00:00.000000Z": 8, "2026-03-03T14:00:00.000000Z": 7}


def test_an_instant_is_in_the_zone_of_the_sender() -> None:
    world = World(3)
    world.start(at="2026-03-03T09:00", zone="Europe/Rome")
    assert world.call("show", id="sale").begins_at == "2026-03-03T08:00:00.000000Z"
    world.now = NOW + DAY - 1
    assert world.worker.run_once() == 0
    world.now += 1
    world.work()
    assert len(world.mails()) == 3


def test_two_addressed_people_who_are_one_by_now_have_one_mail() -> None:
    world = World()
    world.start()
    while world.call("show", id="sale").state != "sending":
        world.worker.run_once()
    world.engine.identity.merge("default", "p0", "p1", request="r", force=True)
    world.work()
    assert Counter(mail.effect.key for mail in world.mails()) == {"sale": PEOPLE - 1}
    assert world.call("show", id="sale").done == PEOPLE


def test_an_id_is_used_once_for_ever_and_the_same_again_changes_nothing() -> None:
    world = World()
    first = world.call("create", id="sale", template="sale", audience={"tags": ["news"]})
    world.now += 3 * 365 * DAY
    assert world.call("create", id="sale", audience={"tags": ["news"]}, template="sale") == first
    with pytest.raises(Conflict):
        world.call("create", id="sale", template="sale", subject="Other")
    world.call("start", id="sale")
    world.work()
    addressed = len(world.addressed())
    assert world.call("start", id="sale").state == "done"
    world.work()
    assert len(world.addressed()) == addressed


def test_a_paused_broadcast_goes_on_and_a_cancelled_one_never_does() -> None:
    world = World()
    world.start()
    for _ in range(6):
        world.worker.run_once()
    before = len(world.addressed())
    assert 0 < before < PEOPLE
    assert world.call("pause", id="sale").state == "paused"
    world.work()
    assert len(world.addressed()) == before
    assert world.call("resume", id="sale").state == "sending"
    world.worker.run_once()
    assert world.call("cancel", id="sale").state == "cancelled"
    addressed = len(world.addressed())
    world.work()
    assert before < len(world.addressed()) == addressed < PEOPLE
    for verb in ("resume", "pause"):
        with pytest.raises(Conflict):
            world.call(verb, id="sale")


def test_two_people_with_one_address_get_one_mail() -> None:
    world = World(4)
    world.record(world.event("identify", 2, "same", email="P1@example.com"))
    world.start(subject="Until  Sunday")
    world.work()
    while world.mailer.run_once():
        pass
    assert sorted(each.casefold() for each in world.post.taken) == [
        "p0@example.com",
        "p1@example.com",
        "p3@example.com",
    ]
    assert world.post.subjects == {"Until Sunday"}
    history = next(each for each in world.catalogue.operations if each.name == "mail_history")
    events = next(each for each in world.catalogue.operations if each.name == "feedback_events")
    context = Context(world.engine, "default", world.engine.now())
    [mail] = call(history, context, {"id": world.of(0).id}, strict=True).mails
    assert (mail.broadcast, mail.subject, mail.journey) == ("sale", "Until Sunday", "")
    listed = call(events, context, {"template": mail.template}, strict=True).events
    assert {each.broadcast for each in listed} == {"sale"}
    statuses = [each.statuses for each in world.call("recipients", id="sale").recipients]
    assert Counter(map(tuple, statuses)) == {("addressed", "sent"): 3, ("addressed", "skipped"): 1}


def test_counters_say_why_recipients_were_skipped_by_arm() -> None:
    world = World(8)
    world.now += SECOND
    world.record(
        world.event("identify", 2, "same", email="P1@example.com"),
        world.event("identify", 3, "none3", email=None),
        world.event("identify", 4, "none4", email=None),
        world.event("identify", 5, "bad", email="no address"),
        msgspec.structs.replace(
            world.event("mail_skipped", 6, "forged", broadcast="sale", message="m", reason="forged"),
            source_type="external",
        ),
    )
    suppress = next(each for each in world.catalogue.operations if each.name == "suppression_add")
    context = Context(world.engine, "default", world.engine.now())
    call(suppress, context, {"address": "p6@example.com", "reason": "manual"}, strict=True)
    world.start(arms=[{"name": "a"}, {"name": "b"}])
    world.work()
    while world.mailer.run_once():
        pass
    counters = next(each for each in world.catalogue.operations if each.name == "feedback_counters")
    found = call(counters, Context(world.engine, "default", world.engine.now()), {"broadcast": "sale"}, strict=True)
    # The address that was suppressed is somebody as well, since nobody has said that it is an identifier of p6.
    expected = {"duplicate": 1, "invalid_address": 1, "no_address": 2, "suppressed:manual": 2}
    assert found.counts.skip_reasons == expected
    assert (found.counts.skipped.unique, found.counts.sent.unique) == (6, 3)
    parts = [Counter(part.counts.skip_reasons) for part in found.parts]
    assert sum(parts, Counter()) == Counter(expected)
    assert {part.arm for part in found.parts} == {"a", "b"}
    recipients = world.call("recipients", id="sale").recipients
    assert Counter(each.reason for each in recipients if "skipped" in each.statuses) == Counter(expected)
    assert {each.reason for each in recipients if "skipped" not in each.statuses} == {""}


def test_mails_that_wait_stay_while_the_broadcast_is_paused_and_never_leave_after_it_was_cancelled() -> None:
    world = World()
    world.start()
    world.work()
    world.mailer.run_once()
    sent = len(world.post.taken)
    assert 0 < sent < PEOPLE
    assert world.call("pause", id="sale").state == "paused"
    for _ in range(9):
        world.mailer.run_once()
    assert (len(world.post.taken), len(world.mails())) == (sent, PEOPLE - sent)
    assert world.call("resume", id="sale").state == "done"
    world.now += PAUSED
    world.mailer.run_once()
    more = len(world.post.taken)
    assert sent < more < PEOPLE
    assert world.call("cancel", id="sale").state == "cancelled"
    for _ in range(9):
        world.mailer.run_once()
    assert (len(world.post.taken), world.mails()) == (more, [])
    statuses = [each.statuses for each in world.call("recipients", id="sale").recipients]
    assert Counter(map(tuple, statuses)) == {("addressed", "sent"): more, ("addressed", "withdrawn"): PEOPLE - more}


def test_a_cancelled_draft_cannot_be_started() -> None:
    world = World()
    world.call("create", id="sale", template="sale")
    assert world.call("cancel", id="sale").state == "cancelled"
    with pytest.raises(Conflict):
        world.call("start", id="sale")


def test_broadcasts_are_listed_newest_first_and_by_when_they_were_created() -> None:
    world = World()
    for number in range(5):
        world.now = NOW + number * DAY
        world.call("create", id=f"b{number}", template="sale")
    page = world.call("list", limit=2)
    rest = world.call("list", limit=9, cursor=page.next)
    assert [each.id for each in (*page.broadcasts, *rest.broadcasts)] == ["b4", "b3", "b2", "b1", "b0"]
    found = world.call("list", start=format_time(NOW + DAY), stop=format_time(NOW + 3 * DAY))
    assert [each.id for each in found.broadcasts] == ["b2", "b1"]


def test_a_broadcast_says_when_it_ended_and_nothing_before() -> None:
    world = World(3)
    world.start()
    assert world.call("show", id="sale").ended_at is None
    world.now += SECOND
    world.work()
    assert world.call("show", id="sale").ended_at == format_time(world.now)


def test_recipients_have_the_status_that_events_say_page_by_page() -> None:
    world = World()
    world.send()
    for number, (type, more) in enumerate(
        (
            ("mail_sent", {}),
            ("mail_opened", {"machine": True}),
            ("mail_clicked", {"machine": False}),
            ("mail_bounced", {}),
        )
    ):
        properties = {"broadcast": "sale", **more}
        world.record(world.event(type, 1, f"s{number}", **properties))
        forged = world.event("mail_complained", 2, f"f{number}", broadcast="sale")
        world.record(msgspec.structs.replace(forged, source_type="external"))
    found, cursor = [], ""
    while True:
        page = world.call("recipients", id="sale", limit=4, cursor=cursor)
        found += page.recipients
        cursor = page.next
        if not cursor:
            break
    assert [each.person for each in found] == sorted(world.of(n).id for n in range(PEOPLE))
    statuses = {each.person: each.statuses for each in found}
    assert statuses.pop(world.of(1).id) == ["addressed", "bounced", "clicked", "sent"]
    assert set(map(tuple, statuses.values())) == {("addressed",)}
    clicked = world.call("recipients", id="sale", status="clicked")
    assert ([each.person for each in clicked.recipients], clicked.next) == ([world.of(1).id], "")
    assert world.call("recipients", id="sale", status="complained").recipients == []


@pytest.mark.parametrize("people", [0, 1, 7, 23])
def test_recipients_of_one_status_come_page_by_page_and_nobody_twice(people: int) -> None:
    world = World()
    world.send()
    for number in range(people):
        world.record(world.event("mail_opened", number, f"o{number}", broadcast="sale"))
    found, cursor = [], ""
    for _ in range(PEOPLE):
        page = world.call("recipients", id="sale", status="opened", limit=3, cursor=cursor)
        found += [each.person for each in page.recipients]
        cursor = page.next
        if not cursor:
            break
    assert cursor == ""
    assert found == sorted(world.of(number).id for number in range(people))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"audience": {"segment": "prose"}}, "pros"),
        ({"audience": {"when": {"field": "event.properties.total", "equals": 1}}}, "a person has no event"),
        ({"audience": {"when": {"field": "fetures.total", "equals": 1}}}, "features"),
        ({"zone": "Europe/Rom"}, "no time zone"),
        ({"at": "2026-02-30T09:00"}, "is no time"),
        ({"in_zone_of_recipient": True}, "needs `at`"),
        ({"in_zone_of_recipient": True, "at": "2026-03-03T09:00:00Z"}, "an instant is the same for everybody"),
        ({"at": "tomorrow"}, "is no time; write a local one"),
        ({"arms": [{"name": "a"}, {"name": "a"}]}, "two arms"),
        ({"arms": [{"name": "holdout"}]}, "cannot name an arm"),
        ({"winner": {"share": 0.5, "after": "1h"}}, "two arms"),
        (
            {"arms": [{"name": "a"}, {"name": "b"}], "winner": {"share": 0.5, "after": "1h", "metric": "conversions"}},
            "event",
        ),
        ({"holdout": 1.0}, "holdout"),
        (
            {
                "arms": [{"name": "a"}, {"name": "b"}],
                "winner": {"share": 0.5, "after": "1h"},
                "at": "2026-03-03T09:00",
                "in_zone_of_recipient": True,
            },
            "one instant",
        ),
        ({"variables": {"percent": "%" * 40_000}}, "32,768 bytes"),
        ({"subject": "\ud800"}, "JSON"),
        ({"template": "sail"}, "sale"),
        ({"sender": "shopp"}, "shop"),
        ({"template": "other"}, "until"),
        ({"arms": [{"name": "a", "template": "sail"}]}, "sale"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_created(given: dict[str, Any], named: str) -> None:
    world = World(1)
    with pytest.raises((InvalidValue, NotFound), match=named):
        world.call("create", id="sale", **{"template": "sale", **given})
    with pytest.raises(NotFound):
        world.call("show", id="sale")


def test_the_kind_of_job_is_found_by_discovery() -> None:
    assert World(1).catalogue.job_kinds["broadcast"] is KIND


# --- lists answer as much as the single view ---------------------------------------------------


@pytest.mark.parametrize(
    ("given", "subject"), [({}, "Sale"), ({"subject": "Only today"}, "Only today"), ({"sender": "shop"}, "Sale")]
)
def test_a_broadcast_in_a_list_has_its_subject_and_its_sender_before_and_after_it_was_sent(
    given: dict[str, Any], subject: str
) -> None:
    world = World()
    world.call("create", id="sale", template="sale", **given)
    for _ in range(2):
        [listed] = world.call("list").broadcasts
        assert (listed.subject, listed.sender) == (subject, "shop")
        assert world.call("show", id="sale") == listed
        world.call("start", id="sale")
        world.work()


def test_broadcasts_are_listed_by_when_they_are_sent_and_drafts_by_when_they_were_created() -> None:
    world = World()
    for id, given in (("march", {}), ("april", {}), ("draft", {}), ("later", {"at": "2026-06-01T09:00"})):
        world.call("create", id=id, template="sale", **given)
        world.now += DAY
    world.call("start", id="later")
    world.now += 30 * DAY
    world.call("start", id="march")
    world.now += DAY
    world.call("start", id="april")
    assert [each.id for each in world.call("list").broadcasts] == ["later", "april", "march", "draft"]
    pages, cursor = [], ""
    while True:
        page = world.call("list", limit=1, cursor=cursor)
        pages += [each.id for each in page.broadcasts]
        if not (cursor := page.next):
            break
    assert pages == ["later", "april", "march", "draft"]
    of_april = world.call("list", start=format_time(NOW + 30 * DAY), stop=format_time(NOW + 60 * DAY))
    assert [each.id for each in of_april.broadcasts] == ["april", "march"]


def test_a_broadcast_that_an_earlier_version_started_is_listed_where_it_was_created() -> None:
    world = World()
    world.call("create", id="sale", template="sale")
    created = [item.key for item in world.store.query(BROADCAST_CREATED, "default")]
    world.now += DAY
    world.call("start", id="sale")
    [row] = world.store.query(BROADCAST_CREATED, "default")
    world.store.commit([Batch(writes=[Delete(row.key), Put(created[0], row.value)])])
    assert [each.id for each in world.call("list").broadcasts] == ["sale"]


def test_a_list_of_broadcasts_with_results_has_the_counts_of_each() -> None:
    world = World()
    world.call("create", id="draft", template="sale")
    world.send(audience={"segment": "pros"})
    while world.mailer.run_once():
        pass
    listed = {broadcast.id: broadcast for broadcast in world.call("list", results=True).broadcasts}
    assert listed["draft"].results.sent.unique == 0
    assert listed["sale"].results.sent.unique == len(world.post.taken) == len(range(1, PEOPLE, 2))
    assert listed["sale"] == world.call("show", id="sale", results=True)
    assert {broadcast.results for broadcast in world.call("list").broadcasts} == {None}


def test_a_draft_is_changed_until_it_is_started_and_keeps_when_it_was_created() -> None:
    world = World()
    world.call("create", id="sale", template="sale", audience={"tags": ["news"]})
    created = world.now
    world.now += HOUR
    world.call("edit", id="sale", template="sale", subject="Sooner", audience={"segment": "pros"})
    shown = world.call("show", id="sale")
    assert (shown.state, shown.subject, shown.created_at) == ("draft", "Sooner", format_time(created))
    assert shown.broadcast.audience.segment == "pros"
    world.call("start", id="sale")
    world.work()
    assert len(world.addressed()) == len(range(1, PEOPLE, 2))
    with pytest.raises(Conflict, match="done, and only a draft"):
        world.call("edit", id="sale", template="sale")


def test_a_change_of_what_is_no_draft_is_refused_and_says_what_it_is() -> None:
    world = World()
    with pytest.raises(NotFound):
        world.call("edit", id="sale", template="sale")
    world.call("create", id="sale", template="sale")
    world.call("cancel", id="sale")
    with pytest.raises(Conflict, match="cancelled"):
        world.call("edit", id="sale", template="sale")


@pytest.mark.parametrize("first", ["start", "edit"])
def test_of_a_start_and_a_change_at_one_moment_one_is_refused(first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.call("create", id="sale", template="sale")
    verbs = {"start": {"id": "sale"}, "edit": {"id": "sale", "template": "sale", "subject": "Other"}}
    second = next(verb for verb in verbs if verb != first)
    commit, was_raced = world.engine.store.commit, []

    def raced(batches: Any) -> Any:
        # What the other one does between reading and writing of the first.
        if not was_raced:
            was_raced.append(True)
            world.call(second, **verbs[second])
        return commit(batches)

    monkeypatch.setattr(world.engine.store, "commit", raced)
    with pytest.raises(Conflict):
        world.call(first, **verbs[first])
    monkeypatch.undo()
    shown = world.call("show", id="sale")
    assert (shown.state, shown.subject) == (("draft", "Other") if second == "edit" else ("scheduled", "Sale"))


@pytest.mark.parametrize("template", ["sale", "receipt"])
def test_the_count_of_an_audience_says_who_is_then_sent_the_mail_and_why_others_are_not(template: str) -> None:
    world = World(12)
    world.now += SECOND
    world.record(
        world.event("identify", 2, "same", email="P1@example.com"),
        world.event("identify", 3, "none3", email=None),
        world.event("identify", 5, "bad", email="no address"),
    )
    context = Context(world.engine, "default", world.engine.now())
    others = {each.name: each for each in world.catalogue.operations}
    call(others["suppression_add"], context, {"address": "p6@example.com", "reason": "manual"}, strict=True)
    call(others["consent_change"], context, {"id": world.of(7).id, "everything": True}, strict=True)
    count = world.call("audience", template=template)
    assert count.exact
    assert world.call("audience", audience={"tags": ["olds"]}).people.people == 0
    world.call("create", id="sale", template=template)
    world.call("start", id="sale")
    world.work()
    while world.mailer.run_once():
        pass
    context = Context(world.engine, "default", world.engine.now())
    sent = call(others["feedback_counters"], context, {"broadcast": "sale"}, strict=True)
    assert count.unreachable == sent.counts.skip_reasons
    assert {"no_address", "invalid_address", "duplicate", "suppressed:manual"} <= count.unreachable.keys()
    assert ("unsubscribed" in count.unreachable) == (template == "sale")
    assert count.reachable.people == sent.counts.sent.unique == len(world.post.taken)
    assert count.people.people == world.call("show", id="sale").audience
    reasons = {each.person: each.reason for each in world.call("recipients", id="sale").recipients}
    assert {each.person: each.reason for each in count.samples}.items() <= reasons.items()


@pytest.mark.parametrize(("audience", "count"), [*((a, len(list(e))) for a, e in AUDIENCES.values())])
def test_the_count_of_any_audience_is_that_of_the_preview(audience: dict[str, Any], count: int) -> None:
    world = World()
    counted = world.call("audience", audience=audience)
    assert (counted.people.people, counted.reachable.people, counted.exact) == (count, count, True)


def test_a_count_that_runs_out_of_time_says_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimating, "PAGE", 10)
    world = World()
    monkeypatch.setattr(estimating.Deadline, "is_over", True)
    counted = world.call("audience", seconds=0.1)
    assert not counted.exact
    assert counted.people_read == 10
    assert counted.people.low <= PEOPLE <= counted.people.high


@pytest.mark.parametrize(
    ("given", "named"), [({"template": "sal"}, "sale"), ({"audience": {"segment": "pro"}}, "pros")]
)
def test_a_count_of_what_is_not_declared_names_what_is(given: dict[str, Any], named: str) -> None:
    with pytest.raises((InvalidValue, NotFound), match=named):
        World(1).call("audience", **given)


@pytest.mark.parametrize(("per_hour", "minutes"), [(60, 22), (600, 2), (10, 132)])
def test_a_limit_by_the_hour_spreads_the_mails(per_hour: int, minutes: int) -> None:
    world = World()
    world.start(per_hour=per_hour)
    begun, last = world.now, 0
    for second in range(0, minutes * 60 + 480, 6):
        world.now = begun + second * SECOND
        before = len(world.addressed())
        world.work()
        after = len(world.addressed())
        last = second if after > before else last
        assert after <= per_hour // 60 + 1 + second * per_hour // 3_600
    assert world.call("show", id="sale").state == "done"
    assert len(world.addressed()) == PEOPLE
    assert minutes * 60 - 60 <= last <= minutes * 60 + 60


@pytest.mark.parametrize(
    "given",
    [{"subject": "{{ oops"}, {"arms": [{"name": "a"}, {"name": "b", "subject": "{% if %}"}]}, {"subject": "{{ 1 + }}"}],
)
def test_a_subject_that_could_never_be_filled_in_is_refused_before_there_is_a_draft(given: dict[str, Any]) -> None:
    world = World(1)
    with pytest.raises(InvalidValue, match="cannot be filled in"):
        world.call("create", id="sale", template="sale", **given)
    with pytest.raises(NotFound):
        world.call("show", id="sale")
