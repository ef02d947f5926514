"""A published e-mail test of 64,000 people comes out as published: visits and purchases of two mails and of none.

The figures are Kevin Hillstrom's (MineThatData, 2008). THREADLINE_TEST_HILLSTROM names his file, as CSV with gzip;
without it the test takes a hundredth of as many people, with the same shares.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import threadline
from threadline.capabilities.ask.analytics.operations.experiment import ExperimentParams, experiment
from threadline.capabilities.reach.broadcasts.definition import Arm, Broadcast
from threadline.capabilities.reach.broadcasts.events import HOLDOUT
from threadline.engine.context import Context
from threadline.engine.delivery.job_worker import JobWorker
from threadline.engine.delivery.leases import Leases
from threadline.kernel.event import Identifier, thread_id
from threadline.kernel.time import DAY

ID = "catalogue"
ARMS = {"Mens E-Mail": "mens", "Womens E-Mail": "womens", "No E-Mail": HOLDOUT}
PUBLISHED = {"mens": (18.28, 1.25), "womens": (15.14, 0.88), HOLDOUT: (10.62, 0.57)}
"""Arm -> percent who visited and who bought within two weeks."""
BROADCAST: dict[str, Any] = {"template": "merchandise", "holdout": 1 / 3}
DEFINITIONS = "mail: {senders: {shop: {from: shop@shop.example}}, templates: {merchandise: {subject: New, text: New}}}"


class Recipient(NamedTuple):
    """A line of the file."""

    arm: str
    visited: bool
    bought: bool


def recipients() -> Iterator[Recipient]:
    if path := os.environ.get("THREADLINE_TEST_HILLSTROM"):
        with gzip.open(path) as packed:
            for row in csv.DictReader(io.TextIOWrapper(packed)):
                yield Recipient(ARMS[row["segment"]], row["visit"] == "1", row["conversion"] == "1")
        return
    for arm, (visits, purchases) in PUBLISHED.items():
        for n in range(213):
            yield Recipient(arm, n < round(2.13 * visits), n < round(2.13 * purchases))


def named(number: int, arm: str) -> str:
    """A user id whose person is drawn into an arm."""
    broadcast = Broadcast(**BROADCAST, arms=[Arm(name="mens"), Arm(name="womens")])
    spelling = 0
    while broadcast.arm_of(ID, thread_id("default", Identifier("user_id", f"c{number}-{spelling}"))) != arm:
        spelling += 1
    return f"c{number}-{spelling}"


@pytest.mark.slow
def test_visits_and_purchases_by_arm_come_out_as_published(tmp_path: Path) -> None:
    (tmp_path / "threadline.yaml").write_text(DEFINITIONS)
    people = [(named(number, each.arm), each) for number, each in enumerate(recipients())]
    with threadline.open(tmp_path / "threadline.db") as shop:
        _record(shop, [_event(user, "seen") for user, _ in people])
        shop.broadcasts.create(ID, **BROADCAST, arms=[{"name": "mens"}, {"name": "womens"}])
        shop.broadcasts.start(ID)
        worker = JobWorker(shop.engine, Leases(shop.engine.store, shop.engine.clock, "test", 30.0))
        _work(worker, lambda: shop.broadcasts.show(ID).state)
        _record(shop, [_event(user, "visited") for user, each in people if each.visited])
        _record(shop, [_event(user, "bought") for user, each in people if each.bought])
        found = {}
        for event in ("visited", "bought"):
            job = shop.broadcasts.measure(ID, event=event, within="14d").id
            _work(worker, lambda job=job: shop.jobs.show(job).state)
            found[event] = shop.jobs.show(job).counts
        later = Context(shop.engine, "default", shop.engine.now() + 15 * DAY)
        for event in ("visited", "bought"):
            answer = experiment.run(later, ExperimentParams(broadcast=ID, metric=event))
            assert (answer.control, answer.ratio.mismatch, answer.crossed) == (HOLDOUT, False, 0)
            shown = {row.arm: (row.people, row.conversions) for row in answer.rows}
            assert shown == {arm: (found[event][f"people.{arm}"], found[event][f"gained.{arm}"]) for arm in PUBLISHED}
            if len(people) == 64_000:
                # Both mails brought more visits than none, and that is certain at any number of looks.
                assert all(row.low is not None and row.low > 0 for row in answer.rows[1:])
        held_out = {
            each.person for each in shop.broadcasts.recipients(ID, limit=1_000).recipients if each.arm == HOLDOUT
        }
        assert held_out
    arms = Counter(each.arm for _, each in people)
    for arm, (visits, purchases) in PUBLISHED.items():
        assert found["visited"][f"people.{arm}"] == arms[arm]
        assert found["visited"][f"gained.{arm}"] == sum(each.visited for _, each in people if each.arm == arm)
        assert found["bought"][f"gained.{arm}"] == sum(each.bought for _, each in people if each.arm == arm)
        if len(people) == 64_000:
            assert round(100 * found["visited"][f"gained.{arm}"] / arms[arm], 2) == visits
            assert round(100 * found["bought"][f"gained.{arm}"] / arms[arm], 2) == purchases


def _event(user: str, type: str) -> dict[str, Any]:
    return {"type": type, "identifiers": {"user_id": user}, "key": f"{type}/{user}"}


def _record(shop: threadline.Threadline, events: list[dict[str, Any]]) -> None:
    for start in range(0, len(events), 1_000):
        shop.record(events[start : start + 1_000])


def _work(worker: JobWorker, state: Callable[[], str]) -> None:
    while state() != "done":
        worker.work_due()
