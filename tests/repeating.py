"""How to run a failed test again: one line with its environment, in its own report and at the end of the run."""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote

import pytest

SEED = Path(__file__).with_name("seed")
"""The seed of a run that is given none. A commit changes it; `make torture` draws others."""
VARIABLES = (
    "THREADLINE_TEST_SEED",
    "THREADLINE_TEST_PROFILE",
    "THREADLINE_TEST_BACKEND",
    "THREADLINE_TEST_CONFORMANCE",
    "THREADLINE_TEST_CONFORMANCE_SCRIPTS",
)
"""What decides which examples a test draws and on which store."""
TITLE = "to repeat"
ON_ANOTHER_STORE = "tests.conformance.elsewhere"


def seed() -> str:
    """The run's seed: that of the environment, or the one that stands in the repo."""
    return os.environ.get("THREADLINE_TEST_SEED") or SEED.read_text().strip()


def repeat_line(test: str) -> str:
    """The command that runs one test again as it was run here."""
    environment = [f"{name}={quote(os.environ[name])}" for name in VARIABLES if os.environ.get(name)]
    plugin = [f"-p {ON_ANOTHER_STORE}"] if os.environ.get("THREADLINE_TEST_BACKEND") else []
    quoted = test.replace("'", "'\\''")
    return " ".join([*environment, ".venv/bin/python -m pytest", *plugin, f"'{quoted}'"])


def add_repeat_line(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Show the line in the report of a test that failed."""
    if report.outcome == "failed":
        report.sections.append((TITLE, repeat_line(report.nodeid)))


def print_repeat_lines(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the lines of all tests that failed, and those that a run within a test has printed."""
    reports = [each for kind in ("failed", "error") for each in terminalreporter.stats.get(kind, ())]
    lines = [text for report in reports for title, text in report.sections if title == TITLE]
    lines += [value for report in reports for name, value in getattr(report, "user_properties", ()) if name == TITLE]
    for line in dict.fromkeys(lines):
        terminalreporter.line(f"{TITLE}: {line}")
