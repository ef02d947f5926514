"""A contest: sides take turns at the same events in one run, each in a process of its own."""

from __future__ import annotations

import hashlib
import importlib
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import psutil  # type: ignore[import-untyped]  # its stubs are a package of their own

from bench.mixed import Mixed
from bench.side import Side, file_bytes
from bench.trees import OURS, Tree
from threadline.kernel.event import Event
from threadline.testing.world import World

FILL_BATCH = 1_000
TURN_SECONDS = 1.0
CHUNK_EVENTS = 5_000
"""Events made ready at a time, outside the timed part."""


class Entrant(NamedTuple):
    """Who takes part: where the class is (``module:Class``), its file, and from which event of the world on."""

    name: str
    side: str
    path: Path
    filled: int
    """Events that are in the file before the clock starts."""
    fill: bool = True
    """False: the file holds them already."""
    tree: Tree = OURS
    """Whose code of Threadline runs in the process of this side."""


class Phase(NamedTuple):
    """One measured stretch: so many rounds of turns with batches of this size, over [start, start + events)."""

    batch: int
    rounds: int
    start: int
    events: int
    warming: int = 0
    """Rounds before those that count, of sides with a history: who filled the file in the same process is warm already.

    Whoever begins with an empty file has nothing to warm, and slows down by what it holds.
    """
    mixed: bool = False
    """Whether some events are late, bring new identifiers or are duplicates; see `bench.mixed`."""


class Score(NamedTuple):
    """What one side did in one phase. Only `record` is timed."""

    events: int
    seconds: float
    slowest_turn: float
    """Events per second of its slowest turn."""
    fastest_turn: float
    cpu_seconds: float
    """CPU it used in its own turns, user and system."""
    idle_cpu_seconds: float
    """CPU it used while others had their turn: work put off beyond its own clock shows here."""
    rss_bytes: int
    file_bytes: int

    @property
    def rate(self) -> float:
        """Events per second."""
        return self.events / self.seconds

    @property
    def cpu_us(self) -> float:
        """Microseconds of CPU per event, with what was put off beyond its turns."""
        return (self.cpu_seconds + self.idle_cpu_seconds) / self.events * 1e6


def contest(world: World, entrants: Sequence[Entrant], phases: Sequence[Phase]) -> list[dict[str, Score]]:
    """The scores of every side by name, for each phase. Turns alternate, so a slow moment of the machine hits all."""
    context = multiprocessing.get_context("spawn")
    pipes: dict[str, Connection] = {}
    processes = []
    for entrant in entrants:
        ours, theirs = context.Pipe()
        process = context.Process(target=_take_part, args=(theirs, entrant, world), daemon=True)
        with entrant.tree.imported():
            process.start()
        # Our copy of their end must be closed, or the death of a side would leave us waiting for ever.
        theirs.close()
        processes.append(process)
        pipes[entrant.name] = ours
    fingerprints = {pipe.recv() for pipe in pipes.values()}
    assert len(fingerprints) == 1, "the trees make different events of the same world, so nothing can be compared"
    warm = {entrant.name for entrant in entrants if entrant.filled}
    scores = [_play(pipes, phase, warm) for phase in phases]
    for pipe in pipes.values():
        pipe.send(None)
    for process in processes:
        process.join()
    return scores


def _play(pipes: dict[str, Connection], phase: Phase, warm: Set[str]) -> dict[str, Score]:
    for pipe in pipes.values():
        pipe.send(phase)
    for pipe in pipes.values():
        assert pipe.recv() == "ready"
    for number in range(phase.warming + phase.rounds):
        for name, pipe in pipes.items():
            if number >= phase.warming or name in warm:
                pipe.send("turn")
                assert pipe.recv() == "done"
    scores = {}
    for name, pipe in pipes.items():
        pipe.send("score")
        scores[name] = pipe.recv()
    return scores


class Tape:
    """The events of a world, played once from the start, with the position it is at."""

    def __init__(self, world: World) -> None:
        self._told = world.events(1 << 62)
        self._mixed = Mixed()
        self.position = 0

    def skip_to(self, position: int) -> None:
        """Pass over events that others have used."""
        assert position >= self.position, "a tape does not run backwards: stretches must not overlap"
        for _ in islice(self._told, position - self.position):
            pass
        self.position = position
        self._mixed.forget()

    def batches(self, count: int, size: int, *, mixed: bool = False) -> Iterator[list[Event]]:
        """The next ``count`` events in batches."""
        part = islice(self._told, count)
        if mixed:
            part = map(self._mixed, part)
        while batch := list(islice(part, size)):
            self.position += len(batch)
            yield batch


def _take_part(pipe: Connection, entrant: Entrant, world: World) -> None:
    """The life of one side: fill, then phases of turns until told to stop."""
    entrant.tree.check()
    side, tape = open_side(entrant), Tape(world)
    if entrant.fill:
        side.fill(tape.batches(entrant.filled, FILL_BATCH))
    pipe.send(_fingerprint(world))
    while (phase := pipe.recv()) is not None:
        tape.skip_to(phase.start)
        _play_phase(pipe, side, entrant, tape, phase)
    side.close()


