"""Everybody folded again from the lake on one machine: equal to what the store has, whole, or not there at all."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given

from tests.exports.spark import stage
from tests.laws import staging
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.maintenance.dump import dump
from threadline.exports.lake.files import read_table
from threadline.exports.lake.lake import Lake
from threadline.exports.lake.schema import pa, recorded_of
from threadline.exports.lake.sync import sync
from threadline.exports.spark import single
from threadline.exports.spark.checking import check_states
from threadline.exports.spark.events import NO_TIME, TIMES, events_of
from threadline.exports.spark.folding import fold_group, stored_rows
from threadline.exports.spark.recipe import recipe
from threadline.exports.spark.states import STATES, published_rows
from threadline.kernel.errors import Conflict, InvalidSetting, InvalidValue
from threadline.kernel.event import Event
from threadline.kernel.time import DAY, EARLIEST, LATEST
from threadline.stores.memory import MemoryStore
from threadline.testing import scenarios

FAR = staging.event(
    "far \u2028",
    {"user_id": "ada"},
    "far",
    EARLIEST,
    sent_time=LATEST,
    properties={"a": [1, 1.0, 10**18, None, {"ü": "☃"}]},
    marks=("clamped", "x"),
    historical=True,
    context={"timezone": "+05:00"},
    wire={"channel": "w"},
    schema_version="3",
    object_id="o",
    object_ref="r",
    source="s",
    source_type="external",
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return stage.lake_in(tmp_path / "lake")


@given(scenarios.histories(), scenarios.randoms)
def test_the_states_of_a_lake_are_those_of_the_store(history: list[Event], random: Random) -> None:
    on = staging.tell(MemoryStore(), scenarios.telling(scenarios.shuffled, random, history), staging.ticking())
    with TemporaryDirectory() as folder:
        lake = stage.lake_in(Path(folder))
        while sync(on, lake, limit=random.randint(1, 20)).events:
            pass
        done = single.refold(lake, stage.RECIPE)
        rows = [row for workspace in ("default", "other") for row, _ in published_rows(lake, workspace)]
        checked = check_states(on.store, on.catalogue, lake)
    assert (checked.newer, checked.differing, checked.people) == (0, (), len(rows))
    assert (done.people, done.events) == (len(rows), len(list(on.log.feed())))
    # And by the dump, which knows nothing of lakes.
    dumped = {line["person"]: line for text in dump(on.store, on.catalogue) if "person" in (line := json.loads(text))}
    assert {row.person: stage.canonical(row.states) for row in rows} == {
        person: stage.canonical(json.dumps(line["states"])) for person, line in dumped.items() if line["events"]
    }


def test_a_person_who_was_merged_is_one_row_and_who_was_split_is_two(lake: Lake) -> None:
    on = stage.joined_and_split()
    sync(on, lake)
    single.refold(lake, stage.RECIPE)
    rows = {row.person: row.events for row, _ in published_rows(lake, "default")}
    stored = {person.id: person.position for person in on.reader.all_people("default")}
    assert rows == stored
    assert len(rows) == 3
    assert check_states(on.store, on.catalogue, lake).differing == ()


def test_people_are_joined_across_syncs(lake: Lake) -> None:
    on = staging.engine()
    on.recorder.record([staging.event("page", {"anonymous_id": "a"}, "1")])
    on.recorder.record([staging.event("page", {"user_id": "u"}, "2")])
    sync(on, lake)
    on.recorder.record([staging.event("identify", {"user_id": "u", "anonymous_id": "a"}, "3")])
    sync(on, lake)
    single.refold(lake, stage.RECIPE)
    [(row, _)] = published_rows(lake, "default")
    assert row.events == len(list(on.log.feed()))


def test_events_of_columns_are_those_of_the_rows_one_by_one(lake: Lake) -> None:
    on = staging.engine()
    on.recorder.record([FAR, *scenarios.history(Random(7), people=2, count=40)])
    sync(on, lake)
    tables = [pa.parquet.read_table(pa.BufferReader(lake.storage.read(f.name))) for f in lake.files("default")]
    for table in tables:
        columns = {name: table[name].to_pylist() for name in table.column_names}
        for name in TIMES:
            times = table[name].cast(pa.int64()).to_pylist()
            columns[name] = [NO_TIME if at is None else at for at in times]
        assert list(events_of(columns)) == [recorded_of(row) for row in table.to_pylist()]
    assert sum(table.num_rows for table in tables) == len(list(on.log.feed()))


def test_times_at_the_ends_of_the_calendar_are_folded(lake: Lake) -> None:
    on = staging.engine()
    on.recorder.record([FAR])
    sync(on, lake)
    single.refold(lake, stage.RECIPE)
    [(row, _)] = published_rows(lake, "default")
    assert row.latest_at == EARLIEST
    assert check_states(on.store, on.catalogue, lake).differing == ()


def test_events_are_folded_in_the_order_in_which_they_occurred(lake: Lake) -> None:
    on = stage.in_no_order(lake)
    single.refold(lake, recipe(stage.with_diary))
    checked = check_states(on.store, on.catalogue, lake)
    assert (checked.people, checked.newer, checked.differing) == (1, 0, ())


def test_a_group_in_any_order_is_folded_in_the_order_in_which_events_occurred(lake: Lake) -> None:
    on = stage.in_no_order(lake)
    [file] = lake.files("default")
    rows = read_table(lake, file).to_pylist()
    group = [(row["person"], recorded_of(row)) for row in sorted(rows, key=lambda row: str(row["id"]))]
    assert list(fold_group(on.catalogue, "default", group)) == list(stored_rows(on.store, on.catalogue))


def test_each_workspace_has_files_of_its_own_and_one_alone_can_be_made_anew(lake: Lake) -> None:
    on = staging.engine()
    for workspace in ("default", "..", "it's"):
        on.recorder.record([staging.event("page", {"user_id": "ada"}, "1", workspace=workspace)])
    sync(on, lake)
    single.refold(lake, stage.RECIPE)
    before = {name: lake.files(name, STATES) for name in ("default", "..", "it's")}
    assert [len(files) for files in before.values()] == [1, 1, 1]
    assert single.refold(lake, stage.RECIPE, "it's").people == 1
    assert {name for name in before if lake.files(name, STATES) != before[name]} == {"it's"}
    assert [row.workspace for row, _ in published_rows(lake, "it's")] == ["it's"]


def test_a_refold_that_fails_leaves_the_states_that_were_there_and_no_file(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = stage.filled(lake, 30)
    single.refold(lake, stage.RECIPE)
    before, files = lake.manifest(), stage.names(lake)
    stage.record(on, 30, 60)
    sync(on, lake)
    synced, files = lake.manifest(), stage.names(lake)
    real, seen = single.fold_people, []

    def failing(*given: Any) -> Iterator[Any]:
        for row in real(*given):
            seen.append(row)
            if len(seen) == 4:
                raise OSError("the disk is gone")
            yield row

    monkeypatch.setattr(single, "fold_people", failing)
    monkeypatch.setattr("threadline.exports.spark.states.ROWS_MAX", 2)
    with pytest.raises(OSError, match="disk"):
        single.refold(lake, stage.RECIPE)
    assert lake.manifest() == synced
    assert stage.names(lake) == files
    assert [each for each in synced.files if each.table == STATES] == [
        each for each in before.files if each.table == STATES
    ]


def test_a_person_who_is_lost_on_the_way_is_noticed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.filled(lake, 10)
    real = single.fold_people
    monkeypatch.setattr(single, "fold_people", lambda *given: list(real(*given))[1:])
    with pytest.raises(InvalidValue, match=r"8 events of workspace 'default' were folded; its files have 10"):
        single.refold(lake, stage.RECIPE)
    assert lake.files("default", STATES) == []


def test_states_made_of_events_that_were_erased_meanwhile_are_not_published(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.filled(lake, 10)
    stage.while_folding(monkeypatch, lambda: lake.change(lambda each: msgspec.structs.replace(each, erased="7")))
    with pytest.raises(Conflict, match="erased"):
        single.refold(lake, stage.RECIPE)
    assert lake.files("default", STATES) == []
    monkeypatch.undo()
    assert single.refold(lake, stage.RECIPE).people == len(list(published_rows(lake, "default")))


def test_an_earlier_refold_that_ends_later_changes_nothing(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    on = stage.filled(lake, 10)

    def another() -> None:
        monkeypatch.undo()
        stage.record(on, 10, 20)
        sync(on, lake)
        single.refold(lake, stage.RECIPE)

    stage.while_folding(monkeypatch, another)
    with pytest.raises(Conflict, match="more events"):
        single.refold(lake, stage.RECIPE)
    assert sum(row.events for row, _ in published_rows(lake, "default")) == 20


def test_a_sync_meanwhile_stays_and_so_do_the_states(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    on = stage.filled(lake, 10)

    def recorded() -> None:
        stage.record(on, 10, 20)
        sync(on, lake)

    stage.while_folding(monkeypatch, recorded)
    assert single.refold(lake, stage.RECIPE).position == 10
    manifest = lake.manifest()
    assert (manifest.position, {each.last for each in manifest.files if each.table == STATES}) == (20, {10})
    checked = check_states(on.store, on.catalogue, lake)
    assert checked.differing == ()
    assert checked.newer > 0


def test_files_of_the_refold_before_are_removed_in_time(lake: Lake) -> None:
    stage.filled(lake, 10)
    single.refold(lake, stage.RECIPE)
    [former] = lake.files("default", STATES)
    single.refold(lake, stage.RECIPE)
    assert [each.name for each in lake.manifest().obsolete] == [former.name]
    assert former.name in stage.names(lake)


def test_a_state_that_is_not_that_of_the_store_is_named(lake: Lake) -> None:
    on = stage.filled(lake, 10)
    single.refold(lake, stage.RECIPE)
    person = next(iter(on.reader.all_people("default")))
    stage.forge(lake, person.id, lambda row: row._replace(states=row.states.replace("{", "{ ", 1)))
    assert check_states(on.store, on.catalogue, lake).differing == (person.id,)


def test_states_of_other_definitions_are_not_compared(lake: Lake) -> None:
    on = stage.filled(lake, 10)
    single.refold(lake, stage.RECIPE)
    first, *others = on.catalogue.projections
    other = Catalogue([dataclasses.replace(first, version=first.version + 1), *others], on.catalogue.rules)
    with pytest.raises(Conflict, match="other definitions"):
        check_states(on.store, other, lake)


def test_a_process_with_other_folds_takes_no_part(lake: Lake) -> None:
    with pytest.raises(InvalidSetting, match="folds otherwise"):
        recipe(stage.catalogue_of)._replace(layout="of another version").catalogue()


def test_openings_of_events_that_left_by_their_age_are_folded_from_a_lake_as_in_the_store(lake: Lake) -> None:
    on = staging.engine()
    for number in range(6):
        paid = {"total": 10, "currency": "EUR"}
        at = staging.NOW - (9 - number) * DAY
        on.recorder.record([staging.event("purchase_completed", {"user_id": "ada"}, f"{number}", at, properties=paid)])
    person = on.reader.person("default", "user_id:ada")
    for days in (7, 5):  # the second time an opening leaves with the events
        sync(on, lake)
        assert on.erasures.expiry.expire(person.id, ["purchase_completed"], staging.NOW - days * DAY) == 2
        sync(on, lake)
        single.refold(lake, stage.RECIPE)
        checked = check_states(on.store, on.catalogue, lake)
        assert (checked.people, checked.newer, checked.differing) == (1, 0, ())
