"""The simulator: every seed keeps every promise and repeats itself; an engine that is broken is found out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulator.broken import WAYS
from tests.simulator.simulation import run

ROOT = Path(__file__).parents[2]
SEEDS_MAX = 20
PARTS = 4
"""So that several workers share the time."""
SECONDS = float(os.environ.get("THREADLINE_TEST_SIMULATOR_SECONDS", "10"))


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, in which the order of sets belongs to the seed as well."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "PYTHONHASHSEED": "0"}
    return subprocess.run(
        [sys.executable, "-m", "tests.simulator", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_seed_keeps_every_promise(part: int, seed: int) -> None:
    done = simulate(f"--seed={seed * PARTS * 10_000 + part * 10_000}", f"--seconds={SECONDS / PARTS}")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_an_engine_that_is_broken_is_found_out(way: str) -> None:
    with WAYS[way]():
        assert any(run(number).problems for number in range(SEEDS_MAX))
