"""The scrub reads everything once in its time, goes on where it was, marks what is damaged and takes marks back."""

from __future__ import annotations

import threading

from tests.engine.test_damage import altered, damage, told
from tests.laws import staging
from threadline.engine.delivery.leases import Leases
from threadline.engine.engine import Engine
from threadline.engine.folding.person import PERSON
from threadline.engine.maintenance.repair import repair
from threadline.engine.maintenance.scrub import Scrub, Scrubbed, ScrubWorker, scrubbed
from threadline.kernel.store import Batch, Put, feed_pages
from threadline.kernel.time import DAY, HOUR, SECOND

DAYS = 7.0


def through(on: Engine, scrub: Scrub) -> Scrubbed:
    """Take steps until a pass is complete."""
    leases = Leases(on.store, on.clock, "scrubber", 30.0)
    before = scrubbed(on.store).last.done_at
    for _ in range(100):
        fence = leases.acquire("scrub")
        assert fence is not None
        assert 0 <= scrub.step(fence) <= 60
        if scrubbed(on.store).last.done_at != before:
            return scrubbed(on.store)
    raise AssertionError("the scrub does not end")


def scrub_of(on: Engine) -> Scrub:
    """The scrub of an engine's store."""
    return Scrub(on.store, on.catalogue, on.damage, on.clock, DAYS)


def test_a_pass_reads_every_event_and_person_and_finds_a_whole_store_whole() -> None:
    on = told(staging.ticking())
    done = through(on, scrub_of(on)).last
    assert (done.entries, done.people) == (len(list(feed_pages(on.store))), len(on.store.scan(PERSON)))
    assert (done.damaged, done.differing, done.problem, on.damage.known()) == (0, 0, "", {})


def test_a_damaged_event_is_marked_and_after_its_repair_the_mark_is_taken() -> None:
    on = told(staging.ticking(step=10 * SECOND))
    was = damage(on, "ada-1", altered)
    assert through(on, scrub_of(on)).last.damaged == 1
    assert [(each.id, each.position) for each in on.damage.known().values()] == [(was.entry.id, was.cursor)]
    repair(on.store, told().store, on.catalogue, on.damage)
    assert on.damage.known() == {}
    damage(on, "ada-1", altered)
    through(on, scrub_of(on))
    found = next(each for each in feed_pages(on.store) if each.cursor == was.cursor)
    assert on.store.mend(found, was.entry)
    assert len(on.damage.known()) == 1
    assert (through(on, scrub_of(on)).last.damaged, on.damage.known()) == (0, {})


def test_a_person_whose_states_are_not_their_fold_is_counted() -> None:
    on = told(staging.ticking())
    ada, bob = on.store.scan(PERSON)[:2]
    # As a text of its own: a version of the definitions may have these letters, too, and its states are another's.
    altered_value = ada.value.replace(b"\xa3ada", b"\xa3adb").replace(b":ada", b":adb")
    assert altered_value != ada.value
    assert on.store.commit([Batch(writes=[Put(ada.key, altered_value)])]) == [None]
    assert bob.value != ada.value
    assert through(on, scrub_of(on)).last.differing == 1


def test_a_pass_is_due_once_in_its_time_and_goes_on_in_another_process() -> None:
    at = [staging.NOW]
    on = told(lambda: at[0])
    scrub = scrub_of(on)
    leases = Leases(on.store, on.clock, "one", 30.0)
    fence = leases.acquire("scrub")
    assert fence is not None
    scrub.step(fence)
    leases.let_go()
    middle = scrubbed(on.store)
    assert middle.now.entries == len(list(feed_pages(on.store)))
    done = through(on, scrub_of(on))
    assert done.last.entries == middle.now.entries
    assert not scrub.is_due()
    at[0] += int(DAYS * DAY) - HOUR
    assert not scrub.is_due()
    at[0] += 2 * HOUR
    assert scrub.is_due()
    at[0] = staging.NOW - 30 * DAY  # a clock that was ahead has been put right
    assert scrub.is_due()


def test_a_second_process_does_not_scrub_while_the_first_has_the_lease() -> None:
    on = told()
    workers = [ScrubWorker(scrub_of(on), Leases(on.store, on.clock, owner, 30.0), on.clock) for owner in ("one", "two")]
    for worker in workers:
        worker.start(threading.Event())
        worker._thread.join()  # type: ignore[union-attr]
    state = scrubbed(on.store)
    assert (state.now.entries, state.at_people) == (len(list(feed_pages(on.store))), False), "one step, not two"
