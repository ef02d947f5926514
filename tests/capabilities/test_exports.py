"""The export of many people: each person and each event is in one file that counts, wherever a process is killed."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mortal import Fate, Killed
from threadline.capabilities.ask.export import job as export_job
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.context import Context
from threadline.engine.delivery import job_worker
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.exports.lake.folder import FolderStorage
from threadline.kernel.errors import NotConfigured, NotFound
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import MINUTE, parse_time
from threadline.stores.memory import MemoryStore
from threadline.surfaces.operation_calls import call

NOW = parse_time("2026-03-02T08:00:00Z")
PEOPLE = 13
_DECLARED = Definitions([("threadline.yaml", "segments: {pros: {when: {field: traits.plan, equals: pro}}}")])
_CATALOGUE = Catalogue(discover(definitions=_DECLARED), rules(), _DECLARED)


class MortalFolder(FolderStorage):
    """A folder whose process is killed right before or after one of its writes."""

    writes, killed_at, after = 0, -1, False

    def write(self, name: str, content: bytes) -> None:
        """Write, and die before or after it."""
        self.writes += 1
        if self.writes != self.killed_at or self.after:
            super().write(name, content)
        if self.writes == self.killed_at:
            raise Killed


class World:
    """People of two plans, with a purchase each, and a folder for exports."""

    def __init__(self, folder: Path, workspace: str = "default") -> None:
        self.now, self.workspace = NOW, workspace
        self.store, self.folder = MemoryStore(), MortalFolder(folder)
        self.fate = Fate(self.store)
        self.reopen()
        self.record(*(event for n in range(PEOPLE) for event in self.person(n)))

    def reopen(self) -> None:
        self.engine = Engine(self.store, _CATALOGUE, lambda: self.now)
        self.engine.exports = lambda: self.folder
        self.worker = Dispatcher(self.engine, {}, f"worker {self.fate.commits}")

    def person(self, n: int) -> Iterator[Event]:
        for type, properties in (("identify", {"plan": "pro" if n % 2 else "free"}), ("purchase", {"total": n})):
            yield Event(
                type=type,
                identifiers=(Identifier("user_id", f"p{n}"),),
                occurred_at=self.now,
                key=f"{type}/{n}",
                properties=properties,
                workspace=self.workspace,
            )

    def record(self, *events: Event) -> None:
        assert {receipt.status for receipt in self.engine.recorder.record(events)} == {"accepted"}

    def call(self, name: str, /, **given: Any) -> Any:
        operation = next(each for each in _CATALOGUE.operations if each.name == name)
        return call(operation, Context(self.engine, self.workspace, self.engine.now()), given, strict=True)

    def start(self, **given: Any) -> Any:
        return self.call("exports_start", **given)

    def work(self) -> None:
        while self.worker.run_once():
            pass


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_worker, "JOB_PAGE", 5)


def lines_of(folder: Path) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """The manifest, and the lines of the files that it names, after all that it says of them was checked."""
    manifest = json.loads((folder / "manifest.json").read_bytes())
    lines: dict[str, list[Any]] = {"people": [], "events": []}
    for file in manifest["files"]:
        content = (folder / file["name"]).read_bytes()
        found = [json.loads(line) for line in gzip.decompress(content).splitlines()]
        assert (len(content), len(found)) == (file["bytes"], file["lines"])
        assert hashlib.sha256(content).hexdigest() == file["sha256"]
        lines[file["name"].partition("/")[0]] += found
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert there == {"manifest.json", *(file["name"] for file in manifest["files"])}
    assert (len(lines["people"]), len(lines["events"])) == (manifest["people"], manifest["events"] or 0)
    return manifest, lines


AUDIENCES = {
    "everybody": ({}, range(PEOPLE)),
    "a segment": ({"segment": "pros"}, range(1, PEOPLE, 2)),
    "conditions": ({"when": {"field": "traits.plan", "equals": "free"}}, range(0, PEOPLE, 2)),
    "nobody": ({"tags": ["none"]}, ()),
}


@pytest.mark.parametrize("name", AUDIENCES)
def test_an_export_has_each_person_of_its_audience_and_their_events(name: str, tmp_path: Path) -> None:
    audience, expected = AUDIENCES[name]
    world = World(tmp_path)
    started = world.start(**audience)
    assert (started.id, started.params["to"]) == ("export.1", str(tmp_path))
    world.work()
    manifest, lines = lines_of(tmp_path / "default/export.1")
    assert (manifest["format"], manifest["audience"]) == ("threadline.export/1", audience)
    users = {identifier for line in lines["people"] for identifier in line["identifiers"]}
    assert users == {f"user_id:p{n}" for n in expected}
    purchases = [line for line in lines["events"] if line["type"] == "purchase"]
    assert sorted(line["properties"]["total"] for line in purchases) == list(expected)
    names = {line["person"]: line["identifiers"] for line in lines["people"]}
    assert all(names[line["person"]] == [f"user_id:p{line['properties']['total']}"] for line in purchases)
    assert all(line["views"]["profile"]["traits"]["plan"] in ("pro", "free") for line in lines["people"])
    job = world.call("jobs_show", id="export.1")
    assert (job.state, job.counts["people"], job.counts["events"]) == ("done", len(expected), len(lines["events"]))


@pytest.mark.parametrize("how", ["before a commit", "after a commit", "before a write", "after a write"])
def test_killed_anywhere_no_line_is_missing_and_none_is_there_twice(how: str, tmp_path: Path) -> None:
    def lived(killed_at: int) -> tuple[Any, bool]:
        folder = tmp_path / str(killed_at)
        world = World(folder)
        world.start()
        if how.endswith("commit"):
            world.fate.through = 0 if how.startswith("before") else 1
            world.fate.killed_at = world.fate.commits + killed_at if killed_at else -1
        else:
            world.folder.killed_at, world.folder.after = killed_at or -1, how.startswith("after")
        killed = False
        try:
            world.work()
        except Killed:
            killed = True
            # What the page is done from anew is not what it was: another content, and so another file.
            world.now += MINUTE
            world.reopen()
            world.record(*(event for event in World.person(world, PEOPLE + killed_at)))
            world.work()
        _, lines = lines_of(folder / "default/export.1")
        totals = [line["properties"].get("total") for line in lines["events"] if line["type"] == "purchase"]
        ids = [line["id"] for line in lines["events"]]
        people = [line["person"] for line in lines["people"]]
        assert len(ids) == len(set(ids)), f"killed at {killed_at}"
        assert len(people) == len(set(people)), f"killed at {killed_at}"
        return sorted(total for total in totals if total < PEOPLE), killed

    assert lived(0)[0] == list(range(PEOPLE))
    kills = 1
    while True:
        totals, killed = lived(kills)
        assert totals == list(range(PEOPLE)), f"killed at {kills}"
        if not killed:
            break
        kills += 1
    assert kills > 3


def test_a_page_ends_where_its_lines_are_large_and_events_may_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_job, "PAGE_BYTES", 1)
    world = World(tmp_path)
    world.start(events=False)
    world.work()
    manifest, lines = lines_of(tmp_path / "default/export.1")
    assert [file["lines"] for file in manifest["files"]] == [1] * PEOPLE
    assert (len({line["person"] for line in lines["people"]}), manifest["events"]) == (PEOPLE, None)


def test_the_same_export_is_begun_once_while_it_runs_and_anew_once_it_has_ended(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert [world.start().id, world.start().id, world.start(segment="pros").id] == ["export.1", "export.1", "export.2"]
    world.work()
    assert world.start().id == "export.3"
    world.call("jobs_cancel", id="export.3")
    world.work()
    assert not (tmp_path / "default/export.3/manifest.json").exists()


def test_an_export_whose_files_are_gone_or_elsewhere_never_gets_a_manifest(tmp_path: Path) -> None:
    world = World(tmp_path / "one")
    world.start()
    assert world.worker.run_once()
    first = next(path for path in (tmp_path / "one").rglob("*.gz"))
    first.unlink()
    for _ in range(20):
        world.work()
        world.now += 60 * MINUTE
    job = world.call("jobs_show", id="export.1")
    assert (job.state, first.name in job.problem) == ("failed", True)
    world.folder = MortalFolder(tmp_path / "two")
    world.start(segment="pros")
    world.folder = MortalFolder(tmp_path / "three")
    world.work()
    assert str(tmp_path / "three") in world.call("jobs_show", id="export.2").problem
    assert not list(tmp_path.rglob("manifest.json"))


def test_a_workspace_never_writes_outside_of_its_folder(tmp_path: Path) -> None:
    world = World(tmp_path / "exports", workspace="..")
    world.start()
    world.work()
    (manifest,) = tmp_path.rglob("manifest.json")
    assert manifest.parent.parent.parent == tmp_path / "exports"
    assert json.loads(manifest.read_bytes())["people"] == PEOPLE


def test_without_a_place_and_for_a_segment_that_is_none_nothing_is_begun(tmp_path: Path) -> None:
    world = World(tmp_path)
    with pytest.raises(NotFound, match="pros"):
        world.start(segment="prose")
    world.engine.exports = None
    with pytest.raises(NotConfigured, match="no place"):
        world.start()
    assert world.call("jobs_list").jobs == []
