"""What the cases of one run share: a world, a folder and one file that holds its history."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from bench import trees
from bench.contest import FILL_BATCH, Entrant, Tape, in_child, open_side
from bench.side import file_bytes
from bench.trees import OURS, Tree
from threadline.kernel.time import DAY, MINUTE
from threadline.testing.world import World

THREADLINE = "bench.threadline_side:Threadline"
HISTORY_DAYS = 90
ENDED_AGO = 20 * MINUTE


def live_world(seed: int, history: int, people: int, late: float = 0.0) -> World:
    """A world whose history ended a short while ago, so that windows and timers are what they are in service.

    What is live has a clock of its own and comes faster than in service. It must not lie ahead when somebody is read,
    or they would be folded anew for the instant, nor an hour back, or the edge of a window would be full of it.
    """
    now = time.time_ns() // 1_000
    return World(
        seed,
        people=people,
        history=history,
        days=HISTORY_DAYS,
        late=late,
        starts_at=now - HISTORY_DAYS * DAY - ENDED_AGO,
    )


@dataclass
class Stage:
    """Where the cases play. Each case claims the stretch of live events that it will use, so none is used twice."""

    world: World
    folder: Path
    seconds: float
    """How long one measured stretch lasts, roughly."""
    claimed: int = 0
    """Events beyond the history that are taken."""
    fill_rates: dict[str, float] = field(default_factory=dict)
    """Events per second while a tree's file was filled, in batches of `FILL_BATCH`."""
    filled_bytes: int = 0
    peer: Tree | None = field(default_factory=trees.peer)
    """The earlier commit; None if this clone's history does not reach it."""
    _files: dict[str, Path] = field(default_factory=dict, repr=False)

    @property
    def trees(self) -> list[Tree]:
        """Ours, and that of the earlier commit if there is one."""
        return [OURS] if self.peer is None else [OURS, self.peer]

    def claim(self, count: int) -> int:
        """Reserve live events; answers the position of the first."""
        start = self.world.history + self.claimed
        self.claimed += count
        return start

    def file(self, tree: Tree = OURS) -> Path:
        """A tree's file with the whole history in it, made once. One process may have it open at a time."""
        if tree.name not in self._files:
            path = self.folder / f"{tree.name}.db"
            print(f"  filling {path.name} with {self.world.history:,} events …", flush=True)
            seconds = in_child(_fill, self.world, path, tree=tree)
            self.fill_rates[tree.name] = self.world.history / seconds
            if tree is OURS:
                self.filled_bytes = file_bytes(path)
            self._files[tree.name] = path
        return self._files[tree.name]


def _fill(world: World, path: Path) -> float:
    side = open_side(Entrant("threadline", THREADLINE, path, 0))
    started_at = time.perf_counter()
    side.fill(Tape(world).batches(world.history, FILL_BATCH))
    seconds = time.perf_counter() - started_at
    side.close()
    return seconds