def _fingerprint(world: World) -> str:
    events = [
        (event.type, [str(identifier) for identifier in event.identifiers], event.occurred_at, event.key)
        for event in world.events(1_000)
    ]
    return hashlib.sha256(repr(events).encode()).hexdigest()


def open_side(entrant: Entrant) -> Side:
    """The side's class, opened on its file."""
    module, _, name = entrant.side.partition(":")
    side: Side = getattr(importlib.import_module(module), name)(entrant.path)
    return side


class Timed(NamedTuple):
    """What one turn recorded, and the time that it took."""

    batches: list[list[Event]]
    seconds: float
    cpu_seconds: float

    @property
    def events(self) -> int:
        """Events handed over, duplicates included."""
        return sum(map(len, self.batches))


def _play_phase(pipe: Connection, side: Side, entrant: Entrant, tape: Tape, phase: Phase) -> None:
    """Take turns until the score is asked for, and check that everything recorded is there, and there once."""
    counted: list[tuple[int, float, float]] = []
    idle_cpu: list[float] = []
    before, keys, last = side.count(), set[str](), list[Event]()
    warming = phase.warming if entrant.filled else 0
    pipe.send("ready")
    rested_at = time.process_time()
    while (message := pipe.recv()) == "turn":
        idle_cpu.append(time.process_time() - rested_at)
        timed = _turn(side, tape, phase, phase.events // (warming + phase.rounds))
        counted.append((timed.events, timed.seconds, timed.cpu_seconds))
        last = timed.batches[-1]
        # A late duplicate may be of an event that another turn recorded, so every key of the phase is remembered.
        keys.update(event.key for batch in timed.batches for event in batch)
        rested_at = time.process_time()
        pipe.send("done")
    assert message == "score"
    side.record(last)
    recorded = side.count() - before
    assert recorded == len(keys), f"{entrant.name} has {recorded} of {len(keys)} events"
    rates = [events / seconds for events, seconds, _ in counted[warming:]]
    events, seconds, cpu_seconds = (sum(column) for column in zip(*counted[warming:], strict=True))
    rss = psutil.Process().memory_info().rss
    idle = sum(idle_cpu[warming:])
    size = file_bytes(entrant.path)
    pipe.send(Score(int(events), seconds, min(rates), max(rates), cpu_seconds, idle, rss, size))


def _turn(side: Side, tape: Tape, phase: Phase, events: int) -> Timed:
    """Record for about `TURN_SECONDS` or until these events are used up."""
    stop, done, seconds, cpu_seconds = tape.position + events, list[list[Event]](), 0.0, 0.0
    while tape.position < stop and seconds < TURN_SECONDS:
        size = min(max(CHUNK_EVENTS, phase.batch), stop - tape.position)
        chunk = list(tape.batches(size, phase.batch, mixed=phase.mixed))
        started_at, cpu_at = time.perf_counter(), time.process_time()
        for part in chunk:
            side.record(part)
            done.append(part)
            # A slow side must not spend minutes on a chunk that a fast one finishes in a blink.
            if time.perf_counter() - started_at > TURN_SECONDS:
                break
        seconds += time.perf_counter() - started_at
        cpu_seconds += time.process_time() - cpu_at
    return Timed(done, seconds, cpu_seconds)


class Part(NamedTuple):
    """What one process does: a generator function that measures a stretch each time it is asked for the next value.

    What it does before its first ``yield``, whose value is dropped, is its preparation.
    """

    stretches: Callable[..., Iterator[Any]]
    arguments: tuple[Any, ...]
    tree: Tree = OURS


def in_turns(parts: Mapping[str, Part], rounds: int) -> dict[str, list[Any]]:
    """The stretches of each part by name, one process each. They alternate, as the sides of a contest do."""
    context = multiprocessing.get_context("spawn")
    pipes: dict[str, Connection] = {}
    for name, part in parts.items():
        ours, theirs = context.Pipe()
        with part.tree.imported():
            context.Process(target=_measure_when_asked, args=(theirs, part), daemon=True).start()
        theirs.close()
        pipes[name] = ours
    for pipe in pipes.values():
        assert pipe.recv() is None
    results: dict[str, list[Any]] = {name: [] for name in parts}
    for _ in range(rounds):
        for name, pipe in pipes.items():
            pipe.send(True)
            results[name].append(pipe.recv())
    for pipe in pipes.values():
        pipe.send(False)
        with suppress(EOFError):
            pipe.recv()  # it has closed its files
    return results


def _measure_when_asked(pipe: Connection, part: Part) -> None:
    part.tree.check()
    stretches = part.stretches(*part.arguments)
    pipe.send(next(stretches))
    while pipe.recv():
        pipe.send(next(stretches))
    stretches.close()  # type: ignore[attr-defined]


def in_child(function: Any, *arguments: Any, tree: Tree = OURS) -> Any:
    """Run a function in a fresh process and answer what it returns: its memory is its own.

    Not in one of `multiprocessing.Pool`, which may have no children of its own: a refold on several cores has.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        with tree.imported():
            running = pool.submit(_checked, tree, function, arguments)
        return running.result()


def _checked(tree: Tree, function: Any, arguments: tuple[Any, ...]) -> Any:
    tree.check()
    return function(*arguments)
