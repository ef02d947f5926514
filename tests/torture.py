"""Runs everything that draws, with one fresh seed after another and on every store, for as long as wanted.

``python -m tests.torture --seconds 7200 --seed 1`` runs rounds of all parts; ``--part clock,kills`` these alone, once;
``--from erasing --seed 1`` goes on with a round that was stopped there. It goes on after a failure, prints the line
that repeats it, and ends with a table of all parts.
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
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from shlex import quote
from typing import NamedTuple

from tests.conformance.backends import BACKENDS, MODEL
from tests.conformance.test_suites import ELSEWHERE_NOT, SUITES
from tests.repeating import ON_ANOTHER_STORE, TITLE

ROOT = Path(__file__).parents[1]
REPORTS = ROOT / "build" / "torture"
SECONDS = 600.0
"""How long rounds are begun if nothing else is asked for."""
STEP_SECONDS_MAX = 3_600
"""A step that takes longer hangs: it is ended, and counts as failed."""
SCRIPTS = 5
"""Generated scripts that each store is played in a round."""
KILLS = 50
"""Of processes that send a broadcast."""
SIMULATED_SECONDS = 600
SINGLE = (
    ("definitions", "tests/laws/test_definition_bombs.py", "THREADLINE_TEST_DEFINITION_BOMBS", "200"),
    ("contacts", "tests/stores/test_first_contacts.py", "THREADLINE_TEST_FIRST_CONTACTS", "400"),
    ("moves", "tests/conformance/test_moving_between.py", "THREADLINE_TEST_MOVE_KILLS", "10"),
    ("spark", "tests/exports/spark/test_spark.py", "THREADLINE_TEST_SPARK_PEOPLE", "2000"),
)
"""Parts of one file each, with the variable that says how much it draws."""


class Step(NamedTuple):
    """One run of pytest: a part of a round."""

    name: str
    """What `--part` and the report call it."""
    arguments: tuple[str, ...]
    environment: dict[str, str]


def steps() -> Iterator[Step]:
    """What one seed is tried on."""
    simulated = {"THREADLINE_TEST_SIMULATOR_SECONDS": str(SIMULATED_SECONDS)}
    yield Step("simulator", ("tests/simulator",), simulated)
    thorough = {"THREADLINE_TEST_PROFILE": "torture"}
    for folder in ("tests/kernel", "tests/wire", *SUITES):
        yield Step(folder.removeprefix("tests/"), ("-m", "drawn", folder), thorough)
    yield Step("dynamodb-local", ("tests/stores/test_dynamodb_local.py",), thorough)
    operations = ("tests/surfaces/test_schemathesis.py", "tests/surfaces/test_forging.py")
    yield Step("operations", operations, thorough)
    yield Step("costly", ("-m", "costly", "tests/stores"), thorough)
    yield Step("mail", ("tests/senders/test_mail_killed.py",), {"THREADLINE_TEST_MAIL_KILLS": "90"})
    scripts = {"THREADLINE_TEST_PROFILE": "few", "THREADLINE_TEST_CONFORMANCE_SCRIPTS": str(SCRIPTS)}
    yield Step("scripts", ("tests/conformance/test_scripts.py",), scripts)
    yield Step("flips", ("tests/stores/test_bit_flips.py",), {"THREADLINE_TEST_FLIPS": "400"})
    yield Step(
        "erasing",
        ("tests/stores/test_erasure_killed.py", "tests/stores/test_sqlite_remains.py"),
        {"THREADLINE_TEST_ERASURE_KILLS": "40", "THREADLINE_TEST_REMAINS": "60"},
    )
    yield Step("claims", ("tests/stores/test_claiming_kills.py",), {"THREADLINE_TEST_CLAIM_KILLS": "60"})
    yield Step("channels", ("tests/laws/test_channels_killed.py",), {"THREADLINE_TEST_CHANNEL_KILLS": "300"})
    yield Step("floods", ("tests/surfaces/test_floods.py",), {"THREADLINE_TEST_FLOODS": "4"})
    storms = tuple(f"tests/stores/test_{name}_chaos.py" for name in ("postgres", "dynamodb", "cached"))
    yield Step("storms", storms, {"THREADLINE_TEST_CHAOS_SECONDS": "60"})
    yield Step(
        "kills", ("tests/laws/test_kill.py", "tests/stores/test_sqlite_wal.py"), {"THREADLINE_TEST_KILLS": "250"}
    )
    for name, file, variable, amount in SINGLE:
        yield Step(name, (file,), {variable: amount})
    surgery = {"THREADLINE_TEST_WAL_KILLS": "40", "THREADLINE_TEST_WAL_SURGERIES": "10"}
    yield Step("surgery", ("tests/stores/test_wal_surgery.py",), surgery)
    yield Step("clock", ("tests/surfaces/test_clock_processes.py",), {"THREADLINE_TEST_CLOCK_KILLS": "20"})
    exported = {f"THREADLINE_TEST_{name}_KILLS": "50" for name in ("CURATED", "ICEBERG", "LAKE", "SEARCH")}
    exported["THREADLINE_TEST_CURATED_SEEDS"] = "10"
    yield Step("exports", ("-k", "killed", "tests/exports"), exported)
    yield Step(
        "jobs",
        ("tests/surfaces/test_jobs.py", "tests/surfaces/test_export_killed.py"),
        {"THREADLINE_TEST_BROADCAST_KILLS": str(KILLS), "THREADLINE_TEST_EXPORT_KILLS": str(KILLS)},
    )
    if published := os.environ.get("THREADLINE_TEST_HILLSTROM"):
        name = "tests/capabilities/test_broadcasts_hillstrom.py"
        yield Step("hillstrom", (name,), {"THREADLINE_TEST_HILLSTROM": published})
    if visits := os.environ.get("THREADLINE_TEST_WEBLOGS"):
        name = "tests/capabilities/test_analytics_independent.py"
        yield Step("weblogs", (name,), {"THREADLINE_TEST_WEBLOGS": visits})
    left_out = tuple(f"--deselect={path}" for path in ELSEWHERE_NOT)
    for backend in BACKENDS:
        if backend.name != MODEL:
            environment = {
                "THREADLINE_TEST_PROFILE": "few",
                "THREADLINE_TEST_BACKEND": backend.name,
                "THREADLINE_TEST_CONFORMANCE": "few",
            }
            yield Step(
                backend.name.replace(" ", "-"), ("-p", ON_ANOTHER_STORE, "-m", "drawn", *left_out, *SUITES), environment
            )


def run(step: Step, seed: int) -> tuple[str, list[str]]:
    """What pytest said in its last line, and how to repeat what failed."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--timeout=0", *step.arguments]
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
        except subprocess.TimeoutExpired as late:
            shown = [
                f"{name}={quote(value)}" for name, value in environment.items() if name.startswith("THREADLINE_TEST_")
            ]
            # Its last line is the file that was at work.
            _report(step, seed, (late.stdout or b"").decode(errors="replace"))
            return f"ended after {STEP_SECONDS_MAX} s", [" ".join([*shown, *command])]
    lines = re.findall(rf"^{TITLE}: (.*)$", done.stdout, re.MULTILINE)
    if done.returncode != 0:
        report = _report(step, seed, done.stdout)
        lines = lines or [f"pytest ended with {done.returncode}; see {report}"]
    return done.stdout.strip().rsplit("\n", 1)[-1].strip("= "), lines


