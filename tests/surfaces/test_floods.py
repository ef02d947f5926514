"""Floods by clients who are nobody: a real server keeps its memory and its descriptors, and serves who behaves well."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import sys
import threading
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import httpx
import psutil
import pytest

import threadline
from tests.clients.server import Server
from tests.repeating import seed
from threadline.surfaces.http.answers.in_flight import LOG_SECONDS

pytestmark = pytest.mark.client

SCALE = int(os.environ.get("THREADLINE_TEST_FLOODS", "1"))
"""How many times as many connections flood a server as in CI."""
MB = 1_000_000
BODY = 4 * MB
MEMORY = 32 * MB
"""What the servers here may keep of requests, and of answers."""


@pytest.fixture
def random(request: pytest.FixtureRequest) -> Random:
    return Random(f"{seed()} {request.node.name}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(
        tmp_path_factory.mktemp("floods") / "threadline.db", request_memory_bytes=MEMORY, answer_memory_bytes=MEMORY
    )
    made.start()
    yield made
    assert "Traceback" not in made.log()
    made.stop()


def rss(server: Server) -> int:
    found: int = psutil.Process(server.pid).memory_info().rss
    return found


class Highest:
    """The highest resident memory of a server while the block runs, over that at its beginning."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._end = threading.Event()
        self._watching = threading.Thread(target=self._watch)
        self.before = self.highest = 0

    @property
    def growth(self) -> int:
        return self.highest - self.before

    def _watch(self) -> None:
        while not self._end.wait(0.02):
            self.highest = max(self.highest, rss(self._server))

    def __enter__(self) -> Highest:
        self.before = self.highest = rss(self._server)
        self._watching.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._watching.join()
        self.highest = max(self.highest, rss(self._server))
        if os.environ.get("THREADLINE_TEST_FLOODS_REPORT"):
            sys.stderr.write(f"grew by {self.growth / MB:.1f} MB\n")


def head(*lines: str, method: str = "POST", path: str = "/v1/batch") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: here", *lines, "", ""]).encode()


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[Any]]


async def talk(server: Server, say: Talk, receive_buffer: int = 0) -> Any:
    """What comes of a conversation with the server; the error, if the connection breaks."""
    connection = socket.socket()
    connection.setblocking(False)
    if receive_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    try:
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", server.port))
        reader, writer = await asyncio.open_connection(sock=connection, limit=max(receive_buffer, 65_536))
    except OSError as error:
        connection.close()
        return error
    try:
        return await say(reader, writer)
    except (OSError, asyncio.IncompleteReadError) as error:
        return error
    finally:
        writer.close()


def track(key: str, **more: Any) -> dict[str, Any]:
    return {"type": "track", "userId": "ada", "event": "click", "messageId": key, **more}


class WellBehaved:
    """Clients that send and read while the block runs, one after the other: what they were answered."""

    def __init__(self, server: Server, *, reads: bool = True) -> None:
        self._server = server
        self._reads = reads
        self._end = threading.Event()
        self._clients = [threading.Thread(target=self._run, args=(each,)) for each in range(2)]
        self.answers: Counter[str] = Counter()

    def _run(self, number: int) -> None:
        count = 0
        while not self._end.is_set():
            count += 1
            event = track(f"well-{self._server.port}-{time.time_ns()}-{number}-{count}")
            with httpx.Client(base_url=self._server.url, timeout=20) as client:
                try:
                    answer = client.post("/v1/track", json=event, auth=(self._server.write_key, ""))
                    self.answers[f"key in the head {answer.status_code}"] += 1
                    event = {**event, "messageId": event["messageId"] + "b", "writeKey": self._server.write_key}
                    answer = client.post("/v1/track", json=event)
                    self.answers[f"key in the body {answer.status_code}"] += 1
                    if self._reads:
                        bearer = {"Authorization": f"Bearer {self._server.token}"}
                        answer = client.get("/v1/people/user_id:ada", headers=bearer)
                        self.answers[f"read {answer.status_code}"] += 1
                except httpx.TransportError as error:
                    self.answers[type(error).__name__] += 1
            self._end.wait(0.02)

    def __enter__(self) -> WellBehaved:
        for client in self._clients:
            client.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for client in self._clients:
            client.join()

    def assert_served(self) -> None:
        assert set(self.answers) <= {"key in the head 200", "key in the body 200", "read 200"}, self.answers
        assert self.answers["key in the head 200"] > 1, self.answers


