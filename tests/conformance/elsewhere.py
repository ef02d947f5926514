"""A pytest plugin that runs other suites on another store: every memory store that a test makes is one of that kind.

``python -m pytest -p tests.conformance.elsewhere tests/capabilities`` with THREADLINE_TEST_BACKEND set to the name of a
backend. THREADLINE_TEST_OPENING names a file: the ids of the tests that open a store are written to it, or, where it
is there already, no others are run.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

BACKEND = os.environ.get("THREADLINE_TEST_BACKEND", "memory")
OPENING = Path(os.environ.get("THREADLINE_TEST_OPENING", os.devnull))

_stack = ExitStack()
_opened: list[Any] = []
_opening: dict[str, None] = {}
_running = ""


def pytest_configure(config: pytest.Config) -> None:
    """Before any test's module is imported, so that each gets the other kind under the name that it asks for."""
    from tests.conformance.backends import BACKENDS, servers
    from threadline.stores import memory

    backend = next(each for each in BACKENDS if each.name == BACKEND)
    kind = memory.MemoryStore
    _stack.enter_context(servers(Path(_stack.enter_context(tempfile.TemporaryDirectory()))))

    class Elsewhere(kind):
        """A store of the chosen kind, under the name of the memory store."""

        def __new__(cls) -> Any:
            """Open one in a folder of its own."""
            _opening[_running] = None
            if BACKEND == "memory":
                return kind.__new__(cls)
            store = backend.open(Path(tempfile.mkdtemp(dir=_folder())))
            _opened.append(store)
            return store

    memory.MemoryStore = Elsewhere  # type: ignore[misc]


def _folder() -> str:
    return _stack.enter_context(tempfile.TemporaryDirectory())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Know which test opens a store, and close what it has opened."""
    global _running  # noqa: PLW0603 - a plugin has no other place between its hooks
    _running = item.nodeid
    answer = yield
    while _opened:
        with suppress(Exception):  # a test may have closed it, or broken it on purpose
            _opened.pop().close()
    return answer


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what opens no store, if it is known what does."""
    if OPENING.is_file():
        wanted = set(OPENING.read_text().splitlines())
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in wanted])
        items[:] = [item for item in items if item.nodeid in wanted]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Say which tests opened a store, and end the servers."""
    if not OPENING.exists():
        OPENING.write_text("\n".join(filter(None, _opening)))
    _stack.close()
