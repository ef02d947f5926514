"""Definitions applied by a job: as page by page, at whatever commit its worker is killed, and never by other ones."""

from __future__ import annotations

from tests.capabilities.asked import Asked
from tests.capabilities.segments_stage import RECENT, SPENDERS, bought, members, redefined, work
from tests.mortal import Fate, Killed
from threadline.capabilities.foundation.jobs import refreshing
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.maintenance.applying import APPLIED
from threadline.kernel.job_kind import JOB_FAILURES_MAX
from threadline.kernel.store import Item, Key
from threadline.kernel.time import HOUR

BUYERS = ("ada", "bob", "eve")


def changed() -> Asked:
    """People under definitions of before, on a store that is opened with others."""
    before = Asked(definitions=RECENT)
    for number, who in enumerate(BUYERS):
        bought(before, who, 60 * (number + 1))
    return redefined(before, SPENDERS)


def state(asked: Asked, id: str) -> str:
    return asked.ask("jobs_show", id=id)["state"]


def test_job_brings_everybody_up_to_the_definitions() -> None:
    by_pages, by_job = changed(), changed()
    cursor = by_pages.ask("definitions_apply")["next"]
    while cursor:
        cursor = by_pages.ask("definitions_apply", cursor=cursor)["next"]
    job = by_job.ask("definitions_apply_in_background")
    work(by_job)
    assert state(by_job, job["id"]) == "done"
    assert by_job.ask("jobs_show", id=job["id"])["counts"]["segments"] == len(BUYERS)
    assert by_job.engine.maintenance.stale() == ()
    assert sorted(members(by_job, "spenders")) == sorted(members(by_pages, "spenders"))
    assert len(members(by_job, "spenders")) == 2


def test_job_killed_at_any_commit_ends_as_one_undisturbed() -> None:
    number = 0
    while True:
        number += 1
        asked = changed()
        fate = Fate(asked.engine.store)
        id = asked.ask("definitions_apply_in_background")["id"]
        fate.killed_at, fate.through = fate.commits + number, number % 2
        try:
            work(asked)
        except Killed:
            asked = redefined(asked, SPENDERS)
            asked.now += HOUR // 2
            work(asked)
            assert (state(asked, id), asked.engine.maintenance.stale()) == ("done", ())
            assert len(members(asked, "spenders")) == 2
            continue
        assert number > 3
        return


def test_job_that_runs_is_answered_and_one_that_is_done_begins_anew() -> None:
    asked = changed()
    first, second = (asked.ask("definitions_apply_in_background")["id"] for _ in range(2))
    assert first == second
    work(asked)
    assert asked.ask("definitions_apply_in_background")["id"] not in (first, "")


def test_job_waits_for_a_process_with_its_definitions_and_fails_once_others_are_filled() -> None:
    asked = changed()
    id = asked.ask("definitions_apply_in_background")["id"]
    other = redefined(asked, RECENT)
    work(other)
    assert state(other, id) == "running"
    assert members(other, "recent")
    again = redefined(other, SPENDERS)
    again.now += refreshing.ELSEWHERE_SECONDS * 1_000_000
    work(again)
    assert state(again, id) == "done"
    id = again.ask("definitions_apply_in_background")["id"]
    other = redefined(again, RECENT)
    for _ in range(JOB_FAILURES_MAX + 1):
        other.now += 2 * HOUR
        work(other)
    shown = other.ask("jobs_show", id=id)
    assert (shown["state"], "with the definitions" in shown["waits_for"]) == ("running", True)
    other.ask("definitions_apply_in_background")
    work(other)
    assert other.engine.maintenance.stale() == ()
    other.now += 2 * HOUR
    work(other)
    shown = other.ask("jobs_show", id=id)
    assert (shown["state"], "in force no more" in shown["problem"]) == ("failed", True)


def test_job_that_has_run_for_hours_goes_on_after_a_process_with_other_definitions_has_met_it_again_and_again() -> None:
    asked = changed()
    id = asked.ask("definitions_apply_in_background")["id"]
    Dispatcher(asked.engine, {}, "one page").run_once()
    assert state(asked, id) == "running"
    other = redefined(asked, RECENT)
    for _ in range(JOB_FAILURES_MAX + 1):
        other.now += HOUR
        work(other)
    again = redefined(other, SPENDERS)
    again.now += refreshing.ELSEWHERE_SECONDS * 1_000_000
    work(again)
    assert (state(again, id), again.engine.maintenance.stale()) == ("done", ())
    assert len(members(again, "spenders")) == 2


def test_process_that_opens_an_empty_store_while_another_does_with_other_definitions_leaves_no_mark_of_those() -> None:
    before = Asked(definitions=RECENT)
    store, get, marked = before.engine.store, before.engine.store.get, []

    def overtaken(keys: list[Key]) -> list[Item | None]:
        found = get(keys)
        if keys[0].table == APPLIED and not marked:
            marked.append(True)
            redefined(before, SPENDERS)
        return found

    store.get = overtaken  # type: ignore[method-assign,assignment]
    older = redefined(before, RECENT)
    store.get = get  # type: ignore[method-assign]
    assert marked
    bought(older, "ada", 120)
    newer = redefined(older, SPENDERS)
    while newer.engine.maintenance.stale():
        newer.ask("definitions_apply")
    assert len(members(newer, "spenders")) == 1
