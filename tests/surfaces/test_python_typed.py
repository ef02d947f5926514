"""The Python API is known to type checkers: every operation, every parameter, every answer."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from threadline.app import operations
from threadline.surfaces.operation_calls import shown
from threadline.surfaces.python.generate import FOLDER, modules

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "tests/clients/typed"


def test_the_generated_modules_are_those_of_the_operations() -> None:
    for name, text in modules().items():
        assert ast.dump(ast.parse(text)) == ast.dump(ast.parse((FOLDER / name).read_text())), f"{name}: run `make api`"


def called(file: str) -> set[str]:
    """The operations that a file calls, such as `segments_members`; of others, their last name."""
    found = re.findall(r"shop\.(\w+)(?:\.(\w+))?\(", (PROJECT / file).read_text())
    return {f"{group}_{verb.rstrip('_')}" if verb else group for group, verb in found}


@pytest.mark.slow
def test_a_project_that_uses_every_operation_passes_mypy_strict_and_wrong_names_fail() -> None:
    every = set(shown(operations(), "python"))
    assert called("right.py") >= every
    assert called("right_async.py") >= every
    wrong = (PROJECT / "wrong.py").read_text().split("\n")
    expected = {(number, line.partition("# error: ")[2]) for number, line in enumerate(wrong, 1) if "# error: " in line}
    assert len(expected) > 8
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-pretty", str(PROJECT)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = re.findall(r"^(.+):(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE)
    assert {(int(line), code) for _, line, code in found} == expected, done.stdout + done.stderr
    assert {Path(file).name for file, _, _ in found} == {"wrong.py"}