def flood_with_bodies(server: Server, random: Random, *lines: str, connections: int, refusals: int) -> list[bytes]:
    """The refusals of connections that send up to 4 MB of a body, and never its end, once there are so many."""
    refused: list[bytes] = []

    async def flood() -> None:
        enough = asyncio.Event()

        async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(head(*lines, f"Content-Length: {BODY}"))
            for _ in range(random.randrange(BODY // 2, BODY) // 65_536):
                writer.write(b" " * 65_536)
                await writer.drain()
            refused.append(await reader.read())
            if len(refused) >= refusals:
                enough.set()

        talks = [asyncio.create_task(talk(server, hold)) for _ in range(connections)]
        await asyncio.wait_for(enough.wait(), 60)
        await asyncio.sleep(0.3)
        for each in talks:
            each.cancel()
        await asyncio.gather(*talks, return_exceptions=True)

    asyncio.run(flood())
    return refused


def test_bodies_without_a_credential_that_never_end_take_a_small_share_of_memory(
    server: Server, random: Random
) -> None:
    connections = 60 * SCALE
    with Highest(server) as memory, WellBehaved(server) as others:
        refused = flood_with_bodies(server, random, connections=connections, refusals=connections // 2)
    assert memory.growth < (60 + 10 * SCALE) * MB, memory.growth
    others.assert_served()
    for answer in refused:
        assert answer.startswith(b"HTTP/1.1 503 "), answer
        assert b"\r\nretry-after: 1\r\n" in answer


def test_bodies_with_a_write_key_that_never_end_do_not_shut_out_others(server: Server, random: Random) -> None:
    secret = "Authorization: Basic " + b64encode(f"{server.write_key}:".encode()).decode()
    connections = 30 * SCALE
    with Highest(server) as memory, WellBehaved(server) as others:
        refused = flood_with_bodies(server, random, secret, connections=connections, refusals=connections // 3)
    assert memory.growth < (100 + 10 * SCALE) * MB, memory.growth
    others.assert_served()
    assert len(refused) < connections, "those for whom there is memory are not refused"


@pytest.mark.parametrize("refusal", ["413 announced", "413 of chunks", "401", "404"])
def test_a_body_that_goes_on_after_its_refusal_is_read_no_further(refusal: str, server: Server) -> None:
    path = {"401": "/v1/definitions/reload", "404": "/nothing"}.get(refusal, "/v1/batch")
    lines = [f"Content-Length: {10**12}"] if refusal == "413 announced" else ["Transfer-Encoding: chunked"]
    piece = b"%x\r\n" % 65_536 + b" " * 65_536 + b"\r\n"
    sent, answer = 0, b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(head(*lines, path=path))
        with suppress(OSError):
            while sent < 300 * MB:
                sent += connection.send(piece)
        with suppress(OSError):
            while more := connection.recv(65_536):
                answer += more
    assert sent < 40 * MB, sent
    assert not answer or answer.startswith(b"HTTP/1.1 %b " % refusal[:3].encode()), answer[:200]


def test_a_client_that_sends_all_of_a_body_that_is_too_large_sees_the_refusal(server: Server) -> None:
    for path, size, status in (("/v1/batch", BODY + BODY // 2, 413), ("/v1/definitions/reload", BODY, 401)):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        connection.request("POST", path, body=b" " * size)
        answer = connection.getresponse()
        assert (answer.status, answer.headers["connection"]) == (status, "close")
        assert json.loads(answer.read())["status"] == status
        connection.close()


def test_readers_who_do_not_read_hold_a_bounded_part_of_memory(server: Server, random: Random) -> None:
    text = "x" * 30_000
    for start in range(0, 130, 65):
        messages = [
            track(f"large-{start + each}", userId=f"large{each}", properties={"text": text}) for each in range(65)
        ]
        sent = httpx.post(f"{server.url}/v1/batch", json={"batch": messages}, auth=(server.write_key, ""), timeout=60)
        assert sent.json()["rejected"] == [], sent.text[:500]
    bearer = f"Authorization: Bearer {server.token}"
    seen: Counter[bytes] = Counter()

    async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head(bearer, method="GET", path="/v1/feed?limit=1000"))
        first = await asyncio.wait_for(reader.readline(), 60)
        seen[first[9:12]] += 1
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(end - time.monotonic())

    async def flood() -> None:
        await asyncio.gather(*[talk(server, ask, random.randrange(2_048, 8_192)) for _ in range(40 * SCALE)])

    end = time.monotonic() + 2.5
    with Highest(server) as memory, WellBehaved(server, reads=False) as others:
        asyncio.run(flood())
    assert memory.growth < 130 * MB, memory.growth
    assert seen[b"200"] > 2, seen
    assert set(seen) <= {b"200", b"503"}, seen
    others.assert_served()


UPGRADES = [
    f"{first}\r\nUpgrade: {protocol}\r\nConnection: {connection}\r\n{rest}\r\n"
    for first in ("GET /livez HTTP/1.1\r\nHost: here", "GET /livez HTTP/1.0", "POST /livez HTTP/1.1\r\nHost: here")
    for protocol in ("h2c", "websocket", "TLS/1.0, HTTP/1.1")
    for connection in ("close", "upgrade", "close, Upgrade", "Upgrade, close", "keep-alive, upgrade")
    for rest in ("", "Content-Length: 4\r\n")
]


@pytest.mark.parametrize("pieces", [1, 3])
def test_every_offer_of_another_protocol_is_answered_at_once(pieces: int, server: Server, random: Random) -> None:
    async def offer(sent: bytes) -> bytes:
        async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
            size = -(-len(sent) // pieces)
            for at in range(0, len(sent), size):
                writer.write(sent[at : at + size])
                await writer.drain()
            return await asyncio.wait_for(reader.readline(), 15)

        found: bytes = await talk(server, say)
        return found

    async def storm() -> list[bytes]:
        offers = [each.encode() + (b"abcd" if "Content-Length" in each else b"") for each in UPGRADES]
        random.shuffle(offers)
        return await asyncio.gather(*[offer(each) for each in offers * SCALE])

    assert set(asyncio.run(storm())) == {b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 405 Method Not Allowed\r\n"}


def test_a_thousand_offers_in_one_piece_are_answered_one_by_one(server: Server) -> None:
    one = b"GET /livez HTTP/1.1\r\nHost: here\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        writer.write(one * 1_000 + b"GET /livez HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
        return (await asyncio.wait_for(reader.read(), 30)).count(b"HTTP/1.1 200 OK\r\n")

    assert asyncio.run(talk(server, say)) == 1_001


class FewDescriptors(Server):
    """A server that may open 200 files, and connections to it."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, access_log="false")
        self.within = ("/bin/sh", "-c", 'ulimit -n 200; exec "$@"', "sh")
        self._connections: list[socket.socket] = []

    def connect(self, sent: bytes) -> None:
        """One more connection, which stays open and says no more than this."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        self._connections.append(connection)
        with suppress(OSError):
            connection.sendall(sent)

    def close(self) -> None:
        """Close all of these connections."""
        for connection in self._connections:
            connection.close()

    def __enter__(self) -> FewDescriptors:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self.stop()
        assert "Traceback" not in self.log()
        assert "Too many open files" not in self.log()


def test_when_descriptors_are_used_up_idle_connections_give_way_and_busy_ones_make_newcomers_wait(
    tmp_path: Path, random: Random
) -> None:
    beginnings = [b"", b"G", head(method="GET", path="/livez")[:-2], head("Content-Length: 5") + b"abcd"]
    began = time.monotonic()
    with FewDescriptors(tmp_path / "threadline.db") as server:
        for _ in range(300 * SCALE):
            server.connect(random.choice(beginnings))
        time.sleep(1.2)  # they are given a second
        with WellBehaved(server) as others:
            time.sleep(0.4)
            assert server.get("/readyz").status_code == 200
        others.assert_served()
        server.close()
        secret = "Authorization: Basic " + b64encode(f"{server.write_key}:".encode()).decode()
        for _ in range(200):
            server.connect(head(secret, "Content-Length: 5") + b"abcd")
        for _ in range(20):
            answer = httpx.post(f"{server.url}/v1/track", json=track("late"), auth=(server.write_key, ""), timeout=10)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert server.get("/readyz").status_code == 200
        spans = int((time.monotonic() - began) / LOG_SECONDS) + 2
        assert 1 <= server.log().count("no room for connections") <= spans, "once in a while, not for each of hundreds"
        counted = [
            line
            for line in server.get("/metrics").text.splitlines()
            if line.startswith("threadline_http_refused_total{")
        ]
        assert any('for="connections"' in line for line in counted), counted
        server.close()
        answer = httpx.post(f"{server.url}/v1/track", json=track("late"), auth=(server.write_key, ""), timeout=10)
        assert answer.status_code == 200


class Front:
    """A balancer before a server: it looks at its readiness again and again, and sends while it is ready.

    Half of its clients do not look, and send for as long as they are let.
    """

    def __init__(self, server: Server, look_seconds: float, clients: int) -> None:
        self._server = server
        self._look_seconds = look_seconds
        self.is_ready = True
        self.answers: Counter[str] = Counter()
        self.accepted: list[str] = []
        self.closing = 0
        """Answers that said that their connection is to be closed."""
        self._threads = [threading.Thread(target=self._look)]
        self._threads += [threading.Thread(target=self._send, args=(number,)) for number in range(clients)]
        for each in self._threads:
            each.start()

    def _look(self) -> None:
        while self.is_ready:
            time.sleep(self._look_seconds)
            try:
                self.is_ready = self._server.get("/readyz").status_code == 200
            except httpx.TransportError:
                self.is_ready = False
                self.answers["no answer to the look"] += 1

    def _send(self, number: int) -> None:
        secret = {"Authorization": "Basic " + b64encode(f"{self._server.write_key}:".encode()).decode()}
        connection: http.client.HTTPConnection | None = None
        count = 0
        while self.is_ready or number % 2:
            count += 1
            key = f"front-{number}-{count}"
            try:
                if connection is None:
                    connection = http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=30)
                connection.request("POST", "/v1/track", json.dumps(track(key, userId=f"f{number}")), secret)
                answer = connection.getresponse()
                answer.read()
            except OSError as error:
                self.answers[type(error).__name__] += 1
                return
            self.answers[str(answer.status)] += 1
            if answer.status == 200:
                self.accepted.append(key)
            if answer.will_close:
                self.closing += 1
                connection.close()
                connection = None
        if connection is not None:
            connection.close()

    def join(self) -> None:
        for each in self._threads:
            each.join()


def keys_in(file: Path) -> list[str]:
    """The keys of all events in a store that nobody has open."""
    with threadline.open(file) as tl:
        return [each.key for each in _events(tl.engine)]


def _events(engine: Any) -> Iterator[Any]:
    cursor = ""
    while page := engine.log.feed(cursor):
        for each in page:
            yield engine.log.event("default", each.entry.id).event
        cursor = page[-1].cursor


def test_sigterm_under_load_breaks_no_request(tmp_path: Path, random: Random) -> None:
    clients = 6 * SCALE
    server = Server(tmp_path / "threadline.db", drain_seconds=0.8, person_events_per_second=0)
    server.start()
    front = Front(server, 0.2, clients)
    time.sleep(0.3 + random.random() / 4)
    server.ask_to_stop()
    front.join()
    server.wait_for_end()
    others = Counter({name: count for name, count in front.answers.items() if name != "200"})
    assert others == {"ConnectionRefusedError": clients // 2}, "those who do not look, when nobody listens any more"
    assert front.answers["200"] > 50
    assert front.closing >= clients, "connections that stay open were told that they end"
    assert "Traceback" not in server.log()
    assert sorted(keys_in(server.file)) == sorted(front.accepted)


def test_a_second_sigterm_skips_the_wait_for_the_front(tmp_path: Path) -> None:
    server = Server(tmp_path / "threadline.db", drain_seconds=50)
    server.start()
    server.ask_to_stop()
    while server.get("/readyz").status_code == 200:
        time.sleep(0.02)
    assert server.get("/livez").headers["connection"] == "close"
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began < 40
