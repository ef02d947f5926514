"""Programs that are forked instead of started behave as started ones do: arguments, files, signals and their end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import forked

TOLD = """
import json, os, signal, sys, time
print(json.dumps({
    "arguments": sys.argv, "folder": os.getcwd(), "given": os.environ.get("GIVEN"), "umask": os.umask(0),
    "read": sys.stdin.read(), "hup": signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, "zone": time.tzname[0],
    "parent": os.getppid(), "modules": "threadline.app" in sys.modules,
}))
sys.stderr.write("complaint")
sys.exit(7)
"""
ENDS = {
    "nothing": ("", 0),
    "exit(True)": ("import sys; sys.exit(True)", 1),
    "a message": ("raise SystemExit('no')", 1),
    "a fault": ("1 / 0", 1),
    "its own kill": ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
    "a late thread": (
        "import threading, time; threading.Thread(target=lambda: time.sleep(0.2) or print('late')).start()",
        0,
    ),
    "at exit": ("import atexit; atexit.register(print, 'last')", 0),
}
WAITS = "import os, signal, sys; {}; print(os.getpid(), flush=True); signal.pause()"


def test_a_forked_process_is_given_what_a_started_one_is(tmp_path: Path) -> None:
    told = []
    before = os.umask(0o027)
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        for python in (sys.executable, forked.python()):
            done = subprocess.run(
                [python, "-c", TOLD, "a b", "ü"],
                cwd=tmp_path,
                env=os.environ | {"GIVEN": "x", "TZ": "Asia/Tokyo"},
                input="what is read",
                capture_output=True,
                text=True,
                check=False,
            )
            assert (done.returncode, done.stderr) == (7, "complaint")
            told.append(json.loads(done.stdout))
    finally:
        os.umask(before)
        signal.signal(signal.SIGHUP, ignored)
    started, forking = told
    assert (started.pop("parent"), forking.pop("parent") == os.getpid()) == (os.getpid(), False)
    assert (started.pop("modules"), forking.pop("modules")) == (False, True), "else it was started, and nothing was won"
    assert forking == started
    assert (started["arguments"], started["umask"], started["hup"]) == (["-c", "a b", "ü"], 0o027, True)


@pytest.mark.parametrize("end", ENDS)
def test_it_ends_as_a_started_one_does(end: str) -> None:
    code, expected = ENDS[end]
    started, forking = (
        subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
        for python in (sys.executable, forked.python())
    )
    assert (forking.returncode, forking.stdout) == (started.returncode, started.stdout)
    assert forking.returncode == expected
    assert forking.stderr.split("\n")[-2:] == started.stderr.split("\n")[-2:]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_reach_it_and_are_its_end(number: signal.Signals) -> None:
    handled = f"signal.signal({int(number)}, lambda *_: sys.exit(5))"
    for setting, expected in (("pass", {-number}), (handled, {5})):
        with subprocess.Popen([forked.python(), "-c", WAITS.format(setting)], stdout=-1, stderr=-1) as process:
            assert process.stdout is not None
            assert int(process.stdout.readline()) != process.pid
            process.send_signal(number)
            assert process.wait(60) in expected


def test_it_dies_with_what_stands_in_for_it() -> None:
    with subprocess.Popen([forked.python(), "-c", WAITS.format("pass")], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.kill()
        assert process.stdout.read() == b"", "its output has an end"
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            break
    else:
        raise AssertionError("it is still there")


def test_the_command_is_that_of_the_package(tmp_path: Path) -> None:
    for program in ([sys.executable, "-m", "threadline"], [forked.threadline()]):
        done = subprocess.run([*program, "nonsense"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, "No such command" in done.stderr) == (2, "", True)


def test_processes_of_the_application_have_names_of_their_own() -> None:
    code = "from threadline import app; print(app._PROCESS)"
    assert len({subprocess.check_output([forked.python(), "-c", code]) for _ in range(2)}) == 2


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [(["-I", "-c"], {}), (["-c"], {"PYTHONHASHSEED": "7"}), (["-c"], {"LD_PRELOAD": ""})],
)
def test_what_it_cannot_stand_in_for_is_left_to_python(arguments: list[str], environment: dict[str, str]) -> None:
    code = "import sys; print('threadline.app' in sys.modules, sys.flags.isolated, hash('a'))"
    asked = [
        subprocess.check_output([python, *arguments, code], env=os.environ | environment).split()
        for python in (sys.executable, forked.python())
    ]
    assert asked[0][0] == asked[1][0] == b"False"
    assert asked[0][1] == asked[1][1]
    assert (asked[0][2] == asked[1][2]) == ("PYTHONHASHSEED" in environment)
