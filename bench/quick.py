"""A minute's comparison with the commit that `bench/trees.py` names: ``python -m bench.quick [--seconds N]``."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.contest import Entrant, Phase, contest
from bench.stage import THREADLINE, live_world
from bench.trees import COMMIT, OURS, peer

EVENTS_MAX = 60_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Both sides turn by turn, SQLite synced; prints a line for each case."""
    options = _parser().parse_args(arguments)
    other = peer()
    if other is None:
        print(f"{COMMIT} is not in the history of this clone: only this tree is measured")
    world = live_world(options.seed, options.events, options.people)
    cases = [(batch, mixed) for mixed in (False, True) for batch in (100, 1_000)]
    phases = [
        Phase(batch, options.seconds, options.events + number * EVENTS_MAX, EVENTS_MAX, mixed=mixed)
        for number, (batch, mixed) in enumerate(cases)
    ]
    with tempfile.TemporaryDirectory(prefix="threadline-quick-", dir=options.folder) as folder:
        trees = [OURS] if other is None else [OURS, other]
        entrants = [
            Entrant(tree.name, THREADLINE, Path(folder) / f"{tree.name}.db", options.events, tree=tree)
            for tree in trees
        ]
        print(f"warming with {options.events:,} events …", flush=True)
        scores = contest(world, entrants, phases)
    print(f"{'':22}{'CPU µs an event':>26}{'events/s':>28}")
    print(f"{'':22}{'ours':>9}{COMMIT:>9}{'ratio':>8}{'ours':>12}{COMMIT:>9}{'ratio':>7}")
    for (batch, mixed), by_tree in zip(cases, scores, strict=True):
        ours, theirs = by_tree["ours"], by_tree[trees[-1].name]
        cpu, rate = ours.cpu_us / theirs.cpu_us, ours.rate / theirs.rate
        what = f"{batch:>5,} a batch, {'mixed' if mixed else 'plain':<6}"
        print(
            f"{what}{ours.cpu_us:>9.0f}{theirs.cpu_us:>9.0f}{cpu:>8.2f}{ours.rate:>12,.0f}{theirs.rate:>9,.0f}{rate:>7.2f}"
        )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.quick", description="Compare this tree with an earlier commit.")
    parser.add_argument("--events", type=int, default=100_000, help="events in the file before the clock starts")
    parser.add_argument("--people", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=3, help="turns of about a second that each side has in a case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=None, help="where the files are made; use a real disk")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
