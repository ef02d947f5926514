"""The suites of capabilities, engine and laws once more on every store: whatever opens a store there opens each here."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.conformance.backends import MODEL, Backend

ROOT = Path(__file__).parents[2]
SUITES = ("tests/capabilities", "tests/engine", "tests/laws")
ELSEWHERE_NOT = {
    "tests/engine/test_moving.py": "looks into two memory stores; stores are moved in test_moving_between.py",
    "tests/laws/test_full_disk.py": "fills the disk under the embedded store",
    "tests/laws/test_kill.py": "kills the process that has the embedded store; other stores have tests of this kind",
}
"""File -> why it is not run on other stores."""

pytestmark = pytest.mark.slow


def run(backend: str, opening: Path) -> tuple[int, str]:
    """Run the suites with few examples each; the exit code and what was said."""
    ignored = [f"--ignore={path}" for path in ELSEWHERE_NOT]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "tests.conformance.elsewhere",
        "-p",
        "no:cacheprovider",
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")} | {
        "THREADLINE_TEST_BACKEND": backend, "THREADLINE_TEST_OPENING": str(opening), "THREADLINE_TEST_PROFILE": "few",
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
    }  # fmt: skip
    done = subprocess.run(
        [*command, *ignored, *SUITES], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout[-6_000:] + done.stderr[-2_000:]


@cache
def opening_tests(folder: Path) -> Path:
    """The tests that open a store, found by running them on the memory store."""
    found = folder / "opening"
    code, said = run(MODEL, found)
    assert code == 0, said
    return found


def test_the_suites_pass_on_every_store(backend: Backend, tmp_path_factory: pytest.TempPathFactory) -> None:
    opening = opening_tests(tmp_path_factory.getbasetemp())
    assert len(opening.read_text().splitlines()) > 100
    if backend.name != MODEL:
        code, said = run(backend.name, opening)
        assert code == 0, said


def test_what_is_left_out_is_there_and_has_its_reason() -> None:
    assert [path for path in ELSEWHERE_NOT if not (ROOT / path).is_file()] == []
    assert [path for path, why in ELSEWHERE_NOT.items() if len(why.split()) < 5] == []
