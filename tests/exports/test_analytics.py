"""The columns that answer analytics: what was erased is in none, workspaces are apart, processes may share them."""

from __future__ import annotations

import os
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import threadline
from tests import forked
from threadline.exports.analytics import answering
from threadline.exports.analytics.first_use import DuckAnalytics
from threadline.exports.curated import people as curated
from threadline.exports.curated import writing
from threadline.exports.curated.reading import opened
from threadline.exports.lake import log_copy
from threadline.exports.lake.compaction import compact
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.storage import open_storage
from threadline.exports.lake.sync import sync
from threadline.kernel.errors import InvalidValue, LimitExceeded, NotFound
from threadline.settings import Settings

pytest.importorskip("duckdb")
parquet = pytest.importorskip("pyarrow.parquet")
ROOT = Path(__file__).parents[2]
TAIL = 20
"""Entries of the log from which on there is a copy here."""
ASKING = """
import sys, threadline
from threadline.exports.analytics import answering
from threadline.exports.lake import log_copy
log_copy.TAIL_EVENTS = answering.BEHIND_EVENTS_MAX = 20
with threadline.open(sys.argv[1], readonly=True) as shop:
    print("open", flush=True)
    for line in sys.stdin:
        table = shop.engine.analytics.query("default", "SELECT count(*), count(DISTINCT id) FROM events", {})
        print(*table.rows[0], table.position, flush=True)
"""


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_copy, "TAIL_EVENTS", TAIL)
    monkeypatch.setattr(answering, "BEHIND_EVENTS_MAX", TAIL)


def events(first: int, last: int) -> list[dict[str, Any]]:
    return [
        {
            "type": "wrote",
            "key": str(number),
            "identifiers": {"user_id": f"user-{number % 5}"},
            "occurred_at": "2026-01-01T09:00:00Z",
            "properties": {"text": f"secret-{number % 5}"},
        }
        for number in range(first, last)
    ]


def contents(folder: Path) -> str:
    """Everything in every file of a copy, those included that count no more."""
    files = list(folder.rglob("*.parquet"))
    assert files
    others = [each for each in folder.rglob("*") if each.is_file() and each not in files]
    return "".join(str(parquet.read_table(each).to_pylist()) for each in files) + "".join(
        each.read_bytes().decode("utf-8", "replace") for each in others
    )


LARGE = "FROM range(1_000_000_000) a, range(1_000_000) b WHERE hash(a.range + b.range) = 42"


@pytest.mark.parametrize("query", [f"SELECT count(*) {LARGE}", f"SELECT a.range {LARGE}"])
def test_a_question_that_takes_too_long_ends_and_the_next_is_answered(
    query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "ANALYTICS_SECONDS_MAX", 0.2)
    with threadline.open(tmp_path / "shop.db") as shop:
        shop.record(events(0, 5))
        with pytest.raises(LimitExceeded, match=r"given up after 0\.2 s"):
            shop.engine.analytics.query("default", query, {})
        monkeypatch.undo()
        assert shop.engine.analytics.query("default", "SELECT count(*) FROM events", {}).rows == [(5,)]


def test_a_question_is_answered_while_the_copy_is_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_copy, "FILES_MAX", 0)
    monkeypatch.setattr(answering, "BEHIND_EVENTS_MAX", 10 * TAIL)
    begun, may_end = threading.Event(), threading.Event()

    def slowly(*given: Any) -> None:
        begun.set()
        assert may_end.wait(30)
        compact(*given)

    with threadline.open(tmp_path / "shop.db") as shop:
        shop.record(events(0, 30))
        assert people(shop) == 5
        shop.record(events(100, 130))
        monkeypatch.setattr(log_copy, "compact", slowly)
        keeping: Any = shop.engine.analytics
        worker = threading.Thread(target=keeping.catch_up, args=(1_000,))
        worker.start()
        try:
            assert begun.wait(30)
            shop.record([{**each, "identifiers": {"user_id": "late"}} for each in events(200, 230)])
            assert people(shop) == 6
            assert worker.is_alive()
        finally:
            may_end.set()
            worker.join()
        assert people(shop) == 6


