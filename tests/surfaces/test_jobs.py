"""A job that is watched: by server-sent events over HTTP, and as a bar on the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

import threadline
from tests.surfaces.test_http_server import Process
from threadline.app import composition
from threadline.surfaces.cli.program import run

TOKEN = {"Authorization": "Bearer tk-alone"}
PEOPLE = 700


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "threadline.db"
    (tmp_path / "threadline.yaml").write_text(
        "mail: {senders: {shop: {from: shop@shop.example}}, templates: {sale: {subject: Sale, text: Hello}}}"
    )
    with threadline.open(path) as shop:
        shop.record([{"type": "seen", "key": f"{n}", "identifiers": {"user_id": f"u{n}"}} for n in range(PEOPLE)])
        shop.broadcasts.create("sale", template="sale", holdout=0.1)
        shop.broadcasts.start("sale")
    return path


def test_a_broadcast_is_followed_to_its_end_by_server_sent_events(store: Path) -> None:
    server = Process(store, {"THREADLINE_TOKENS": "tk-alone"})
    try:
        found = []
        for path in ("broadcasts/sale", "jobs/broadcast.sale"):
            with httpx.stream("GET", f"{server.url}/v1/{path}/events", headers=TOKEN, timeout=60) as stream:
                assert stream.headers["content-type"].startswith("text/event-stream")
                lines = list(stream.iter_lines())
            assert [line for line in lines if line.startswith("event:")][-1] == "event: ended"
            found.append(json.loads([line for line in lines if line.startswith("data:")][-1].removeprefix("data: ")))
        broadcast, job = found
        assert (broadcast["state"], broadcast["audience"], broadcast["done"]) == ("done", PEOPLE, PEOPLE)
        assert (job["state"], job["counts"]["total"], job["counts"]["done"]) == ("done", PEOPLE, PEOPLE)
        missing = httpx.get(f"{server.url}/v1/jobs/other/events", headers=TOKEN)
        assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
        assert httpx.get(f"{server.url}/v1/jobs/broadcast.sale/events").status_code == 401
    finally:
        server.process.kill()
        server.process.communicate()


def test_the_command_line_shows_how_far_a_job_is(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watch = ["jobs", "watch", "broadcast.sale", "--once", "--json", "--file", str(store)]
    assert run(composition(), watch) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "scheduled"
    assert run(composition(), ["broadcasts", "cancel", "sale", "--file", str(store)]) == 0
    capsys.readouterr()
    watch.remove("--once")
    assert run(composition(), watch) == 1
    assert json.loads(capsys.readouterr().out)["state"] == "cancelled"
