"""Programs of the tests, forked from one process that has imported everything: a start takes 30 ms instead of 700.

`python` and `threadline` name programs that stand in for ``python -m MODULE`` or ``python -c CODE``, and for the
command ``threadline``. They hand what they were started with to this file's server, which forks a process for it: with
the same arguments, environment, folder, files and ignored signals. Signals that they get are passed on, their end is
that of the process, and if they are killed so is the process, a moment later.

What they do not know, such as other options of Python or a library to be preloaded, they leave to the real Python. A
test that is about a start starts `sys.executable`. All forked processes share one seed of hashes.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import runpy
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

ROOT = Path(__file__).parents[1]
FORWARDED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)

_STAND_IN = """#!{python} -ISs
import os, sys

arguments = [*{before!r}, *sys.argv[1:]]

def leave_to_python():
    os.execv({python!r}, [{python!r}, *arguments])

known = (b"PYTHONPATH", b"PYTHONDONTWRITEBYTECODE", b"PYTHONUNBUFFERED")
strange = [each for each in os.environb if each.startswith(b"PYTHON") and each not in known]
if strange or b"LD_PRELOAD" in os.environb or len(arguments) < 2 or arguments[0] not in ("-c", "-m"):
    leave_to_python()
try:
    for number in range(3):
        os.fstat(number)
except OSError:
    leave_to_python()

import _signal, _socket

child, early = 0, []

def forward(number, frame):
    early.append(number) if not child else os.kill(child, number)

ignored = [number for number in {forwarded!r} if _signal.getsignal(number) == _signal.SIG_IGN]
for number in {forwarded!r}:
    if number not in ignored:
        _signal.signal(number, forward)
