"""A test that fails says in one line how to run it again, wherever its report is read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import repeating

ROOT = Path(__file__).parents[1]
FAILING = """
from hypothesis import given
from hypothesis.strategies import integers
import pytest

@given(integers())
def test_drawn(number):
    raise AssertionError(number)

@pytest.mark.parametrize("name", ["it's"])
def test_plain(name):
    raise AssertionError
"""
DRAWN = "THREADLINE_TEST_SEED=7 THREADLINE_TEST_PROFILE=few .venv/bin/python -m pytest 'test_some.py::test_drawn'"
PLAIN = (
    "THREADLINE_TEST_SEED=7 THREADLINE_TEST_PROFILE=few .venv/bin/python -m pytest 'test_some.py::test_plain[it'\\''s]'"
)


def run(folder: Path, *arguments: str) -> str:
    """The output of a pytest run of its own, on a copy of our conftest."""
    (folder / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text())
    (folder / "test_some.py").write_text(FAILING)
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "THREADLINE_TEST_"))}
    environment = own | {
        "THREADLINE_TEST_SEED": "7",
        "THREADLINE_TEST_PROFILE": "few",
        "PYTHONPATH": str(ROOT),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "examples"),
    }
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(folder), *arguments, "."]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    ).stdout


@pytest.mark.parametrize("workers", [("-n", "0"), ("-n", "1")], ids=["one process", "a worker"])
def test_a_failure_prints_the_line_that_repeats_it_in_its_report_and_at_the_end(
    workers: tuple[str, ...], tmp_path: Path
) -> None:
    lines = run(tmp_path, *workers).splitlines()
    for wanted in (DRAWN, PLAIN):
        assert lines.count(wanted) == 1
        assert lines.count(f"to repeat: {wanted}") == 1


def test_only_tests_that_draw_are_marked_so(tmp_path: Path) -> None:
    assert "1 failed, 1 deselected" in run(tmp_path, "-n", "0", "-m", "drawn")


def test_on_another_store_the_line_names_the_store_and_the_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in repeating.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("THREADLINE_TEST_SEED", "7")
    monkeypatch.setenv("THREADLINE_TEST_BACKEND", "sqlite behind Redis")
    assert repeating.repeat_line("tests/laws/test_order.py::test_x") == (
        "THREADLINE_TEST_SEED=7 THREADLINE_TEST_BACKEND='sqlite behind Redis' .venv/bin/python -m pytest "
        "-p tests.conformance.elsewhere 'tests/laws/test_order.py::test_x'"
    )


def test_without_a_seed_of_its_own_a_run_draws_from_the_one_in_the_repo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THREADLINE_TEST_SEED")
    assert repeating.seed() == repeating.SEED.read_text().strip()
    assert repeating.seed().isdecimal()
