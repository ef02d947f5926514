"""What is made by hand in one process is in force in the others of its store, without a restart."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

import threadline
from tests import forked
from tests.servers import dynamodb, postgres
from tests.surfaces.cli_stage import Ran, call, composed, store
from tests.surfaces.test_http_server import Process
from threadline.app import composition
from threadline.engine.delivery.leases import LEASE_SECONDS
from threadline.settings import Settings
from threadline.surfaces.lambda_.runtime import Runtime

__all__ = ["call", "composed", "store"]

KEYS = {
    "THREADLINE_WRITE_KEYS": "shop=mine-alone",
    "THREADLINE_TOKENS": "admin=tok-alone",
    "THREADLINE_ACCESS_LOG": "false",
    "THREADLINE_RULES_REFRESH_SECONDS": "1",
}
BEARER = {"Authorization": "Bearer tok-alone"}
VIP = {"section": "segments", "name": "vip", "text": "when: {field: tags, contains: vip}"}
SECONDS = 60.0
TAKEN_OVER_SECONDS = LEASE_SECONDS + SECONDS
"""Who is killed may have the job's lease, which has to run out first."""


@pytest.fixture
def servers() -> Iterator[list[Process]]:
    made: list[Process] = []
    yield made
    for server in made:
        server.process.kill()
        server.process.communicate()


def names(url: str) -> list[str]:
    listed = httpx.get(f"{url}/v1/segments", headers=BEARER).json()["segments"]
    return [segment["name"] for segment in listed]


def wait_for(url: str, expected: list[str]) -> None:
    until = time.monotonic() + SECONDS
    while names(url) != expected:
        assert time.monotonic() < until, f"{names(url)} is in force and not {expected}"
        time.sleep(0.1)


