"""Confined work in one warm process: a library that hangs, or takes this process's memory with it, ends alone there."""

from __future__ import annotations

import pickle
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from subprocess import Popen, TimeoutExpired
from typing import Any, NamedTuple, TypeVar

import msgspec

from threadline.engine.child_process import start_module
from threadline.engine.confined_worker import EXCEEDED, FAILED, TOO_DEEP, TOO_MUCH
from threadline.kernel.confined import Exceeded
from threadline.kernel.errors import Unavailable
from threadline.kernel.limits import CONFINED_CPU_SECONDS_MAX, CONFINED_MEMORY_BYTES_MAX

T = TypeVar("T")

WORKER = "threadline.engine.confined_worker"
START_SECONDS_MAX = 60.0
SILENT_SECONDS_MAX = 60.0
"""By the clock, for one that waits instead of computing."""
LOCK_SECONDS_MAX = 20.0
"""How long somebody waits for the work of others."""

_decoder = msgspec.msgpack.Decoder(list[tuple[int, Any]])


class _Running(NamedTuple):
    process: Popen[bytes]
    answers: Connection


class ConfinedProcess:
    """See `Confined`. Thread-safe: one after the other.

    The process begins with the first work, ends when it has none for a while, and with this one. What does not come
    back is done once more by itself, in a process that is new if need be: an innocent neighbour may have been to blame,
    or whoever ended the process.
    """

    def __init__(
        self, cpu_seconds: float = CONFINED_CPU_SECONDS_MAX, memory_bytes: int = CONFINED_MEMORY_BYTES_MAX
    ) -> None:
        self._arguments = (str(cpu_seconds), str(memory_bytes))
        self._why = {
            -signal.SIGPROF: f"it took more than {cpu_seconds:g} seconds of processor time",
            -signal.SIGABRT: f"{TOO_MUCH}, {memory_bytes >> 20} MB, or a library gave up",
            -signal.SIGSEGV: f"{TOO_DEEP} for a library, whose process died of it",
            -signal.SIGBUS: f"{TOO_DEEP} for a library, whose process died of it",
            -signal.SIGKILL: f"no answer came for {SILENT_SECONDS_MAX:g} seconds, or the system had no memory left",
        }
        self._lock = threading.Lock()
        self._running: _Running | None = None
        self._closings = 0

    def run(self, work: Callable[[T], Any], inputs: Sequence[T]) -> Sequence[Any]:
        """See `Confined`."""
        closings = self._closings
        results, _ = self._tried(work, inputs, closings)
        while len(results) < len(inputs):
            alone, why = self._tried(work, [inputs[len(results)]], closings)
            results += alone or [Exceeded(why)]
        return results

    def close(self) -> None:
        """See `Confined`."""
        self._closings += 1
        if (running := self._running) is not None:
            running.process.kill()
            with self._lock:  # whoever waits for it sees at once that it is gone
                self._ended()

    def _tried(self, work: Callable[[T], Any], inputs: Sequence[T], closings: int) -> tuple[list[Any], str]:
        """The results up to the first that did not come back, and why not."""
        if not self._lock.acquire(timeout=LOCK_SECONDS_MAX):
            raise Unavailable("what others have asked for takes long", hint="Ask again in a minute.")
        try:
            results: list[Any] = []
            asked = pickle.dumps((work, inputs))
            if inputs and not self._sent(asked, closings):
                self._sent(asked, closings)  # it had ended for want of work
            while len(results) < len(inputs):
                if (answers := self._received(SILENT_SECONDS_MAX)) is None:
                    why = self._ended()
                    _refuse_closed(self._closings != closings)
                    return results, why
                results += map(_result, answers)
            return results, ""
        except BaseException:  # its answer would be taken for that of the next work
            self._ended()
            raise
        finally:
            self._lock.release()

    def _sent(self, asked: bytes, closings: int) -> bool:
        """Whether a process has it; there may be none any more."""
        is_new = self._running is None
        if self._running is None:
            self._running = self._started()
        _refuse_closed(self._closings != closings)
        try:
            # One that ended for want of work has closed its end; what was sent just before is lost with it.
            if is_new or not self._running.answers.poll(0):
                self._running.answers.send_bytes(asked)
                return True
        except OSError:
            pass
        self._ended()
        return False

    def _started(self) -> _Running:
        try:
            running = _Running(*start_module(WORKER, *self._arguments))
        except OSError as error:
            raise Unavailable(f"the process for confined work cannot be started: {error}") from error
        self._running = running
        if self._received(START_SECONDS_MAX) is None:
            raise Unavailable(
                f"the process for confined work does not start: it ended with {running.process.poll()}",
                hint="The server's log says why.",
            )
        return running

    def _received(self, seconds: float) -> list[tuple[int, Any]] | None:
        """What the process sends next; None where it sends nothing any more."""
        assert self._running is not None, "it was started"
        with suppress(EOFError, OSError):
            if self._running.answers.poll(seconds):
                return _decoder.decode(self._running.answers.recv_bytes())
        return None

    def _ended(self) -> str:
        """End the process, and say why it has ended."""
        if self._running is None:
            return ""
        (process, answers), self._running = self._running, None
        answers.close()
        if process.poll() is None:
            try:
                process.wait(0.5)  # it may be about to end: how it does says why
            except TimeoutExpired:
                process.kill()
        code = process.wait()
        return self._why.get(code, f"its process ended with {code}")


def _refuse_closed(is_closed: bool) -> None:
    if is_closed:
        raise Unavailable("this process is being stopped")


def _result(answer: tuple[int, Any]) -> Any:
    kind, value = answer
    if kind == FAILED:
        raise RuntimeError(f"confined work failed in its process:\n{value}")
    return Exceeded(value) if kind == EXCEEDED else value
