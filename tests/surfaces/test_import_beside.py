"""Rows that are read in another process: the same events, whatever happens to that process."""

from __future__ import annotations

import gzip
import multiprocessing
from pathlib import Path

import pytest

from tests.surfaces.import_stage import asked, counts, csv_text, engine, events_in, plan, row
from threadline.kernel.errors import InvalidValue, Unavailable
from threadline.surfaces.importing import rows as import_rows
from threadline.surfaces.importing.recording import Summary, import_file
from threadline.surfaces.importing.rows import BATCH_ROWS, is_worth_a_process

COUNT = 2 * BATCH_ROWS + 500


@pytest.fixture(autouse=True)
def one_batch_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_rows, "BATCHES_HERE", 1)


def write(path: Path) -> Path:
    """Rows of which every ninth is bad, and every eleventh a repetition."""
    rows = [row(number - number % 11 if number % 11 == 5 else number) for number in range(COUNT)]
    for each in rows[::9]:
        each["day"] = "one day"
    path.write_text(csv_text(rows))
    return path


def test_rows_read_beside_give_the_events_and_rejections_of_rows_read_here(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv")
    here, beside = engine(), engine()
    done: list[int] = []
    summaries = [
        import_file(here, plan(path)),
        import_file(beside, plan(path), beside=True, advance=lambda _, position: done.append(position)),
    ]
    assert counts(summaries[0]) == counts(summaries[1])
    assert summaries[0].problems == summaries[1].problems
    assert min(counts(summaries[0])[1], counts(summaries[0])[2], summaries[0].rejected) > 0
    ids = [[entry.entry.id for entry in each.log.feed()] for each in (here, beside)]
    assert ids[0] == ids[1]
    rejected = [
        {(each.id, each.message) for each in asked(on, "rejected_list", limit=1_000).entries} for on in (here, beside)
    ]
    assert rejected[0] == rejected[1]
    assert len(done) == 3
    assert done[-1] == path.stat().st_size


def test_an_import_beside_goes_on_where_an_earlier_one_ended(tmp_path: Path) -> None:
    made, path = engine(), write(tmp_path / "rows.csv")

    class Stopped(Exception):
        pass

    def stop(summary: Summary, _: int) -> None:
        if summary.rows > BATCH_ROWS:
            raise Stopped

    with pytest.raises(Stopped):
        import_file(made, plan(path), beside=True, advance=stop)
    assert multiprocessing.active_children() == []
    import_file(made, plan(path), beside=True)
    whole = engine()
    import_file(whole, plan(path))
    assert events_in(made) == events_in(whole)


def test_damage_that_the_other_process_meets_is_said_and_what_came_before_is_recorded(tmp_path: Path) -> None:
    made, path = engine(), tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(csv_text([row(number) for number in range(COUNT)]).encode()) + b"no gzip")
    with pytest.raises(InvalidValue, match="damaged from this point"):
        import_file(made, plan(path), beside=True)
    assert events_in(made) == COUNT


def test_the_death_of_the_other_process_ends_the_import_which_can_be_run_again(tmp_path: Path) -> None:
    made, path = engine(), tmp_path / "rows.csv"
    path.write_text(csv_text([row(number) for number in range(10 * BATCH_ROWS)]))

    def kill(summary: Summary, _: int) -> None:
        for child in multiprocessing.active_children():
            child.kill()
            child.join()

    with pytest.raises(Unavailable, match="reads the file ended before"):
        import_file(made, plan(path), beside=True, advance=kill)
    assert BATCH_ROWS <= events_in(made) < 10 * BATCH_ROWS
    assert import_file(made, plan(path), beside=True).accepted + events_in(made) >= 10 * BATCH_ROWS
    assert events_in(made) == 10 * BATCH_ROWS


def test_only_a_large_file_is_worth_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.csv"
    monkeypatch.setattr(import_rows.os, "cpu_count", lambda: 2)
    path.write_bytes(b"x" * (import_rows.APART_BYTES_MIN - 1))
    assert not is_worth_a_process(path)
    path.write_bytes(b"x" * import_rows.APART_BYTES_MIN)
    assert is_worth_a_process(path)
    monkeypatch.setattr(import_rows.os, "cpu_count", lambda: 1)
    assert not is_worth_a_process(path)
