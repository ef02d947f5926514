"""Analytics in a process of their own, so that requests pay for no question.

One thread at a time has Python's interpreter, and whoever reads much asks for it at every row. In the process of a busy
server a question of one second took two minutes, and everybody else waited with it.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, NamedTuple, NoReturn

from threadline.engine.child_process import start
from threadline.engine.engine import Engine
from threadline.exports.catching_up import CatchUpWorker, KeepsUp
from threadline.kernel.analytics import AnalyticsPort, Table
from threadline.kernel.errors import ThreadlineError, Unavailable
from threadline.kernel.search import IndexProgress

KEEP_UP_SECONDS = 1.0
"""Between two looks whether the columns have to be brought up to date."""
END_SECONDS_MAX = 10.0
IDLE_SECONDS = 600.0
"""Without a question after which the process ends: it has the interpreter, the engine and DuckDB in memory, 234 MB."""
LEFT_EVENTS_MAX = 50_000
"""Entries of the log from which on it comes back to keep the columns up, or the next question would wait for them."""
NICE = 10
"""Requests go first where there are fewer cores than work."""

log = logging.getLogger("threadline.exports")


class _Refused(NamedTuple):
    """An error as the process sends it: those with a constructor of their own cannot be pickled."""

    kind: type[ThreadlineError]
    message: str
    details: Mapping[str, Any]

    def error(self) -> ThreadlineError:
        """The error."""
        error = self.kind.__new__(self.kind, self.message)
        error.__dict__.update(self.details)
        return error


class _Failed(NamedTuple):
    """A fault of ours."""

    traceback: str


class LogEnd(NamedTuple):
    """How far the store has come."""

    position: int
    """Entries of the log; 0: not known."""
    erased: str
    """The mark up to which events are erased."""


class AnsweringProcess:
    """The analytics of a server: see `Answering`. Thread-safe: one question at a time.

    The process begins with the first question, or with the server where columns are there to be kept up. It opens the
    store for reading, and ends with this process, or when nobody has asked for `IDLE_SECONDS`. It comes back with the
    next question, with an erasure, or when the columns lack much.
    """

    def __init__(
        self, opener: Callable[[], Engine], has_columns: Callable[[], bool], log_end: Callable[[str], LogEnd]
    ) -> None:
        self._opener = opener
        """Must be picklable."""
        self._has_columns = has_columns
        self._log_end = log_end
        """The end of the log and of erasures now, from a mark of erasures on."""
        self._asked_at = 0.0
        self._idle: threading.Timer | None = None
        """Ends the process when nobody asks; None: it is not running."""
        self._left: LogEnd | None = None
        """Where the log ended when the process was ended because nobody asked."""
        self._lock = threading.Lock()
        self._running: tuple[BaseProcess, Connection] | None = None
        self._was_started = False
        self._is_closed = False
        self._earlier: threading.Thread | None = None
        """Ends the one whose place this takes."""

    def query(self, workspace: str, sql: str, params: Mapping[str, Any]) -> Table:
        """See `AnalyticsPort.query`. Raises `Unavailable` if the process ends meanwhile."""
        with self._lock:
            questions = self._started()
            try:
                questions.send((workspace, sql, dict(params)))
                answer: Table | _Refused | _Failed = questions.recv()
            except (EOFError, OSError) as error:
                self._end()
                raise Unavailable(
                    "the process that answers questions about everybody has ended",
                    hint="Ask again, for another one is started. If it ends again, the server's log says why.",
                ) from error
            except BaseException:  # its answer would be taken for that of the next question
                self._end()
                raise
            self._asked_at = time.monotonic()
        if isinstance(answer, _Refused):
            raise answer.error()
        if isinstance(answer, _Failed):
            raise RuntimeError(f"a question failed in its process:\n{answer.traceback}")
        return answer

    @property
    def is_begun(self) -> bool:
        """Whether there are columns that a process should keep up and none was started for it, or they lack much."""
        if self._is_closed or self._running is not None:
            return False
        if not self._was_started:
            return self._has_columns()
        left = self._left
        if left is None or not self._has_columns():
            return False
        now = self._log_end(left.erased)
        return now.erased != left.erased or now.position - left.position >= LEFT_EVENTS_MAX

    def catch_up(self, limit: int) -> IndexProgress:
        """Start the process, which keeps the columns up by itself."""
        with self._lock:
            self._started()
        return IndexProgress(0, True)

    def close(self) -> None:
        """End the process, after the question that it answers."""
        with self._lock:
            self._is_closed = True
            self._wait_for_earlier()
            self._end()

    def take_over(self, earlier: AnsweringProcess) -> None:
        """Have another end after the question that it answers, without waiting for that: definitions are put in force
        while somebody asks. This one begins only then, for both would write the same columns."""
        self._earlier = threading.Thread(target=earlier.close, name="threadline-answers-end", daemon=True)
        self._earlier.start()

    def _wait_for_earlier(self) -> None:
        if self._earlier is not None:
            self._earlier.join()
            self._earlier = None

    def _started(self) -> Connection:
        if self._is_closed:
            raise Unavailable("the definitions are being read anew", hint="Ask again in a second.")
        self._wait_for_earlier()
        if self._running is None:
            self._running = start(partial(_answer, self._opener), duplex=True)
            self._was_started = True
            self._end_when_idle(IDLE_SECONDS)
        self._asked_at = time.monotonic()
        return self._running[1]

    def _end_when_idle(self, seconds: float) -> None:
        self._idle = threading.Timer(seconds, self._look_if_idle)
        self._idle.daemon = True
        self._idle.start()

    def _look_if_idle(self) -> None:
        with self._lock:
            if self._running is None or self._idle is not threading.current_thread():
                return
            waiting = self._asked_at + IDLE_SECONDS - time.monotonic()
            if waiting > 0:
                self._end_when_idle(waiting)
                return
            # Before the end: what is recorded meanwhile is not in the columns.
            self._left = self._log_end("" if self._left is None else self._left.erased)
            self._end()

    def _end(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self._running is None:
            return
        (process, questions), self._running = self._running, None
        questions.close()
        process.join(END_SECONDS_MAX)
        if process.is_alive():
            process.kill()
            process.join()


def _answer(opener: Callable[[], Engine], questions: Connection) -> None:
    """The life of the process: until the other end is closed, or gone with its process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it reaches every process of a terminal; the server ends this one
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    os.nice(NICE)
    try:
        with suppress(SystemExit):
            _answer_all(opener().analytics, questions)
    except Exception:
        log.exception("the process that answers questions about everybody ends")
        raise
    # The columns may be written just now, which may end at any instant; a thread in the middle of it would be in the
    # way of an orderly end of the interpreter.
    os._exit(0)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    """Leave no temporary folder behind where a supervisor ends all processes of a server."""
    raise SystemExit


def _answer_all(analytics: AnalyticsPort, questions: Connection) -> None:
    keeping = CatchUpWorker("analytics", analytics) if isinstance(analytics, KeepsUp) else None
    stopping = threading.Event()
    try:
        while True:
            if keeping is not None:
                keeping.start(stopping)
            if questions.poll(KEEP_UP_SECONDS):
                questions.send(_answered(analytics, *questions.recv()))
    except (EOFError, ConnectionError):
        pass  # the server has closed its end, or is gone
    finally:
        stopping.set()
        analytics.close()


def _answered(
    analytics: AnalyticsPort, workspace: str, sql: str, params: Mapping[str, Any]
) -> Table | _Refused | _Failed:
    try:
        return analytics.query(workspace, sql, params)
    except ThreadlineError as error:
        return _Refused(type(error), str(error), dict(error.__dict__))
    except Exception:  # noqa: BLE001 — whatever it is, it is raised where the question was asked
        return _Failed(traceback.format_exc())
