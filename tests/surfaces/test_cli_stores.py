"""Commands on whole stores: move, backup and restore, as an operator runs them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import threadline
from tests import forked
from threadline.app import composition
from threadline.engine.maintenance.move import Move
from threadline.kernel.errors import StoreFull
from threadline.surfaces.cli.program import run

ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with one purchase; commands find it by the environment."""
    path = tmp_path / "x.db"
    tell(path, "order-1")
    monkeypatch.setenv("THREADLINE_STORE", str(path))
    monkeypatch.chdir(tmp_path)
    return path


def tell(path: Path, key: str) -> None:
    with threadline.open(path) as tl:
        tl.track("42", "purchase_completed", {"total": 29.33, "currency": "EUR"}, key=key)


def call(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    capfd.readouterr()
    code = run(composition, arguments)
    found = capfd.readouterr()
    return code, (found.out + found.err).replace("\n", " ")


def spent(path: Path) -> object:
    with threadline.open(path, readonly=True) as tl:
        return tl.person("user_id:42").features["monetary_total"].value


def test_a_store_is_backed_up_and_restored(store: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, said = call(capfd, "backup", "copy.db")
    assert code == 0
    assert said.startswith("copy.db: 1 event, ")
    tell(store, "order-2")
    assert spent(store) == 58.66
    code, said = call(capfd, "restore", "copy.db")
    assert code == 1
    assert "--replace" in said
    code, said = call(capfd, "restore", "copy.db", "--replace")
    assert code == 0
    assert "x.db.replaced-1" in said
    assert (spent(store), spent(Path("x.db.replaced-1"))) == (29.33, 58.66)


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_other_stores_have_backups_of_their_own(
    store: Path, command: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THREADLINE_STORE", "postgresql://ada:secret@127.0.0.1/x")
    code, said = call(capfd, command, "copy.db")
    assert code == 1
    assert "not an embedded store" in said
    assert "secret" not in said


def test_a_store_is_moved_once(store: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, said = call(capfd, "move", "sqlite:///x.db", "sqlite:///y.db")
    assert code == 0
    assert "1 event and" in said
    assert "same canonical dump" in said
    assert spent(Path("y.db")) == 29.33
    tell(Path("y.db"), "order-2")
    code, said = call(capfd, "move", "sqlite:///x.db", "sqlite:///y.db")
    assert code == 1
    assert "moved there already" in said


def test_a_move_changes_neither_the_source_nor_an_empty_target_by_what_is_declared(
    store: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rules = """
        rules:
          big:
            version: 1
            conditions: {field: event.properties.total, greater_than: 20}
            actions: [store_decision: {result: approve}]
        rule_sets: {sales: {events: [purchase_completed], rules: [big]}}
    """
    Path("threadline.yaml").write_text(rules)
    tell(store, "order-2")
    # Somebody has looked at the target before: that notes the rules there too.
    call(capfd, "refold", "--file", "y.db")
    Path("threadline.yaml").write_text(rules.replace("version: 1", "version: 2"))
    before = store.read_bytes()
    for target in ("y.db", "z.db"):
        code, said = call(capfd, "move", "x.db", target)
        assert (code, "same canonical dump" in said) == (0, True), said
    assert store.read_bytes() == before
    code, said = call(capfd, "decisions", "verify", "--file", "y.db")
    assert code == 0, said


def test_a_move_for_which_there_is_no_room_says_how_it_goes_on(
    store: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(move: Move) -> None:
        raise StoreFull("there is no room left for y.db", hint="Free space, then send the same events again.")

    with monkeypatch.context() as patched:
        patched.setattr(Move, "copy", full)
        code, said = call(capfd, "move", "x.db", "y.db")
        assert code == 1
        assert "no room left" in said
        assert "run this again" in said
        assert "events" not in said
    assert call(capfd, "move", "x.db", "y.db")[0] == 0


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("x.db", "x.db", "two stores"),
        ("x.db", "sqlite:///x.db", "two stores"),
        ("x.db", "./there/../x.db", "two stores"),
        ("memory:", "y.db", "two stores"),
        ("x.db", "memory:", "two stores"),
        ("absent.db", "y.db", "no store at absent.db"),
        ("x.db", "mysql://y", "not a store we know"),
    ],
)
def test_what_cannot_be_moved_is_told_and_makes_nothing(
    store: Path, source: str, target: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    code, said = call(capfd, "move", source, target)
    assert code == 1
    assert message in said
    assert not Path("absent.db").exists()
    assert not Path("y.db").exists()


def test_a_running_server_is_followed_and_then_cut_over(store: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with threadline.open(store) as tl:  # it holds the store, as a server does
        code, said = call(capfd, "move", "x.db", "y.db")
        assert code == 1
        assert "open for writing in another process" in said
        follower = subprocess.Popen(
            [forked.threadline(), "move", "x.db", "y.db", "--follow"],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(20):
            tl.track("42", "purchase_completed", {"total": 1, "currency": "EUR"}, key=f"more-{number}")
        patience = time.monotonic() + 60
        while time.monotonic() < patience and (not Path("y.db").exists() or events(Path("y.db")) < 21):
            time.sleep(0.1)
        # The log runs ahead of the first copy of people, who name events of it.
        while time.monotonic() < patience and call(capfd, "person", "user_id:42", "--file", "y.db")[0] != 0:
            time.sleep(0.1)
        follower.send_signal(signal.SIGTERM)
        assert "Stopped" in follower.communicate(timeout=60)[0]
        assert follower.returncode == 0
        tl.track("42", "purchase_completed", {"total": 1, "currency": "EUR"}, key="last")
    # Half a copy can be looked at; whoever wrote to it would write beside what is still to come.
    assert call(capfd, "person", "user_id:42", "--file", "y.db")[0] == 0
    code, said = call(capfd, "people", "tag", "user_id:42", "--add", "vip", "--file", "y.db")
    assert code == 1
    assert "x.db that is not complete" in said
    code, said = call(capfd, "move", "x.db", "y.db")
    assert code == 0
    assert "22 events" in said
    assert spent(Path("y.db")) == spent(store) == 50.33


def events(path: Path) -> int:
    from threadline.kernel.errors import ThreadlineError
    from threadline.stores.sqlite.store import SqliteStore

    try:
        reading = SqliteStore(path, readonly=True)
    except ThreadlineError:  # it is being made at this moment
        return 0
    try:
        return reading.stats()["log_entries"]
    finally:
        reading.close()