def test_a_question_does_not_wait_for_a_worker_that_brings_much_into_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def slowly(*given: Any, **options: Any) -> None:
        begun.set()
        assert may_end.wait(30)
        sync(*given, **options)

    with threadline.open(tmp_path / "shop.db") as shop:
        shop.record(events(0, 30))
        assert people(shop) == 5
        shop.record([{**each, "identifiers": {"user_id": each["key"]}} for each in events(100, 200)])
        monkeypatch.setattr(log_copy, "sync", slowly)
        keeping: Any = shop.engine.analytics
        worker = threading.Thread(target=keeping.catch_up, args=(1_000,))
        worker.start()
        try:
            assert begun.wait(30)
            answer = shop.analytics.trend(event="wrote")
            assert answer.position == 30 + TAIL
            assert sum(row.people for row in answer.rows) == 5 + TAIL
            assert answer.bound == "exact, of the first 50 of 130 entries: the others are being taken in"
            assert worker.is_alive()
        finally:
            may_end.set()
            worker.join()
        answer = shop.analytics.trend(event="wrote")
        assert (sum(row.people for row in answer.rows), answer.position, answer.bound) == (105, 130, "exact")


CHANGES = st.lists(
    st.tuples(st.sampled_from(["record", "late", "join", "erase", "ask"]), st.integers(0, 4)), min_size=2, max_size=12
)
ROWS = "SELECT type, person, day, count(*) AS n FROM events WHERE type <> 'person_erased' GROUP BY ALL ORDER BY ALL"


@pytest.mark.parametrize("tail", [8, 1_000])
@given(changes=CHANGES)
def test_after_any_changes_the_next_answer_is_that_of_somebody_who_asks_for_the_first_time(
    changes: list[tuple[str, int]], tail: int
) -> None:
    with threadline.open("memory:") as shop, pytest.MonkeyPatch.context() as patched:
        patched.setattr(log_copy, "TAIL_EVENTS", tail)
        patched.setattr(answering, "BEHIND_EVENTS_MAX", tail)
        patched.setattr(answering, "NEWER_FILES_MAX", 6)
        asked = DuckAnalytics(shop.engine)
        shop.record(events(0, 6))
        for number, (change, who) in enumerate(changes):
            if change in ("record", "late"):
                first, day = 100 * (number + 1), "2025-12-30" if change == "late" else "2026-01-02"
                shop.record(
                    [
                        {**each, "identifiers": {"user_id": f"user-{who}"}, "occurred_at": f"{day}T09:00:00Z"}
                        for each in events(first, first + 3)
                    ]
                )
            elif change == "join":
                both = {"user_id": f"user-{who}", "anonymous_id": "device"}
                shop.record([{"type": "signed_in", "key": f"join-{number}", "identifiers": both}])
            elif change == "erase":
                with suppress(NotFound):
                    shop.people.erase(f"user-{who}")
            else:
                asked.query("default", ROWS, {})
        told = asked.query("default", ROWS, {})
        fresh = DuckAnalytics(shop.engine)
        assert told == fresh.query("default", ROWS, {})
        fresh.close()
        asked.close()


def people(shop: threadline.Threadline) -> int:
    return sum(row.people for row in shop.analytics.trend(event="wrote").rows)


