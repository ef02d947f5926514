"""Commands that look after a store: refold, verify and the doctor."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import threadline
from tests.surfaces.cli_stage import call, composed, store
from threadline.engine.delivery.leases import Leases
from threadline.engine.scheduled import OUTBOX, pack_new, queue_partition
from threadline.kernel.policy import Effect
from threadline.kernel.store import Batch, Key, Put
from threadline.kernel.time import DAY, HOUR, SECOND, format_time, system_clock, time_key

__all__ = ["call", "composed", "store"]


def test_refold_brings_people_up_to_changed_definitions(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    assert call("verify").code == 0
    (store.parent / "threadline.yaml").write_text(
        "features:\n  currencies: {aggregate: distinct, events: purchase_completed, of: currency}\n"
    )
    told = call("verify")
    assert told.code == 1
    assert "1 person who differs" in told.out
    assert "older than the definitions: people" in call("doctor").out
    told = call("refold")
    assert "older than the definitions" not in call("doctor").out
    assert told.code == 0
    assert "1 person refolded from 1 event" in told.out
    assert "1 had changed" in told.out
    assert call("verify").code == 0
    vector = json.loads(call("features", "of", "user_id:42", "--json").out)
    assert vector["features"]["currencies"]["value"] == 1


def test_verify_finds_lists_that_are_amiss_and_refold_writes_them_anew(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    assert call("people", "tag", "user_id:42", "--add", "vip").code == 0
    with threadline.open(store) as tl:
        from threadline.kernel.store import Batch, Delete, Put

        (row,) = tl.engine.store.query("tag", "default")
        stray = Put(row.key._replace(sort=row.key.sort.replace("vip", "early", 1)), row.value)
        (thread,) = tl.engine.store.scan("thread")
        assert tl.engine.store.commit([Batch(writes=[Delete(row.key), stray, Delete(thread.key)])]) == [None]
    told = call("verify")
    assert told.code == 1
    assert "3 index rows amiss" in told.out
    assert f"thread {thread.key.partition} is missing" in told.out
    assert "tag default vip" in told.out
    assert "is missing" in told.out
    assert "Index rows of profile, threads were amiss" in call("refold").out
    assert call("verify").code == 0
    assert len(json.loads(call("people", "list", "--tag", "vip", "--json").out)["people"]) == 1
    assert json.loads(call("people", "list", "--tag", "early", "--json").out)["people"] == []


def test_verify_finds_what_was_tampered_with(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    with threadline.open(store) as tl:
        person = tl.engine.reader.person("default", "user_id:42")
        from threadline.engine.folding.person import person_key
        from threadline.engine.folding.person_packing import pack_person
        from threadline.kernel.store import Batch, Put

        index = tl.engine.catalogue.index["activity"]
        person.states[index] = tl.engine.catalogue.projections[index].empty()
        put = Put(person_key(person.id), pack_person(person, tl.engine.catalogue))
        assert tl.engine.store.commit([Batch(writes=[put])]) == [None]
    told = call("verify")
    assert told.code == 1
    assert person.id in told.out


def test_the_doctor_looks_at_everything(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    told = call("doctor")
    assert told.code == 0
    for what in (
        "versions",
        "disk",
        "clock",
        "definitions",
        "server",
        "catalogue",
        "store",
        "content",
        "log ahead",
        "lock",
        "last event",
    ):
        assert what in told.out
    assert "fault" not in told.out
    with threadline.open(store):
        told = call("doctor")
        assert (told.code, re.search(rf"process {os.getpid()}\s+writes", told.out) is not None) == (0, True)


def test_the_doctor_finds_faults(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    store.write_bytes(b"this is no store at all, and long enough to be read as one" * 100)
    told = call("doctor")
    assert told.code == 1
    assert "fault" in told.out
    assert "a backup that is whole can be put in its place" in " ".join(told.out.split()), "what to do is told too"


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("THREADLINE_JWT_SECRET", "short", "jwt_secret has 5 bytes"),
        ("THREADLINE_FORWARDED_ALLOW_IPS", "10.0.0.0/99", "10.0.0.0/99"),
        ("THREADLINE_WEBHOOK_SECRETS", "whsec_!", "webhook_secrets"),
    ],
)
def test_the_doctor_finds_what_would_stop_a_server(  # type: ignore[no-untyped-def]
    setting: str, value: str, message: str, store: Path, call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(setting, value)
    told = call("doctor")
    assert told.code == 1
    assert message in " ".join(told.out.split())
    assert told.out.count("fault") == 1
    assert "no other process writes" in told.out, "all else is looked at"


@pytest.mark.parametrize(
    "command", [["doctor"], ["verify"], ["person", "user_id:1"], ["serve", "--port", "0"], ["backup", "new.db"]]
)
def test_what_is_no_file_of_ours_is_named_for_what_it_is(call, tmp_path: Path, command: list[str]) -> None:  # type: ignore[no-untyped-def]
    folder, empty = tmp_path / "folder.db", tmp_path / "empty.db"
    folder.mkdir()
    empty.touch()
    said = call(*command, "--file", str(folder))
    assert (said.code, "folder.db is a folder; name a file in it" in _flat(said)) == (1, True)
    if command[0] != "serve":  # who writes makes a store of it
        said = call(*command, "--file", str(empty))
        assert (said.code, "empty.db is an empty file, not a Threadline store" in _flat(said)) == (1, True)


def _flat(told: Any) -> str:
    return " ".join((told.out + told.err).split())


def test_a_damaged_file_is_told_page_by_page_with_what_to_do(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "x.db"
    with threadline.open(path) as tl:
        for number in range(60):
            tl.track(f"u{number}", "click", {"note": "x" * 2_000}, key=f"k{number}")
    content = bytearray(path.read_bytes())
    for page in range(len(content) // 8_192, len(content) // 4_096):
        content[page * 4_096 : page * 4_096 + 64] = bytes(64)
    path.write_bytes(content)
    for jobs in ("1", "2"):
        told = call("verify", "--file", str(path), "--jobs", jobs)
        assert told.code == 1
        assert "file " in told.out
        assert "restore" in told.err
        assert "Traceback" not in told.err
    told = call("doctor", "--file", str(path))
    assert told.code == 1
    assert re.search(r"fault +(content|store)", told.out)


def test_the_doctor_reads_definitions_where_there_is_no_store_yet(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "threadline.yaml").write_text("features:\n  clicks: {aggregate: cuont, events: click}\n")
    told = call("doctor", "--file", str(tmp_path / "new.db"))
    assert told.code == 1
    assert re.search(r"fault +definitions", told.out)
    assert told.out.count("cuont") == 1
    assert "not looked at" in told.out
    assert [each.name for each in tmp_path.iterdir()] == ["threadline.yaml"]


def test_a_refold_of_a_store_that_is_not_there_makes_none(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    told = call("refold", "--file", str(tmp_path / "typo.db"))
    assert told.code == 1
    assert "there is no store at" in told.err
    assert list(tmp_path.iterdir()) == []


def test_the_doctor_says_which_clock_may_be_wrong(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with threadline.open(tmp_path / "x.db", clock=lambda: system_clock() + 2 * DAY) as tl:
        tl.track("42", "click")
    told = call("doctor", "--file", str(tmp_path / "x.db"))
    assert told.code == 1
    assert "which is still to come by this clock" in " ".join(told.out.split())


def test_the_doctor_creates_nothing(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    told = call("doctor", "--file", str(tmp_path / "new.db"))
    assert told.code == 0
    assert "does not exist yet" in " ".join(told.out.split())  # however long the path is, and lines are wrapped
    assert list(tmp_path.iterdir()) == []


DRAFT = """
rules:
  thanks:
    version: {version}
    conditions: {{field: event.properties.total, greater_than: {total}}}
