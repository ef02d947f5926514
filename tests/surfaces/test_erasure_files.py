"""Erasure on the embedded store as it is run: its files, the cache, a backup, the ledger beside it, the commands."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tests.laws.erasure_stage import DEFINITIONS, MARKER, Stage, crowded, found
from tests.servers import redis as redis_servers
from tests.surfaces.cli_stage import Ran, call, composed  # noqa: F401 - fixtures
from threadline.app import composition, open_engine
from threadline.engine.engine import Engine
from threadline.engine.erasure.certificates_file import LedgerFile
from threadline.kernel.errors import NotFound, StoreDamaged
from threadline.settings import load
from threadline.stores.compression import ZSTD_START
from threadline.stores.sqlite.store import SqliteStore

ADA = f"ada-{MARKER}"
Call = Callable[..., Ran]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store in which Ada is in every table, and definitions beside it. Made once: it takes a second."""
    folder = tmp_path_factory.mktemp("made") / "data"
    folder.mkdir()
    (folder / "threadline.yaml").write_text(DEFINITIONS)
    stage = Stage(SqliteStore(folder / "shop.db"))
    crowded(stage)
    stage.engine.close()
    return folder


@pytest.fixture
def shop(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the store; commands find it by the environment."""
    path = Path(shutil.copytree(made, tmp_path / "data")) / "shop.db"
    monkeypatch.setenv("THREADLINE_STORE", str(path))
    return path


def opened(path: Path, cache: str = "") -> Engine:
    return open_engine(path, load({"store": str(path), "cache": cache}))


def files_with(folder: Path, *needles: bytes) -> list[str]:
    return [
        f"{needle!r} in {file.name}"
        for file in sorted(folder.rglob("*"))
        if file.is_file()
        for needle in needles
        if needle.lower() in file.read_bytes().lower()
    ]


def threads_of(engine: Engine) -> list[bytes]:
    return [thread.encode() for thread in engine.reader.person("default", f"user_id:{ADA}").heads]


def rows_of(engine: Engine, shop: Path) -> list[bytes]:
    """The compressed rows of Ada's events and of what is known of her, as the file has them."""
    person = engine.reader.person("default", f"user_id:{ADA}")
    db = sqlite3.connect(f"file:{shop}?mode=ro", uri=True)
    with closing(db):
        rows = db.execute("SELECT value FROM item WHERE partition = ?", (person.id,)).fetchall()
        for thread in person.heads:
            rows += db.execute("SELECT body FROM log WHERE thread = ?", (bytes.fromhex(thread),)).fetchall()
    return [row[12:] for (row,) in rows if row.startswith(ZSTD_START)]


def test_no_file_cache_or_restored_backup_has_a_marker_of_an_erased_person(
    shop: Path,
    tmp_path: Path,
    call: Call,  # noqa: F811
) -> None:
    backup = tmp_path / "shop.backup"
    with redis_servers.running(tmp_path) as redis:
        engine = opened(shop, redis.url)
        needles = [MARKER.encode(), *threads_of(engine)]
        rows = rows_of(engine, shop)
        assert len(rows) > 2, "her events and what is known of her are compressed"
        assert files_with(shop.parent, *rows)
        engine.reader.person("default", f"email:{ADA}@example.com")
        assert call("backup", str(backup)).code == 0
        assert MARKER.encode() in shop.read_bytes() + shop.with_name("shop.db-wal").read_bytes()
        assert MARKER.encode() in backup.read_bytes()
        begun = engine.erasures.begin("default", f"user_id:{ADA}", reason="asked")
        engine.erasures.run("default", begun.id)
        with pytest.raises(NotFound):
            engine.reader.person("default", f"email:{ADA}@example.com")
        assert redis.command("KEYS", "*").count(b"$") > 0, "the cache is in use"
        assert cached(redis, needles) == []
        assert files_with(shop.parent, *needles, *rows) == []
        engine.close()
    assert files_with(shop.parent, *needles, *rows) == []
    ledger = shop.with_name("shop.db-erasures.jsonl")
    assert stat.S_IMODE(ledger.stat().st_mode) == 0o600
    # The backup still has everything, until it is restored where the ledger is.
    restored = call("restore", str(backup), "--replace")
    assert (restored.code, restored.err) == (0, "")
    assert "1 erasure" in restored.out
    assert files_with(shop.parent, *needles, *rows) == []
    after = opened(shop)
    with pytest.raises(NotFound):
        after.reader.person("default", f"user_id:{ADA}")
    assert after.erasures.find("default", begun.id).state == "done"
    assert len(after.erasures.ids("default", begun.id)) == after.erasures.find("default", begun.id).events
    after.close()


def cached(redis: redis_servers.RedisProcess, needles: list[bytes]) -> list[bytes]:
    import redis as driver

    with driver.Redis(port=redis.port) as connection:
        everything = [
            key + b" " + (connection.dump(key) or b"")
            for key in connection.scan_iter()  # type: ignore[no-untyped-call]
        ]
    return [each for each in everything if any(needle in each for needle in needles)]


def test_an_older_file_put_back_by_hand_is_erased_again_before_it_is_served(shop: Path, tmp_path: Path) -> None:
    older = tmp_path / "older.db"
    shutil.copy(shop, older)
    engine = opened(shop)
    engine.erasures.run("default", engine.erasures.begin("default", f"user_id:{ADA}").id)
    people = len(list(engine.reader.all_people("default")))
    [done] = engine.erasures.page("default")
    engine.close()
    for ending in ("", "-wal", "-shm", "-mark"):
        shop.with_name(shop.name + ending).unlink(missing_ok=True)
    shutil.copy(older, shop)
    again = opened(shop)
    assert len(list(again.reader.all_people("default"))) == people
    assert again.erasures.page("default") == [done]
    assert again.erasures.unfinished() == []
    # What came after the older copy was made is a duplicate all the same.
    assert set(again.store.seen(again.erasures.ids("default", done.id)).values()) == {0}
    again.close()
    assert len(LedgerFile.beside(shop).read()[1]) == 1


def test_a_copy_from_the_middle_of_an_erasure_ends_with_the_certificate_of_the_ledger(
    shop: Path, tmp_path: Path
) -> None:
    engine = opened(shop)
    begun = engine.erasures.begin("default", f"user_id:{ADA}")
    engine.erasures.advance("default", begun.id)
    middle = tmp_path / "middle.db"
    assert composition().back_up(load({"store": str(shop)}), middle, lambda done, total: None).events
    done = engine.erasures.run("default", begun.id)
    later = engine.erasures.begin("default", "user_id:bob")
    engine.erasures.run("default", later.id)
    engine.close()
    for ending in ("", "-wal", "-shm", "-mark"):
        shop.with_name(shop.name + ending).unlink(missing_ok=True)
    shutil.copy(middle, shop)
    again = opened(shop)
    assert again.erasures.find("default", begun.id).certificate == done.certificate
    assert {each.id for each in again.erasures.page("default")} == {begun.id, later.id}
    last = again.erasures.begin("default", "user_id:carol")
    again.erasures.run("default", last.id)
    again.close()
    ledger = str(LedgerFile.beside(shop).path)
    assert verified("--ledger", ledger, "--store", str(shop)) == (0, "3 certificates, 0 faults\n")


def test_a_person_split_off_since_is_parted_again_and_keeps_what_is_theirs(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    stage = Stage(SqliteStore(path))
    both = {"user_id": ADA, "anonymous_id": "shared"}
    stage.tell("page", both, properties={"of": ADA})
    stage.tell("page", {"anonymous_id": "shared"}, "kept")
    stage.engine.close()
    older = tmp_path / "older.db"
    shutil.copy(path, older)
    engine = opened(path)
    engine.identity.split("default", f"user_id:{ADA}", ["anonymous_id:shared"], request="s")
    engine.erasures.run("default", engine.erasures.begin("default", f"user_id:{ADA}").id)
    assert LedgerFile.beside(path).path.exists()
    engine.close()
    for ending in ("", "-wal", "-shm", "-mark"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    shutil.copy(older, path)
    again = opened(path)
    with pytest.raises(NotFound):
        again.reader.person("default", f"user_id:{ADA}")
    left = again.reader.person("default", "anonymous_id:shared")
    assert "kept" in [each.event.key for each in again.reader.events(left)]
    again.close()


def test_the_commands_preview_ask_erase_and_show(shop: Path, call: Call) -> None:  # noqa: F811
    counts = json.loads(call("people", "erase", ADA, "--dry-run", "--json").out)
    assert counts["removed"]["events"] > 20
    assert counts["done"] is False
    erased = call("people", "erase", ADA, "--yes", "--json", "--reason", "ticket 7")
    assert (erased.code, erased.err) == (0, "")
    view = json.loads(erased.out)
    assert (view["state"], view["reason"], view["certificate"]["before"]) == ("done", "ticket 7", counts["removed"])
    assert json.loads(call("erasures", "list", "--json").out)["erasures"] == [view]
    assert call("people", "erase", ADA, "--yes").code == 1
    assert "0 erasures finished" in call("erasures", "resume").out
    assert call("verify").code == 0


def test_an_exported_ledger_is_applied_to_a_copy(shop: Path, tmp_path: Path, call: Call) -> None:  # noqa: F811
    other = tmp_path / "other.db"
    shutil.copy(shop, other)
    shutil.copy(shop.with_name("threadline.yaml"), tmp_path / "threadline.yaml")
    assert call("people", "erase", ADA, "--yes").code == 0
    exported = tmp_path / "ledger.jsonl"
    for _ in range(2):
        assert "1 erasure" in call("erasures", "export", str(exported)).out
    assert len(exported.read_bytes().splitlines()) == 2
    assert "1 erasure done again" in call("erasures", "apply", str(exported), "--file", str(other)).out
    assert "0 erasures done again" in call("erasures", "apply", str(exported), "--file", str(other)).out
    store = SqliteStore(other)
    assert list(found(store, [MARKER.encode()])) == []
    store.close()


def test_a_ledger_line_that_a_killed_process_began_is_no_line_and_a_damaged_one_stops_the_start(shop: Path) -> None:
    engine = opened(shop)
    engine.erasures.run("default", engine.erasures.begin("default", f"user_id:{ADA}").id)
    engine.close()
    file = LedgerFile.beside(shop)
    whole = file.path.read_bytes()
    file.path.write_bytes(whole + b'{"certificate":{"era')
    assert len(file.read()[1]) == 1
    file.add([b"k" * 32], [])
    assert len(file.path.read_bytes().splitlines()) == 3
    file.path.write_bytes(whole.replace(b'"certificate"', b'"certif\x00cate"', 1))
    with pytest.raises((StoreDamaged, msgspec.MsgspecError)):
        opened(shop)


def test_a_store_in_memory_has_no_ledger_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    engine = open_engine("memory:")
    engine.close()
    assert list(tmp_path.iterdir()) == []
    assert composition().operations()


# --- the script that shares no code ---------------------------------------------------------------

SCRIPT = Path(__file__).parents[2] / "deploy" / "verify_erasure.py"


def verified(*arguments: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-I", str(SCRIPT), *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def made_without(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder after Ada and Bob were erased."""
    folder = Path(shutil.copytree(made, tmp_path_factory.mktemp("without") / "data"))
    engine = opened(folder / "shop.db")
    for name in (ADA, "bob"):
        engine.erasures.run("default", engine.erasures.begin("default", f"user_id:{name}", reason="§ 17").id)
    engine.close()
    return folder


@pytest.fixture
def erased(made_without: Path, tmp_path: Path) -> Path:
    """A copy of the store from which Ada and Bob were erased."""
    return Path(shutil.copytree(made_without, tmp_path / "without")) / "shop.db"


def test_the_script_verifies_a_ledger_and_a_store(erased: Path) -> None:
    ledger = str(LedgerFile.beside(erased).path)
    assert verified("--ledger", ledger, "--store", str(erased)) == (0, "2 certificates, 0 faults\n")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda lines: [lines[0], lines[2]], "1 is missing"),
        (lambda lines: [lines[0], lines[1].replace('"by":""', '"by":"x"'), lines[2]], "signature"),
        (lambda lines: [lines[0], lines[1].replace('"by":""', '"by":"x"'), lines[2]], "is another than it names"),
        (lambda lines: [lines[0], re.sub('"ids":"....', '"ids":"AAAA', lines[1]), lines[2]], "not those that are"),
        (lambda lines: [lines[0], lines[1].replace('"person":0', '"person":1'), lines[2]], "something was left"),
    ],
)
def test_the_script_finds_what_was_changed_in_a_ledger(
    erased: Path, change: Callable[[list[str]], list[str]], fault: str
) -> None:
    file = LedgerFile.beside(erased).path
    lines = file.read_text().splitlines()
    changed = change(lines)
    assert changed != lines
    file.write_text("\n".join(changed) + "\n")
    code, told = verified("--ledger", str(file))
    assert code == 1
    assert fault in told


def test_the_script_finds_an_event_that_has_content(erased: Path, made: Path) -> None:
    ledger = str(LedgerFile.beside(erased).path)
    code, told = verified("--ledger", ledger, "--store", str(made / "shop.db"))
    assert code == 1
    assert "has content" in told
