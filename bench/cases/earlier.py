"""Ingest in process beside an earlier commit of our own, turn by turn: rates, and CPU, which drifts less than rates."""

from __future__ import annotations

from bench.contest import FILL_BATCH, Entrant, Phase, contest
from bench.row import Goal, Row, compared
from bench.stage import THREADLINE, Stage

EVENTS_MAX = 100_000
"""Events that one phase may use up at most."""
WARMING = 4
"""Turns of each side before those that count."""
CASES = ((100, False, 1.6, 2.4), (1_000, False, 1.6, 2.4), (100, True, 1.4, 2.0), (1_000, True, None, None))
"""Size of a batch, whether events are mixed, and what our rate must be and aims to be, by theirs."""
MIXED = "10 % late, 5 % new identifiers, 5 % duplicates"


def measure(stage: Stage) -> list[Row]:
    """Rows for batches of 100 and of 1,000, of plain and of mixed events."""
    history = stage.world.history
    entrants = [
        Entrant(tree.name, THREADLINE, stage.file(tree), history, fill=False, tree=tree) for tree in stage.trees
    ]
    rounds = max(2, round(2 * stage.seconds))
    phases = [Phase(batch, rounds, stage.claim(EVENTS_MAX), EVENTS_MAX, WARMING, mixed) for batch, mixed, _, _ in CASES]
    note = f"{history:,} events from the first to the last, alone on the machine"
    rows = [compared(f"fill an empty file, batches of {FILL_BATCH:,}", stage.fill_rates, "events/s", note=note)]
    scores = contest(stage.world, entrants, phases)
    for (batch, mixed, least, aimed), by_tree in zip(CASES, scores, strict=True):
        what = f"batches of {batch:,}" + f", {MIXED}" * mixed
        goal, aim = (None if bound is None else Goal("ratio", least=bound) for bound in (least, aimed))
        rates = {name: score.rate for name, score in by_tree.items()}
        note = "; ".join(f"turns {score.slowest_turn:,.0f}–{score.fastest_turn:,.0f}" for score in by_tree.values())
        rows.append(compared(f"ingest beside the earlier commit, {what}", rates, "events/s", goal, aim, note))
    for (batch, mixed, _, _), by_tree in zip(CASES, scores, strict=True):
        what = f"batches of {batch:,}" + f", {MIXED}" * mixed
        note = "user and system; of it between turns " + ", ".join(
            f"{score.idle_cpu_seconds / score.events * 1e6:.0f}" for score in by_tree.values()
        )
        spent = {name: score.cpu_us for name, score in by_tree.items()}
        rows.append(compared(f"CPU of an event, {what}", spent, "µs", note=note))
    return rows
