"""A long run says first how long it will take, and remembers how long it took."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.how_long import SECONDS, expected, remembered, run

ROOT = Path(__file__).parents[1]


def test_without_an_earlier_run_the_kept_figure_is_scaled_by_cores() -> None:
    assert expected("test", 2, {}) == f"make test: about {SECONDS['test'] / 60:.0f} minutes on 2 cores"
    assert expected("test", 1, {}) == f"make test: about {SECONDS['test'] / 30:.0f} minutes on 1 core"
    assert expected("test", 64, {}).split(" on ")[0] == expected("test", 6, {}).split(" on ")[0]


def test_with_an_earlier_run_its_own_figure_counts() -> None:
    assert expected("test", 2, {"test": 601.0}) == "make test: about 10 minutes, as the last time here"
    assert expected("test-fast", 2, {"test-fast": 48.4}) == "make test-fast: about 48 seconds, as the last time here"


def test_a_run_that_passes_is_remembered_and_one_that_fails_is_not(tmp_path: Path) -> None:
    file = tmp_path / "build" / "how_long.json"
    assert run("test", [sys.executable, "-c", "raise SystemExit(3)"], file) == 3
    assert remembered(file) == {}
    assert run("test", [sys.executable, "-c", ""], file) == 0
    assert list(remembered(file)) == ["test"]
    assert run("test-fast", [sys.executable, "-c", ""], file) == 0
    assert list(remembered(file)) == ["test", "test-fast"]


@pytest.mark.parametrize("content", ["", "[]", '{"test": "x"}', '{"test": {}}', '{"other": 3}'])
def test_a_file_that_is_damaged_is_as_good_as_none(content: str, tmp_path: Path) -> None:
    file = tmp_path / "how_long.json"
    file.write_text(content)
    assert remembered(file) == {}


def test_targets_that_run_tests_say_it_before_anything_else() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in SECONDS:
        recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
        assert recipe is not None
        assert f"-m tests.how_long {target} " in recipe[1].splitlines()[0]


def test_the_line_comes_before_what_the_command_prints(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys; from tests.how_long import run; run('test', ['echo', 'ran'], pathlib.Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "took.json")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert re.fullmatch(r"make test: about .*\nran\n", done.stdout)
