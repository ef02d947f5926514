"""What `make test` draws a little of, `make torture` draws more of: kills, flips, bombs and examples."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests import torture
from tests.torture import Step, steps

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


def test_step_that_is_ended_leaves_what_it_has_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs(command: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, torture.STEP_SECONDS_MAX, b"tests/test_endless.py ")

    monkeypatch.setattr(subprocess, "run", hangs)
    monkeypatch.setattr(torture, "REPORTS", tmp_path)
    summary, lines = torture.run(Step("endless", ("tests/test_endless.py",), {}), seed=1)
    assert (summary, len(lines)) == ("ended after 3600 s", 1)
    assert (tmp_path / "1-endless.txt").read_text() == "tests/test_endless.py "


def names() -> list[str]:
    return [step.name for step in steps()]


def test_every_part_has_a_name_of_its_own_that_a_shell_takes() -> None:
    assert len(set(names())) == len(names())
    assert [name for name in names() if not re.fullmatch(r"[A-Za-z0-9-]+", name)] == []


def test_parts_are_chosen_by_name_or_from_one_on() -> None:
    assert [step.name for step in torture.chosen("clock,kills", "")] == ["kills", "clock"]
    assert [step.name for step in torture.chosen("", "clock")] == names()[names().index("clock") :]
    assert [step.name for step in torture.chosen("", "")] == names()
    with pytest.raises(ValueError, match="no part is called 'clocks'; there are simulator, "):
        torture.chosen("clocks", "")


@pytest.mark.parametrize(("seconds", "expected"), [(None, 2), (0.0, 0)])
def test_rounds_end_with_the_time_or_after_one(
    seconds: float | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torture, "run", lambda step, seed: (f"3 passed with {seed}", ["again"] * (step.name == "b")))
    results = torture.rounds([Step("a", (), {}), Step("b", (), {})], 7, seconds)
    assert [(result.part, result.passed, result.failures) for result in results] == [("a", 3, 0), ("b", 3, 1)][
        :expected
    ]


def test_table_of_results_has_one_line_for_each_part() -> None:
    results = [torture.Result("a", 1.0, 3, 0), torture.Result("b", 2.0, 3, 1), torture.Result("a", 4.0, 3, 2)]
    assert [line.split() for line in torture.table(results).splitlines()[1:]] == [
        ["a", "2", "5", "6", "2"],
        ["b", "1", "2", "3", "1"],
    ]