umask = os.umask(0)
os.umask(umask)
fields = [os.getcwdb(), b"%d" % umask, b",".join(b"%d" % each for each in ignored), b"%d" % len(arguments)]
fields += map(os.fsencode, arguments)
fields += [name + b"=" + value for name, value in os.environb.items()]
message = b"\\0".join(fields)
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect({path!r})
files = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
server.sendmsg([len(message).to_bytes(8, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
server.sendall(message)
# Whoever reads what the process writes must see its end, not ours.
nothing = os.open("/dev/null", os.O_RDWR)
for number in range(3):
    os.dup2(nothing, number)
told = b""
while told.count(b"\\n") < 2:
    more = server.recv(64)
    if not more:
        os._exit(70)
    told += more
    if not child and b"\\n" in told:
        child = int(told.split(b"\\n")[0])
        while early:
            os.kill(child, early.pop(0))
code = int(told.split(b"\\n")[1])
if code < 0:
    _signal.signal(-code, _signal.SIG_DFL) if -code != _signal.SIGKILL else None
    os.kill(os.getpid(), -code)
os._exit(code)
"""


@cache
def python() -> str:
    """What stands in for Python: a program that takes ``-m`` or ``-c`` first."""
    return _stand_in("python")


@cache
def threadline() -> str:
    """What stands in for the command `threadline`, under this name."""
    return _stand_in("threadline", "-m", "threadline")


def _stand_in(name: str, *before: str) -> str:
    # Each in a folder of its own, which may stand in front of a PATH.
    folder = _server() / f"only-{name}"
    folder.mkdir()
    file = folder / name
    content = _STAND_IN.format(
        python=sys.executable, before=before, path=str(_server() / "socket"), forwarded=tuple(map(int, FORWARDED))
    )
    file.write_text(content)
    file.chmod(0o755)
    return str(file)


@cache
def _server() -> Path:
    """The folder of the server of this process of the tests, started once."""
    folder = Path(tempfile.mkdtemp(prefix="threadline-forked-"))
    own = {name: value for name, value in os.environ.items() if not name.startswith("THREADLINE_")}
    environment = own | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.forked", str(folder / "socket")],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(_end, process)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return folder


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


# --- the server -----------------------------------------------------------------------------------


class Start(NamedTuple):
    """What a process is started with."""

    folder: bytes
    umask: int
    ignored: list[int]
    arguments: list[str]
    environment: dict[bytes, bytes]
    files: list[int]


def serve(path: str) -> None:
    """Fork a process for whoever connects, until the one that started this has ended."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(path)
        listening.listen(64)
        _import_everything()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # of those who attend to one process nobody asks how they ended
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        gc.collect()
        gc.freeze()
        while True:
            ready, _, _ = select.select([listening, sys.stdin], [], [])
            if sys.stdin in ready:
                return
            connection, _ = listening.accept()
            if not os.fork():
                listening.close()
                _attend(connection)
            connection.close()


def _import_everything() -> None:
    from threadline.app import open_engine
    from threadline.surfaces.cli.program import COMMANDS, HERE

    for module, *_ in COMMANDS.values():
        import_module(f"{HERE}.{module}")
    for name in ("threadline.surfaces.http.server.application", "duckdb", "uvicorn", "uvloop"):
        import_module(name)
    open_engine("memory:").close()  # what it imports only then is imported now


def _attend(connection: socket.socket) -> NoReturn:
    """Start a process, tell its number and its end, and kill it once nobody waits for it any more."""
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    start = _read(connection)
    process = os.fork()
    if not process:
        signal.set_wakeup_fd(-1)
        for each in (woken, wake, connection.detach()):
            os.close(each)
        _become(start)
    for each in start.files:
        os.close(each)
    with suppress(BrokenPipeError):
        connection.sendall(b"%d\n" % process)
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            with suppress(BrokenPipeError):
                connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
            os._exit(0)
        ready, _, _ = select.select([woken, connection], [], [])
        if connection in ready:
            os.kill(process, signal.SIGKILL)
            os._exit(0)
        os.read(woken, 64)


def _read(connection: socket.socket) -> Start:
    head, files, _, _ = socket.recv_fds(connection, 8, 3)
    length, content = int.from_bytes(head, "big"), b""
    while len(content) < length:
        more = connection.recv(length - len(content))
        if not more:
            os._exit(1)
        content += more
    folder, umask, ignored, count, *rest = content.split(b"\0")
    arguments, variables = rest[: int(count)], rest[int(count) :]
    environment = dict(each.split(b"=", 1) for each in variables)
    numbers = [int(each) for each in ignored.split(b",") if each]
    return Start(folder, int(umask), numbers, [os.fsdecode(each) for each in arguments], environment, files)


def _become(start: Start) -> NoReturn:
    """Be the process that was asked for, from its first line to its end."""
    for target, file in enumerate(start.files):
        os.dup2(file, target)
        os.close(file)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in FORWARDED:
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if number in start.ignored else usual)
    os.chdir(start.folder)
    os.umask(start.umask)
    os.environb.clear()
    os.environb.update(start.environment)
    time.tzset()
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = _opened(number, getattr(sys, name))
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    # Drawn when it is imported, and no two processes that ever were have the same.
    import_module("threadline.app")._PROCESS = secrets.token_hex(8)
    os._exit(_run(start.arguments))


def _opened(number: int, like: Any) -> io.TextIOWrapper:
    mode, terminal = ("r" if number == 0 else "w"), os.isatty(number)
    binary: Any = open(number, f"{mode}b", closefd=False)  # noqa: SIM115 - it is open until the end
    at_once = bool(os.environ.get("PYTHONUNBUFFERED"))
    lines = number == 2 or terminal
    return io.TextIOWrapper(binary, like.encoding, like.errors, line_buffering=lines, write_through=at_once)


def _run(arguments: list[str]) -> int:
    kind, what, *rest = arguments
    given = os.environ.get("PYTHONPATH", "")
    own = [str(ROOT / "src"), str(ROOT)]
    sys.path[:] = ["" if kind == "-c" else os.getcwd(), *filter(None, given.split(os.pathsep))] + [
        each for each in sys.path if each not in own and each
    ]
    sys.argv[:] = [kind, *rest]
    code: Any = 0
    try:
        if kind == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            sys.modules["__main__"] = module = ModuleType("__main__")
            exec(compile(what, "<string>", "exec", dont_inherit=True), vars(module))
    except SystemExit as end:
        code = end.code
    except BaseException as error:  # noqa: BLE001 - as Python itself: it is shown, and the process ends
        sys.excepthook(type(error), error, error.__traceback__)
        code = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    if code is not None and not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    if code == -signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return (code or 0) & 0xFF


if __name__ == "__main__":
    serve(sys.argv[1])
