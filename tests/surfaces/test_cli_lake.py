"""``threadline lake``: sync once and again and again, status, compaction, verification."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import threadline
from tests import forked
from tests.surfaces.cli_stage import call, composed, store

__all__ = ["call", "composed", "store"]
pytest.importorskip("pyarrow")


def test_a_lake_is_synced_compacted_and_verified(store: Path, call, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("THREADLINE_LAKE", str(store.parent / "lake"))
    assert "1 event in 2 files" in call("lake", "sync").out
    with threadline.open(store) as tl:
        tl.track("42", "purchase_completed", {"total": 5, "currency": "EUR"}, key="order-2")
    status = json.loads(call("lake", "status", "--json").out)
    assert (status["position"], status["waiting"], status["behind_seconds"] > 0) == (1, 1, True)
    done = json.loads(call("lake", "sync", "--json", "--limit", "1").out)
    assert (done["events"], done["position"], done["erased"]) == (1, 2, 0)
    with threadline.open(store) as tl:
        tl.people.erase("42")
    assert json.loads(call("lake", "status", "--json").out)["erasures_waiting"] == 2
    assert "2 erased events taken out" in call("lake", "sync").out
    status = json.loads(call("lake", "status", "--json").out)
    assert (status["events"], status["waiting"], status["erasures_waiting"]) == (0, 0, 0)
    with threadline.open(store) as tl:
        tl.track("7", "page", {}, key="a")
    assert "1 event" in call("lake", "sync").out
    with threadline.open(store) as tl:
        tl.track("7", "page", {}, key="b")
    assert "1 event" in call("lake", "sync").out
    assert call("lake", "compact").out == "4 files are 2 now.\n"
    whole = call("lake", "verify")
    assert (whole.code, "2 events of the log, 2 rows" in whole.out) == (0, True)
    for file in (store.parent / "lake").glob("raw/*/events/*/*/*.parquet"):
        file.write_bytes(file.read_bytes()[:-1])
    damaged = call("lake", "verify")
    assert damaged.code == 1
    assert "its content is not what the manifest says" in damaged.out


def test_a_sync_of_much_puts_its_files_together(store: Path, call, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("THREADLINE_LAKE", str(store.parent / "lake"))
    monkeypatch.setattr("threadline.exports.curated.commands.COMPACTED_FROM", 3)
    assert "put together" not in call("lake", "sync").out
    with threadline.open(store) as tl:
        tl.record([{"type": "page", "identifiers": {"user_id": "7"}, "key": str(at)} for at in range(3)])
    done = json.loads(call("lake", "sync", "--json").out)
    assert (done["events"], done["compacted"]) == (3, 2), "the two files of identities"
    assert json.loads(call("lake", "status", "--json").out)["files"] == 3
    assert call("lake", "verify").code == 0


def test_without_a_lake_the_setting_is_named(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    answer = call("lake", "sync")
    assert answer.code != 0
    assert "THREADLINE_LAKE" in answer.err


def test_a_sync_that_watches_takes_what_comes_and_stops_when_it_is_told(store: Path) -> None:
    lake = store.parent / "lake"
    command = [forked.threadline(), "lake", "sync", "--watch", "0.1", "--lake", str(lake)]
    with subprocess.Popen([*command, "--file", str(store)], env=os.environ, stderr=subprocess.DEVNULL) as process:
        try:
            for count in (1, 2):
                deadline = time.monotonic() + 60
                while not (lake / "_manifest.json").exists() or (
                    json.loads((lake / "_manifest.json").read_bytes()).get("position", 0) < count
                ):
                    assert process.poll() is None
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
                with threadline.open(store) as tl:
                    tl.track("42", "page", {}, key=f"page-{count}")
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
