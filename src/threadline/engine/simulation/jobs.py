"""What-ifs that run beside everything else: started, watched, stopped, resumed. They end with their process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.simulation.run import run, simulation
from threadline.kernel.errors import Conflict, NotFound, TooManyRequests
from threadline.kernel.simulation import Ending, JobState, Pages, RecordedDecision, Tally, VariantSpec
from threadline.kernel.store import Key, Store

RUNNING_MAX = 1
"""At a time: a what-if takes a whole core, and there are others who want to get on."""
JOBS_MAX = 20
"""What-ifs that are remembered after they have ended."""


class Job:
    """One what-if: how far it has come, and what is needed to go on."""

    def __init__(
        self, id: str, workspace: str, subject: Any, pages: Pages,
        finish: Callable[[], None], events_in_all: int | None,
    ) -> None:  # fmt: skip
        self.id = id
        self.workspace = workspace
        self.subject = subject
        """Whatever the one who started it wants to find here again."""
        self.state: JobState = "running"
        self.people = 0
        self.events = 0
        self.events_in_all = events_in_all
        """Of the whole store, where it can tell; for a bar."""
        self.problem = ""
        self._pages = pages
        self._finish = finish
        self._after: Key | None = None
        self._stopping = threading.Event()
        self._ended = threading.Event()

    def work(self) -> None:
        """Run until it is done or stopped."""
        try:
            state: JobState = "cancelled"
            for done in self._pages(self._after):
                self._after = done.after
                self.people += done.people
                self.events += done.events
                if done.after is None:
                    self._finish()
                    state = "done"
                elif self._stopping.is_set():
                    break
        except Exception as error:  # noqa: BLE001 — no caller waits for this thread: the job shows what went wrong
            self.problem, state = f"{type(error).__name__}: {error}", "failed"
        self.state = state
        self._ended.set()

    def begin(self) -> None:
        """Work in a thread of its own."""
        self.state = "running"
        self._stopping.clear()
        self._ended.clear()
        threading.Thread(target=self.work, name=f"threadline-what-if-{self.id}", daemon=True).start()

    def stop(self) -> None:
        """Have it stop after the page it is at."""
        self._stopping.set()

    def wait_for_end(self) -> None:
        """Wait until it has stopped or is done."""
        self._ended.wait()


class Simulations:
    """The what-ifs of one engine. They only read its store."""

    def __init__(self, store: Store, catalogue: Catalogue) -> None:
        self._store = store
        self._catalogue = catalogue
        self.activation_changed_max: float | None = None
        """The largest share of decisions that may change when a version of a rule is activated, 0 to 1, by a saved
        what-if; None: no what-if is required."""
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}

    def take_over(self, other: Simulations) -> None:
        """Share the what-ifs of an engine on the same store, those that run as well."""
        self._lock, self._jobs = other._lock, other._jobs

    def replay(
        self, workspace: str, old: VariantSpec, new: VariantSpec, start: int, stop: int, tally: Tally, *,
        people: Sequence[str] | None = None, endings: tuple[Ending, Ending] | None = None,
        recorded_decision: RecordedDecision | None = None,
    ) -> Pages:  # fmt: skip
        """Replay everybody's history, or that of ``people`` by id, in two variants, from a key on."""
        tried = simulation(old, new, start, stop, tally, endings=endings, recorded_decision=recorded_decision)
        return lambda after: run(self._store, self._catalogue, workspace, tried, after=after, people=people)

    def run(
        self, id: str, workspace: str, subject: Any, pages: Pages, finish: Callable[[], None], *, wait: bool
    ) -> Job:
        """Run a what-if under an id, and ``finish`` in the end; with ``wait`` come back when it has ended.

        The one of this id that runs already is answered in its place. Raises `TooManyRequests` while another one runs.
        """
        running = Job(id, workspace, subject, pages, finish, self._store.stats().get("log_entries"))
        begun = self._begun(running)
        if begun is running and wait:
            running.work()
        elif begun is running:
            running.begin()
        elif wait:
            begun.wait_for_end()
        return begun

    def _begun(self, running: Job) -> Job:
        """The job of this id that runs already, or else this one, which runs from now on."""
        with self._lock:
            known = self._jobs.get(running.id)
            if known is not None and known.state == "running":
                return known
            self._refuse_second()
            self._jobs[running.id] = running
            while len(self._jobs) > JOBS_MAX:
                del self._jobs[next(id for id in self._jobs if self._jobs[id].state != "running")]
        return running

    def resume(self, workspace: str, id: str) -> Job:
        """Go on with one that was stopped. Raises `Conflict` for one that has ended otherwise."""
        running = self.find(workspace, id)
        with self._lock:
            if running.state == "running":
                return running
            if running.state != "cancelled":
                raise Conflict(f"what-if {id} is {running.state}; only one that was cancelled goes on")
            self._refuse_second()
            running.begin()
        return running

    def _refuse_second(self) -> None:
        others = [each.id for each in self._jobs.values() if each.state == "running"]
        if len(others) >= RUNNING_MAX:
            raise TooManyRequests(f"what-if {others[0]} is still running", hint="Wait for it, or cancel it.")

    def find(self, workspace: str, id: str) -> Job:
        """One of this workspace. Raises `NotFound`."""
        found = self._jobs.get(id)
        if found is None or found.workspace != workspace:
            raise NotFound(f"no what-if {id[:64]!r} runs or ran in this process")
        return found

    def of(self, workspace: str) -> list[Job]:
        """All of a workspace, the newest first."""
        return [each for each in reversed(list(self._jobs.values())) if each.workspace == workspace]

    def stop_all(self) -> None:
        """Have every one stop after the page it is at."""
        for each in list(self._jobs.values()):
            each.stop()
