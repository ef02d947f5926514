"""A job that is watched: by server-sent events over HTTP, and as a bar on the terminal."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from random import Random

import httpx
import pytest

import threadline
from tests.surfaces.killed_worker import workers
from tests.surfaces.test_http_server import Process
from threadline.app import composition
from threadline.surfaces.cli.program import run
from threadline.surfaces.python.embedded import Threadline

TOKEN = {"Authorization": "Bearer tk-alone"}
PEOPLE = 700
KILLS = int(os.environ.get("THREADLINE_TEST_BROADCAST_KILLS", "4"))
KILLS_BY_TIME = 4
PEOPLE_PER_KILL = 20
BYTES_OF_MAIL = 15
FIRST_SECONDS_MAX = 15.0
"""How long a worker may take to send something before it is killed all the same."""
AT_ONCE = 4
"""Mails that are sent at the same time: a kill leaves no more of them unknown."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "threadline.db"
    (tmp_path / "threadline.yaml").write_text(
        "mail: {senders: {shop: {from: shop@shop.example}}, templates: {sale: {subject: Sale, text: Hello}}}"
    )
    with threadline.open(path) as shop:
        shop.record([{"type": "seen", "key": f"{n}", "identifiers": {"user_id": f"u{n}"}} for n in range(PEOPLE)])
        shop.broadcasts.create("sale", template="sale", holdout=0.1)
        shop.broadcasts.start("sale")
    return path


def test_a_broadcast_is_followed_to_its_end_by_server_sent_events(store: Path) -> None:
    server = Process(store, {"THREADLINE_TOKENS": "tk-alone"})
    try:
        found = []
        for path in ("broadcasts/sale", "jobs/broadcast.sale"):
            with httpx.stream("GET", f"{server.url}/v1/{path}/events", headers=TOKEN, timeout=60) as stream:
                assert stream.headers["content-type"].startswith("text/event-stream")
                lines = list(stream.iter_lines())
            assert [line for line in lines if line.startswith("event:")][-1] == "event: ended"
            found.append(json.loads([line for line in lines if line.startswith("data:")][-1].removeprefix("data: ")))
        broadcast, job = found
        assert (broadcast["state"], broadcast["audience"], broadcast["done"]) == ("done", PEOPLE, PEOPLE)
        assert (job["state"], job["counts"]["total"], job["counts"]["done"]) == ("done", PEOPLE, PEOPLE)
        missing = httpx.get(f"{server.url}/v1/jobs/other/events", headers=TOKEN)
        assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
        assert httpx.get(f"{server.url}/v1/jobs/broadcast.sale/events").status_code == 401
    finally:
        server.process.kill()
        server.process.communicate()


def test_the_command_line_shows_how_far_a_job_is(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watch = ["jobs", "watch", "broadcast.sale", "--once", "--json", "--file", str(store)]
    assert run(composition, watch) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "scheduled"
    assert run(composition, ["broadcasts", "cancel", "sale", "--file", str(store)]) == 0
    capsys.readouterr()
    watch.remove("--once")
    assert run(composition, watch) == 1
    assert json.loads(capsys.readouterr().out)["state"] == "cancelled"


@pytest.mark.slow
def test_workers_that_are_killed_send_no_mail_twice_and_lose_none(tmp_path: Path, seed: int) -> None:
    """Every recipient has one mail: at first, or once somebody has looked up what was unknown."""
    random, store, mails = Random(seed), tmp_path / "threadline.db", tmp_path / "mails"
    (tmp_path / "threadline.yaml").write_text(
        "settings: {public_url: 'https://shop.example'}\n"
        "mail: {senders: {shop: {from: shop@shop.example}}, templates: {sale: {subject: Sale, text: Hello}}, "
        f"provider: {{url: 'inbox:', at_once: {AT_ONCE}}}}}\n"
    )
    people = [f"u{n}@example.com" for n in range(max(PEOPLE, KILLS * PEOPLE_PER_KILL))]
    with threadline.open(store) as shop:
        for address in people:
            shop.identify(address, {"email": address})
        shop.broadcasts.create("sale", template="sale", arms=[{"name": "a"}, {"name": "b"}])
        shop.broadcasts.start("sale")
    with workers("tests.surfaces.broadcast_worker", store, mails) as working:
        for number in range(KILLS):
            with working():
                if number < KILLS_BY_TIME:  # most of these while the audience is resolved and addressed
                    time.sleep(random.uniform(0, 0.5 + number / 10))
                else:
                    _wait_for_more(mails, random.randrange(1, PEOPLE_PER_KILL))
        with working(), threadline.open(store, readonly=True) as shop:
            while not all({"sent", "unknown"} & set(each) for each in _statuses(shop)):
                time.sleep(0.5)
            statuses = _statuses(shop)
        taken = mails.read_text().split()
        assert len(taken) == len(set(taken))
        assert len(statuses) == len(people)
        unknown = sum("sent" not in each for each in statuses)
        assert len(people) - unknown <= len(taken) <= len(people)
        assert unknown <= KILLS * AT_ONCE
        with threadline.open(store) as shop:
            resolved = _resolve(shop, set(taken))
        assert resolved == unknown
        with working(), threadline.open(store, readonly=True) as shop:
            while not all("sent" in each for each in _statuses(shop)):
                time.sleep(0.5)
    assert sorted(mails.read_text().split()) == sorted(people)
    lost = len(people) - len(taken)
    sys.stderr.write(f"{len(people)} recipients, {KILLS} kills, {unknown} unknown, {lost} of them not sent before\n")


def _resolve(shop: Threadline, taken: set[str]) -> int:
    """What an operator does who has the provider's log: each unknown one happened, or is sent again. How many."""
    resolved = 0
    while page := shop.effects.unknown(limit=100).effects:
        for each in page:
            address = each.noted["address"]
            shop.effects.resolve(each.id, outcome="happened" if address in taken else "send_again")
        resolved += len(page)
    return resolved


def _wait_for_more(mails: Path, bytes: int) -> None:
    """Until the worker has sent something, and some more after that."""
    before, until = _size(mails), time.monotonic() + FIRST_SECONDS_MAX
    while _size(mails) < before + bytes * BYTES_OF_MAIL and time.monotonic() < until:
        time.sleep(0.001)


def _size(mails: Path) -> int:
    return mails.stat().st_size if mails.exists() else 0


def _statuses(shop: Threadline) -> list[list[str]]:
    """What events say of each recipient, read beside the process that writes."""
    found, cursor = [], ""
    while True:
        page = shop.broadcasts.recipients("sale", limit=1_000, cursor=cursor)
        found += [each.statuses for each in page.recipients]
        if not (cursor := page.next):
            return found
