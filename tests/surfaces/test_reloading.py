"""A running server takes in changed definitions: all of them or none, without losing or refusing a request."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import threadline
from tests.surfaces.test_http_server import Process
from threadline.app import composition, reopen
from threadline.settings import Settings
from threadline.surfaces.cli.program import run

KEYS = {"THREADLINE_WRITE_KEYS": "shop=mine-alone", "THREADLINE_TOKENS": "tok-alone", "THREADLINE_ACCESS_LOG": "false"}
BEARER = {"Authorization": "Bearer tok-alone"}
STALE = "threadline-stale"
ONE = "features: {clicks: {aggregate: count, events: click}}\n"
MISSPELT = """
rules: {a: {conditions: {field: tags, exists: true}}}
rule_sets: {shop: {events: [purchase_complete], rules: [a]}}
"""
TWO = ONE + "segments: {clickers: {when: {field: features.clicks, greater_than: 1}}}\n"
THREE = TWO + "leaderboards: {clickers: {score: features.clicks}}\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Process]:
    (tmp_path / "threadline.yaml").write_text(ONE + MISSPELT)
    made = Process(tmp_path / "x.db", KEYS)
    yield made
    made.process.kill()
    made.process.communicate()


def wait_until(client: httpx.Client, segments: int) -> None:
    """Until a signal has had its effect."""
    for _ in range(600):
        if len(client.get("/v1/segments").json()["segments"]) == segments:
            return
        time.sleep(0.05)
    raise AssertionError("the signal had no effect")


def visit(client: httpx.Client) -> int:
    """The status of an action by a visitor; five a minute are taken."""
    return client.post("/ux/appaction", json={"topic": "Article", "applicationId": "web"}).status_code


def test_a_server_takes_in_definitions_whole_or_not_at_all_and_drops_nothing(
    server: Process, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THREADLINE_TOKEN", "tok-alone")
    definitions = tmp_path / "threadline.yaml"
    stopping, statuses = threading.Event(), set[int]()

    def send() -> None:
        with httpx.Client(base_url=server.url, auth=("mine-alone", "")) as client:
            number = 0
            while not stopping.is_set():
                number += 1
                event = {"userId": f"u{number % 3}", "event": "click", "messageId": f"m{number}"}
                statuses.add(client.post("/v1/track", json=event).status_code)
        counts.append(number)

    assert server.process.stderr is not None
    assert "did you mean 'purchase_completed'" in server.process.stderr.readline()
    definitions.write_text(ONE)
    counts: list[int] = []
    sender = threading.Thread(target=send, daemon=True)  # a test that fails must not wait for it for ever
    sender.start()
    with httpx.Client(base_url=server.url, headers=BEARER, timeout=60) as client:
        definitions.write_text("segments: {a: {when: 3}}\nstreaks: 3\nsettings: {prot: 1}\n")
        refused = client.post("/v1/definitions/reload")
        assert refused.status_code == 400
        assert [line.split(": ")[0] for line in refused.json()["detail"].splitlines()] == [
            f"{definitions}:{number}" for number in (1, 2, 3)
        ]
        definitions.write_text(TWO + "destinations: {crm: {url: 'https://x.example', secrets: ['env:NOT_SET']}}\n")
        refused = client.post("/v1/definitions/reload")
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_setting")
        detail = refused.json()["detail"]
        assert f"{definitions}:3: destination 'crm' signs with env:NOT_SET, which is not set" in detail
        assert client.get("/v1/segments").json()["segments"] == []
        assert [visit(client) for _ in range(6)] == [200] * 5 + [429]

        slow = socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])))
        body = json.dumps({"userId": "slow", "event": "click", "messageId": "slow"}).encode()
        head = "POST /v1/track HTTP/1.1\r\nHost: x\r\nAuthorization: Basic bWluZS1hbG9uZTo=\r\nConnection: close\r\n"
        slow.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:5])

        definitions.write_text(TWO)
        taken = client.post("/v1/definitions/reload").json()
        assert {(each["change"], each["section"]) for each in taken["changes"]} == {
            ("added", "segments"),
            ("removed", "rules"),
            ("removed", "rule_sets"),
        }
        assert taken["stale"] == ["segments"]
        assert visit(client) == 429, "a reload is no new allowance"
        counted = 'threadline_http_requests_total{method="POST",route="/ux/appaction",status="%d"} %d'
        assert {counted % (200, 5), counted % (429, 2)} <= set(client.get("/metrics").text.splitlines())
        assert len(client.get("/v1/segments").json()["segments"]) == 1
        assert client.get("/v1/segments/clickers/members").headers[STALE].startswith("segments.clickers; run")
        assert STALE not in client.get("/v1/features/clicks/top").headers, "people's states have not changed"

        slow.sendall(body[5:])
        assert slow.recv(65_536).startswith(b"HTTP/1.1 200"), "it ends with the definitions that it began with"
        slow.close()

        definitions.write_text("segments: [")
        server.process.send_signal(signal.SIGHUP)
        assert any("definitions were not reloaded" in line for line in server.process.stderr)
        definitions.write_text(ONE)
        server.process.send_signal(signal.SIGHUP)
        wait_until(client, 0)
        definitions.write_text(THREE)
        server.process.send_signal(signal.SIGHUP)
        wait_until(client, 1)
        stopping.set()
        sender.join()
        assert statuses == {200}

        for command in ("segments members clickers", "apply --dry-run", "apply"):
            capfd.readouterr()
            assert run(composition, [*command.split(), "--url", server.url]) == 0
            told = capfd.readouterr()
            if command.startswith("segments"):
                assert "older than the definitions: people, segments.clickers; run `threadline apply`" in told.err
        assert "segments: 5 people brought up to date" in told.out
        assert client.get("/v1/definitions/changes").json() == {"changes": [], "stale": [], "projections": []}
        members = client.get("/v1/segments/clickers/members")
        assert (len(members.json()["members"]), members.headers.get(STALE)) == (3, None)
        places = client.get("/v1/leaderboards/clickers").json()["places"]
        assert sum(each["score"] for each in places) == counts[0] + 1

        definitions.write_text(TWO)
        capfd.readouterr()
        assert run(composition, ["apply", "--background", "--json", "--url", server.url]) == 0
        job = json.loads(capfd.readouterr().out)["job"]
        assert run(composition, ["jobs", "watch", job, "--json", "--url", server.url]) == 0
        assert json.loads(capfd.readouterr().out)["counts"] == {"people": 5}
        assert client.get("/v1/definitions/changes").json() == {"changes": [], "stale": [], "projections": []}
    assert server.stop() == 0
    log = server.process.stderr.read()
    assert "definitions reloaded" in log
    assert "Traceback" not in log


def test_what_an_earlier_engine_still_records_is_seen_by_the_one_in_force(tmp_path: Path) -> None:
    settings = Settings(store="memory:", definitions=str(tmp_path / "threadline.yaml"))
    (tmp_path / "threadline.yaml").write_text(ONE + "leaderboards: {clickers: {score: features.clicks}}\n")
    earlier = threadline.open_engine(settings=settings)
    before, after = threadline.Threadline(earlier), threadline.Threadline(reopen(earlier, settings))
    before.track("ada", "click")
    assert after.leaderboards.standing("user_id:ada", "clickers").total == 1
    before.track("bob", "click")
    after.track("bob", "click")
    before.track("bob", "click")
    standing = after.leaderboards.standing("user_id:bob", "clickers")
    assert (standing.rank, standing.score, standing.total) == (1, 3, 2)
    with pytest.raises(threadline.Conflict, match="open it again"):
        after.definitions.reload()
