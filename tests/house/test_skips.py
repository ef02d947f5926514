"""The switch that CI sets: a skip becomes a failure, unless it is declared."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).parents[1] / "conftest.py"

TESTS = """
import pytest

def test_passes():
    pass

@pytest.mark.skip(reason="no server here")
def test_marked():
    pass

def test_inside():
    pytest.skip("no browser here")

@pytest.mark.xfail(reason="a known fault", strict=True)
def test_known():
    raise AssertionError
"""


WHOLE = """
import pytest

pytest.importorskip("no_such_driver")
"""
"""A file that skips itself, which is an error of the collection where skips fail."""


def run(folder: Path, no_skip: str, conftest: str = "") -> str:
    """The summary line of a pytest run of its own, on a copy of our conftest."""
    (folder / "conftest.py").write_text(conftest or CONFTEST.read_text())
    (folder / "test_some.py").write_text(TESTS)
    (folder / "test_whole.py").write_text(WHOLE)
    environment = {**os.environ, "THREADLINE_TEST_NO_SKIP": no_skip, "PYTHONPATH": str(CONFTEST.parents[1])}
    # Workers of the run that we are part of must not be taken for workers of this one.
    environment = {name: value for name, value in environment.items() if not name.startswith("PYTEST_")}
    without = ["-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", "-q", *without, "--continue-on-collection-errors"]
    command += ["--rootdir", str(folder), "."]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    return done.stdout.strip().rsplit("\n", 1)[-1]


def test_skips_stay_skips_at_home(tmp_path: Path) -> None:
    assert "1 passed, 3 skipped, 1 xfailed" in run(tmp_path, no_skip="")


def test_skips_fail_in_ci_and_known_faults_do_not(tmp_path: Path) -> None:
    # A marker skips while the test is set up, and a file while it is collected: pytest counts both among the errors.
    assert "1 failed, 1 passed, 1 xfailed, 2 errors" in run(tmp_path, no_skip="1")


def test_a_declared_skip_is_allowed(tmp_path: Path) -> None:
    opening = "SKIPS_ALLOWED: dict[str, str] = {"
    declared = CONFTEST.read_text().replace(opening, opening + "'no browser': 'a test of this', ")
    assert "1 passed, 1 skipped, 1 xfailed, 2 errors" in run(tmp_path, no_skip="1", conftest=declared)
