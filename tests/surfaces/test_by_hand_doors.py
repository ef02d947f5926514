"""What is made by hand goes along wherever a whole store goes: into a backup and back from it, into another store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import threadline
from tests.surfaces.cli_stage import Ran, call, composed
from threadline.capabilities.foundation.definitions.versions import Made, Version, newest, puts
from threadline.kernel.store import Batch

__all__ = ["call", "composed"]

VIP = "segments: {vip: {when: {field: tags, contains: vip}}}  # of the sale\n"
ALL = "segments: {vip: {when: {field: tags, exists: true}}, more: {when: {field: tags, contains: more}}}\n"


def put_by_hand(path: Path, text: str) -> None:
    """As a server would put it in force."""
    with threadline.open(path) as opened:
        number = newest(opened.engine.store).number + 1
        made = Version(number=number, by="olga", at=1, note=f"note {number}")
        assert opened.engine.store.commit([Batch(writes=puts(made, text))]) == [None]


def made_by_hand(path: Path) -> tuple[Made, list[str], list[str], list[str]]:
    """The text in force, the notes of all versions, the segments, and who is in `vip`."""
    with threadline.open(path, readonly=True) as opened:
        notes = [version.note for version in opened.definitions.versions().versions]
        segments = [segment.name for segment in opened.segments.list().segments]
        members = [name for member in opened.segments.members("vip").members for name in member.identifiers]
        return newest(opened.engine.store), notes, segments, members


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Ran]) -> Path:
    """A store with two tagged people and a segment that is made by hand."""
    path = tmp_path / "x.db"
    with threadline.open(path) as opened:
        for name, tag in (("ada", "vip"), ("bob", "more")):
            opened.identify(name, {})
            opened.people.tag(name, add=[tag])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THREADLINE_STORE", str(path))
    put_by_hand(path, VIP)
    assert call("apply").code == 0
    return path


def test_a_restored_backup_has_what_was_made_by_hand_by_then(
    path: Path, tmp_path: Path, call: Callable[..., Ran]
) -> None:
    before = made_by_hand(path)
    assert before == (Made(1, VIP), ["note 1"], ["vip"], ["user_id:ada"])
    assert call("backup", str(tmp_path / "backup.db")).code == 0
    put_by_hand(path, ALL)
    assert call("apply").code == 0
    assert made_by_hand(path) == (Made(2, ALL), ["note 2", "note 1"], ["more", "vip"], ["user_id:ada", "user_id:bob"])
    restored = call("restore", str(tmp_path / "backup.db"), "--replace")
    assert restored.code == 0, restored.err
    assert made_by_hand(path) == before
    checked = call("check")
    assert checked.out == "0 files and version 1 of what is made by hand: 0 mistakes, 0 warnings.\n"
    with threadline.open(path, readonly=True) as opened:
        assert opened.definitions.changes().changes == []
    put_by_hand(path, ALL)
    assert call("apply").code == 0
    assert made_by_hand(path)[1] == ["note 2", "note 1"]


def test_a_restored_backup_with_a_name_that_a_file_has_by_now_says_how_to_take_it_out(
    path: Path, tmp_path: Path, call: Callable[..., Ran]
) -> None:
    assert call("backup", str(tmp_path / "backup.db")).code == 0
    assert call("definitions", "export", str(tmp_path)).code == 0
    assert call("definitions", "delete", "--all").code == 0
    (tmp_path / "threadline.yaml").write_text((tmp_path / "made-by-hand.yaml").read_text())
    assert made_by_hand(path)[1:] == (["", "note 1"], ["vip"], ["user_id:ada"])
    restored = call("restore", str(tmp_path / "backup.db"), "--replace")
    assert restored.code == 1
    assert "whole" in restored.out
    assert "threadline definitions delete segments vip" in restored.err.replace("\n", " ")
    assert call("definitions", "delete", "segments", "vip").code == 0
    assert made_by_hand(path)[2:] == (["vip"], ["user_id:ada"])


def test_a_store_that_was_moved_has_what_is_made_by_hand_and_its_versions(
    path: Path, tmp_path: Path, call: Callable[..., Ran]
) -> None:
    put_by_hand(path, ALL)
    assert call("apply").code == 0
    moved = call("move", str(path), str(tmp_path / "other.db"))
    assert moved.code == 0, moved.err
    assert made_by_hand(tmp_path / "other.db") == made_by_hand(path)
    exported = call(
        "definitions", "export", str(tmp_path / "old"), "--version", "1", "--file", str(tmp_path / "other.db")
    )
    assert exported.code == 0, exported.err
    assert (tmp_path / "old" / "made-by-hand.yaml").read_text() == VIP
