"""Simulates seed after seed: ``python -m tests.simulator --seconds 28800``, or one: ``--seed 17``."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import time
import traceback
from collections import Counter

from tests.simulator.faults import KINDS
from tests.simulator.simulation import ACTIONS, Result, run

HASHING = "PYTHONHASHSEED"
TWICE_EVERY = 20
"""One seed in so many is run a second time, to see that it does the same."""


def simulated(seed: int, actions: int, without: list[str]) -> Result:
    """The result of a seed; what broke in the engine is a problem like others."""
    try:
        return run(seed, actions, without)
    except Exception:  # noqa: BLE001 — the next seed has to be tried as well
        return Result(0, 0, 0, {}, [traceback.format_exc()], "")


def say(text: str) -> None:
    """Print at once, also where it goes into a file."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def shrunk(seed: int, actions: int, without: list[str]) -> tuple[int, list[str]]:
    """Fewer actions and fewer kinds of faults with which the seed fails as well."""
    for kind in KINDS:
        if kind not in without and simulated(seed, actions, [*without, kind]).problems:
            without = [*without, kind]
    step = actions // 2
    while step:
        if actions > step and simulated(seed, actions - step, without).problems:
            actions -= step
        else:
            step //= 2
    return actions, without


def repeating(seed: int, actions: int, without: list[str]) -> str:
    """What repeats it."""
    left_out = [f"--without {kind!r}" if " " in kind else f"--without {kind}" for kind in without]
    return " ".join([f"python -m tests.simulator --seed {seed} --actions {actions}", *left_out])


def main() -> int:
    """Simulate; 1 if anything is not as promised."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, default=None, help="the only one, or with --seconds the first")
    options.add_argument("--seconds", type=float, default=None, help="how long; what has begun is finished")
    options.add_argument("--actions", type=int, default=ACTIONS, help="of all processes of one seed together")
    options.add_argument("--without", action="append", default=[], choices=KINDS, help="a kind of fault to leave out")
    options.add_argument("--shrink", action="store_true", help="look for less with which a seed fails as well")
    given = options.parse_args()
    if os.environ.get(HASHING) != "0":
        # The order of sets belongs to the seed as well.
        os.execve(
            sys.executable, [sys.executable, "-m", "tests.simulator", *sys.argv[1:]], {**os.environ, HASHING: "0"}
        )
    alone = given.seed is not None and given.seconds is None
    seed = secrets.randbelow(2**32) if given.seed is None else given.seed
    begun, failed, done = time.monotonic(), 0, 0
    sums: Counter[str] = Counter()
    while done == 0 or (not alone and time.monotonic() - begun < (60 if given.seconds is None else given.seconds)):
        result = simulated(seed, given.actions, given.without)
        if alone or done % TWICE_EVERY == 0:
            again = simulated(seed, given.actions, given.without)
            if again.trace != result.trace:
                result.problems.append("a second run of the seed does something else")
        done += 1
        sums.update(result.faults, events=result.events, recorded=result.recorded, crashes=result.crashes)
        if result.problems:
            failed += 1
            actions, without = (
                shrunk(seed, given.actions, given.without) if given.shrink else (given.actions, given.without)
            )
            say(f"seed {seed} failed; to repeat: {repeating(seed, actions, without)}")
            for problem in result.problems[:5]:
                say(f"  {problem[-1_500:]}")
        seed += 1
    seconds = time.monotonic() - begun
    told = ", ".join(f"{count} {name}" for name, count in sums.most_common())
    if alone:
        say(f"trace {result.trace}")
    say(f"{done} seeds in {seconds:.0f} s, {failed} failed: {told}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
