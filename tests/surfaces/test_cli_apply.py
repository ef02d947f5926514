"""``threadline apply``: everybody brought up to changed definitions, wherever it was killed before."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import threadline
from tests.surfaces.cli_stage import call, composed
from threadline.app import catalogue
from threadline.engine.engine import Engine
from threadline.engine.maintenance.rebuild import refold_everybody
from threadline.kernel.errors import InvalidValue, Unavailable
from threadline.kernel.store import Batch, Refusal
from threadline.kernel.time import system_clock
from threadline.stores.memory import MemoryStore

__all__ = ["call", "composed"]

SHIPPED = catalogue()
DEFINITIONS = """
features: {clicks: {aggregate: count, events: click}}
segments: {clickers: {when: {field: features.clicks, greater_than: 1}}}
leaderboards: {clickers: {score: features.clicks}}
rules: {thanks: {conditions: {field: features.clicks, exists: true}}}
rule_sets: {shop: {events: [click], rules: [thanks]}}
"""


@pytest.fixture
def clicked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "x.db"
    with threadline.open(path) as tl:
        for number in range(3):
            for _ in range(number + 1):
                tl.track(f"u{number}", "click")
    (tmp_path / "threadline.yaml").write_text(DEFINITIONS)
    monkeypatch.setenv("THREADLINE_STORE", str(path))
    return path


def test_apply_brings_everybody_up_to_changed_definitions_and_a_second_one_does_nothing(call, clicked: Path) -> None:  # type: ignore[no-untyped-def]
    before = clicked.read_bytes()
    told = call("apply", "--dry-run")
    assert told.code == 0, told.err
    for line in ("added    features.clicks", "added    segments.clickers", "added    rules.thanks"):
        assert line in told.out
    assert "refreshed for everybody: leaderboards, segments" in told.out
    assert clicked.read_bytes() == before
    done = json.loads(call("apply", "--json").out)
    assert done["people"] == {"people": 3, "leaderboards": 3, "segments": 3}
    assert {(each["change"], each["section"]) for each in done["changes"]} == {
        ("added", section) for section in ("features", "segments", "leaderboards", "rules", "rule_sets")
    }
    assert call("verify").code == 0
    with threadline.open(clicked, readonly=True) as tl:
        assert len(tl.segments.members("clickers").members) == 2
        assert [entry.score for entry in tl.leaderboards.top("clickers").places] == [3, 2, 1]
    again = json.loads(call("apply", "--json").out)
    assert (again["changes"], again["stale"], again["people"]) == ([], [], {})


def test_verify_of_changed_definitions_says_so_first_and_names_the_remedy(call, clicked: Path) -> None:  # type: ignore[no-untyped-def]
    told = call("verify")
    lines = told.out.splitlines()
    assert told.code == 1
    assert lines[0].startswith("note    definitions have changed since everybody was recalculated (people, ")
    said = " ".join(told.out.split())
    assert "run `threadline apply`, then verify again" in said
    assert "3 people have states of other definitions; `threadline apply` derives them anew." in said
    assert "differs from a fold" not in said
    assert call("apply").code == 0
    whole = call("verify")
    assert (whole.code, "definitions" in whole.out) == (0, False)


def test_answers_say_what_is_older_than_the_definitions_until_they_are_applied(call, clicked: Path) -> None:  # type: ignore[no-untyped-def]
    assert "Older than the definitions: people;" in call("features", "top", "clicks").err
    for command in (("segments", "members", "clickers"), ("people", "list", "--segment", "clickers")):
        assert "Older than the definitions: people, segments.clickers;" in call(*command).err
    assert call("people", "list", "--tag", "vip").err == ""
    assert call("people", "list").err == ""
    assert "run `threadline apply`" in " ".join(call("doctor").out.split())
    with (
        threadline.open(clicked, readonly=True) as tl,
        pytest.warns(threadline.StaleAnswer, match="features_top: older than"),
    ):
        tl.features.top("clicks")
    assert call("apply").code == 0
    for command in (
        ("features", "top", "clicks"),
        ("segments", "members", "clickers"),
        ("leaderboards", "top", "clickers"),
        ("people", "list", "--segment", "clickers"),
    ):
        told = call(*command)
        assert (told.code, told.err) == (0, "")
    assert "older than" not in " ".join(call("doctor").out.split())


def test_apply_names_what_changed_and_what_was_removed(call, clicked: Path) -> None:  # type: ignore[no-untyped-def]
    assert call("apply").code == 0
    changed = DEFINITIONS.replace("greater_than: 1", "greater_than: 2").replace("leaderboards:", "#")
    (clicked.parent / "threadline.yaml").write_text(changed)
    told = call("apply")
    assert "changed  segments.clickers" in told.out
    assert "removed  leaderboards.clickers" in told.out
    with threadline.open(clicked, readonly=True) as tl:
        assert len(tl.segments.members("clickers").members) == 1


def test_apply_refuses_mistakes_and_a_store_that_is_not_there_and_says_what_to_do_beside_a_server(  # type: ignore[no-untyped-def]
    call, clicked: Path
) -> None:
    with threadline.open(clicked):
        told = call("apply")
    assert (told.code, "--url http://127.0.0.1:8787" in told.err) == (1, True)
    told = call("apply", "--file", str(clicked.parent / "typo.db"))
    assert (told.code, "there is no store at" in told.err) == (1, True)
    (clicked.parent / "threadline.yaml").write_text("featurs: {}\nstreaks: 3")
    told = call("apply")
    assert (told.code, told.err.count("threadline.yaml:")) == (1, 2)


class Killed(MemoryStore):
    """A store whose process dies before one of its commits."""

    commits = 1_000_000

    def commit(self, batches: Sequence[Batch]) -> list[Refusal | None]:
        """Commit as long as it lives."""
        self.commits -= 1
        if self.commits < 0:
            raise Unavailable("killed")
        return super().commit(batches)


def apply_all(engine: Engine) -> None:
    """What the command does, two people at a time."""
    cursor = ""
    while cursor := engine.maintenance.advance(cursor, 2).next:
        pass


def up_to_date(engine: Engine) -> dict[str, Any]:
    """Everything that must be as it is after one undisturbed run."""
    return {
        "stale": engine.maintenance.stale(),
        "changes": engine.maintenance.changes(),
        "differing": refold_everybody(engine.store, engine.catalogue, write=False)[2:6],
        "members": sorted(item.key.sort for item in engine.store.scan("segment", limit=1_000)),
    }


def test_apply_killed_before_any_commit_and_begun_again_ends_as_one_run(tmp_path: Path) -> None:
    (tmp_path / "threadline.yaml").write_text(DEFINITIONS)
    new = catalogue([tmp_path])
    for commits in range(1_000):
        store = Killed()
        old = Engine(store, SHIPPED, system_clock)
        with threadline.Threadline(old) as tl:
            for number in range(3):
                for _ in range(number + 1):
                    tl.track(f"u{number}", "click")
            store.commits = commits
            try:
                apply_all(Engine(store, new, system_clock))
                survived = True
            except Unavailable:
                survived = False
            store.commits = 1_000_000
            engine = Engine(store, new, system_clock)
            apply_all(engine)
            found = up_to_date(engine)
            assert (found["stale"], found["changes"], found["differing"]) == ((), [], ((), 0, (), ()))
            assert len(found["members"]) == 2
        if survived:
            break
    assert 5 < commits < 999, "it was killed before each of its commits"


def test_a_cursor_of_other_definitions_begins_again(tmp_path: Path) -> None:
    definitions = tmp_path / "threadline.yaml"
    store = MemoryStore()
    with_people = threadline.Threadline(Engine(store, SHIPPED, system_clock))
    for number in range(3):
        with_people.track(f"u{number}", "click")
    definitions.write_text(DEFINITIONS)
    cursor = Engine(store, catalogue([tmp_path]), system_clock).maintenance.advance("", 2).next
    definitions.write_text(DEFINITIONS.replace("count", "any"))
    changed = Engine(store, catalogue([tmp_path]), system_clock)
    while cursor:
        cursor = changed.maintenance.advance(cursor, 2).next
    assert up_to_date(changed)["differing"] == ((), 0, (), ())
    with pytest.raises(InvalidValue, match="is not a cursor"):
        changed.maintenance.advance("nonsense", 2)


def test_a_section_of_very_many_names_is_known_as_a_whole(tmp_path: Path) -> None:
    def engine(count: int) -> Engine:
        lines = [f"  r{number}: {{conditions: {{field: tags, exists: true}}}}" for number in range(count)]
        (tmp_path / "threadline.yaml").write_text("\n".join(["rules:", *lines, ""]))
        return Engine(store, catalogue([tmp_path]), system_clock)

    store = MemoryStore()
    assert engine(2).maintenance.changes() == []
    threadline.Threadline(engine(3)).track("u", "click")
    changes = [tuple(each) for each in engine(4).maintenance.changes()]
    assert changes == [("added", "rules", "r3")]
    many = engine(1_001)
    assert [tuple(each) for each in many.maintenance.changes()] == [("changed", "rules", "")]
    apply_all(many)
    assert engine(1_001).maintenance.changes() == []
    assert [tuple(each) for each in engine(1_002).maintenance.changes()] == [("changed", "rules", "")]
