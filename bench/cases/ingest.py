"""Ingest in process: Threadline with all that ships switched on, beside the peers, turn by turn."""

from __future__ import annotations

from bench.contest import Entrant, Phase, Score, contest
from bench.row import Goal, Row
from bench.stage import THREADLINE, Stage

HANDWRITTEN = "bench.peers.handwritten:Handwritten"
CACHED = "bench.peers.eventsourcing_peer:EventsourcingCached"
DOCUMENTED = "bench.peers.eventsourcing_peer:EventsourcingDocumented"
SNAPSHOTTED = "bench.peers.eventsourcing_peer:EventsourcingSnapshotted"
SQLALCHEMY = "bench.peers.sqlalchemy_peer:SqlAlchemySelectThenAdd"

EVENTS_MAX = 100_000
"""Events that one phase may use up at most."""
WARMING = 4
"""Turns of each side before those that count."""

# The documented forms start on an empty file, which flatters them: on the full one each event would first
# replay thousands.
PEERS = (
    ("hand-written sqlite3 append", HANDWRITTEN, True, 0.22, 0.33),
    ("eventsourcing, cached, saved in batches", CACHED, True, 0.85, 1.2),
    ("eventsourcing as documented, empty file", DOCUMENTED, False, 8.0, None),
    ("eventsourcing with snapshots, empty file", SNAPSHOTTED, False, 8.0, None),
    ("SQLAlchemy, select then add", SQLALCHEMY, True, 5.0, None),
)
"""Name, class, whether its file holds the history, and what our share of its rate must be and aims to be."""


def measure(stage: Stage) -> list[Row]:
    """Rows for batches of 100 and of 1,000 against each peer."""
    history, folder = stage.world.history, stage.folder
    entrants = [Entrant("threadline", THREADLINE, stage.file(), history, fill=False)]
    for number, (name, side, filled, _, _) in enumerate(PEERS):
        entrants.append(Entrant(name, side, folder / f"peer-{number}.db", history if filled else 0))
    rounds = max(2, round(stage.seconds))
    phases = [Phase(batch, rounds, stage.claim(EVENTS_MAX), EVENTS_MAX, WARMING) for batch in (100, 1_000)]
    rows = []
    for phase, scores in zip(phases, contest(stage.world, entrants, phases), strict=True):
        rows += _rows(phase.batch, scores)
    return rows


def _rows(batch: int, scores: dict[str, Score]) -> list[Row]:
    ours = scores["threadline"]
    alone = Goal("ours", least=10_000 if batch == 100 else 20_000)
    rows = [Row(f"ingest, batches of {batch:,}", ours.rate, "events/s", goal=alone, note=_note(ours))]
    for name, _, _, least, aimed in PEERS:
        theirs = scores[name]
        goal = Goal("ratio", least=least) if batch == 100 else None
        aim = Goal("ratio", least=aimed) if batch == 100 and aimed else None
        rows.append(Row(f"against {name}, {batch:,}", ours.rate, "events/s", theirs.rate, goal, _note(theirs), aim))
    return rows


def _note(score: Score) -> str:
    note = f"turns {score.slowest_turn:,.0f}–{score.fastest_turn:,.0f}, {score.rss_bytes / 1e6:,.0f} MB"
    if score.idle_cpu_seconds > 0.02 * score.seconds:
        note += f", {score.idle_cpu_seconds:.1f} s of CPU beside its {score.seconds:.1f} s of turns"
    return note