def test_of_an_erased_person_nothing_is_left_in_answers_or_files(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with threadline.open(path) as shop:
        shop.record(events(0, 100))
        assert people(shop) == 5
        folder = Path(f"{path}-analytics")
        id = shop.person("user-3").id
        assert "secret-3" in contents(folder)
        assert id in contents(folder)
        shop.people.erase("user-3")
        assert people(shop) == 4
        left = contents(folder)
        assert "secret-3" not in left
        assert id not in left
        assert "secret-2" in left
        # Somebody who is in what is newer than the copy alone.
        shop.record([{**each, "identifiers": {"user_id": "late"}} for each in events(200, 203)])
        assert people(shop) == 5
        shop.people.erase("late")
        assert people(shop) == 4


def test_an_erasure_reaches_the_copy_without_a_question(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with threadline.open(path) as shop:
        shop.record(events(0, 100))
        people(shop)
        shop.people.erase("user-1")
        keeping: Any = shop.engine.analytics
        assert keeping.is_begun
        keeping.catch_up(1_000)
        assert "secret-1" not in contents(Path(f"{path}-analytics"))


def test_who_is_merged_is_one_person_in_the_next_answer(tmp_path: Path) -> None:
    with threadline.open(tmp_path / "shop.db") as shop:
        shop.record(events(0, 100))
        assert people(shop) == 5
        shop.people.merge("user-2", other="user-1", force=True)
        assert people(shop) == 4


def test_workspaces_see_nothing_of_one_another(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with threadline.open(path) as shop:
        shop.record(events(0, 60))
        other = threadline.Threadline(shop.engine, workspace="other")
        other.record(events(0, 30))
        ask = shop.engine.analytics.query
        count = "SELECT count(*) FROM events"
        for _ in range(2):
            assert [ask(each, count, {}).rows for each in ("default", "other", "none")] == [[(60,)], [(30,)], [(0,)]]
        theirs = next(each for each in Path(f"{path}-analytics").rglob("*.parquet") if "other" in str(each))
        for query in (f"FROM read_parquet('{theirs}')", f"FROM glob('{path}-analytics/**')"):
            with pytest.raises(InvalidValue):
                ask("default", query, {})
        # What is newer than the copy is apart as well.
        other.record(events(100, 103))
        assert [ask(each, count, {}).rows for each in ("default", "other")] == [[(60,)], [(33,)]]


def test_processes_that_share_a_file_and_its_columns_answer_of_the_end_of_the_log(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with threadline.open(path) as shop:
        shop.record(events(0, 50))
        command = [forked.python(), "-c", ASKING, str(path)]
        readers = [
            subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(2)
        ]
        try:
            for reader in readers:
                assert reader.stdout is not None
                assert reader.stdout.readline() == "open\n"
            recorded = 50
            for turn in range(8):
                # More than what is read from the log alone, so that each of the three brings the copy up.
                shop.record(events(1_000 * (turn + 1), 1_000 * (turn + 1) + 30))
                recorded += 30
                for reader in readers:
                    assert reader.stdin is not None
                    reader.stdin.write("ask\n")
                    reader.stdin.flush()
                own = shop.engine.analytics.query("default", "SELECT count(*) FROM events", {})
                assert own.rows == [(recorded,)]
                for reader in readers:
                    assert reader.stdout is not None
                    found, different, position = map(int, reader.stdout.readline().split())
                    assert (found, different) == (recorded, recorded)
                    assert position == own.position
        finally:
            for reader in readers:
                reader.communicate()
        assert [reader.returncode for reader in readers] == [0, 0]


def test_a_copy_of_another_log_is_begun_anew(tmp_path: Path) -> None:
    settings = Settings(analytics_dir=str(tmp_path / "columns"))
    for name, count in (("one", 60), ("other", 40)):
        with threadline.open(tmp_path / f"{name}.db", settings=settings) as shop:
            shop.record([{**each, "key": f"{name}{each['key']}"} for each in events(0, count)])
            assert shop.engine.analytics.query("default", "SELECT count(*) FROM events", {}).rows == [(count,)]


QUESTIONS: dict[str, dict[str, Any]] = {
    "attribution": {"event": "wrote", "channel": "text"},
    "cohorts": {"event": "wrote"},
    "distribution": {"feature": "has_purchased", "baseline_stop": "2026-02-01"},
    "experiment": {"assignment": "wrote", "arm": "text", "metric": "*"},
    "funnel": {"steps": ["wrote", "*"]},
    "paths": {"by": "text"},
    "retention": {},
    "rfm": {"event": "wrote"},
    "sessions": {"by": "text"},
    "trend": {"by": "text"},
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_lake_answers_as_the_store_does_and_the_query_shown_gives_its_rows(tmp_path: Path, name: str) -> None:
    settings = Settings(lake=str(tmp_path / "lake"))
    with threadline.open("memory:", settings=settings) as shop:
        shop.record(events(0, 30))
        sync(shop.engine, Lake(open_storage(settings.lake)))
        shop.record(events(100, 105))
        over_lake = getattr(shop.analytics, name)(**QUESTIONS[name])
        shop.engine.analytics = DuckAnalytics(shop.engine)
        over_store = getattr(shop.analytics, name)(**QUESTIONS[name])
        assert msgspec.structs.replace(over_lake, sql="") == msgspec.structs.replace(over_store, sql="")
        with opened(shop.engine, None, "default") as reading:
            shown = reading.run(over_lake.sql).read_all()
        found = shop.engine.analytics.query("default", over_lake.sql, {})
        assert shown.num_rows == len(found.rows) > 0
        assert over_lake.position == found.position == 35


def test_what_was_folded_for_many_is_folded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "FOLDED_MAX", 4)
    folded: list[str] = []
    rows_of = curated.rows_of
    monkeypatch.setattr(
        curated, "rows_of", lambda folds, person, own: folded.append(person) or rows_of(folds, person, own)
    )
    path = tmp_path / "shop.db"
    with threadline.open(path) as shop:

        def values() -> tuple[int, int]:
            """People with a value, and how many were folded for the answer."""
            folded.clear()
            answer = shop.analytics.distribution(feature="has_purchased")
            return sum(row.people for row in answer.rows), len(folded)

        shop.record(events(0, 60))
        assert [values(), values()] == [(5, 5), (5, 0)]
        shop.record(events(100, 101))
        assert [values(), values()] == [(5, 1), (5, 0)]
        erased = shop.person("user-2").id
        shop.people.erase("user-2")
        # Each file might name who was erased: all are gone, and are written again.
        assert [values(), values()] == [(4, 4), (4, 0)]
        assert erased not in contents(Path(f"{path}-analytics"))
