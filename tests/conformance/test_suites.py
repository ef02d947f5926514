"""The suites of the capabilities, the engine and the laws once more, on every other store than the memory store."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.backends import MODEL, Backend
from tests.conformance.elsewhere import makes_stores

ROOT = Path(__file__).parents[2]
SUITES = ("tests/capabilities", "tests/engine", "tests/laws")
ELSEWHERE_NOT = {
    "tests/engine/test_moving.py": "looks into memory stores; test_moving_between.py moves all kinds",
    "tests/laws/test_full_disk.py": "fills the disk under the embedded store",
    "tests/laws/test_kill.py": "kills the process that has the embedded store; other stores have tests of this kind",
}
"""File -> why it is not run on other stores."""


@pytest.mark.slow
def test_the_suites_pass_on_every_store(backend: Backend) -> None:
    if backend.name == MODEL:
        return  # they run on it by themselves
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "tests.conformance.elsewhere"]
    command += ["-p", "no:cacheprovider", *(f"--ignore={path}" for path in ELSEWHERE_NOT), *SUITES]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")} | {
        "THREADLINE_TEST_BACKEND": backend.name,
        "THREADLINE_TEST_PROFILE": "few",
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
    }
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
    opened = re.search(r"(\d+) stores opened: (.*)", done.stdout)
    assert opened is not None
    # Else the suites would have passed on something else.
    assert int(opened[1]) > 300
    assert opened[2] == backend.name


def test_what_is_left_out_is_there_and_has_its_reason() -> None:
    assert [path for path in ELSEWHERE_NOT if not makes_stores(ROOT / path)] == []
    assert [path for path, why in ELSEWHERE_NOT.items() if len(why.split()) < 5] == []
