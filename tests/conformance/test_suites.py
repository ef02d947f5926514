"""The suites of the capabilities, the engine and the laws once more, on every other store than the memory store."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.backends import BACKENDS, MODEL
from tests.conformance.elsewhere import makes_stores
from tests.conformance.telling import COMPARED
from tests.repeating import TITLE

ROOT = Path(__file__).parents[2]
SUITES = ("tests/capabilities", "tests/engine", "tests/laws")
ELSEWHERE_NOT = {
    "tests/engine/test_moving.py": "looks into memory stores; test_moving_between.py moves all kinds",
    "tests/engine/test_ranks.py::test_what_other_processes_wrote_is_taken_in_after_a_while": (
        "sees whether a caller waits for a reading, which another store may have ended by then"
    ),
    "tests/laws/test_full_disk.py": "fills the disk under the embedded store",
    "tests/laws/test_kill.py": "kills the process that has the embedded store; other stores have tests of this kind",
}
"""File or test -> why it is not run on other stores."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [backend.name for backend in BACKENDS if backend.name != MODEL])
def test_the_suites_pass_on_every_store(name: str, record_property: Callable[[str, object], None]) -> None:
    """Those that the run's seed draws; THREADLINE_TEST_CONFORMANCE=all is for all of them."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "tests.conformance.elsewhere"]
    command += ["-p", "no:cacheprovider", *(f"--deselect={path}" for path in ELSEWHERE_NOT), *SUITES]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")} | {
        "THREADLINE_TEST_BACKEND": name,
        "THREADLINE_TEST_PROFILE": "few",
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
    }
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    for line in re.findall(rf"^{TITLE}: (.*)$", done.stdout, re.MULTILINE):
        record_property(TITLE, line)
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
    opened = re.search(r"^(\d+) stores opened: (.*)$", done.stdout, re.MULTILINE)
    passed = re.search(r"^(\d+) passed(?:, (\d+) deselected)?", done.stdout, re.MULTILINE)
    assert opened is not None
    assert passed is not None
    # Else the suites would have passed on something else.
    assert opened[2] == name
    assert int(opened[1]) > 20
    record_property(COMPARED, (name, f"{passed[1]} tests of the suites on {opened[1]} stores"))


def test_what_is_left_out_is_there_and_has_its_reason() -> None:
    for path in ELSEWHERE_NOT:
        file, _, test = path.partition("::")
        assert makes_stores(ROOT / file), path
        assert f"def {test}" in (ROOT / file).read_text(), path
    assert [path for path, why in ELSEWHERE_NOT.items() if len(why.split()) < 5] == []
