"""The commands of an operator whose embedded store has lost what it acknowledged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import threadline
from tests.surfaces.cli_stage import call, composed

__all__ = ["call", "composed"]


@pytest.fixture
def lost(tmp_path: Path) -> Path:
    """A store with three events whose file is of the time when it had one."""
    path = tmp_path / "x.db"
    with threadline.open(path) as tl:
        tl.track("42", "seen", key="1")
    shutil.copy(path, tmp_path / "older")
    with threadline.open(path) as tl:
        tl.track("42", "seen", key="2")
        tl.track("42", "seen", key="3")
    shutil.copy(tmp_path / "older", path)
    return path


def test_a_store_that_has_lost_events_is_opened_only_with_the_operators_word(call, lost: Path) -> None:  # type: ignore[no-untyped-def]
    event = '[{"type": "seen", "identifiers": {"user_id": "42"}, "key": "4"}]'
    record = ("record", "--file", str(lost), "--events", event)
    told = call(*record)
    assert told.code == 1
    assert "2 acknowledged events are gone, from position 2 on" in told.err
    assert "threadline accept-loss" in told.err
    told = call("doctor", "--file", str(lost))
    assert told.code == 1
    assert "2 acknowledged events are gone" in " ".join(told.out.split())
    told = call("accept-loss", "--file", str(lost), "--yes")
    assert told.code == 0, told.err
    assert "2 acknowledged events are gone" in told.out
    assert lost.with_name("x.db-mark.lost-1").exists()
    assert call(*record).code == 0
    told = call("accept-loss", "--file", str(lost), "--yes")
    assert "nothing that was acknowledged is gone" in told.out


def test_accepting_a_loss_asks_first(call, lost: Path) -> None:  # type: ignore[no-untyped-def]
    assert call("accept-loss", "--file", str(lost)).code == 1
    assert call("accept-loss", "--file", str(lost), "--yes").code == 0


def test_the_doctor_shows_the_mark_and_files_that_others_may_read(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "x.db"
    with threadline.open(path) as tl:
        tl.track("42", "seen", key="1")
    told = call("doctor", "--file", str(path))
    assert "acknowledged up to position 1, at 2" in " ".join(told.out.split())
    assert "others than their owner" not in told.out
    path.chmod(0o644)
    told = call("doctor", "--file", str(path))
    assert "note files others than their owner may read or write x.db" in " ".join(told.out.split())
    path.with_name("x.db-mark").write_bytes(b"torn")
    assert "cannot be read, and is made again" in " ".join(call("doctor", "--file", str(path)).out.split())
