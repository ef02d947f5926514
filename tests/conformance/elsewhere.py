"""A pytest plugin that runs other suites on another store: every memory store that a test makes is one of that kind.

``python -m pytest -p tests.conformance.elsewhere tests/capabilities`` with THREADLINE_TEST_BACKEND set to the name of a
backend. What makes no store, or one of a kind that it names itself, is left out: it would only say the same once more.
Of the rest the slow tests wait for THREADLINE_TEST_CONFORMANCE. Of the subjects (`test_points_*.py` are one) the
backend's part is drawn, and of each of these its share of the tests is run, at least one; a small share is drawn from
one file, so that only this is imported. The run's seed draws them, so that one run can be had again and many runs try
everything everywhere.
THREADLINE_TEST_CONFORMANCE=all runs all of them; with ``few`` Hypothesis tries each only as often as the profile says.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.few_examples import try_few

if TYPE_CHECKING:
    from tests.conformance.backends import Backend

BACKEND = os.environ.get("THREADLINE_TEST_BACKEND", "memory")
HOW_MUCH = os.environ.get("THREADLINE_TEST_CONFORMANCE", "share")
"""``share``, ``few`` or ``all``."""
SHARE_OF_FILES_MAX = 1 / 30
ROOT = Path(__file__).parents[2]

_stack = ExitStack()
_open: list[Any] = []
_opened = 0


def pytest_configure(config: pytest.Config) -> None:
    """Before any test's module is imported, so that each gets the other kind under the name that it asks for."""
    from tests.conformance.backends import servers
    from threadline.stores import memory

    backend = _backend()
    folder = Path(_stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
    _stack.enter_context(servers(folder))

    class Elsewhere:
        """A store of the chosen kind, under the name of the memory store."""

        def __init_subclass__(cls) -> None:
            """Say in the first run what else would only be seen when the seed draws the test."""
            raise TypeError(f"{cls.__name__}: a suite that runs on every store changes one it has made, not its class")

        def __new__(cls, *, readonly: bool = False) -> Any:
            """Open one in a folder of its own."""
            assert not readonly, "a store of one's own that cannot be written to stays empty"
            global _opened  # noqa: PLW0603 - a plugin has no other place between its hooks
            _opened += 1
            _open.append(backend.open(Path(tempfile.mkdtemp(dir=folder))))
            return _open[-1]

    memory.MemoryStore = Elsewhere  # type: ignore[assignment, misc]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Import no file of which nothing would be run: that takes longer than a small share of the tests."""
    if not collection_path.name.startswith("test_") or collection_path.suffix != ".py":
        return None
    if not makes_stores(collection_path):
        return True
    if HOW_MUCH != "share":
        return None
    subject, seed = subject_of(collection_path), os.environ["THREADLINE_TEST_SEED"]
    if not is_drawn(subject, _backend().subjects, f"{seed} {BACKEND}"):
        return True
    if _backend().share > SHARE_OF_FILES_MAX:
        return None
    return True if collection_path != drawn_file(files_of(subject, collection_path.parent), seed) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what would say nothing of this store, and what this run has no time for."""
    telling = [item for item in items if makes_stores(item.path) and "sqlite" not in item.name]
    if HOW_MUCH == "share":
        telling = drawn(telling, _backend().share, os.environ["THREADLINE_TEST_SEED"])
    if HOW_MUCH != "all":
        for item in telling:
            try_few(item)
    kept = {item.nodeid for item in telling}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    items[:] = telling


def drawn(items: Sequence[pytest.Item], share: float, seed: str) -> list[pytest.Item]:
    """This share of every subject's tests that are not slow, in their order: which ones, the seed decides."""
    subjects: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow") is None:
            subjects.setdefault((item.path.parent, subject_of(item.path)), []).append(item)
    kept: set[str] = set()
    for (folder, subject), each in subjects.items():
        each.sort(key=lambda item: _chance(seed, item.nodeid))
        # Of one file as many as of all of the subject.
        files = len(files_of(subject, folder)) if share <= SHARE_OF_FILES_MAX else 1
        kept.update(item.nodeid for item in each[: math.ceil(len(each) * share * files)])
    return [item for item in items if item.nodeid in kept]


def subject_of(path: Path) -> str:
    """What a file is about, by its name."""
    return path.stem.split("_")[1]


@cache
def files_of(subject: str, folder: Path) -> tuple[Path, ...]:
    """The files of a folder that are about a subject and make stores."""
    return tuple(
        path for path in sorted(folder.glob("test_*.py")) if subject_of(path) == subject and makes_stores(path)
    )


def drawn_file(files: Sequence[Path], seed: str) -> Path:
    """The one that the seed draws."""
    return min(files, key=lambda path: _chance(seed, path.name))


def _chance(seed: str, name: str) -> bytes:
    return hashlib.blake2b(f"{seed} {name}".encode()).digest()


def is_drawn(subject: str, share: float, seed: str) -> bool:
    """Whether a subject is among this share of all of them."""
    return int.from_bytes(_chance(seed, subject)[:4]) < share * 2**32


def _backend() -> Backend:
    from tests.conformance.backends import BACKENDS

    return next(each for each in BACKENDS if each.name == BACKEND)


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
