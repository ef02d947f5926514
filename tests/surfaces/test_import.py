"""An import takes every row once, whatever the form of the file, however often it is broken off or repeated."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from threadline.app import composition, open_engine
from threadline.capabilities.definitions import Definitions
from threadline.capabilities.people.definition import rules
from threadline.engine.catalogue import Catalogue, discover
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.kernel.errors import InvalidDefinition, InvalidValue
from threadline.kernel.event import Event
from threadline.kernel.time import SECOND, parse_time
from threadline.stores.memory import MemoryStore
from threadline.surfaces.cli import importing
from threadline.surfaces.cli.importing import BATCH_ROWS, Checkpoint, Plan, Summary, import_file, preview
from threadline.surfaces.cli.program import threadline
from threadline.surfaces.cli.rows import LINE_BYTES_MAX, BadRow, open_rows
from threadline.surfaces.cli.session import Session
from threadline.wire.table import parse_mapping

NOW = 1_767_225_600 * SECOND
CATALOGUE = Catalogue(discover(definitions=Definitions()), rules())
MAPPING = {
    "type": "purchase_completed",
    "time": "day",
    "user_id": "customer",
    "properties": {"total": {"column": "dollars", "number": True}, "currency": {"value": "USD"}},
    "key": ["order"],
}


def engine() -> Engine:
    return Engine(MemoryStore(), CATALOGUE, lambda: NOW)


def plan(path: Path, **changes: Any) -> Plan:
    return Plan(path, parse_mapping(MAPPING | changes), "default", "import")


def row(number: int) -> dict[str, str]:
    return {
        "order": f"o{number}",
        "customer": f"{number % 7 + 1}",
        "day": f"2025-03-{number % 28 + 1:02}",
        "dollars": "1.25",
    }


def csv_text(rows: list[dict[str, str]]) -> str:
    lines = [",".join(row(0)), *(",".join(each.values()) for each in rows)]
    return "\n".join(lines) + "\n"


def write_csv(path: Path, count: int) -> Path:
    path.write_text(csv_text([row(number) for number in range(count)]))
    return path


def counts(summary: Summary) -> tuple[int, int, int, int, int]:
    return (summary.skipped, summary.accepted, summary.duplicates, summary.conflicts, summary.rejected)


def events_in(engine: Engine) -> int:
    return len(engine.feed(limit=1_000))


def asked(engine: Engine, operation: str, **params: Any) -> Any:
    declared = next(each for each in engine.catalogue.operations if each.name == operation)
    return declared.run(Context(engine, "default", NOW, "operator"), declared.params(**params))


# --- forms of files ---------------------------------------------------------------------------


def write_csv_zipped(path: Path) -> Path:
    path = path / "rows.csv.gz"
    path.write_bytes(gzip.compress(csv_text([row(number) for number in range(20)]).encode()))
    return path


def write_tsv(path: Path) -> Path:
    path = path / "rows.tsv"
    path.write_text(csv_text([row(number) for number in range(20)]).replace(",", "\t"))
    return path


def write_json_lines(path: Path) -> Path:
    path = path / "rows.jsonl"
    path.write_text("\n\n".join(json.dumps(row(number)) for number in range(20)))
    return path


def write_json_lines_zipped(path: Path) -> Path:
    path = path / "rows.ndjson.gz"
    path.write_bytes(gzip.compress("\n".join(json.dumps(row(number)) for number in range(20)).encode()))
    return path


def write_parquet(path: Path) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = path / "rows.parquet"
    parquet.write_table(pyarrow.Table.from_pylist([row(number) for number in range(20)]), path, row_group_size=6)
    return path


@pytest.mark.parametrize(
    "write", [write_csv_zipped, write_tsv, write_json_lines, write_json_lines_zipped, write_parquet]
)
def test_every_form_gives_the_same_events(write: Callable[[Path], Path], tmp_path: Path) -> None:
    one, other = engine(), engine()
    assert counts(import_file(one, plan(write_csv(tmp_path / "rows.csv", 20)))) == (0, 20, 0, 0, 0)
    assert counts(import_file(other, plan(write(tmp_path)))) == (0, 20, 0, 0, 0)
    ids = [[entry.entry.id for entry in each.feed()] for each in (one, other)]
    assert ids[0] == ids[1]


def test_rows_become_history_of_people(tmp_path: Path) -> None:
    made = engine()
    import_file(made, plan(write_csv(tmp_path / "rows.csv", 7)))
    vector = asked(made, "features", id="user_id:1", names="monetary_total", as_of="2025-04-01").features
    # History counts as known from when it occurred, though it was recorded long after.
    assert (vector["monetary_total"].value, vector["monetary_total"].currency) == (1.25, "USD")
    event = made.event_of_key("default", "import", "o0")
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
    people = asked(made, "people").people
    assert sum(person.events for person in people) == count


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
    assert made.event_of_key("default", "import", "rows.csv:3") is not None


# --- bad rows ---------------------------------------------------------------------------------

BAD_CSV = (
    b"order,customer,day,dollars\n"
    b"o1,1,2025-03-01,1\n"
    b"o2,1,soon,1\n"
    b"o3,1,2025-03-01,many\n"
    b"o4,,2025-03-01,1\n"
    b"o5,null,2025-03-01,1\n"
    b"o6,1,2025-03-01,1,too,many\n"
    b"o7,\xff\xfe,2025-03-01,1\n"
    b"\n"
    b"o8,1\n"
    b"o9,1,2025-03-09,1\n"
)


def test_a_bad_row_is_kept_with_its_number_and_stops_no_other(tmp_path: Path) -> None:
    made = engine()
    path = tmp_path / "bad.csv"
    path.write_bytes(BAD_CSV)
    summary = import_file(made, plan(path))
    assert counts(summary) == (0, 2, 0, 0, 7)
    said = {problem.row: problem.code for problem in summary.problems}
    assert said == {
        2: "invalid_time", 3: "invalid_value", 4: "no_identifier", 5: "no_identifier", 6: "invalid_value",
        7: "invalid_value", 8: "missing_column",
    }  # fmt: skip
    entries = asked(made, "rejected").entries
    assert len(entries) == 7
    kept = {entry.payload["row"]: entry for entry in entries}
    assert set(kept) == {2, 3, 4, 5, 6, 7, 8}
    assert kept[2].payload["cells"] == {"order": "o2", "customer": "1", "day": "soon", "dollars": "1"}
    assert (kept[2].payload["file"], kept[2].payload["key"], kept[2].source) == ("bad.csv", "o2", "import")
    assert asked(made, "message", message_id="o3", source="import").outcome == "rejected"
    # Once more changes nothing: the same refusals are the same entries.
    assert counts(import_file(made, plan(path), again=True)) == (0, 0, 2, 0, 7)
    assert len(asked(made, "rejected").entries) == 7


def test_a_rejected_row_is_corrected_as_an_event(tmp_path: Path) -> None:
    made = engine()
    path = tmp_path / "bad.csv"
    path.write_bytes(BAD_CSV)
    import_file(made, plan(path))
    entry = next(each for each in asked(made, "rejected").entries if each.payload.get("key") == "o2")
    with pytest.raises(InvalidValue, match="give the correction as `event`"):
        asked(made, "resubmit", id=entry.id)
    native = next(each for each in made.catalogue.operations if each.name == "resubmit").example.event
    receipt = asked(
        made, "resubmit", id=entry.id, event=type(native)(type="page", identifiers={"user_id": "1"})
    ).receipt
    event = made.event_of_key("default", "import", "o2")
    assert event is not None
    assert event.id == receipt.id


def test_lines_that_are_no_objects_are_bad_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    lines = [
        json.dumps(row(1)), "{broken", "[1]", "\x00", json.dumps({"deep": 1}).replace("1", "[" * 5_000 + "]" * 5_000),
        '{"long": "' + "x" * LINE_BYTES_MAX + '"}', json.dumps(row(2)),
    ]  # fmt: skip
    path.write_text("\n".join(lines))
    made = engine()
    summary = import_file(made, plan(path))
    assert counts(summary) == (0, 2, 0, 0, 5)
    said = {problem.row: problem.code for problem in summary.problems}
    assert (said[2], said[3], said[4], said[6]) == ("invalid_json", "not_an_object", "invalid_json", "too_large")


@pytest.mark.parametrize(
    ("torn", "recorded", "cells"),
    [
        ('1,ada,2025-03-01,1\n2,ada,2025-03-02,"1\n3,ada,2025-03-03,1\n4,ada,2025-03-04,1', 3, '2,ada,2025-03-02,"1\n'),
        ('1,ada,2025-03-01,1\n2,"ada\n' + "3,ada,2025-03-03,1\n" * 8_000, 2, '2,"ada\n'),
        (
            '1,ada,2025-03-01,1\n2,ada,2025-03-02,"1\n3,ada,2025-03-03,"x\n4,ada,2025-03-04,1\n', 2,
            '2,ada,2025-03-02,"1\n3,ada,2025-03-03,"x\n',
        ),
    ],
    ids=["to the end", "too far", "up to another"],
)  # fmt: skip
def test_a_quote_that_nothing_closes_swallows_no_rows(torn: str, recorded: int, cells: str, tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("order,customer,day,dollars\n" + torn)
    on = engine()
    summary = import_file(on, plan(path))
    assert (summary.accepted, summary.rejected, summary.problems[0].row) == (recorded, 1, 2)
    (entry,) = asked(on, "rejected").entries
    assert entry.payload["cells"] == cells


def test_quotes_may_hold_lines_and_quotes(tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text('order,customer,day,dollars\n1,"a ""dear""\ncustomer",2025-03-01,"1"\n2,ada,2025-03-02,1')
    on = engine()
    assert counts(import_file(on, plan(path)))[1] == 2
    assert on.person("default", 'user_id:a "dear"\ncustomer').position == 1


def test_a_byte_order_mark_before_lines_of_json_is_passed_over(tmp_path: Path) -> None:
    path = write_json_lines(tmp_path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    summary = import_file(engine(), plan(path))
    assert (summary.accepted, summary.rejected) == (20, 0)


def test_parquet_of_data_frames_has_times_finer_than_ours(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    nanoseconds = [1_700_000_000_123_456_789, 1_700_000_000_123_456_000]
    columns = {
        "order": ["1", "2"], "customer": ["ada", "bob"], "dollars": [1, 2],
        "day": pyarrow.array(nanoseconds, pyarrow.timestamp("ns", tz="Europe/Rome")),
        "clock": pyarrow.array([1_001, 2], pyarrow.time64("ns")),
        "took": pyarrow.array([1_001, 2], pyarrow.duration("ns")),
    }  # fmt: skip
    path = tmp_path / "orders.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    on = engine()
    clock = plan(path, properties={"clock": "clock"})
    assert import_file(on, clock).accepted == 2
    (told,) = on.events(on.person("default", "user_id:ada"))
    assert (told.event.occurred_at, told.event.properties) == (nanoseconds[0] // 1_000, {"clock": "00:00:00.000001"})


def test_a_value_that_has_no_form_here_stops_only_its_row(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    days = pyarrow.array([19_000, 10_000_000, 19_001], pyarrow.date32())
    columns = {"order": ["1", "2", "3"], "customer": ["ada", "bob", "eve"], "dollars": [1, 2, 3], "day": days}
    path = tmp_path / "orders.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    summary = import_file(engine(), plan(path))
    assert (summary.accepted, [each.row for each in summary.problems]) == (2, [2])


def test_a_damaged_file_says_so_and_keeps_what_came_before(tmp_path: Path) -> None:
    made = engine()
    path = tmp_path / "rows.csv.gz"
    whole = gzip.compress(csv_text([row(number) for number in range(4_000)]).encode())
    path.write_bytes(whole[: len(whole) * 3 // 4])
    with pytest.raises(InvalidValue, match="damaged from here"):
        import_file(made, plan(path))
    assert events_in(made) >= BATCH_ROWS
    path.write_bytes(whole)
    import_file(made, plan(path))
    assert sum(person.events for person in asked(made, "people").people) == 4_000


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("rows.xlsx", b"", "must end in"),
        ("rows.csv", b"", "is empty"),
        ("rows.csv", b"a,b,a\n1,2,3\n", "two columns"),
        ("rows.parquet", b"PAR0", "no Parquet file"),
        ("rows.csv.gz", b"not gzip", "damaged"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InvalidValue, match=said):
        import_file(engine(), plan(path))


def test_what_a_json_object_lacks_is_empty_unless_it_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [row(1), row(2), row(3), row(4), row(5)]
    del rows[1]["dollars"], rows[2]["day"], rows[3]["customer"], rows[4]["order"]
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    made = engine()
    summary = import_file(made, plan(path))
    assert counts(summary) == (0, 2, 0, 0, 3)
    assert {each.row: each.code for each in summary.problems} == {
        3: "missing_column", 4: "no_identifier", 5: "missing_column",
    }  # fmt: skip
    kept = {entry.payload["row"]: entry.payload["cells"] for entry in asked(made, "rejected").entries}
    assert kept == {3: rows[2], 4: rows[3], 5: rows[4]}
    assert [getattr(each, "properties", None) for each in preview(plan(path), NOW, 2)] == [
        {"total": 1.25, "currency": "USD"},
        {"currency": "USD"},
    ]


@pytest.mark.parametrize("write", [write_csv_zipped, write_tsv, write_parquet])
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"time": "dya"}, "no column 'dya'; did you mean 'day'"),
        ({"user_id": "who"}, "no column 'who'; it has "),
        ({"identifiers": {"loyalty": "crad"}}, "no column 'crad'"),
        ({"properties": {"total": "dolars"}}, "no column 'dolars'; did you mean 'dollars'"),
        ({"key": ["oder"]}, "no column 'oder'; did you mean 'order'"),
        ({"type": {"column": "kind"}}, "no column 'kind'"),
    ],
)
def test_a_column_that_no_row_can_have_stops_the_import_before_any_row(
    write: Callable[[Path], Path], changed: dict[str, Any], said: str, tmp_path: Path
) -> None:
    made = engine()
    wrong = plan(write(tmp_path), **changed)
    with pytest.raises(InvalidDefinition, match=said):
        import_file(made, wrong)
    with pytest.raises(InvalidDefinition, match=said):
        preview(wrong, NOW)
    assert asked(made, "rejected").entries == []


def test_a_preview_shows_the_first_rows(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(BAD_CSV)
    first = preview(plan(path), NOW, 3)
    assert isinstance(first[0], Event)
    assert (first[0].key, first[0].properties) == ("o1", {"total": 1, "currency": "USD"})
    assert [getattr(each, "code", "") for each in first] == ["", "invalid_time", "invalid_value"]


# --- the command ------------------------------------------------------------------------------

OPTIONS = [
    "--type", "purchase_completed", "--time", "day", "--user-id", "customer", "--property", "total=dollars:number",
    "--key", "order",
]  # fmt: skip


def run(*arguments: str) -> Result:
    # The program's own `run` prints to the process's streams; here the group is called as it calls it.
    return CliRunner().invoke(threadline, ["import", *arguments], obj=Session(composition()))


def test_the_command_imports_into_a_file_store(tmp_path: Path) -> None:
    path, store = write_csv(tmp_path / "rows.csv", 12), str(tmp_path / "store.db")
    done = run(str(path), *OPTIONS, "--file", store)
    assert done.exit_code == 0, done.output
    assert "12 accepted" in done.stdout
    assert "12 rows were settled by an earlier run" in run(str(path), *OPTIONS, "--file", store).stdout
    made = open_engine(store, readonly=True)
    try:
        assert made.person("default", "user_id:1").position == 2
    finally:
        made.close()


def test_a_dry_run_shows_events_and_makes_no_store(tmp_path: Path) -> None:
    path, store = write_csv(tmp_path / "rows.csv", 12), tmp_path / "store.db"
    done = run(str(path), *OPTIONS, "--file", str(store), "--dry-run")
    assert done.exit_code == 0, done.output
    assert done.stdout.count('"purchase_completed"') == 5
    assert '"total": 1.25' in done.stdout
    assert not store.exists()


def test_a_mapping_comes_from_a_file_and_options_change_it(tmp_path: Path) -> None:
    path, declared = write_csv(tmp_path / "rows.csv", 3), tmp_path / "map.yaml"
    declared.write_text("type: page\ntime: {column: day, zone: Europe/Rome}\nuser_id: customer\nproperties: '*'\n")
    done = run(
        str(path), "--map", str(declared), "--type", "visit", "--identifier", "loyalty=order", "--property",
        "total=dollars:number", "--dry-run",
    )  # fmt: skip
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
    assert "The same command goes on where it was." in done.stderr


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
