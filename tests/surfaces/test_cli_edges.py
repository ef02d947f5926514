"""The edges of the command line: options in the wrong place, pipes that close, input that is not there, signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forked
from tests.surfaces.cli_stage import call, composed, store
from threadline.engine.child_process import _without_interrupts
from threadline.surfaces.http.addresses.health import package_version

__all__ = ["call", "composed", "store"]


def test_the_version_is_told(call) -> None:  # type: ignore[no-untyped-def]
    told = call("--version")
    assert (told.code, told.out) == (0, f"threadline {package_version()}\n")


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (("--file", "x.db", "person", "user_id:42"), "--file follows the command: threadline COMMAND --file ..."),
        (("keys", "-f", "x.db", "list"), "-f follows the command: threadline keys COMMAND -f ..."),
    ],
)
def test_an_option_before_its_command_is_told_its_place(arguments: tuple[str, ...], place: str, call) -> None:  # type: ignore[no-untyped-def]
    told = call(*arguments)
    assert (told.code, told.out) == (2, "")
    assert place in told.err


def test_two_forms_of_one_answer_exclude_each_other(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    told = call("catalogue", "--json", "--markdown")
    assert (told.code, told.out) == (2, "")
    assert "exclude each other" in told.err


def test_help_says_what_an_argument_is_and_no_choice_is_empty(call) -> None:  # type: ignore[no-untyped-def]
    assert "ID: A user id, any other identifier as kind:value" in call("person", "--help").out
    assert "TYPE: one of fact, preference" in call("memory", "fact", "--help").out
    assert "[Approved|" in call("decisions", "list", "--help").out


@pytest.mark.parametrize("arguments", [(), ("--help",), ("settings",), ("settings", "--json"), ("nonsense",)])
def test_a_reader_who_stops_reading_sees_no_traceback(arguments: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    told = write if arguments == ("nonsense",) else subprocess.PIPE
    done = subprocess.run([forked.threadline(), *arguments], stdout=write, stderr=told, check=False)
    os.close(write)
    assert done.returncode != 0, "what was not told may matter"
    assert not done.stderr


def test_standard_input_that_is_not_there_is_told() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"exec {sys.executable} -m threadline record --events - <&-"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert b"there is no standard input" in done.stderr


HELD_UP = """
import signal, sys, time
from threadline.stores.sqlite import backup as sqlite_backup
from threadline.surfaces.cli import main

def copy(*given):
    print("copying", flush=True)
    time.sleep(600)

sqlite_backup.copy_database = copy
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)  # whatever the tests run under
main(sys.argv[1:])
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_whoever_is_told_to_end_clears_away_what_is_half_done(number: signal.Signals, store: Path) -> None:
    backup = store.with_name("copy.db")
    arguments = ["backup", str(backup), "--file", str(store)]
    with subprocess.Popen([forked.python(), "-c", HELD_UP, *arguments], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"copying\n"
        assert list(store.parent.glob("copy.db*"))
        process.send_signal(number)
        assert process.wait() == -number, "who sent it sees that it was obeyed"
    assert not list(store.parent.glob("copy.db*"))


INTERRUPTED = """
import sys

class CtrlC:
    def find_spec(self, name, *rest):
        if name == "threadline.app":
            raise KeyboardInterrupt

sys.meta_path.insert(0, CtrlC())
from threadline.surfaces.cli import main
main(["settings"])
"""


def test_ctrl_c_while_it_is_still_loading_ends_it_without_a_word() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_processes_that_share_the_work_leave_ctrl_c_to_the_one_that_began_it() -> None:
    ask = [sys.executable, "-c", "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"]
    before = signal.getsignal(signal.SIGINT)
    with _without_interrupts():
        assert subprocess.run(ask, capture_output=True, check=True).stdout == b"True\n"
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    "command", ["import x.csv", "refold", "verify", "doctor", "backup x.bak", "restore x.bak", "migrate"]
)
def test_a_command_on_the_store_itself_does_not_take_another_one_than_the_server_that_is_named(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "x.csv").write_text("a\n1\n")
    monkeypatch.chdir(tmp_path)
    for named, more in (("--url", ("--url", "http://127.0.0.1:1")), ("THREADLINE_URL", ())):
        if not more:
            monkeypatch.setenv("THREADLINE_URL", "http://127.0.0.1:1")
        refused = call(*command.split(), *more)
        assert refused.code != 0
        assert f"works on the store itself, not through a server, which {named} names" in refused.err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["x.csv"]
    assert "through a server" not in call(*command.split(), "--file", str(tmp_path / "x.db")).err
