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
    return speaker(client, request)


def speaker(client: str, request: pytest.FixtureRequest) -> Speak:
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


def test_a_bad_network_loses_and_doubles_nothing(server: Server, request: pytest.FixtureRequest) -> None:
    # All clients at once, each on a network of its own: most of the time is their patience.
    count = 30
    people = {client: Who.of(f"on a bad network {client}") for client in CLIENTS}
    networks = {client: Network(server.port) for client in CLIENTS}
    speaking = {}
    for client, network in networks.items():
        network.plan([REFUSE, LOSE, PASS, RESET, LOSE, PASS, LOSE, REFUSE])
        calls = clicks(people[client], count)
        speaking[client] = Speaking(speaker(client, request), network.url, server.write_key, calls)
    assert {client: each.failed() for client, each in speaking.items()} == {client: [] for client in CLIENTS}
    for client, network in networks.items():
        network.close()
        check_once(server, people[client], count)
        assert {each.fate for each in network.taken} == {REFUSE, LOSE, RESET, PASS}, client
        assert len(network.answered) == count, client
        reached = [each for each in network.taken if each.fate in (LOSE, PASS)]
        assert sum(len(each.json()["batch"]) for each in reached) > count, f"of {client} something arrived twice"


@pytest.fixture
def fragile(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own, to be killed."""
    made = Server(tmp_path / "threadline.db")
    made.start()
    yield made
    made.stop()


class Deaths:
    """Kills a server so many times, each while one of its clients waits for an answer."""

    def __init__(self, server: Server, count: int) -> None:
        self.died = threading.Semaphore(0)
        self._server = server
        self._left = count
        self._alive = True
        self._lock = threading.Lock()

    def strike(self) -> None:
        with self._lock:
            if self._alive and self._left:
                self._left -= 1
                self._alive = False
                self._server.kill()
                self.died.release()

    def start(self) -> None:
        self._server.start()
        self._alive = True


@pytest.mark.slow
def test_a_server_that_is_killed_and_started_again(fragile: Server, request: pytest.FixtureRequest) -> None:
    # All clients at once: each meets the deaths of the others as well, and most of the time is their patience.
    count, deaths = 300, 3
    killer = Deaths(fragile, deaths)
    people = {client: Who.of(f"outlives {client}") for client in CLIENTS}
    networks = {client: Network(fragile.port, strike=killer.strike) for client in CLIENTS}
    speaking = {}
    for client, network in networks.items():
        network.plan([PASS] * 6 + [STRIKE])
        calls = clicks(people[client], count)
        speaking[client] = Speaking(speaker(client, request), network.url, fragile.write_key, calls)
    for death in range(deaths):
        assert killer.died.acquire(timeout=60), f"death {death} did not come"
        killer.start()
        if death + 1 < deaths:
            for network in networks.values():
                network.plan([PASS] * 6 + [STRIKE])
    assert {client: each.failed() for client, each in speaking.items()} == {client: [] for client in CLIENTS}
    for client, network in networks.items():
        network.close()
        assert len(network.taken) > count // BATCH, f"{client} has met no death"
        check_once(fragile, people[client], count)


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