def _report(step: Step, seed: int, output: str) -> Path:
    """Keep what pytest has written."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    report = REPORTS / f"{seed}-{step.name}.txt"
    report.write_text(output)
    return report


def say(text: str) -> None:
    """Print at once, also where it goes into a file."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Result(NamedTuple):
    """A run of a part."""

    part: str
    seconds: float
    passed: int
    failures: int


def table(results: Sequence[Result]) -> str:
    """A line for each part that was run: how often, how long, how many tests passed, and how many failed."""
    lines = [f"{'part':<20} {'runs':>5} {'seconds':>8} {'passed':>7} {'failed':>7}"]
    for part in dict.fromkeys(result.part for result in results):
        runs = [result for result in results if result.part == part]
        seconds, passed, failures = (sum(column) for column in list(zip(*runs, strict=True))[1:])
        lines.append(f"{part:<20} {len(runs):>5} {seconds:>8.0f} {passed:>7} {failures:>7}")
    return "\n".join(lines)


def chosen(parts: str, first: str) -> list[Step]:
    """The parts of these names, by commas, or all from one on. Raises `ValueError` for a name that is none."""
    all_steps = list(steps())
    names = [step.name for step in all_steps]
    wanted = [name for name in parts.split(",") if name]
    for name in [*wanted, *([first] if first else [])]:
        if name not in names:
            raise ValueError(f"no part is called {name!r}; there are {', '.join(names)}")
    return [
        step
        for number, step in enumerate(all_steps)
        if (not wanted or step.name in wanted) and (not first or number >= names.index(first))
    ]


def rounds(parts: Sequence[Step], seed: int, seconds: float | None) -> list[Result]:
    """Run the parts with one seed after another until the time is over; None: all of them with one seed."""
    further, results, number = Random(seed), list[Result](), 0
    end = time.monotonic() + (float("inf") if seconds is None else seconds)
    while not (number and seconds is None) and time.monotonic() < end:
        number += 1
        for step in parts:
            began = time.monotonic()
            if began >= end:
                break
            summary, lines = run(step, seed)
            say(f"round {number}, seed {seed}, {step.name}: {summary}")
            for line in lines:
                say(f"failed: {line}")
            passed = re.search(r"(\d+) passed", summary)
            took = time.monotonic() - began
            results.append(Result(step.name, took, int(passed[1]) if passed is not None else 0, len(lines)))
        seed = further.randrange(2**32)
    return results


def main() -> int:
    """Run what is asked for; 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=None, help="how long; what has begun is finished")
    parser.add_argument("--seed", type=int, default=None, help="of the first round; default: a fresh one")
    parser.add_argument("--part", default="", help="these parts alone, by commas; once, unless --seconds is given")
    parser.add_argument("--from", dest="first", default="", help="begin each round with this part")
    given = parser.parse_args()
    try:
        parts = chosen(given.part, given.first)
    except ValueError as error:
        parser.error(str(error))
    seed = secrets.randbelow(2**32) if given.seed is None else given.seed
    usual = None if given.part else SECONDS
    results = rounds(parts, seed, usual if given.seconds is None else given.seconds)
    failed = sum(result.failures for result in results)
    say(table(results))
    say(f"{failed} failures" + (f"; reports in {REPORTS}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
