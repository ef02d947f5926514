"""The command line on a shared store: migrating it, serving it and working on it from several processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import threadline
from tests import forked
from tests.servers import postgres
from threadline.app import composition, open_engine
from threadline.engine.delivery.leases import LEASE
from threadline.engine.folding.packing import unpack
from threadline.kernel.store import scan_pages
from threadline.kernel.time import DAY, system_clock
from threadline.stores.postgres.schema import MIGRATIONS
from threadline.surfaces.cli.program import run

SOURCE = str(Path(__file__).parents[2] / "src")
WRITE_KEY, TOKEN = "wk_shared", "tl_shared"


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    made = postgres.server("18").url(postgres.schema_of(tmp_path))
    monkeypatch.setenv("THREADLINE_STORE", made)
    monkeypatch.setenv("THREADLINE_WRITE_KEYS", f"shop={WRITE_KEY}")
    monkeypatch.setenv("THREADLINE_TOKENS", TOKEN)
    monkeypatch.chdir(tmp_path)
    return made


def call(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capfd.readouterr()
    code = run(composition, arguments)
    return code, *capfd.readouterr()


def test_migrate_makes_the_tables_once(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, error = call(capfd, "people", "list")
    assert code == 1
    assert "no Threadline schema" in error
    assert "threadline migrate" in error
    steps = "".join(f"taken: {step.number}: {step.name}\n" for step in MIGRATIONS)
    assert call(capfd, "migrate")[:2] == (0, steps)
    code, out, _ = call(capfd, "migrate")
    assert code == 0
    assert out.endswith("is up to date; there was nothing to do.\n")
    assert call(capfd, "people", "list")[0] == 0


def test_a_file_needs_no_migration(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = call(capfd, "migrate", "--file", str(tmp_path / "x.db"))
    assert (code, out) == (0, f"{tmp_path / 'x.db'} is up to date; there was nothing to do.\n")
    assert not (tmp_path / "x.db").exists()


def test_an_unknown_store_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    for command in (("migrate",), ("people", "list")):
        code, _, error = call(capfd, *command, "--file", "mysql://host/db")
        assert code == 1
        assert "mysql:// is not a store we know" in error


def test_what_looks_after_a_store_works_on_a_shared_one(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert call(capfd, "migrate")[0] == 0
    with threadline.open() as one, threadline.open() as other:
        one.track("42", "purchase_completed", {"total": 29.33, "currency": "EUR"}, key="order-1")
        other.track("42", "purchase_completed", {"total": 1, "currency": "EUR"}, key="order-2")
        # None of these needs the store to itself.
        code, out, _ = call(capfd, "verify", "--jobs", "2")
        assert code == 0
        assert "1 person with 2 events verified: 0 faults" in out
        code, out, _ = call(capfd, "refold", "--jobs", "2")
        assert (code, "1 person refolded from 2 events" in out) == (0, True)
        code, out, _ = call(capfd, "doctor")
        assert code == 0
        assert "2 events" in out
        assert "last event" in out
        assert not re.search(r"\block\b|\bdisk\b", out), "these are the business of a file"
        code, out, _ = call(capfd, "features", "of", "user_id:42", "--json")
        assert json.loads(out)["features"]["monetary_total"]["value"] == 30.33


# --- processes ------------------------------------------------------------------------------------


class Program:
    """A command that runs until it is told to stop."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [forked.threadline(), *arguments],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": SOURCE, "THREADLINE_DRAIN_SECONDS": "0"},
        )
        assert self.process.stdout is not None
        self.ready = next(json.loads(line) for line in self.process.stdout if line.startswith("{"))

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@pytest.fixture
def start() -> Iterator[Callable[..., Program]]:
    started: list[Program] = []

    def start(*arguments: str) -> Program:
        started.append(Program(*arguments))
        return started[-1]

    yield start
    for program in started:
        program.process.kill()
        program.process.wait()


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)