rule_sets:
  shop: {{events: [purchase_completed], rules: [thanks]}}
"""


def test_the_doctor_writes_nothing_and_leaves_a_draft_a_draft(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    definitions = store.parent / "threadline.yaml"
    definitions.write_text(DRAFT.format(version=1, total=10))
    before = {file.name: file.read_bytes() for file in store.parent.iterdir()}
    assert call("doctor").code == 0
    after = {file.name: file.read_bytes() for file in store.parent.iterdir()}
    assert {name: after[name] for name in before} == before
    assert not after.get("x.db-wal"), "nothing waits to be moved into the file either"
    definitions.write_text(DRAFT.format(version=1, total=20))
    told = call("doctor")
    assert told.code == 0, told.out
    with threadline.open(store):
        pass
    definitions.write_text(DRAFT.format(version=1, total=30))
    for command in ("doctor", "check"):
        told = call(command)
        assert (told.code, "raise its number" in _flat(told)) == (1, True)


def test_the_doctor_names_a_step_back_of_the_clock_a_lease_of_before_and_what_waits(  # type: ignore[no-untyped-def]
    call, tmp_path: Path
) -> None:
    path, now = tmp_path / "stepped.db", system_clock()
    (tmp_path / "threadline.yaml").write_text("destinations: {crm: {url: 'https://crm.example/'}}\n")
    for ahead in (-DAY, 3 * DAY, -HOUR):
        with threadline.open(path, clock=lambda at=now + ahead: at) as tl:
            tl.track("ada", "page", {"ahead": ahead})
            if ahead > 0:
                assert Leases(tl.engine.store, tl.engine.clock, "before").acquire("outbox/lane.crm") is not None
            elif ahead == -HOUR:
                waits = pack_new("default", "0" * 32, "care", "0" * 32, Effect(kind="webhook", key="k", data={}), "")
                for queue in ("crm", "url.0"):
                    key = Key(OUTBOX, queue_partition(queue), f"{time_key(now - HOUR)}.{'0' * 32}")
                    assert tl.engine.store.commit([Batch(writes=[Put(key, waits, 0)])]) == [None]
    told = " ".join(call("doctor", "--file", str(path)).out.split())
    assert f"set back from {format_time(now + 3 * DAY)} to {format_time(now - HOUR)}" in told
    assert f"outbox/lane.crm is leased until {format_time(now + 3 * DAY + 30 * SECOND)}" in told
    for queue in ("crm", "addresses in rules (url.0)"):
        assert f"1 effect of {queue}, the first since {format_time(now - HOUR)}; 0 of them were tried" in told


def test_the_doctor_names_nothing_of_this_kind_in_a_store_at_work(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    told = call("doctor").out
    assert not any(name in told for name in ("set back", "leased", "waiting"))