@pytest.mark.parametrize("kind", ["postgres", "dynamodb"])
def test_servers_on_one_store_follow_each_other_and_a_worker_does_the_job(
    kind: str, tmp_path: Path, servers: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if kind == "postgres":
        store_in_use = postgres.server("18").url(postgres.schema_of(tmp_path))
    else:
        store_in_use = dynamodb.ministack().url(tmp_path)
        monkeypatch.setenv("THREADLINE_RETRY_SECONDS", "5")
    settings = Settings(store=store_in_use, rules_refresh_seconds=1)
    composition().migrate(settings)
    servers += [Process(store_in_use, KEYS), Process(store_in_use, KEYS)]
    one, other = (server.url for server in servers)
    runtime = Runtime(composition(), settings)
    with closing(runtime):
        done = httpx.post(f"{one}/v1/definitions/declare", json=VIP, headers=BEARER, timeout=30)
        assert (done.status_code, done.json()["version"]) == (200, 1), done.text
        wait_for(other, ["vip"])
        listed = httpx.get(f"{other}/v1/definitions/versions", headers=BEARER).json()
        assert (listed["in_force"], listed["here"]) == (1, 1)
        time.sleep(1)
        assert runtime.follow(), "a function takes it in at its next invocation"
        assert runtime.engine.maintenance.by_hand == 1
        assert not runtime.follow(), "and looks again in a second"
    gone = httpx.post(f"{other}/v1/definitions/delete", json={**VIP, "text": None} | {"note": "over"}, headers=BEARER)
    assert gone.status_code == 400, "a delete has no text"
    body = {"section": "segments", "name": "vip"}
    assert httpx.post(f"{other}/v1/definitions/delete", json=body, headers=BEARER).status_code == 200
    wait_for(one, [])


def test_a_worker_without_a_server_follows_and_brings_everybody_up(
    tmp_path: Path, servers: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store_in_use = postgres.server("18").url(postgres.schema_of(tmp_path))
    composition().migrate(Settings(store=store_in_use))
    command = [forked.python(), "-m", "threadline", "work", "--file", store_in_use]
    environment = {**os.environ, **KEYS}
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert worker.stdout is not None
        assert '"ready":true' in worker.stdout.readline().replace(" ", "")
        servers.append(Process(store_in_use, KEYS))
        url = servers[0].url
        event = {"type": "identify", "key": "1", "identifiers": {"user_id": "ada"}}
        httpx.post(f"{url}/v1/events", json={"events": [event]}, headers=BEARER)
        httpx.post(f"{url}/v1/people/user_id:ada/tags", json={"add": ["vip"]}, headers=BEARER)
        assert httpx.post(f"{url}/v1/definitions/declare", json=VIP, headers=BEARER, timeout=30).status_code == 200
        servers[0].process.kill()  # right after the commit: who is left does the rest
        until = time.monotonic() + TAKEN_OVER_SECONDS
        while True:
            with threadline.open(store_in_use, readonly=True) as opened:
                if opened.segments.members("vip").members:
                    break
            assert time.monotonic() < until, "the worker has not done the job"
            time.sleep(0.5)
        worker.terminate()
        assert worker.wait(30) == 0
    finally:
        worker.kill()
        worker.communicate()


def test_what_is_made_by_hand_becomes_a_file_of_a_running_server_and_nothing_changes(
    tmp_path: Path, servers: list[Process], monkeypatch: pytest.MonkeyPatch, call: Callable[..., Ran]
) -> None:
    definitions = tmp_path / "definitions"
    definitions.mkdir()
    (definitions / "a.yaml").write_text("features: {}\n")
    server = Process(tmp_path / "x.db", {**KEYS, "THREADLINE_DEFINITIONS": str(definitions)})
    servers.append(server)
    monkeypatch.setenv("THREADLINE_TOKEN", "tok-alone")
    assert httpx.post(f"{server.url}/v1/definitions/declare", json=VIP, headers=BEARER, timeout=30).status_code == 200
    exported = call("definitions", "export", str(definitions), "--url", server.url)
    assert exported.code == 0, exported.err
    deleted = call("definitions", "delete", "--all", "--url", server.url)
    assert (deleted.code, names(server.url)) == (0, ["vip"]), deleted.err
    shown = httpx.get(f"{server.url}/v1/definitions/segments/vip", headers=BEARER).json()
    assert shown["file"] == f"{definitions / 'made-by-hand.yaml'}:2"
    assert httpx.get(f"{server.url}/v1/definitions/changes", headers=BEARER).json()["changes"] == []


def test_a_store_that_does_not_start_is_put_right_from_the_command_line(
    tmp_path: Path, servers: list[Process], monkeypatch: pytest.MonkeyPatch, call: Callable[..., Ran]
) -> None:
    path = tmp_path / "x.db"
    server = Process(path, KEYS)
    assert httpx.post(f"{server.url}/v1/definitions/declare", json=VIP, headers=BEARER, timeout=30).status_code == 200
    assert server.stop() == 0
    monkeypatch.setenv("THREADLINE_STORE", str(path))
    (tmp_path / "threadline.yaml").write_text("segments:\n  vip: {when: {field: tags, exists: true}}\n")
    for command in ("check", "doctor", "people"):
        refused = call(command, *(["list"] if command == "people" else []))
        assert refused.code == 1
        assert "threadline definitions delete segments vip" in (refused.out + refused.err).replace("\n", " ")
    exported = call("definitions", "export", str(tmp_path / "copy"))
    assert exported.code == 0, exported.err
    assert (tmp_path / "copy" / "made-by-hand.yaml").read_text() == f"segments:\n  vip:\n    {VIP['text']}\n"
    assert call("definitions", "delete", "segments", "nope").code == 1
    deleted = call("definitions", "delete", "segments", "vip", "--note", "it is in the file")
    assert (deleted.code, deleted.out) == (0, "Version 2 is in force; run `threadline apply`.\n")
    checked = call("check")
    assert (checked.code, checked.out) == (0, "1 file and version 2 of what is made by hand: 0 mistakes, 0 warnings.\n")
    assert call("people", "list").code == 0
    listed = call("definitions", "versions", "--json")
    assert '"it is in the file"' in listed.out
    assert call("definitions", "export", str(tmp_path / "copy")).code == 1
    assert call("definitions", "export", str(tmp_path / "copy"), "--version", "1").code == 0
