"""Moving between stores of different kinds: what comes out at the end is what went in, also after a `kill -9`."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import pytest

from tests import forked
from tests.conformance.backends import BACKENDS, MODEL
from tests.engine.test_moving import CATALOGUE, assert_equal, told
from tests.laws import staging
from tests.servers import dynamodb, postgres
from threadline.engine.engine import Engine
from threadline.engine.maintenance.move import Move
from threadline.kernel.event import Event, Identifier
from threadline.kernel.store import Store, feed_pages
from threadline.kernel.time import DAY
from threadline.stores.dynamodb.store import DynamoStore
from threadline.stores.postgres.store import PostgresStore
from threadline.stores.sqlite.store import SqliteStore
from threadline.testing import scenarios

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("THREADLINE_TEST_MOVE_KILLS", "2"))
"""How often each move is killed before it may get through."""

OPEN = {backend.name: backend.open for backend in BACKENDS}
NEWEST = f"postgres {postgres.VERSIONS[0]}"
WAYS = [("sqlite", NEWEST), (NEWEST, "dynamodb"), ("dynamodb", "sqlite")]
"""Each kind is moved from once and moved to once."""

DYING = """
import os, signal, sys
from threadline.app import composition
from threadline.engine.maintenance.move import Move
from threadline.surfaces.cli.program import run

left, commit = int(sys.argv[1]), Move._commit

def dying(*arguments, **progress):
    global left
    left -= 1
    if left == 0 and sys.argv[2] == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    answer = commit(*arguments, **progress)
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return answer

Move._commit = dying
sys.exit(run(composition, sys.argv[3:]))
"""
"""The command line, in a process that is killed over the n-th commit of a move, before it or after it; 0 is never."""


@contextmanager
def following(shadow: Move) -> Iterator[None]:
    """Let a move follow in a thread of its own meanwhile."""
    stopping = threading.Event()
    thread = threading.Thread(target=lambda: shadow.follow(stopping, time.monotonic, idle_seconds=0.05), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize(("one", "other"), WAYS)
def test_a_store_of_one_kind_becomes_one_of_another(
    one: str, other: str, seed: int, tmp_path: Path, started: None
) -> None:
    for name in ("source", "target"):
        (tmp_path / name).mkdir()
    with ExitStack() as stack:
        source, target = OPEN[one](tmp_path / "source"), OPEN[other](tmp_path / "target")
        stack.callback(source.close)
        stack.callback(target.close)
        on = told(Random(seed), source, 20)
        # First as a shadow, with the source still at work; then what is missing, and the comparison.
        with following(Move(source, target, CATALOGUE, one)):
            on.recorder.record(scenarios.history(Random(seed), 3, 10, "meanwhile"))
            on.identity.merge("default", "anonymous_id:lone-2", "anonymous_id:lone-3", request="meanwhile")
            wanted = len(list(feed_pages(source)))
            patience = time.monotonic() + 60
            while len(list(feed_pages(target))) < wanted:
                assert time.monotonic() < patience, "the shadow does not follow"
                time.sleep(0.1)
        on.recorder.record(scenarios.history(Random(seed + 2), 3, 3, "last"))
        Move(source, target, CATALOGUE, one).run()
        assert_equal(source, target)
        # Both go on alike: what was told is known, what is told is folded and reacted to.
        for store in (source, target):
            after = Engine(store, CATALOGUE, lambda: scenarios.NOW + 30 * DAY)
            again = after.recorder.record(scenarios.history(Random(seed), 3, 10, "meanwhile"))
            assert set(staging.statuses(again)) == {"duplicate"}
            after.recorder.record(scenarios.history(Random(seed + 1), 3, 10, "after"))
        assert_equal(source, target)


def _postgres(folder: Path) -> tuple[str, Callable[[str], Store]]:
    return postgres.server(postgres.VERSIONS[0]).made(postgres.schema_of(folder)), PostgresStore


def _dynamodb(folder: Path) -> tuple[str, Callable[[str], Store]]:
    server = dynamodb.ministack()
    server.open(folder).close()
    return server.url(folder), lambda url: DynamoStore(url, lambda: scenarios.NOW)


def _sqlite(folder: Path) -> tuple[str, Callable[[str], Store]]:
    return f"sqlite:///{folder / 'y.db'}", lambda url: SqliteStore(folder / "y.db")


def seen(number: int) -> Event:
    """One of many events of fifty people."""
    who = (Identifier("user_id", f"many-{number % 50}"),)
    return Event(type="seen", identifiers=who, occurred_at=DAY - number, key=f"many-{number}")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [_sqlite, _postgres, _dynamodb])
def test_a_move_that_is_killed_again_and_again_arrives(
    kind: Callable[[Path], tuple[str, Callable[[str], Store]]], seed: int, tmp_path: Path
) -> None:
    random, source = Random(seed), SqliteStore(tmp_path / "x.db")
    told(random, source, 20)
    engine = Engine(source, CATALOGUE, lambda: DAY)
    for start in range(0, 1_300, 100):
        engine.recorder.record([seen(number) for number in range(start, start + 100)])
    source.close()
    url, opened = kind(tmp_path)

    def move(left: int) -> subprocess.CompletedProcess[str]:
        command = [forked.python(), "-c", DYING, str(left), random.choice(("before", "after"))]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        arguments = ["move", str(tmp_path / "x.db"), url]
        return subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True, check=False)

    for number in range(KILLS):
        # Later and later: in the log, among the items, over the comparison.
        arrived = move(random.randint(1 + 2 * number, 4 + 3 * number))
        if number >= 2 and arrived.returncode == 0:
            break  # it has fewer commits left than that
        assert arrived.returncode == -signal.SIGKILL, arrived.stdout + arrived.stderr
    else:
        arrived = move(0)
    assert arrived.returncode == 0, arrived.stdout + arrived.stderr
    assert "same canonical dump" in arrived.stdout.replace("\n", " ")
    with ExitStack() as stack:
        source, target = SqliteStore(tmp_path / "x.db", readonly=True), opened(url)
        stack.callback(source.close)
        stack.callback(target.close)
        assert_equal(source, target)


def test_every_kind_is_moved_from_and_moved_to() -> None:
    kinds = {name.split()[0] for name in OPEN} - {MODEL}
    assert {one.split()[0] for one, _ in WAYS} == {other.split()[0] for _, other in WAYS} == kinds
