"""A pytest plugin that runs other suites on another store: every memory store that a test makes is one of that kind.

``python -m pytest -p tests.conformance.elsewhere tests/capabilities`` with THREADLINE_TEST_BACKEND set to the name of a
backend. Modules that make no store, themselves or by what they import of the tests, are left out: they would only say
the same once more.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

BACKEND = os.environ.get("THREADLINE_TEST_BACKEND", "memory")
ROOT = Path(__file__).parents[2]

_stack = ExitStack()
_open: list[Any] = []
_opened = 0


def pytest_configure(config: pytest.Config) -> None:
    """Before any test's module is imported, so that each gets the other kind under the name that it asks for."""
    from tests.conformance.backends import BACKENDS, servers
    from threadline.stores import memory

    backend = next(each for each in BACKENDS if each.name == BACKEND)
    folder = Path(_stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
    _stack.enter_context(servers(folder))

    class Elsewhere:
        """A store of the chosen kind, under the name of the memory store."""

        def __new__(cls) -> Any:
            """Open one in a folder of its own."""
            global _opened  # noqa: PLW0603 - a plugin has no other place between its hooks
            _opened += 1
            _open.append(backend.open(Path(tempfile.mkdtemp(dir=folder))))
            return _open[-1]

    memory.MemoryStore = Elsewhere  # type: ignore[assignment, misc]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what makes no store."""
    idle = [item for item in items if not makes_stores(item.path)]
    config.hook.pytest_deselected(items=idle)
    items[:] = [item for item in items if item not in idle]


@cache
def makes_stores(path: Path) -> bool:
    """Whether a file of the tests, or one of the tests' own that it imports, names the memory store."""
    text = path.read_text()
    if "MemoryStore" in text or '"memory:"' in text:
        return True
    for folder, names in re.findall(r"^from (tests[\w.]*) import (.*)", text, re.MULTILINE):
        place = ROOT / folder.replace(".", "/")
        found = [place.with_suffix(".py"), *(place / f"{name.strip()}.py" for name in names.split(","))]
        if any(makes_stores(file) for file in found if file.is_file()):
            return True
    return False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Close what a test has opened."""
    answer = yield
    while _open:
        with suppress(Exception):  # the test may have closed it, or broken it on purpose
            _open.pop().close()
    return answer


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many stores that were."""
    terminalreporter.line(f"{_opened} stores opened: {BACKEND}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the servers."""
    _stack.close()
