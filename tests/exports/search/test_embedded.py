"""The embedded index: what was killed, erased, damaged or put back leaves the index that one built anew would be."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import threadline
from tests import forked
from tests.exports.search.index_stage import Stage, erase, on, opened, recorded, secret, write
from threadline.engine.maintenance.rebuild import refold_everybody
from threadline.engine.stand_ins import NoIndex
from threadline.exports.catching_up import CatchUpWorker
from threadline.exports.search import embedded, tables
from threadline.kernel.errors import NotConfigured, StoreFull, ThreadlineError, Unavailable
from threadline.stores.memory import MemoryStore
from threadline.stores.sqlite.store import SqliteStore

ROOT = Path(__file__).parents[3]
KILLS = int(os.environ.get("THREADLINE_TEST_SEARCH_KILLS", "4"))


def bytes_of(path: Path) -> bytes:
    """Everything that the files of an index hold."""
    return b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}-search*"))


def killed(path: Path, after: int, seconds: float) -> bool:
    """Whether a process that catches up was killed, a moment after so many of its answers."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [forked.python(), "-m", "tests.exports.search.index_stage", str(path), "23"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(after + 1):
            process.stdout.readline()
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
    return process.returncode == -signal.SIGKILL


def test_an_index_whose_processes_are_killed_misses_nothing_and_has_nothing_twice(tmp_path: Path, seed: int) -> None:
    random, path = Random(seed), tmp_path / "store.db"
    stage = opened(path)
    some = write(stage.store, range(1, 400 * KILLS))
    times = 0
    for number in range(KILLS):
        times += killed(path, random.randrange(3), random.random() * 0.005)
        erase(stage.store, some[number * 7 : number * 7 + 3])
    assert times == KILLS, "no process was killed at work"
    contents = stage.contents()
    assert contents == stage.rebuilt()
    assert len(stage.found("marker77", "OR")) == 0
    assert len({row[1] for row in contents if len(row) == 7}) == len(some) - 3 * KILLS
    stage.close()


@pytest.mark.parametrize("at_once", [1, 1_000])
def test_of_an_erased_event_nothing_is_left_in_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(tables, "REWRITE_FROM", at_once)
    monkeypatch.setattr(embedded, "REWRITE_FROM", at_once)
    path = tmp_path / "store.db"
    stage = opened(path)
    ids = write(stage.store, range(1, 300))
    assert stage.found("marker123") == [ids[122]]
    assert b"marker123" in bytes_of(path)
    erase(stage.store, ids[100:150])
    assert stage.found("marker123") == stage.found("marker101") == []
    assert stage.found("marker151") == [ids[150]]
    left = bytes_of(path)
    for number in range(101, 151):
        assert f"marker{number} ".encode() not in left
        assert secret(number)[5:].encode() not in left
        assert recorded(number).id[5:12].encode() not in left
        assert bytes.fromhex(recorded(number).id) not in left
    assert secret(99)[5:].encode() in left
    assert stage.contents() == stage.rebuilt()
    stage.close()


def test_an_event_that_is_erased_while_it_is_taken_in_is_taken_out_again() -> None:
    stage = on(MemoryStore(), None)
    ids = write(stage.store, range(1, 20))
    log: Any = stage.index._log
    read = log.read

    def erasing(found: Any) -> Any:
        event = read(found)
        if event.id == ids[4]:
            erase(stage.store, [event.id])
        return event

    log.read = erasing
    stage.index.catch_up(100)
    log.read = read
    assert ids[4] not in stage.found("marker5")
    assert stage.contents() == stage.rebuilt()


def test_the_index_of_another_store_is_built_anew(tmp_path: Path) -> None:
    one, other = opened(tmp_path / "one.db"), opened(tmp_path / "other.db")
    write(one.store, range(1, 30))
    write(other.store, range(100, 150))
    one.contents()
    one.index.close()
    os.replace(tmp_path / "one.db-search", tmp_path / "other.db-search")
    assert other.contents() == other.rebuilt()
    one.close()
    other.close()


def test_the_index_of_a_store_that_was_put_back_is_built_anew() -> None:
    first, later = MemoryStore(), MemoryStore()
    for store in (first, later):
        write(store, range(1, 10))
    write(first, range(10, 20))
    stage = on(first, None)
    stage.contents()
    again = Stage(later, stage.index)
    stage.index._log = on(later, None).index._log
    assert again.contents() == again.rebuilt()
    write(later, range(50, 70))
    assert again.contents() == again.rebuilt()


