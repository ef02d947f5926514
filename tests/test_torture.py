"""What `make test` draws a little of, `make torture` draws more of: kills, flips, bombs and examples."""

from __future__ import annotations

import re
from pathlib import Path

from tests.torture import steps

TESTS = Path(__file__).parent
FILES = [file for file in TESTS.rglob("*.py") if "node_modules" not in file.parts]
NO_AMOUNT = {
    "THREADLINE_TEST_CPU_SECONDS": "a bound on what one definition may take, which a larger draw leaves as it is",
    "THREADLINE_TEST_SPARK_PART": "one in so many of two histories that stay the same: less is more",
}
"""Variable with a number -> why torture sets no larger one."""


def amounts() -> dict[str, tuple[float, set[str]]]:
    """Variables that say how much a test draws -> the number without them, and the files that read them."""
    found: dict[str, tuple[float, set[str]]] = {}
    for file in FILES:
        for name, number in re.findall(r'environ\.get\("(THREADLINE_TEST_\w+)", "([\d.]+)"\)', file.read_text()):
            _, files = found.setdefault(name, (float(number), set()))
            files.add(f"tests/{file.relative_to(TESTS)}")
    return found


def test_every_amount_that_tests_draw_is_larger_under_torture() -> None:
    given: dict[str, list[float]] = {}
    for step in steps():
        for name, value in step.environment.items():
            if value.replace(".", "").isdigit():
                given.setdefault(name, []).append(float(value))
    found = amounts()
    assert len(found) > 15
    assert {name for name, (number, _) in found.items() if max(given.get(name, [0])) <= number} == NO_AMOUNT.keys()


def test_every_file_that_torture_names_exists() -> None:
    named = {each for step in steps() for each in step.arguments if each.startswith("tests/")}
    assert len(named) > 15
    assert [path for path in sorted(named) if not (TESTS.parent / path).exists()] == []


def test_every_costly_draw_is_tried_by_a_step_with_all_its_examples() -> None:
    thorough = [step.arguments for step in steps() if step.environment.get("THREADLINE_TEST_PROFILE") == "torture"]
    folders = {each for arguments in thorough for each in arguments if each.startswith("tests/")}
    costly = {f"tests/{file.relative_to(TESTS)}" for file in FILES if "pytest.mark.costly" in file.read_text()} - {
        "tests/test_torture.py"
    }
    assert len(costly) >= 5
    assert {file for file in costly if not any(file.startswith(folder) for folder in folders)} == set()
