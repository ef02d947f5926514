"""`threadline import`: what it says, what it makes, and when it has failed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.surfaces.import_stage import OPTIONS, csv_text, row, write_csv
from threadline.app import composition, open_engine
from threadline.kernel.errors import InvalidDefinition
from threadline.surfaces.cli.program import Start, threadline
from threadline.surfaces.importing.recording import Checkpoint, Summary
from threadline.surfaces.importing.rows import BATCH_ROWS


def run(*arguments: str) -> Result:
    # The program's own `run` prints to the process's streams; here the group is called as it calls it.
    return CliRunner().invoke(threadline, ["import", *arguments], obj=Start(composition))


def test_the_command_imports_into_a_file_store(tmp_path: Path) -> None:
    path, store = write_csv(tmp_path / "rows.csv", 12), str(tmp_path / "store.db")
    done = run(str(path), *OPTIONS, "--file", store)
    assert done.exit_code == 0, done.output
    assert "12 accepted" in done.stdout
    assert "12 rows were settled by an earlier run" in run(str(path), *OPTIONS, "--file", store).stdout
    made = open_engine(store, readonly=True)
    try:
        assert made.reader.person("default", "user_id:1").position == 2
    finally:
        made.close()


def test_a_dry_run_shows_events_and_makes_no_store(tmp_path: Path) -> None:
    path, store = write_csv(tmp_path / "rows.csv", 12), tmp_path / "store.db"
    done = run(str(path), *OPTIONS, "--file", str(store), "--dry-run")
    assert done.exit_code == 0, done.output
    assert done.stdout.count('"purchase_completed"') == 5
    assert '"total": 1.25' in done.stdout
    assert not store.exists()


def test_a_dry_run_checks_every_row_against_the_definitions_and_records_none(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    rows = [f"o{number},u{number},2025-03-0{number % 9 + 1},1.25\n" for number in range(2_500)]
    rows[1_200] = "o1200,null,2025-03-01,1.25\n"
    rows[2_100] = "o2100,7,soon,1.25\n"
    rows[2_400] = "o2400,7,2025-03-01,-1\n"
    (tmp_path / "rows.csv").write_text("order,customer,day,dollars\n" + "".join(rows))
    (tmp_path / "threadline.yaml").write_text(
        "event_schemas: {purchase_completed: {properties: {total: {minimum: 0}}, required: [total]}}\n"
    )
    done = run(str(tmp_path / "rows.csv"), *OPTIONS, "--file", str(store), "--dry-run")
    assert done.exit_code == 0, done.output
    assert "All 2,500 rows checked: 2,497 would be recorded, 3 rejected." in done.stdout.replace("\n", " ")
    for number, code in ((1_201, "no_identifier"), (2_101, "invalid_time"), (2_401, "schema_violation")):
        assert f"row {number}: {code}" in done.stdout
    assert not store.exists()
    done = run(str(tmp_path / "rows.csv"), *OPTIONS, "--file", str(store))
    assert "2,497 accepted" in done.stdout.replace("\n", " ")


def test_a_mapping_comes_from_a_file_and_options_change_it(tmp_path: Path) -> None:
    path, declared = write_csv(tmp_path / "rows.csv", 3), tmp_path / "map.yaml"
    declared.write_text("type: page\ntime: {column: day, zone: Europe/Rome}\nuser_id: customer\nproperties: '*'\n")
    done = run(
        str(path),
        "--map",
        str(declared),
        "--type",
        "visit",
        "--identifier",
        "loyalty=order",
        "--property",
        "total=dollars:number",
        "--dry-run",
    )
    assert done.exit_code == 0, done.output
    assert '"visit"' in done.stdout
    assert '"2025-02-28T23:00:00.000000Z"' in done.stdout
    assert '"loyalty": "o0"' in done.stdout
    assert '"total": 1.25' in done.stdout


def test_an_import_of_nothing_but_bad_rows_fails(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("order,customer,day,dollars\no1,1,soon,1\n")
    done = run(str(path), *OPTIONS, "--file", str(tmp_path / "store.db"))
    assert done.exit_code == 1
    assert "row 1: invalid_time" in done.stdout


def test_an_import_that_is_interrupted_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*given: Any, **named: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("threadline.surfaces.cli.import_.import_file", interrupted)
    done = run(str(write_csv(tmp_path / "rows.csv", 3)), *OPTIONS, "--file", str(tmp_path / "store.db"))
    assert done.exit_code != 0
    assert "The same command continues from there." in done.stderr


def test_an_import_that_recorded_nothing_fails_however_often_it_is_run(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    rows = [row(number) for number in range(3)]
    (tmp_path / "rows.csv").write_text(csv_text(rows))
    assert run(str(tmp_path / "rows.csv"), *OPTIONS, "--file", store).exit_code == 0
    assert run(str(tmp_path / "rows.csv"), *OPTIONS, "--file", store).exit_code == 0
    assert run(str(tmp_path / "rows.csv"), *OPTIONS, "--file", store, "--again").exit_code == 0
    (tmp_path / "other.csv").write_text(csv_text([{**each, "dollars": "9"} for each in rows]))
    (tmp_path / "bad.csv").write_text(csv_text([{**each, "day": "soon"} for each in rows]))
    for name, said in (("other.csv", "3 in conflict"), ("bad.csv", "3 rejected")):
        for arguments in ((), (), ("--again",), ()):
            done = run(str(tmp_path / name), *OPTIONS, "--file", store, *arguments)
            assert done.exit_code == 1, (name, arguments)
            assert "Not one row is recorded." in done.stdout
            assert said in done.stdout or "3 rows were settled by an earlier run" in done.stdout
            assert ("`--source` of its own" in done.stdout) is ("3 in conflict" in done.stdout)
    (tmp_path / "empty.csv").write_text(csv_text([]))
    assert run(str(tmp_path / "empty.csv"), *OPTIONS, "--file", store).exit_code == 0


def test_a_checkpoint_without_counts_condemns_nothing() -> None:
    assert not Summary(skipped=3, earlier=Checkpoint(file="f", rows=3, done=True)).futile


def test_a_wrong_mapping_says_what_to_write(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "rows.csv", 1)
    done = run(str(path), "--type", "page", "--time", "day", "--dry-run")
    assert isinstance(done.exception, InvalidDefinition)
    assert "user_id" in str(done.exception)
    assert run(str(path), "--identifier", "loyalty", "--dry-run").exit_code == 2


MIXPANEL = {"event": "Bought", "properties": {"time": 1767614400, "distinct_id": "u1", "id": "i", "cart": {"total": 5}}}
NESTED = (
    "--type",
    "bought",
    "--time",
    "properties.time",
    "--time-format",
    "unix",
    "--user-id",
    "properties.distinct_id",
    "--key",
    "properties.id",
    "--property",
    "total=properties.cart.total",
)


def write_nested(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


def test_a_path_names_a_field_inside_an_object_of_json_lines(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    # A field of that very name goes before the path.
    named = {**MIXPANEL, "properties.cart.total": 7, "properties.id": "j"}
    done = run(write_nested(tmp_path / "rows.jsonl", MIXPANEL, named), *NESTED, "--file", store)
    assert (done.exit_code, "2 accepted" in done.stdout, "Warning" in done.stdout) == (0, True, False), done.output
    made = open_engine(store, readonly=True)
    try:
        totals = {key: made.log.of_key("default", "import", key) for key in ("i", "j")}
        assert {key: found and found.event.properties["total"] for key, found in totals.items()} == {"i": 5, "j": 7}
    finally:
        made.close()


@pytest.mark.parametrize("more", [("--dry-run",), ()])
def test_a_column_that_no_row_of_json_lines_has_is_named_at_the_end(more: tuple[str, ...], tmp_path: Path) -> None:
    path = write_nested(tmp_path / "rows.jsonl", {**MIXPANEL, "plan": None}, {"broken": 1})
    columns = ("--property", "sum=properties.card.total", "--property", "plan=plan", "--property", "code=coupon")
    done = run(path, *NESTED, *columns, "--file", str(tmp_path / "store.db"), *more)
    warned = [line.split("'")[1] for line in done.stdout.splitlines() if line.startswith("Warning: no row has")]
    assert warned == ["coupon", "properties.card.total"], done.output


def test_a_column_that_one_row_far_behind_has_is_not_named(tmp_path: Path) -> None:
    rows = [{"id": str(n), "who": "u", "day": "2025-03-01"} for n in range(2 * BATCH_ROWS)]
    path = write_nested(tmp_path / "rows.jsonl", *rows[:-1], {**rows[-1], "total": 1})
    options = ("--type", "bought", "--time", "day", "--user-id", "who", "--key", "id", "--property", "total=total")
    assert "Warning" not in run(path, *options, "--file", str(tmp_path / "store.db"), "--dry-run").stdout
