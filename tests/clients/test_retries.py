"""What clients do when they get no answer or a bad one: they send again, and each event is there exactly once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.clients import test_rudder, test_segment
from tests.clients.calls import Call, Who
from tests.clients.conftest import RunNode
from tests.clients.network import LOSE, PASS, REFUSE, RESET, STRIKE, Network
from tests.clients.server import Server, wait_until
from tests.stores.test_sqlite_full_disk import small_disk

pytestmark = pytest.mark.client

__all__ = ["small_disk"]

Speak = Callable[[str, str, list[Call]], list[object]]
"""(address, write key, calls) -> what the client could not deliver."""
CLIENTS = ["segment-python", "segment-node", "rudder-python", "rudder-node"]
BATCH = 5


@pytest.fixture
def speak(client: str, request: pytest.FixtureRequest) -> Speak:
    """Makes calls with a client, in small batches, with patience enough to outlive a restart of the server."""
    if client.endswith("python"):
        module: Any = test_segment if client == "segment-python" else test_rudder
        return lambda url, key, calls: _speak_python(module.python_client, url, key, calls)
    node: RunNode = request.getfixturevalue("node")
    script, options = {
        "segment-node": ("segment.mjs", {"flushAt": BATCH, "maxRetries": 10}),
        "rudder-node": ("rudder.mjs", {"flushAt": BATCH, "retryCount": 10}),
    }[client]
    return lambda url, key, calls: node(script, host=url, writeKey=key, calls=calls, options=options)


def _speak_python(make: Callable[..., Any], url: str, write_key: str, calls: list[Call]) -> list[object]:
    failed: list[object] = []
    made = make(url, write_key, failed, upload_size=BATCH)
    test_segment.speak(made, calls)
    made.flush()
    made.join()
    return failed


def clicks(who: Who, count: int) -> list[Call]:
    return [
        {"type": "track", "userId": who.user, "event": "click", "properties": {"n": n}, "messageId": f"{who.user} {n}"}
        for n in range(count)
    ]


def check_once(server: Server, who: Who, count: int) -> None:
    """Each click is there once, in its person's one gapless thread, and none was taken for another payload."""
    events = server.events(f"user_id:{who.user}")
    assert Counter(event["properties"]["n"] for event in events) == Counter(range(count))
    assert sorted(event["sequence"] for event in events) == list(range(1, count + 1))
    assert server.person(f"user_id:{who.user}")["position"] == count
    assert server.rejected(who.user) == []


@pytest.mark.parametrize("client", CLIENTS)
def test_a_bad_network_loses_and_doubles_nothing(server: Server, network: Network, who: Who, speak: Speak) -> None:
    network.plan([REFUSE, LOSE, PASS, RESET, LOSE, PASS, LOSE, REFUSE])
    assert speak(network.url, server.write_key, clicks(who, 30)) == []
    check_once(server, who, 30)
    assert {request.fate for request in network.taken} == {REFUSE, LOSE, RESET, PASS}
    assert len(network.answered) == 30
    reached = [request for request in network.taken if request.fate in (LOSE, PASS)]
    assert sum(len(request.json()["batch"]) for request in reached) > 30, "something reached the server twice"


class Speaking:
    """A client at work while the test does something to the server."""

    def __init__(self, speak: Speak, url: str, write_key: str, calls: list[Call]) -> None:
        self._failed: list[object] | None = None
        self._thread = threading.Thread(target=self._speak, args=(speak, url, write_key, calls), daemon=True)
        self._thread.start()

    def _speak(self, speak: Speak, *given: Any) -> None:
        self._failed = speak(*given)

    def failed(self) -> list[object] | None:
        """What it could not deliver, once it is done; None if it broke down itself."""
        self._thread.join(120)
        assert not self._thread.is_alive()
        return self._failed


@pytest.fixture
def fragile(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own, to be killed."""
    made = Server(tmp_path / "threadline.db")
    made.start()
    yield made
    made.stop()


@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS)
def test_a_server_that_is_killed_and_started_again(fragile: Server, who: Who, speak: Speak) -> None:
    count, deaths = 300, 3
    network = Network(fragile.port, strike=fragile.kill)
    network.plan([PASS] * 6 + [STRIKE])
    speaking = Speaking(speak, network.url, fragile.write_key, clicks(who, count))
    for death in range(deaths):
        assert network.struck.acquire(timeout=60), f"death {death} did not come"
        fragile.start()
        if death + 1 < deaths:
            network.plan([PASS] * 6 + [STRIKE])
    assert speaking.failed() == []
    network.close()
    assert sum(request.fate == STRIKE for request in network.taken) == deaths
    check_once(fragile, who, count)


@pytest.mark.slow
@pytest.mark.parametrize("client", ["segment-python", "segment-node"])
def test_a_disk_that_is_full_for_a_while(small_disk: Path, tmp_path: Path, who: Who, speak: Speak) -> None:
    server = Server(small_disk / "threadline.db", logs=tmp_path)
    server.start()
    ballast = small_disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4_096))
    speaking = Speaking(speak, server.url, server.write_key, clicks(who, 100))
    try:
        wait_until(lambda: '"status":503' in server.log(), "the server has refused something")
        assert len(server.events(f"user_id:{who.user}")) < 100
        ballast.unlink()
        assert speaking.failed() == []
        check_once(server, who, 100)
    finally:
        server.stop()