def test_a_damaged_file_is_built_anew(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    stage = opened(path)
    write(stage.store, range(1, 100))
    stage.contents()
    stage.index.close()
    file = tmp_path / "store.db-search"
    file.write_bytes(file.read_bytes()[:8_192] + os.urandom(8_192 * 6))
    with pytest.raises(Unavailable, match="built anew"):
        stage.contents()
    assert stage.contents() == stage.rebuilt()
    stage.close()


def test_an_index_of_another_layout_is_built_anew(tmp_path: Path) -> None:
    stage = opened(tmp_path / "store.db")
    write(stage.store, range(1, 50))
    write(stage.store, range(50, 60), workspace="other")
    stage.contents()
    with stage.index.opened() as db:
        db.execute("UPDATE doc1 SET text = 'what an earlier version took'")
        db.pragma("user_version", 0)
    stage.index.close()
    assert stage.contents() == stage.rebuilt()
    assert stage.index.status().documents == 59
    stage.close()


def test_two_processes_share_one_file(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    one, other = on(store, tmp_path / "x"), on(store, tmp_path / "x")
    for start in range(1, 200, 40):
        ids = write(store, range(start, start + 40))
        threads = [threading.Thread(target=each.index.catch_up, args=(25,)) for each in (one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert one.found(f"marker{start}") == other.found(f"marker{start}") == [ids[0]]
    assert one.contents() == other.contents() == one.rebuilt()
    one.index.close()
    other.close()


def test_what_another_process_takes_in_amid_a_page_leaves_nothing_out(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    one, other = on(store, tmp_path / "x"), on(store, tmp_path / "x")
    ids = write(store, range(1, 60))
    feed, pages = one.index._log.feed, iter((5, 7))

    def passed(cursor: str = "", limit: int = 1_000) -> Any:
        entries = feed(cursor, limit)
        other.index.catch_up(next(pages, 0))
        return entries

    log: Any = one.index._log
    log.feed = passed
    assert one.index.catch_up(1_000) == (59, True)
    assert one.found("marker59") == [ids[-1]]
    assert one.contents() == other.contents() == one.rebuilt()
    one.index.close()
    other.close()


def test_a_full_disk_is_an_error_that_names_the_index_and_loses_nothing(tmp_path: Path) -> None:
    stage = opened(tmp_path / "store.db")
    write(stage.store, range(1, 5))
    stage.contents()
    with stage.index.opened() as db:
        before = db.pragma("max_page_count")
        db.pragma("max_page_count", db.pragma("page_count"))
    write(stage.store, range(5, 300))
    with pytest.raises(StoreFull, match=r"no room for the search index .*store\.db-search"):
        stage.contents()
    with stage.index.opened() as db:
        db.pragma("max_page_count", before)
    assert stage.contents() == stage.rebuilt()
    stage.close()


def test_a_file_that_cannot_be_written_is_an_error_that_names_the_setting(tmp_path: Path) -> None:
    stage = on(MemoryStore(), tmp_path / "nowhere" / "index")
    with pytest.raises(Unavailable) as caught:
        stage.found("x")
    assert "search_index" in caught.value.hint


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    stage = opened(tmp_path / "store.db")
    stage.contents()
    assert {oct(each.stat().st_mode & 0o777) for each in tmp_path.glob("store.db-search*")} == {"0o600"}
    stage.close()


def test_an_index_that_nobody_uses_is_not_begun_and_one_in_use_keeps_up(tmp_path: Path) -> None:
    stage = opened(tmp_path / "store.db")
    write(stage.store, range(1, 50))
    worker = CatchUpWorker("search", stage.index)
    worker.start(threading.Event())
    worker.finish()
    assert worker.step() == 0
    assert not (tmp_path / "store.db-search").exists()
    stage.found("x")
    write(stage.store, range(50, 60))
    worker.start(threading.Event())
    worker.finish()
    assert stage.index.status().progress == (59, True)
    worker.step()
    write(stage.store, range(60, 63))
    assert [worker.step(), worker.step()] == [3, 0]
    stage.close()


def test_a_worker_with_a_pause_keeps_up_until_it_is_told_to_stop(tmp_path: Path) -> None:
    stage = opened(tmp_path / "store.db")
    write(stage.store, range(1, 50))
    stage.found("x")
    worker, stopping = CatchUpWorker("search", stage.index, 0.01), threading.Event()
    worker.start(stopping)
    for last in (55, 60):
        write(stage.store, range(last - 5, last))
        deadline = time.monotonic() + 60
        while stage.index.status().progress != (last - 1, True):
            assert time.monotonic() < deadline
    stopping.set()
    worker.finish()
    stage.close()


def test_an_erased_person_is_found_no_more_and_a_search_says_how_far_it_is(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with threadline.open(path) as shop:
        for name in ("ada", "bob"):
            event = {
                "type": f"wrote_{name}",
                "key": name,
                "identifiers": {"user_id": name},
                "properties": {"text": f"x{name}x"},
            }
            shop.record([event])
        found = shop.search.find(text="xadax")
        assert ([hit.event.type for hit in found.hits], found.position, found.complete) == (["wrote_ada"], 2, True)
        shop.people.erase("ada")
        assert shop.search.find(text="xadax").hits == []
        assert [hit.event.person for hit in shop.search.find().hits] == [shop.person("bob").id]
        assert b"xadax" not in bytes_of(path)
        assert b"xbobx" in bytes_of(path)
        # A type that only an erased person had goes with its last event.
        assert b"wrote_ada" not in bytes_of(path)
        assert b"wrote_bob" in bytes_of(path)


def test_a_refold_of_everybody_leaves_the_index_as_one_that_is_built_anew(tmp_path: Path) -> None:
    with threadline.open(tmp_path / "shop.db") as shop:
        for number in range(20):
            shop.track(f"u{number % 3}", "wrote", {"text": f"marker{number}"}, key=str(number))
        index: Any = shop.engine.search
        assert len(shop.search.find(text="marker7").hits) == 1
        before = list(index.contents())
        refold_everybody(shop.engine.store, shop.engine.catalogue)
        shop.track("u1", "wrote", {"text": "after"}, key="after")
        assert len(shop.search.find(text="after").hits) == 1
        after = list(index.contents())
        index.rebuild()
        index.catch_up(1_000)
        assert list(index.contents()) == after
        assert {row for row in before if row[1] != "person"} < set(after)


def test_a_shared_store_without_the_setting_says_what_to_set() -> None:
    with threadline.open("memory:") as shop:
        shop.engine.search = NoIndex()
        with pytest.raises(NotConfigured) as caught:
            shop.search.find(text="x")
        assert "search_index" in caught.value.hint


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(0, 5)), max_size=25))
def test_people_are_in_the_index_as_in_one_that_is_built_anew_whatever_happened_to_them(
    steps: list[tuple[int, int, int]],
) -> None:
    """Names, joins, their undoing, splits and erasures, with a search after every third of them."""
    with threadline.open("memory:") as shop:
        index: Any = shop.engine.search
        joins: list[str] = []
        for number, (what, who, other) in enumerate(steps):
            with suppress(ThreadlineError):  # such as somebody who is not there, or a join with themselves
                if what < 5:
                    traits = {"name": f"name{number}"} if what < 3 else {}
                    own = {"user_id": f"u{who}"} | ({"anonymous_id": f"a{other}"} if what % 2 else {})
                    shop.record([{"type": "identify", "key": f"k{number}", "identifiers": own, "properties": traits}])
                elif what == 5:
                    joins.append(shop.people.merge(f"u{who}", other=f"u{other}", reason="one", force=True).event)
                elif what == 6 and joins:
                    shop.people.unmerge(joins.pop())
                elif what == 7:
                    shop.people.split(f"u{who}", identifiers=[f"anonymous_id:a{other}"], reason="shared")
                elif what == 8:
                    shop.people.erase(f"u{who}")
                else:
                    shop.track(f"u{who}", "page_viewed", {"path": "/"}, key=f"k{number}")
            if number % 3 == 0:
                shop.people.find(text="name")
        everybody = {person.id: person for person in shop.people.list(limit=100).people}
        listed = shop.people.find(limit=100)
        assert ({person.id for person in listed.people}, listed.total) == (set(everybody), len(everybody))
        for person in everybody.values():
            for text in (person.name, *person.identifiers):
                value = text.rpartition(":")[2]
                assert not value or person.id in {each.id for each in shop.people.find(text=value, limit=100).people}
        kept = list(index.contents())
        index.rebuild()
        index.catch_up(10_000)
        assert list(index.contents()) == kept


def test_people_of_a_page_that_was_taken_back_are_read_when_it_is_taken_in_again() -> None:
    with threadline.open("memory:") as shop:
        for name in ("ada", "bob"):
            shop.record([{"type": "page", "key": name, "identifiers": {"user_id": name}}])
        index: Any = shop.engine.search
        people_of = index._people_of

        def failing(threads: Any) -> Any:
            raise Unavailable("the store is away")

        index._people_of = failing
        with pytest.raises(Unavailable):
            index.catch_up(100)
        index._people_of = people_of
        index.catch_up(100)
        assert shop.people.find(text="ada").total == 1
        kept = list(index.contents())
        index.rebuild()
        index.catch_up(100)
        assert list(index.contents()) == kept


def test_of_an_erased_person_no_name_is_left_in_the_files(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with threadline.open(path) as shop:
        for name in ("Xqzwvyt", "Bcdfghj"):
            own = {"user_id": f"id-{name}", "email": f"{name}@example.com"}
            shop.record([{"type": "identify", "key": name, "identifiers": own, "properties": {"name": name}}])
        assert shop.people.find(text="qzwv").total == 1
        assert b"xqzwvyt" in bytes_of(path)
        shop.people.erase("id-Xqzwvyt")
        assert shop.people.find(text="qzwv").people == []
        left = bytes_of(path)
        assert [part for part in (b"xqzwvyt", b"Xqzwvyt", b"qzw", b"zwv", b"wvy") if part in left] == []
        assert b"bcdfghj" in left
