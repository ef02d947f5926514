"""A clock that was ahead and is set right: nothing that it wrote makes anybody wait for the day that it showed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest

from tests.engine.test_claiming import engine_with, letter_post
from tests.engine.test_claiming import write as write_letter
from tests.engine.test_dispatch import NOW, Box, Clock, tell, types
from tests.engine.test_dispatch import POLICY as CARE
from tests.engine.test_ranks import BOARD, Writer
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.accounts import Accounts
from threadline.engine.credentials import Credentials
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.delivery.leases import Leases
from threadline.engine.delivery.unknown import over
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.engine.password_links import PasswordLinks
from threadline.engine.scheduled import OUTBOX, due_of, effect_id, shard_of
from threadline.engine.signer import Signer
from threadline.kernel.errors import Unauthorized
from threadline.kernel.event import event_id
from threadline.kernel.limits import SESSIONS_MAX
from threadline.kernel.outbox import CircuitState
from threadline.kernel.policy import Effect, Policy
from threadline.kernel.preparation import Postponed, Prepared
from threadline.kernel.sender import (
    EFFECT_PARKED,
    EFFECT_UNKNOWN,
    POSTPONED_SECONDS_MAX,
    REST_SECONDS_FIRST,
    REST_SECONDS_MAX,
    Outcome,
    Queue,
)
from threadline.kernel.store import scan_pages
from threadline.kernel.time import CLOCK_SKEW_MAX, DAY, HOUR, MINUTE, SECOND, believed_until
from threadline.senders.hosts import Hosts
from threadline.stores.memory import MemoryStore

AHEAD = 3 * DAY


@pytest.fixture
def clock() -> Clock:
    return Clock()


def on(clock: Clock, *values: Any, store: Any = None) -> Engine:
    people = discover("threadline.capabilities.profile.people.projection", definitions=None)
    return Engine(store or MemoryStore(), Catalogue([*people, CARE, *values], rules()), clock)


@pytest.mark.parametrize(("until", "expected"), [(NOW, NOW), (NOW + 5, NOW + 5), (NOW + 6, NOW), (NOW - 9, NOW - 9)])
def test_an_end_is_believed_up_to_the_longest_wait(until: int, expected: int) -> None:
    assert believed_until(until, NOW, 5) == expected


# --- leases -----------------------------------------------------------------------------------


def test_a_lease_of_a_clock_that_was_ahead_ends_after_its_length_in_the_time_of_whoever_waits(clock: Clock) -> None:
    store = MemoryStore()
    ahead, waiting = Clock(), Leases(store, clock, "waiting")
    ahead.now += AHEAD
    assert Leases(store, ahead, "gone").acquire("work") is not None
    assert waiting.acquire("work") is None
    clock.now += 29 * SECOND
    assert waiting.acquire("work") is None
    clock.now += SECOND
    assert waiting.acquire("work") is not None


def test_a_lease_that_is_renewed_by_a_clock_that_is_ahead_is_not_taken_over(clock: Clock) -> None:
    store = MemoryStore()
    ahead, waiting = Clock(), Leases(store, clock, "waiting")
    holder = Leases(store, ahead, "holder")
    ahead.now += AHEAD
    for _ in range(10):
        assert holder.acquire("work") is not None
        assert waiting.acquire("work") is None
        clock.now += 16 * SECOND
        ahead.now += 16 * SECOND


def test_a_holder_whose_clock_is_set_back_asks_the_store_whether_it_still_has_its_lease(clock: Clock) -> None:
    store = MemoryStore()
    other = Clock()
    clock.now += AHEAD
    holder, waiting = Leases(store, clock, "holder"), Leases(store, other, "waiting")
    assert holder.acquire("work") is not None
    clock.now -= AHEAD
    assert waiting.acquire("work") is None
    other.now += 30 * SECOND
    assert waiting.acquire("work") is not None
    assert holder.acquire("work") is None, "it would send what the other one sends"


@pytest.mark.parametrize("queue", ["crm", ""])
def test_a_holder_whose_lease_was_taken_by_a_clock_that_is_ahead_sends_one_effect_more(
    clock: Clock, queue: str
) -> None:
    store, ahead = MemoryStore(), Clock()
    ahead.now += AHEAD
    policy = Policy(
        name="sales",
        handles=frozenset({"sell"}),
        react=lambda recorded, view: [Effect(kind="box", key="call", queue=queue, data={})],
    )
    here, there = (on(each, policy, Queue("crm"), store=store) for each in (clock, ahead))
    box, other = Box(), Box()
    first, second = Dispatcher(here, {"box": box}, "first"), Dispatcher(there, {"box": other}, "second")
    keys = [f"{number}" for number in range(200)]
    ids = [effect_id("sales", event_id("default", "direct", key), "call") for key in keys]
    # All in one shard, so that one lease is for all of them.
    keys = [key for key, id in zip(keys, ids, strict=True) if queue or shard_of(id) == shard_of(ids[0])][:7]
    tell(here, "sell", keys[0])
    assert first.run_once() == 1
    tell(here, "sell", keys[1])
    assert second.run_once() == 1
    for key in keys[2:]:
        tell(here, "sell", key)
    assert (first.run_once(), len(box.sent)) == (0, 2)
    assert second.run_once() == len(keys) - 2


@pytest.mark.parametrize(("owner", "waits"), [("other/7/ab@p2", False), ("other/7/ab@p1", True), ("old/7/ab", False)])
def test_whoever_alone_can_write_waits_for_no_other_process(clock: Clock, owner: str, waits: bool) -> None:
    store = MemoryStore()
    assert Leases(store, clock, owner).acquire("work") is not None
    assert (Leases(store, clock, "own/8/cd@p1").acquire("work") is None) == waits
    assert Leases(store, clock, "shared/9/ef").acquire("work") is None


# --- rests ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rests", "seconds"), [(1, REST_SECONDS_FIRST), (2, 2 * REST_SECONDS_FIRST), (9, REST_SECONDS_MAX)]
)
def test_a_destination_rests_no_longer_than_this_rest_lasts_and_what_clocks_differ_by(rests: int, seconds: int) -> None:
    longest = seconds * SECOND + CLOCK_SKEW_MAX
    assert CircuitState(rests=rests, rest_until=NOW + longest).rests_at(NOW)
    assert not CircuitState(rests=rests, rest_until=NOW + longest + 1).rests_at(NOW)
    assert not CircuitState().rests_at(NOW)


@pytest.mark.parametrize("ahead", [AHEAD, 90 * SECOND])
def test_what_was_skipped_while_the_clock_was_ahead_is_looked_at_again(clock: Clock, ahead: int) -> None:
    senders: dict[str, Any] = {}
    engine = on(clock)
    dispatcher = Dispatcher(engine, senders, "one")
    tell(engine, "write")
    clock.now += ahead
    assert dispatcher.run_once() == 0, "it has no sender here"
    clock.now -= ahead - SECOND
    senders["box"] = Box()
    assert dispatcher.run_once() == 1


@pytest.mark.parametrize("ahead", [AHEAD, 90 * SECOND])
def test_a_host_that_rests_is_called_again_after_the_clock_is_set_back(clock: Clock, ahead: int) -> None:
    hosts = Hosts(clock)
    clock.now += ahead
    for _ in range(5):
        hosts.heard("crm.example", failing=True)
    assert hosts.wait("crm.example") > 0
    clock.now -= ahead
    assert hosts.wait("crm.example") == 0.0


# --- effects ----------------------------------------------------------------------------------


def test_an_effect_of_a_day_to_come_is_sent_now_and_one_that_was_meant_for_that_day_is_not(clock: Clock) -> None:
    def react(recorded: Any, view: Any) -> Sequence[Effect]:
        return [
            Effect(kind="box", key="now", data={}),
            Effect(kind="box", key="then", due_at=NOW + AHEAD, data={}),
        ]

    engine = on(clock, Policy(name="plans", handles=frozenset({"plan"}), react=react))
    box = Box()
    dispatcher = Dispatcher(engine, {"box": box}, "one")
    clock.now += AHEAD - HOUR
    tell(engine, "plan")
    clock.now -= AHEAD - HOUR
    assert dispatcher.run_once() == 1
    assert dispatcher.run_once() == 0
    clock.now += AHEAD
    assert dispatcher.run_once() == 1
    assert len(set(box.sent)) == 2


def test_an_effect_that_was_put_off_is_given_up_on_after_its_queues_time_from_now(clock: Clock) -> None:
    queue = Queue("crm", give_up_seconds=DAY // SECOND)
    sent = [Effect(kind="box", key="call", queue="crm", data={})]
    policy = Policy(name="sales", handles=frozenset({"sell"}), react=lambda recorded, view: sent)
    engine = on(clock, policy, queue)
    clock.now += AHEAD
    tell(engine, "sell")
    clock.now -= AHEAD
    began = clock.now
    dispatcher = Dispatcher(engine, {"box": Box([Outcome(type="x", retry_after_seconds=0.0)] * 100)}, "one")
    while EFFECT_PARKED not in types(engine):
        clock.now += 0 if dispatcher.run_once() else 10 * MINUTE
        assert clock.now < began + 2 * DAY


def test_an_effect_is_postponed_for_a_day_at_most_and_then_prepared_again(clock: Clock) -> None:
    asked: list[int] = []

    def prepare(ports: Any, view: Any, pending: Any) -> Postponed:
        asked.append(clock.now)
        return Postponed(until=NOW + 40 * HOUR)

    engine = engine_with(MemoryStore(), clock, None, prepare=prepare)
    write_letter(engine)
    dispatcher = Dispatcher(engine, {"letter": letter_post()}, "one")
    assert dispatcher.run_once() == 1
    (item,) = scan_pages(engine.store, OUTBOX)
    assert due_of(item) == NOW + POSTPONED_SECONDS_MAX * SECOND
    clock.now += POSTPONED_SECONDS_MAX * SECOND
    assert dispatcher.run_once() == 1
    (item,) = scan_pages(engine.store, OUTBOX)
    assert (due_of(item), asked) == (NOW + 40 * HOUR, [NOW, NOW + DAY])


def test_an_effect_that_was_tried_and_then_postponed_is_left_alone_until_then(clock: Clock) -> None:
    asked: list[int] = []

    def prepare(ports: Any, view: Any, pending: Any) -> Postponed | Prepared:
        asked.append(clock.now - NOW)
        return Postponed(until=NOW + 9 * HOUR) if pending.attempts else Prepared(data=pending.effect.data)

    engine = engine_with(MemoryStore(), clock, None, prepare=prepare)
    write_letter(engine)
    dispatcher = Dispatcher(engine, {"letter": letter_post("retry")}, "one")
    while clock.now < NOW + 9 * HOUR:
        dispatcher.run_once()
        clock.now += 10 * SECOND
    assert asked == [0, 10 * SECOND]


def test_an_effect_that_is_unknown_since_a_day_to_come_is_resolved_after_its_queues_time_from_now(clock: Clock) -> None:
    queue = Queue("letters", claims=True, unknown="assume_done", unknown_seconds=HOUR // SECOND)
    engine = engine_with(MemoryStore(), clock, queue)
    clock.now += AHEAD
    write_letter(engine)
    post = letter_post("unknown")
    Dispatcher(engine, {"letter": post}, "one").run_once()
    assert len(over(engine.store, "letters", clock.now, 10)) == 1, types(engine)
    clock.now -= AHEAD
    dispatcher = Dispatcher(engine, {"letter": post}, "two")
    dispatcher.run_once()
    clock.now += HOUR - 1
    assert dispatcher.run_once() == 0
    clock.now += 1
    assert dispatcher.run_once() == 1
    assert not over(engine.store, "letters", clock.now + DAY, 10)
    assert EFFECT_UNKNOWN in types(engine)


# --- sessions ---------------------------------------------------------------------------------


def accounts_of(clock: Clock) -> Accounts:
    store = MemoryStore()
    accounts = Accounts(store, clock, Credentials(store, clock), Signer(store))
    accounts.hasher.cost, accounts.hasher.rounds = 16, 1
    accounts.create("shop", "ada", "correct horse battery", "admin")
    return accounts


def test_sessions_links_and_steps_of_signing_in_of_a_day_to_come_are_over(clock: Clock) -> None:
    accounts = accounts_of(clock)
    links, account = PasswordLinks(accounts), accounts.account("shop", "ada")
    for ahead, good in ((MINUTE, True), (AHEAD, False)):
        clock.now += ahead
        secret, ticket = accounts.begin(account).secret, accounts.ticket("code", account)
        _, link = links.make("shop", "ada")
        clock.now -= ahead
        assert (accounts.find(secret) is not None) == good
        for check in (partial(links.account_of, link), partial(accounts.of_ticket, "code", ticket)):
            with nullcontext() if good else pytest.raises(Unauthorized):
                check()


def test_sessions_of_a_day_to_come_push_out_no_newer_ones(clock: Clock) -> None:
    accounts = accounts_of(clock)
    account = accounts.account("shop", "ada")
    clock.now += AHEAD
    for _ in range(SESSIONS_MAX):
        accounts.begin(account)
    clock.now -= AHEAD
    opened = [accounts.begin(account).secret for _ in range(3)]
    assert [accounts.find(secret) is not None for secret in opened] == [True] * 3


# --- caches -----------------------------------------------------------------------------------


def test_a_key_that_was_revoked_elsewhere_ends_after_the_clock_is_set_back(clock: Clock) -> None:
    store = MemoryStore()
    here, elsewhere = Credentials(store, clock), Credentials(store, clock)
    made, secret = here.create("default", "write_key", "shop")
    clock.now += AHEAD
    assert elsewhere.find(secret) is not None
    here.revoke("default", made.id)
    clock.now -= AHEAD
    assert elsewhere.find(secret) is None


def test_a_board_counts_a_score_again_whose_end_is_to_come_again(seed: int) -> None:
    writer = Writer(MemoryStore(), seed)
    for _ in range(20):
        writer.change(ends=True)
    expected = writer.expected(0)
    assert writer.ranks.counted(BOARD, 0, writer.now, expiring=True)[:2] == expected
    writer.now += 4 * DAY
    assert writer.ranks.counted(BOARD, 0, writer.now, expiring=True).total == 0
    writer.now -= 4 * DAY
    assert writer.ranks.counted(BOARD, 0, writer.now, expiring=True)[:2] == expected


def test_a_read_without_an_instant_follows_a_clock_that_is_set_back(clock: Clock) -> None:
    engine = on(clock)
    clock.now += AHEAD
    tell(engine, "other")
    assert engine.now() == clock.now + 1
    clock.now -= AHEAD
    assert engine.now() == clock.now
