"""One server for all clients, a network of each test's own, and what a client needs to be driven."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# Before it is imported, so that a failure in it says what differs.
pytest.register_assert_rewrite("tests.clients.calls")

from tests.clients.calls import Who  # noqa: E402
from tests.clients.network import Network  # noqa: E402
from tests.clients.server import Server  # noqa: E402

HERE = Path(__file__).parent
NODE_SECONDS = 120

RunNode = Callable[..., Any]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("clients") / "threadline.db")
    made.start()
    yield made
    made.stop()


@pytest.fixture
def network(server: Server) -> Iterator[Network]:
    made = Network(server.port)
    yield made
    made.close()


@pytest.fixture
def who(request: pytest.FixtureRequest) -> Who:
    # The file's name too: tests of different clients have the same names, and all share one server.
    return Who.of(re.sub(r"[^a-z0-9]+", "-", f"{request.path.stem} {request.node.name}".lower()).strip("-"))


@pytest.fixture(scope="session")
def node() -> RunNode:
    """Runs a script of the folder ``node`` on JSON; gives back the JSON that it prints."""
    if shutil.which("node") is None:
        pytest.skip("node is missing; `make setup` installs it where it may")
    if not (HERE / "node_modules").is_dir():
        pytest.skip("the node clients are missing; `make setup` installs them")

    def run(script: str, **given: Any) -> Any:
        command = ["node", str(HERE / "node" / script)]
        done = subprocess.run(
            command, input=json.dumps(given), capture_output=True, text=True, timeout=NODE_SECONDS, check=False
        )
        assert done.returncode == 0, done.stderr[-4_000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run
