"""Runs `make test-fast`: all of the pure rooms and the engine that takes little, and the laws of a store on memory.

A file that takes much of the time for few tests is left out, by name: one that is new runs until somebody has seen what
it costs. Two examples are tried of each property. On two cores that do nothing else it takes under a minute.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUN = (
    "tests/capabilities",
    "tests/engine",
    "tests/kernel",
    "tests/laws",
    "tests/stores/test_memory.py",
    "tests/testing",
    "tests/wire",
)
LEFT_OUT = {
    "the analyses, each in DuckDB": (
        "capabilities/test_analytics_attribution.py",
        "capabilities/test_analytics_distribution.py",
        "capabilities/test_analytics_experiment.py",
        "capabilities/test_analytics_funnel.py",
        "capabilities/test_analytics_journey.py",
        "capabilities/test_analytics_lifetime.py",
        "capabilities/test_analytics_retention.py",
        "capabilities/test_analytics_rfm.py",
        "capabilities/test_analytics_sessions.py",
        "laws/test_opens_and_clicks.py",
        "laws/test_unread_values.py",
    ),
    "what reads the whole source or asks everything there is": (
        "capabilities/test_conditions_matrix.py",
        "capabilities/test_definitions_extras.py",
        "kernel/test_typed.py",
        "laws/test_addresses.py",
        "laws/test_capabilities.py",
        "laws/test_copies.py",
        "laws/test_half_filled.py",
        "laws/test_person_data.py",
        "laws/test_speakers.py",
        "laws/test_what_counts_for_life.py",
    ),
    "what starts or stops processes, or a job at each of its commits": (
        "capabilities/test_broadcasts.py",
        "capabilities/test_exports.py",
        "capabilities/test_mail_ends_process.py",
        "capabilities/test_retention.py",
        "engine/test_confined_process.py",
        "engine/test_destinations.py",
        "engine/test_tracing.py",
        "laws/test_definition_bombs.py",
        "laws/test_erasure.py",
    ),
    "long histories": (
        "capabilities/test_drafts.py",
        "capabilities/test_journeys_worked.py",
        "capabilities/test_whatif.py",
        "laws/test_live_while_filled.py",
        "laws/test_policies.py",
        "testing/test_world.py",
    ),
}
"""Why files are left out -> which; `make test` runs them."""


def command(python: str = sys.executable) -> list[str]:
    """The run of pytest."""
    ignored = [f"--ignore=tests/{file}" for files in LEFT_OUT.values() for file in files]
    return [python, "-m", "pytest", "-n", "2", "--dist", "worksteal", "-m", "not slow", *ignored, *RUN]


def shown(runs: Sequence[str] = RUN) -> str:
    """What runs and what does not, in two lines."""
    left_out = "; ".join(f"{why} ({len(files)} files)" for why, files in LEFT_OUT.items())
    return f"runs {', '.join(runs)}\nwithout what is marked slow; {left_out}"


def main() -> int:
    """Say what runs, and run it."""
    sys.stdout.write(f"{shown()}\n")
    sys.stdout.flush()
    return subprocess.call(command(), cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
