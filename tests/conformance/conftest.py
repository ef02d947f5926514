"""Tells at the end of a run which stores were compared, on what, and in what they may differ."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.backends import BACKENDS, MARKS, servers

_compared: set[str] = set()


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The servers that a backend needs beside it."""
    with servers(tmp_path_factory.mktemp("servers")):
        yield


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.name)
def backend(request: pytest.FixtureRequest, started: None) -> object:
    """Each of the stores in turn."""
    _compared.add(request.param.name)
    return request.param


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the marks under the results."""
    if not _compared:
        return
    terminalreporter.section("conformance of stores")
    for each in BACKENDS:
        if each.name in _compared:
            terminalreporter.line(f"{each.name}: {each.runs_on}")
    terminalreporter.line(f"declared differences: {len(MARKS) or 'none'}")
    for mark in MARKS:
        terminalreporter.line(f"  declared difference of {mark.backend}: {mark.what}; {mark.why}")
