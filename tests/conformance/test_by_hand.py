"""What is made by hand, on each kind of store: killed at every commit, followed by others, copied with everything."""

from __future__ import annotations

from pathlib import Path

from tests.by_hand_stage import Process
from tests.conformance.backends import Backend
from tests.mortal import Fate, Killed
from threadline.capabilities.foundation.definitions.versions import newest, versions
from threadline.engine.maintenance.move import Move
from threadline.kernel.store import Store
from threadline.stores.memory import MemoryStore

FILES = "segments:\n  big: {when: {field: features.monetary_total, greater_than: 50}}\n"
VIP = "when: {field: tags, contains: vip}\n"


def prepared(store: Store) -> Process:
    process = Process(store, FILES)
    process.ask("record", events=[{"type": "identify", "key": "1", "identifiers": {"user_id": "ada"}}])
    process.ask("people_tag", id="user_id:ada", add=["vip"])
    process.work()
    process.ask("definitions_propose", section="segments", name="vip", text=VIP)
    return process


def members(process: Process) -> int:
    return len(process.ask("segments_members", name="vip")["members"])


def test_accepting_that_is_killed_at_any_commit_is_done_whole_or_not_at_all(backend: Backend, tmp_path: Path) -> None:
    store = backend.open(tmp_path)
    process = prepared(store)
    number = newest(store).number
    fate = Fate(store)
    for killed_at in range(1, 20):
        for through in (0, 1):
            fate.commits, fate.killed_at, fate.through = 0, killed_at, through
            try:
                process.ask("definitions_accept", section="segments", name="vip")
            except Killed:
                pass
            else:
                fate.killed_at = -1
            was_killed, fate.killed_at = fate.killed_at != -1, -1
            process = Process(store, FILES, process.now)
            proposals = process.ask("definitions_proposals")["proposals"]
            if "vip" not in process.segments():
                assert (was_killed, len(proposals), newest(store).number) == (True, 1, number)
                continue
            assert (proposals, newest(store).number) == ([], number + 1), "with the version the proposal is settled"
            process.work()
            assert (members(process), process.engine.maintenance.stale()) == (1, ()), "the job was in the same commit"
            if not was_killed:
                return
            process.ask("definitions_delete", section="segments", name="vip")
            process.work()
            process.ask("definitions_propose", section="segments", name="vip", text=VIP)
            number = newest(store).number
    raise AssertionError("it never came to its end")


def test_two_processes_go_by_the_same_after_a_look(backend: Backend, tmp_path: Path) -> None:
    store = backend.open(tmp_path)
    one, other = prepared(store), Process(store, FILES)
    other.ask("definitions_accept", section="segments", name="vip")
    one.following.look()
    assert one.segments() == other.segments() == ["big", "vip"]
    assert one.engine.maintenance.fingerprint == other.engine.maintenance.fingerprint
    one.work()
    assert members(other) == 1
    assert [version.number for version in versions(store, 0, 10)] == [1]


def test_a_moved_store_has_every_version(backend: Backend, tmp_path: Path) -> None:
    store = backend.open(tmp_path)
    process = prepared(store)
    process.ask("definitions_accept", section="segments", name="vip")
    process.ask("definitions_delete", section="segments", name="vip")
    process.work()
    copy = MemoryStore()
    Move(store, copy, process.engine.catalogue, "store").run()
    assert (versions(copy, 0, 10), newest(copy)) == (versions(store, 0, 10), newest(store))