def test_servers_and_workers_share_a_store(
    url: str, capfd: pytest.CaptureFixture[str], start: Callable[..., Program]
) -> None:
    assert call(capfd, "migrate")[0] == 0
    servers = [start("serve", "--port", "0") for _ in range(2)]
    worker = start("work")
    assert "geheim" not in json.dumps([program.ready for program in (*servers, worker)])
    sent = system_clock() - 8 * DAY
    with threadline.open() as tl:
        # A campaign of eight days ago that nobody reacted to: its timer has been due for a day.
        tl.track("42", "campaign_delivered", {"campaign_id": "spring"}, key="c", occurred_at=sent)
        for number, server in enumerate(servers * 3):
            message = {"userId": "42", "event": "Order Completed", "messageId": f"m{number}", "properties": {}}
            answer = httpx.post(f"{server.ready['url']}/v1/track", json=message, auth=(WRITE_KEY, ""))
            assert answer.status_code == 200
        until(lambda: tl.events.of("user_id:42", type="campaign_ignored").events != [])
        time.sleep(1.5)  # time enough for the others to do it once more
        events = tl.events.of("user_id:42").events
    assert [event.type for event in events].count("campaign_ignored") == 1
    assert [program.stop() for program in (*servers, worker)] == [0, 0, 0]
    engine = open_engine(url)
    leases = [unpack(item.value) for item in scan_pages(engine.store, LEASE)]
    assert leases, "somebody held a lease while it fired the timer"
    assert {until_when for _, until_when in leases} == {0}, "and gave it back in the end"
    engine.close()


class Door:
    """One of several servers, as its callers meet it."""

    def __init__(self, program: Program) -> None:
        self.url = program.ready["url"]

    def track(self, user: str, key: str) -> None:
        message = {"userId": user, "event": "tool_used", "messageId": key, "properties": {}}
        assert httpx.post(f"{self.url}/v1/track", json=message, auth=(WRITE_KEY, "")).status_code == 200

    def ask(self, path: str, **params: str) -> Any:
        answer = httpx.get(f"{self.url}/v1/{path}", params=params, headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def follow(self, cursor: str) -> tuple[list[tuple[str, str]], str]:
        """(type, id) of each event after the cursor, and the next cursor."""
        found, more = [], True
        while more:
            page = self.ask("feed", cursor=cursor, limit="3")
            found += [(event["type"], event["id"]) for event in page["events"]]
            cursor, more = page["next"], page["more"]
        return found, cursor


def test_what_one_server_took_the_others_tell(
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    start: Callable[..., Program],
) -> None:
    (tmp_path / "boards.yaml").write_text("leaderboards: {points: {score: points.earned, periods: [all]}}")
    monkeypatch.setenv("THREADLINE_DEFINITIONS", str(tmp_path / "boards.yaml"))
    monkeypatch.setenv("THREADLINE_LEADERBOARD_REFRESH_SECONDS", "1")
    assert call(capfd, "migrate")[0] == 0
    one, other = (Door(start("serve", "--port", "0")) for _ in range(2))
    told: list[list[tuple[str, str]]] = [[], []]
    cursors = ["", ""]
    one.track("ada", "a1")
    # From here on this server has counts of its own in memory, and a person whom the other one changes.
    assert other.ask("people/user_id:ada/leaderboards/points")["total"] == 1
    for number in range(3):
        one.track("bob", f"b{number}")
        other.track("ada" if number == 2 else "bob", f"c{number}")
        for at, door in enumerate((one, other)):
            page, cursors[at] = door.follow(cursors[at])
            told[at] += page
            used = [type for type, _ in told[at]].count("tool_used")
            assert used == 3 + 2 * number, "what was acknowledged is in the feed at once"
    assert told[0] == told[1], "in one order for all"
    assert len(set(told[0])) == len(told[0])
    for door in (one, other):
        best = door.ask("leaderboards/points")["places"]
        assert [(place["identifiers"], place["score"]) for place in best] == [
            (["user_id:bob"], 25),
            (["user_id:ada"], 10),
        ]
    until(lambda: standing(other) == (2, 2))  # counted anew by then


def standing(door: Door) -> tuple[int, int]:
    mine = door.ask("people/user_id:ada/leaderboards/points")
    return mine["rank"], mine["total"]
