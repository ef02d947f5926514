"""Importing history: every form of file gives the same events, and each row once, however often it is run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.import_stage import (
    OPTIONS,
    asked,
    counts,
    engine,
    events_in,
    plan,
    write_csv,
    write_csv_zipped,
    write_json_lines,
    write_json_lines_zipped,
    write_parquet,
    write_tsv,
)
from threadline.kernel.time import parse_time
from threadline.surfaces.importing import recording as importing
from threadline.surfaces.importing import rows as import_rows
from threadline.surfaces.importing.files import BadRow, open_rows
from threadline.surfaces.importing.recording import import_file
from threadline.surfaces.importing.rows import BATCH_ROWS


@pytest.mark.parametrize(
    "write", [write_csv_zipped, write_tsv, write_json_lines, write_json_lines_zipped, write_parquet]
)
def test_every_form_gives_the_same_events(write: Callable[[Path], Path], tmp_path: Path) -> None:
    one, other = engine(), engine()
    assert counts(import_file(one, plan(write_csv(tmp_path / "rows.csv", 20)))) == (0, 20, 0, 0, 0)
    assert counts(import_file(other, plan(write(tmp_path)))) == (0, 20, 0, 0, 0)
    ids = [[entry.entry.id for entry in each.log.feed()] for each in (one, other)]
    assert ids[0] == ids[1]


def test_rows_become_history_of_people(tmp_path: Path) -> None:
    made = engine()
    import_file(made, plan(write_csv(tmp_path / "rows.csv", 7)))
    vector = asked(made, "features_of", id="user_id:1", names="monetary_total", as_of="2025-04-01").features
    # History counts as known from when it occurred, though it was recorded long after.
    assert (vector["monetary_total"].value, vector["monetary_total"].currency) == (1.25, "USD")
    event = made.log.of_key("default", "import", "o0")
    assert event is not None
    assert event.event.historical
    assert event.event.occurred_at == parse_time("2025-03-01")


def test_skipping_begins_in_the_midst_of_any_form(tmp_path: Path) -> None:
    for write in (write_csv_zipped, write_json_lines, write_parquet):
        path = write(tmp_path)
        for skip in (0, 1, 7, 20, 25):
            file = open_rows(path)
            assert [each["order"] for each in file.rows(skip) if not isinstance(each, BadRow)] == [
                f"o{number}" for number in range(skip, 20)
            ]
            file.close()


# --- once -------------------------------------------------------------------------------------


def test_a_second_run_skips_what_the_first_has_settled(tmp_path: Path) -> None:
    made = engine()
    path = write_csv(tmp_path / "rows.csv", 12)
    assert counts(import_file(made, plan(path))) == (0, 12, 0, 0, 0)
    assert counts(import_file(made, plan(path))) == (12, 0, 0, 0, 0)
    assert counts(import_file(made, plan(path), again=True)) == (0, 0, 12, 0, 0)
    assert events_in(made) == 12


def test_a_file_that_has_grown_adds_only_what_is_new(tmp_path: Path) -> None:
    made = engine()
    path = tmp_path / "rows.csv"
    import_file(made, plan(write_csv(path, 12)))
    assert counts(import_file(made, plan(write_csv(path, 15)))) == (0, 3, 12, 0, 0)


class Broken(Exception):
    """The import was broken off."""


@pytest.mark.parametrize("moment", ["after a checkpoint", "before a checkpoint"])
def test_an_import_that_was_broken_off_goes_on_where_it_was(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = engine()
    monkeypatch.setattr(importing, "CHECKPOINT_SECONDS", 0.0)  # after each batch
    count = 2 * BATCH_ROWS + 10
    path = write_csv(tmp_path / "rows.csv", count)
    batches = 0
    keep = importing._write

    def breaking(*arguments: Any, **named: Any) -> None:
        nonlocal batches
        batches += 1
        if moment == "after a checkpoint":
            keep(*arguments, **named)
        if batches == 2:
            raise Broken
        if moment == "before a checkpoint":
            keep(*arguments, **named)

    monkeypatch.setattr(importing, "_write", breaking)
    with pytest.raises(Broken):
        import_file(made, plan(path))
    monkeypatch.setattr(importing, "_write", keep)
    said = counts(import_file(made, plan(path)))
    if moment == "after a checkpoint":
        assert said == (2 * BATCH_ROWS, 10, 0, 0, 0)
    else:
        # The second batch was recorded and its checkpoint was not: its keys are recognised.
        assert said == (BATCH_ROWS, 10, BATCH_ROWS, 0, 0)
    people = asked(made, "people_list").people
    assert sum(person.events for person in people) == count


def test_batches_within_a_second_share_the_checkpoint_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = engine()
    written: list[bool] = []
    keep = importing._write

    def noting(*arguments: Any, done: bool) -> None:
        written.append(done)
        keep(*arguments, done=done)

    monkeypatch.setattr(importing, "_write", noting)
    monkeypatch.setattr(import_rows, "BATCH_ROWS", 5)
    monkeypatch.setattr(importing, "CHECKPOINT_SECONDS", 3_600.0)
    path = write_csv(tmp_path / "rows.csv", 23)
    assert counts(import_file(made, plan(path))) == (0, 23, 0, 0, 0)
    assert written == [True]
    assert counts(import_file(made, plan(path))) == (23, 0, 0, 0, 0)


def test_an_import_is_known_again_in_another_process(tmp_path: Path) -> None:
    path, store = write_csv(tmp_path / "rows.csv", 3), str(tmp_path / "store.db")
    command = [sys.executable, "-m", "threadline.surfaces.cli", "import", str(path), *OPTIONS, "--zone", "Europe/Rome"]
    for seed, said in (("1", "3 accepted"), ("2", "3 rows were settled"), ("3", "3 rows were settled")):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run(
            [*command, "--file", store], env=environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert said in done.stdout, done.stdout + done.stderr


def test_another_mapping_or_source_is_another_import(tmp_path: Path) -> None:
    made = engine()
    path = write_csv(tmp_path / "rows.csv", 3)
    import_file(made, plan(path))
    assert counts(import_file(made, plan(path, type="purchase_refunded"))) == (0, 0, 0, 3, 0)
    assert counts(import_file(made, plan(path)._replace(source="till"))) == (0, 3, 0, 0, 0)


def test_rows_without_a_key_are_named_by_file_and_number(tmp_path: Path) -> None:
    made = engine()
    path = write_csv(tmp_path / "rows.csv", 3)
    import_file(made, plan(path, key=[]))
    assert made.log.of_key("default", "import", "rows.csv:3") is not None
