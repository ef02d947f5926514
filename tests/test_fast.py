"""`make test-fast` runs what is there, leaves out by name what takes long, and says both."""

from __future__ import annotations

from pathlib import Path

from tests.fast import LEFT_OUT, RUN, command, shown

TESTS = Path(__file__).parent


def test_what_is_run_and_what_is_left_out_is_there() -> None:
    left_out = [file for files in LEFT_OUT.values() for file in files]
    assert [path for path in RUN if not (TESTS.parent / path).exists()] == []
    assert [file for file in left_out if not (TESTS / file).is_file()] == []
    assert len(set(left_out)) == len(left_out)
    assert all(any(f"tests/{file}".startswith(folder) for folder in RUN) for file in left_out)


def test_every_file_that_is_left_out_is_ignored_by_the_run_and_counted_in_what_it_says() -> None:
    ignored = [each for each in command() if each.startswith("--ignore=")]
    assert len(ignored) == sum(len(files) for files in LEFT_OUT.values())
    for why, files in LEFT_OUT.items():
        assert f"{why} ({len(files)} files)" in shown()


def test_most_files_of_the_pure_rooms_run() -> None:
    everything = [file for folder in RUN for file in (TESTS.parent / folder).rglob("test_*.py")]
    assert sum(len(files) for files in LEFT_OUT.values()) < len(everything) / 4
