"""Each of the stores in turn, with the servers that it needs, and a note of it for the end of the run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.backends import BACKENDS, Backend, servers
from tests.conformance.telling import COMPARED


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The servers that a backend needs beside it."""
    with servers(tmp_path_factory.mktemp("servers")):
        yield


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.name)
def backend(request: pytest.FixtureRequest, started: None) -> Backend:
    """Each of the stores in turn."""
    chosen: Backend = request.param
    request.node.user_properties.append((COMPARED, (chosen.name, "")))
    return chosen
