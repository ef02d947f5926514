"""The process that answers a server's questions: as this one would, whatever is recorded, killed or declared."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

import threadline
from tests.exports.test_analytics import ROWS, contents, events
from tests.servers import postgres
from threadline.app import migrate, open_engine, reopen
from threadline.exports.analytics import answering_process
from threadline.exports.analytics.answering_process import AnsweringProcess
from threadline.exports.analytics.first_use import DuckAnalytics
from threadline.kernel.errors import InvalidValue, Unavailable
from threadline.settings import Settings

pytest.importorskip("duckdb")
pytestmark = pytest.mark.slow
SECONDS_MAX = 60.0
COUNT = "SELECT count(*), count(DISTINCT person) FROM events"
SERVER = """
import sys, time
from pathlib import Path
from threadline.app import open_engine
from threadline.settings import Settings
settings = Settings(store=sys.argv[1])
engine = open_engine(None, settings, answers_apart=True)
engine.analytics.query("default", "SELECT 1", {})
print(engine.analytics._running[0].pid, flush=True)
time.sleep(600)
"""


@contextmanager
def serving(path: Path, definitions: str = "") -> Iterator[tuple[threadline.Threadline, AnsweringProcess]]:
    """A store as a server has it open, and what answers questions about it."""
    (path.parent / "threadline.yaml").write_text(definitions)
    settings = Settings(store=str(path))
    with threadline.Threadline(open_engine(None, settings, answers_apart=True)) as shop:
        process = shop.engine.analytics
        assert isinstance(process, AnsweringProcess)
        yield shop, process


def pid_of(process: AnsweringProcess) -> int:
    assert process._running is not None
    pid = process._running[0].pid
    assert pid is not None
    return pid


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until it holds; a file that the other process takes away while it is read means: not yet."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        with suppress(FileNotFoundError):
            if holds():
                return
        time.sleep(0.05)
    pytest.fail(f"it does not hold after {SECONDS_MAX:.0f} seconds")


def test_each_answer_is_that_of_this_process_and_has_all_that_was_recorded_before_the_question(tmp_path: Path) -> None:
    with serving(tmp_path / "shop.db") as (shop, process):
        here = DuckAnalytics(shop.engine)
        for turn in range(4):
            shop.record(events(100 * turn, 100 * turn + 20))
            if turn == 2:
                shop.people.erase("user-1")
            told = process.query("default", ROWS, {})
            assert told == here.query("default", ROWS, {})
            assert sum(row[3] for row in told.rows) >= 20
        assert pid_of(process) != os.getpid()
        here.close()


def test_values_of_every_type_come_as_they_are(tmp_path: Path) -> None:
    query = "SELECT $a AS a, [1, 2] AS b, TIMESTAMPTZ '2026-01-01 09:00:00Z' AS c, 1.5 AS d, NULL AS e, true AS f"
    with serving(tmp_path / "shop.db") as (shop, process):
        shop.record(events(0, 3))
        assert process.query("default", query, {"a": "it's"}) == DuckAnalytics(shop.engine).query(
            "default", query, {"a": "it's"}
        )


def test_an_error_comes_with_its_hint_and_the_process_goes_on(tmp_path: Path) -> None:
    with serving(tmp_path / "shop.db") as (shop, process):
        shop.record(events(0, 3))
        here = DuckAnalytics(shop.engine)
        for query in ("SELECT nothing FROM events", "SELECT", "DELETE FROM events", "SELECT * FROM range(2_000_000)"):
            with pytest.raises(InvalidValue) as there:
                process.query("default", query, {})
            with pytest.raises(InvalidValue) as expected:
                here.query("default", query, {})
            found, wanted = there.value, expected.value
            assert (type(found), str(found)) == (type(wanted), str(wanted))
            assert (found.hint, found.param, found.code) == (wanted.hint, wanted.param, wanted.code)
        assert process.query("default", COUNT, {}).rows == [(3, 3)]


def test_a_process_that_is_killed_is_told_as_unavailable_and_the_next_question_is_answered(tmp_path: Path) -> None:
    with serving(tmp_path / "shop.db") as (shop, process):
        shop.record(events(0, 3))
        assert process.query("default", COUNT, {}).rows == [(3, 3)]
        first = pid_of(process)
        os.kill(first, signal.SIGKILL)
        with pytest.raises(Unavailable, match="has ended"):
            process.query("default", COUNT, {})
        shop.record(events(10, 12))
        assert process.query("default", COUNT, {}).rows == [(5, 3)]
        assert pid_of(process) != first


def test_it_ends_with_the_store_and_answers_no_more(tmp_path: Path) -> None:
    with serving(tmp_path / "shop.db") as (shop, process):
        shop.record(events(0, 3))
        process.query("default", COUNT, {})
        pid = pid_of(process)
    assert not psutil.pid_exists(pid)
    with pytest.raises(Unavailable):
        process.query("default", COUNT, {})


def test_it_ends_where_its_server_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SERVER, str(tmp_path / "shop.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        pid = int(server.stdout.readline())
        assert psutil.pid_exists(pid)
        server.kill()
    eventually(lambda: not psutil.pid_exists(pid))


def test_a_supervisor_that_ends_all_processes_leaves_no_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    with serving(tmp_path / "shop.db") as (shop, process):
        shop.record(events(0, 3))
        process.query("default", COUNT, {})
        assert [each.name[:15] for each in scratch.iterdir()] == ["threadline-sql-"]
        os.kill(pid_of(process), signal.SIGTERM)
        eventually(lambda: not list(scratch.iterdir()))


def test_columns_that_are_there_are_kept_up_without_a_question(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with threadline.open(path) as shop:
        shop.record(events(0, 10_000))
        assert shop.engine.analytics.query("default", COUNT, {}).rows == [(10_000, 5)]
    with serving(path) as (shop, process):
        assert process.is_begun
        process.catch_up(1_000)
        assert not process.is_begun, "it is started once"
        shop.record(events(20_000, 30_000))
        columns = tmp_path / "shop.db-analytics"
        before = sum(1 for each in columns.rglob("*.parquet"))
        eventually(lambda: sum(1 for each in columns.rglob("*.parquet")) > before)


def test_when_nobody_asks_it_ends_and_comes_back_with_a_question_an_erasure_and_many_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering_process, "IDLE_SECONDS", 0.5)
    monkeypatch.setattr(answering_process, "LEFT_EVENTS_MAX", 40)
    columns = tmp_path / "shop.db-analytics"
    with serving(tmp_path / "shop.db") as (shop, process):
        shop.record(events(0, 10_000))
        assert process.query("default", COUNT, {}).rows == [(10_000, 5)]
        eventually(lambda: process._running is None)
        shop.record(events(20_000, 20_010))
        assert not process.is_begun, "a few events wait for the next question"
        assert process.query("default", COUNT, {}).rows == [(10_010, 5)]
        eventually(lambda: process._running is None)
        shop.record(events(30_000, 30_040))
        assert process.is_begun
        process.catch_up(1_000)
        eventually(lambda: process._running is None)
        eventually(lambda: "secret-1" in contents(columns))
        shop.people.erase("user-1")
        assert process.is_begun
        monkeypatch.setattr(answering_process, "IDLE_SECONDS", 600.0)  # it is to have the time to start
        process.catch_up(1_000)
        eventually(lambda: "secret-1" not in contents(columns))


def test_it_goes_by_the_definitions_that_are_in_force_and_not_by_what_stands_in_the_files_since(tmp_path: Path) -> None:
    with serving(tmp_path / "shop.db", "features: {wrote: {events: wrote, aggregate: count}}\n") as (shop, process):
        shop.record(events(0, 5))
        (tmp_path / "threadline.yaml").write_text("features: {[")
        table = "SELECT person, f_wrote FROM feature_vectors ORDER BY ALL"
        assert process.query("default", table, {}) == DuckAnalytics(shop.engine).query("default", table, {})


def test_a_shared_store_is_opened_by_its_address(tmp_path: Path) -> None:
    settings = Settings(store=postgres.server("18").url("answering_process"), analytics_dir=str(tmp_path))
    migrate(settings)
    with threadline.Threadline(open_engine(None, settings, answers_apart=True)) as shop:
        shop.record(events(0, 7))
        assert isinstance(shop.engine.analytics, AnsweringProcess)
        assert shop.engine.analytics.query("default", COUNT, {}).rows == [(7, 5)]


def test_a_store_in_memory_answers_for_itself() -> None:
    with threadline.Threadline(open_engine("memory:", answers_apart=True)) as shop:
        assert isinstance(shop.engine.analytics, DuckAnalytics)


def test_definitions_are_put_in_force_while_a_question_is_answered_and_the_next_waits_for_its_end(
    tmp_path: Path,
) -> None:
    with serving(tmp_path / "shop.db") as (shop, process), ThreadPoolExecutor(2) as asking:
        shop.record(events(0, 20))
        before = process.query("default", COUNT, {})
        pid = pid_of(process)
        os.kill(pid, signal.SIGSTOP)
        try:
            under_way = asking.submit(process.query, "default", COUNT, {})
            eventually(process._lock.locked)
            opened = asking.submit(reopen, shop.engine, Settings(store=str(tmp_path / "shop.db")))
            fresh = opened.result(SECONDS_MAX)  # the question has no answer yet
            assert not under_way.done()
        finally:
            os.kill(pid, signal.SIGCONT)
        assert fresh.analytics.query("default", COUNT, {}) == before == under_way.result()
        assert not psutil.pid_exists(pid)
        fresh.analytics.close()
