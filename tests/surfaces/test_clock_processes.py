"""A server whose clock makes steps of days and that is killed in between: real processes under libfaketime."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from random import Random

import httpx
import pytest

from tests.laws import staging
from tests.laws.test_instants import shown, truth
from tests.senders.receiver import OK, Call, Receiver
from tests.servers import postgres
from tests.surfaces.test_http_server import Process
from threadline.app import open_engine
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.delivery.leases import LEASE, LEASE_SECONDS
from threadline.engine.engine import Engine
from threadline.engine.folding.packing import unpack, unpack_event
from threadline.engine.scheduled import OUTBOX, TIMER
from threadline.kernel.policy import TIMER_FIRED
from threadline.kernel.sender import EFFECT_DONE
from threadline.kernel.store import feed_pages, scan_pages
from threadline.kernel.time import DAY, format_time, system_clock

KILLS = int(os.environ.get("THREADLINE_TEST_CLOCK_KILLS", "1"))
LIBRARY = glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
OFFSETS = ("+0", "+3d", "-3d", "+2h", "-2h", "+40s", "-40s")
PATIENCE_SECONDS = 40.0
"""Far more than a delivery takes, and far less than a step of the clock."""
OVERTAKING_SECONDS = 5.0
"""For what was sent at the same time as one that has arrived."""
HANGING_SECONDS = 300.0
"""A server that sends nothing for so long hangs, however slow its machine is."""
TOKEN = "tk-clocks"
SLEEP = """
import threading, time
# libfaketime 0.9.10 refuses clock_nanosleep(), with which CPython sleeps, where the monotonic clock is left alone.
time.sleep = lambda seconds: threading.Event().wait(seconds) and None
"""
DEFINITIONS = """
destinations: {{crm: {{url: "{url}", payload: [order]}}}}
rules:
  sold:
    version: 1
    conditions: {{field: event.properties.total, greater_than: 0}}
    actions: [{{call_webhook: {{destination: crm, payload: {{order: "${{event.properties.order}}"}}}}}}]
rule_sets: {{sales: {{events: [purchase_completed], rules: [sold]}}}}
features:
  visits: {{aggregate: count, events: page, window: 1h}}
segments:
  visitors: {{when: {{field: features.visits, greater_than: 0}}}}
leaderboards:
  balance: {{score: points.balance}}
