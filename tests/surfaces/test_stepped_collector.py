"""The garbage collector of our own programs: deferred during a command; in a server what a step frees and leaves."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest

from threadline.engine.interpreter import SteppedCollector


class _Node:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def collector_put_back() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


def test_cycle_dropped_before_a_step_is_freed_by_it() -> None:
    with SteppedCollector(step_objects=50) as collector:
        seen = weakref.ref(_Node())
        kept = [[] for _ in range(100)]  # type: ignore[var-annotated]
        assert seen() is not None
        collector.step()
        assert seen() is None
        assert len(kept) == 100


@pytest.mark.parametrize(("seconds", "is_freed"), [(1_000.0, False), (0.0, True)])
def test_few_new_objects_are_looked_through_once_the_last_step_was_long_ago(seconds: float, is_freed: bool) -> None:
    with SteppedCollector(step_objects=100_000, step_seconds=seconds) as collector:
        collector.step()
        seen = weakref.ref(_Node())
        collector.step()
        assert (seen() is None) is is_freed


def test_cycle_that_outlives_a_step_is_freed_once_twice_as_much_memory_is_in_use() -> None:
    with SteppedCollector(step_objects=50, full_blocks_min=1, measured_objects=50) as collector:
        node: _Node | None = _Node()
        seen = weakref.ref(node)
        kept = [[] for _ in range(100)]  # type: ignore[var-annotated]
        collector.step()
        node = None
        collector.step()
        assert seen() is not None
        while seen() is not None:
            assert len(kept) < 20_000_000
            kept += [[] for _ in range(100_000)]
            collector.step()


def test_leaving_puts_the_process_back_as_it_was() -> None:
    with SteppedCollector():
        assert not gc.isenabled()
        assert gc.get_freeze_count()
    assert gc.isenabled()
    assert not gc.get_freeze_count()


COMMAND = """
import gc
from threadline.surfaces import cli
from threadline.surfaces.cli import program

usual = gc.get_threshold()[0]
program.run = lambda compose, _: (compose(), print(gc.isenabled(), gc.get_threshold()[0] // usual))[1]
cli.main([])
"""


def test_a_command_runs_with_the_collector_deferred() -> None:
    done = subprocess.run([sys.executable, "-c", COMMAND], capture_output=True, text=True, check=True)
    is_enabled, times = done.stdout.split()
    assert is_enabled == "True"
    assert int(times) > 100
