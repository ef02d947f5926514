"""Runs everything that draws, with one fresh seed after another and on every store, for as long as wanted.

``python -m tests.torture --seconds 7200 --seed 1``. It goes on after a failure, and prints the line that repeats it.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from shlex import quote
from typing import NamedTuple

from tests.conformance.backends import BACKENDS, MODEL
from tests.conformance.test_suites import ELSEWHERE_NOT, SUITES
from tests.repeating import ON_ANOTHER_STORE, TITLE

ROOT = Path(__file__).parents[1]
REPORTS = ROOT / "build" / "torture"
STEP_SECONDS_MAX = 3_600
"""A step that takes longer hangs: it is ended, and counts as failed."""
SCRIPTS = 5
"""Generated scripts that each store is played in a round."""
KILLS = 50
"""Of processes that send a broadcast."""
SIMULATED_SECONDS = 600


class Step(NamedTuple):
    """One run of pytest."""

    name: str
    arguments: tuple[str, ...]
    environment: dict[str, str]


def steps() -> Iterator[Step]:
    """What one seed is tried on."""
    simulated = {"THREADLINE_TEST_SIMULATOR_SECONDS": str(SIMULATED_SECONDS)}
    yield Step("simulator", ("tests/simulator",), simulated)
    yield Step("memory", ("-m", "drawn", "tests/kernel", "tests/wire", *SUITES), {"THREADLINE_TEST_PROFILE": "torture"})
    yield Step(
        "laws on DynamoDB's own engine",
        ("tests/stores/test_dynamodb_local.py",),
        {"THREADLINE_TEST_PROFILE": "torture"},
    )
    operations = ("tests/surfaces/test_schemathesis.py", "tests/surfaces/test_forging.py")
    yield Step("operations", operations, {"THREADLINE_TEST_PROFILE": "torture"})
    yield Step("costly draws on DynamoDB", ("-m", "costly", "tests/stores"), {"THREADLINE_TEST_PROFILE": "torture"})
    yield Step(
        "mail while workers are killed", ("tests/senders/test_mail_killed.py",), {"THREADLINE_TEST_MAIL_KILLS": "90"}
    )
    scripts = {"THREADLINE_TEST_PROFILE": "few", "THREADLINE_TEST_CONFORMANCE_SCRIPTS": str(SCRIPTS)}
    yield Step("scripts on all stores", ("tests/conformance/test_scripts.py",), scripts)
    yield Step("bit flips", ("tests/stores/test_bit_flips.py",), {"THREADLINE_TEST_FLIPS": "400"})
    yield Step(
        "erasing",
        ("tests/stores/test_erasure_killed.py", "tests/stores/test_sqlite_remains.py"),
        {"THREADLINE_TEST_ERASURE_KILLS": "40", "THREADLINE_TEST_REMAINS": "60"},
    )
    yield Step("claims", ("tests/stores/test_claiming_kills.py",), {"THREADLINE_TEST_CLAIM_KILLS": "60"})
    yield Step("floods", ("tests/surfaces/test_floods.py",), {"THREADLINE_TEST_FLOODS": "4"})
    storms = tuple(f"tests/stores/test_{name}_chaos.py" for name in ("postgres", "dynamodb", "cached"))
    yield Step("storms", storms, {"THREADLINE_TEST_CHAOS_SECONDS": "60"})
    yield Step(
        "kills", ("tests/laws/test_kill.py", "tests/stores/test_sqlite_wal.py"), {"THREADLINE_TEST_KILLS": "250"}
    )
    several = {
        "THREADLINE_TEST_DEFINITION_BOMBS": "200",
        "THREADLINE_TEST_FIRST_CONTACTS": "400",
        "THREADLINE_TEST_MOVE_KILLS": "10",
        "THREADLINE_TEST_SPARK_PEOPLE": "2000",
    }
    yield Step(
        "definitions, first contacts, moves and Spark",
        (
            "tests/laws/test_definition_bombs.py",
            "tests/stores/test_first_contacts.py",
            "tests/conformance/test_moving_between.py",
            "tests/exports/spark/test_spark.py",
        ),
        several,
    )
    surgery = {"THREADLINE_TEST_WAL_KILLS": "40", "THREADLINE_TEST_WAL_SURGERIES": "10"}
    yield Step("surgery on write-ahead logs", ("tests/stores/test_wal_surgery.py",), surgery)
    yield Step("steps of the clock", ("tests/surfaces/test_clock_processes.py",), {"THREADLINE_TEST_CLOCK_KILLS": "20"})
    exported = {f"THREADLINE_TEST_{name}_KILLS": "50" for name in ("CURATED", "ICEBERG", "LAKE", "SEARCH")}
    exported["THREADLINE_TEST_CURATED_SEEDS"] = "10"
    yield Step("exports while they are killed", ("-k", "killed", "tests/exports"), exported)
    yield Step(
        "killed jobs",
        ("tests/surfaces/test_jobs.py", "tests/surfaces/test_export_killed.py"),
        {"THREADLINE_TEST_BROADCAST_KILLS": str(KILLS), "THREADLINE_TEST_EXPORT_KILLS": str(KILLS)},
    )
    if published := os.environ.get("THREADLINE_TEST_HILLSTROM"):
        name = "tests/capabilities/test_broadcasts_hillstrom.py"
        yield Step("64,000 published people", (name,), {"THREADLINE_TEST_HILLSTROM": published})
    if visits := os.environ.get("THREADLINE_TEST_WEBLOGS"):
        name = "tests/capabilities/test_analytics_independent.py"
        yield Step("analyses of an access log", (name,), {"THREADLINE_TEST_WEBLOGS": visits})
    left_out = tuple(f"--deselect={path}" for path in ELSEWHERE_NOT)
    for backend in BACKENDS:
        if backend.name != MODEL:
            environment = {
                "THREADLINE_TEST_PROFILE": "few",
                "THREADLINE_TEST_BACKEND": backend.name,
                "THREADLINE_TEST_CONFORMANCE": "few",
            }
            yield Step(backend.name, ("-p", ON_ANOTHER_STORE, "-m", "drawn", *left_out, *SUITES), environment)


def run(step: Step, seed: int) -> tuple[str, list[str]]:
    """What pytest said in its last line, and how to repeat what failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *step.arguments]
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "THREADLINE_TEST_"))}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as examples:
        environment = (
            own
            | step.environment
            | {
                "THREADLINE_TEST_SEED": str(seed),
                # Examples that failed under one seed are not tried again under the next: they would hide what it draws.
                "HYPOTHESIS_STORAGE_DIRECTORY": examples,
                "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            }
        )
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=environment,
                text=True,
                timeout=STEP_SECONDS_MAX,
                check=False,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except subprocess.TimeoutExpired:
            shown = [
                f"{name}={quote(value)}" for name, value in environment.items() if name.startswith("THREADLINE_TEST_")
            ]
            return f"ended after {STEP_SECONDS_MAX} s", [" ".join([*shown, *command])]
    lines = re.findall(rf"^{TITLE}: (.*)$", done.stdout, re.MULTILINE)
    if done.returncode != 0:
        REPORTS.mkdir(parents=True, exist_ok=True)
        report = REPORTS / f"{seed}-{step.name.replace(' ', '-')}.txt"
        report.write_text(done.stdout)
        lines = lines or [f"pytest ended with {done.returncode}; see {report}"]
    return done.stdout.strip().rsplit("\n", 1)[-1].strip("= "), lines


def say(text: str) -> None:
    """Print at once, also where it goes into a file."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Run rounds until the time is over; 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=600, help="how long; what has begun is finished")
    parser.add_argument("--seed", type=int, default=None, help="of the first round; default: a fresh one")
    given = parser.parse_args()
    first = secrets.randbelow(2**32) if given.seed is None else given.seed
    further, end, failed, number = Random(first), time.monotonic() + given.seconds, 0, 0
    while time.monotonic() < end:
        number, seed = number + 1, first if number == 0 else further.randrange(2**32)
        for step in steps():
            if time.monotonic() >= end:
                break
            summary, lines = run(step, seed)
            say(f"round {number}, seed {seed}, {step.name}: {summary}")
            failed += len(lines)
            for line in lines:
                say(f"failed: {line}")
    say(f"{number} rounds, {failed} failures" + (f"; reports in {REPORTS}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
