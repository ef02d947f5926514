"""Runs a command of the Makefile, and says first how long it will take: by the last run here, else by a kept figure.

``python -m tests.how_long test COMMAND …``. A run that passes is the next one's figure, in `build/how_long.json`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

SECONDS = {"test": 960.0, "test-fast": 40.0}
"""Target of the Makefile -> how long it took on two cores that did nothing else."""
CORES = 2
TOOK = Path(__file__).parents[1] / "build" / "how_long.json"


def expected(target: str, cores: int, took: Mapping[str, float]) -> str:
    """How long a target will take, in a line."""
    if target in took:
        return f"make {target}: about {words(took[target])}, as the last time here"
    # Tests wait for servers and for each other, so that more cores than six make nothing faster.
    seconds = SECONDS[target] * CORES / min(cores, 3 * CORES)
    return f"make {target}: about {words(seconds)} on {cores} core{'s' if cores > 1 else ''}"


def words(seconds: float) -> str:
    """A length of time as somebody would say it."""
    return f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"


def remembered(file: Path) -> dict[str, float]:
    """What earlier runs took, by target; nothing if the file cannot be read."""
    try:
        took = json.loads(file.read_text())
        return {target: float(took[target]) for target in SECONDS if target in took}
    except (OSError, ValueError, TypeError):
        return {}


def run(target: str, command: Sequence[str], file: Path = TOOK) -> int:
    """Say how long it will take, run it, and remember how long it took if it passed; answers its exit code."""
    sys.stdout.write(f"{expected(target, len(os.sched_getaffinity(0)), remembered(file))}\n")
    sys.stdout.flush()
    began = time.monotonic()
    with subprocess.Popen(command) as process:
        while True:
            try:
                code = process.wait()
                break
            except KeyboardInterrupt:
                # The command has been interrupted as well: it ends by itself, and says what has failed so far.
                continue
    if code == 0:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({**remembered(file), target: round(time.monotonic() - began, 1)}))
    return code


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2:]))