"""


class Shop:
    """A store, a server on it, and whoever sends it events and follows its feed."""

    def __init__(self, folder: Path, receiver: Receiver, calls: list[str], store: str = "") -> None:
        self.path: Path | str = store or folder / "shop.db"
        self.folder = folder
        self.clock = folder / "clock"
        self.calls = calls
        (folder / "threadline.yaml").write_text(DEFINITIONS.format(url=receiver.url()))
        (folder / "sitecustomize.py").write_text(SLEEP)
        self.step("+0")
        self.server: Process | None = None
        self.sent: list[str] = []
        self.followed: list[str] = []
        self.cursor = ""
        self.slowest = 0.0

    def step(self, offset: str) -> None:
        """Set the clock of the server, whether it runs or not."""
        fresh = self.clock.with_suffix(".new")
        fresh.write_text(f"{offset}\n")
        fresh.replace(self.clock)

    def start(self) -> None:
        self.server = Process(self.path, self.environment())
        self.http = httpx.Client(
            base_url=self.server.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=HANGING_SECONDS
        )

    def environment(self) -> dict[str, str]:
        """Of a process whose clock can be set."""
        return {
            "LD_PRELOAD": LIBRARY[0],
            "FAKETIME_TIMESTAMP_FILE": str(self.clock),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "PYTHONFAULTHANDLER": "1",
            "THREADLINE_TOKENS": TOKEN,
            "THREADLINE_WEBHOOK_HTTP": "true",
            "THREADLINE_WEBHOOK_PRIVATE_ADDRESSES": "127.0.0.0/8",
            "PYTHONPATH": f"{self.folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        }

    def kill(self) -> None:
        assert self.server is not None
        self.server.process.kill()
        self.server.process.communicate()
        self.http.close()

    def send(self, random: Random) -> None:
        """Two events with times of their own and one that gets its time here; each is acknowledged."""
        who = {"user_id": random.choice("abc")}
        order = f"order {len(self.sent)}"
        events = [
            {
                "type": "purchase_completed",
                "identifiers": who,
                "key": order,
                "properties": {"total": 12.5, "currency": "EUR", "order": order},
            },
            {"type": "page", "identifiers": who, "key": f"page {order}", "occurred_at": format_time(system_clock())},
            {"type": "tool_used", "identifiers": who, "key": f"tool {order}"},
        ]
        answer = self.http.post("/v1/events", json={"events": events})
        assert answer.status_code == 200, answer.text
        assert [each["status"] for each in answer.json()["receipts"]] == ["accepted"] * 3
        self.sent.append(order)

    def wait_for_calls(self, patience_seconds: float = PATIENCE_SECONDS) -> None:
        """Every webhook of before arrives within its usual delay, whatever the clock shows.

        Where that is over, one that is sent then says whether it is the machine that is slow: it overtakes nothing.
        """
        began, missing, last, passed = time.monotonic(), set(self.sent), "", 0.0
        while missing := missing - set(self.calls):
            now = time.monotonic()
            late = now - began - patience_seconds
            passed = passed or (now if last in self.calls else 0.0)
            overtaken = passed and now - passed > OVERTAKING_SECONDS
            if overtaken or late > HANGING_SECONDS or (late > 0 and self.server is None):
                raise AssertionError(f"{sorted(missing)} wait, at {self.clock.read_text()}{self.threads()}")
            if late > 0 and not last:
                self.send(Random(0))
                last = self.sent[-1]
            time.sleep(0.02)
        self.slowest = max(self.slowest, time.monotonic() - began)

    def threads(self) -> str:
        """What each thread of the server does, and what the server has logged. It ends of this."""
        if self.server is None:
            return ""
        self.server.process.send_signal(signal.SIGABRT)
        return self.server.process.communicate()[1]

    def follow(self) -> None:
        while True:
            page = self.http.get("/v1/feed", params={"cursor": self.cursor, "limit": 1_000}).json()
            self.followed += [each["id"] for each in page["events"]]
            self.cursor = page["next"]
            if not page["more"]:
                return


@contextmanager
def shop_in(folder: Path, store: str = "") -> Iterator[Shop]:
    calls: list[str] = []

    def answer(call: Call) -> tuple[int, dict[str, str], bytes]:
        calls.append(re.findall(r"order \d+", call.body.decode())[0])
        return OK

    with Receiver(answer) as receiver:
        shop = Shop(folder, receiver, calls, store)
        try:
            yield shop
        finally:
            if shop.server is not None:
                shop.server.process.kill()
                shop.server.process.communicate()


@pytest.mark.slow
@pytest.mark.skipif(not LIBRARY, reason="libfaketime is missing: apt-get install faketime")
def test_steps_of_days_and_kills_lose_repeat_and_hold_up_nothing(
    tmp_path: Path, seed: int, record_property: Callable[[str, object], None]
) -> None:
    random = Random(seed)
    with shop_in(tmp_path) as shop:
        # The greatest steps come first, and with a kill in between: whoever dies ahead leaves a lease of that day.
        shop.step("+3d")
        for kill in range(KILLS):
            shop.start()
            shop.send(random)
            shop.wait_for_calls()
            for offset in ("-3d", *random.sample(OFFSETS, 2)):
                shop.step(offset)
                shop.send(random)
                shop.wait_for_calls()
                shop.follow()
            shop.step("+3d")
            shop.send(random)
            shop.kill()
            shop.step("+0" if kill % 2 == 0 else random.choice(OFFSETS))
        shop.start()
        shop.wait_for_calls()
        shop.follow()
        shop.http.close()
        assert shop.server is not None
        assert shop.server.stop() == 0
        check(shop)
        record_property("webhooks", f"{len(shop.sent)}, the slowest after {shop.slowest:.1f} s")


@pytest.mark.slow
@pytest.mark.skipif(not LIBRARY, reason="libfaketime is missing: apt-get install faketime")
def test_worker_three_days_ahead_that_is_killed_on_postgresql_holds_up_nothing_longer_than_its_leases(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    store = postgres.server("18").made(postgres.schema_of(tmp_path))
    monkeypatch.chdir(tmp_path)
    with shop_in(tmp_path, store) as shop:
        shop.step("+3d")
        command = [sys.executable, "-m", "threadline", "work", "--file", store]
        environment = {**os.environ, **shop.environment()}
        worker = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            assert worker.stdout is not None
            assert json.loads(worker.stdout.readline())["ready"]
            engine = open_engine(store)
            for _ in range(10):
                event = staging.event(
                    "purchase_completed",
                    {"user_id": random.choice("abc")},
                    order := f"order {len(shop.sent)}",
                    system_clock(),
                    properties={"total": 12.5, "currency": "EUR", "order": order},
                )
                assert staging.statuses(engine.recorder.record([event])) == ["accepted"]
                shop.sent.append(order)
                shop.wait_for_calls()
        finally:
            worker.kill()
            worker.communicate()
        owned = [unpack(item.value) for item in scan_pages(engine.store, LEASE)]
        engine.close()
        assert max(until for _, until in owned) > system_clock() + 2 * DAY
        shop.step("+0")
        shop.start()
        shop.send(random)
        shop.wait_for_calls(LEASE_SECONDS + PATIENCE_SECONDS)
        shop.http.close()
        assert shop.server is not None
        assert shop.server.stop() == 0
        check(shop)


def check(shop: Shop) -> None:
    """What the store has in the end, read in this process at the true time and after everything is due."""
    now = system_clock()
    engine = open_engine(shop.path, clock=lambda: now)
    try:
        staging.assert_log_is_whole(engine)
        staging.assert_refold_changes_nothing(engine)
        log = [entry for _, entry in feed_pages(engine.store)]
        # The outcome of the last call may have been recorded after the feed was read for the last time.
        rest = [entry.id for _, entry in feed_pages(engine.store, shop.cursor)]
        assert [*shop.followed, *rest] == [entry.id for entry in log], "the feed gave each event once, in one order"
        check_views(engine, now)
        events = [unpack_event(entry).event for entry in log if entry.type == EFFECT_DONE]
        done = Counter(event.properties["effect"] for event in events)
        assert sorted(done.values()) == [1] * len(shop.sent)
        assert list(scan_pages(engine.store, OUTBOX)) == []
        now += 40 * DAY
        dispatcher = Dispatcher(engine, {}, "after all")
        while dispatcher.run_once():
            pass
        due = list(scan_pages(engine.store, TIMER))
        assert due == [], "no timer waits for a day beyond those that the clock has shown"
        fired = [entry.id for _, entry in feed_pages(engine.store) if entry.type == TIMER_FIRED]
        assert len(fired) == len(set(fired))
        check_views(engine, now)
    finally:
        engine.close()


def check_views(engine: Engine, now: int) -> None:
    """Features, points and streaks are those of the events' own times, now and as of everything that was known then."""
    for person in engine.reader.all_people("default"):
        log = list(engine.reader.all_events(person))
        assert shown(engine.reader.views(person, now)) == truth(log, now)
        for instant in sorted({recorded.recorded_at + near for recorded in log for near in (0, 1)}):
            then = engine.reader.person("default", person.id, known_at=instant)
            expected = truth(log, instant, instant)
            assert shown(engine.reader.views(then, instant, known_at=instant)) == expected, instant
