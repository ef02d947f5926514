"""Rows that are wrong are kept with their numbers and stop no others; files that cannot be read say why."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.import_stage import (
    NOW,
    asked,
    counts,
    csv_text,
    engine,
    events_in,
    plan,
    row,
    write_csv_zipped,
    write_json_lines,
    write_parquet,
    write_tsv,
)
from threadline.kernel.errors import InvalidDefinition, InvalidValue
from threadline.kernel.event import Event
from threadline.surfaces.importing.files import LINE_BYTES_MAX, RAW_LENGTH_MAX, ParquetFile
from threadline.surfaces.importing.recording import import_file
from threadline.surfaces.importing.rows import BATCH_ROWS, preview

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
        2: "invalid_time",
        3: "invalid_value",
        4: "no_identifier",
        5: "no_identifier",
        6: "invalid_value",
        7: "invalid_value",
        8: "missing_column",
    }
    entries = asked(made, "rejected_list").entries
    assert len(entries) == 7
    kept = {entry.payload["row"]: entry for entry in entries}
    assert set(kept) == {2, 3, 4, 5, 6, 7, 8}
    assert kept[2].payload["cells"] == {"order": "o2", "customer": "1", "day": "soon", "dollars": "1"}
    assert (kept[2].payload["file"], kept[2].payload["key"], kept[2].source) == ("bad.csv", "o2", "import")
    assert asked(made, "messages_show", message_id="o3", source="import").outcome == "rejected"
    # Once more changes nothing: the same refusals are the same entries.
    assert counts(import_file(made, plan(path), again=True)) == (0, 0, 2, 0, 7)
    assert len(asked(made, "rejected_list").entries) == 7


def test_a_rejected_row_is_corrected_as_an_event(tmp_path: Path) -> None:
    made = engine()
    path = tmp_path / "bad.csv"
    path.write_bytes(BAD_CSV)
    import_file(made, plan(path))
    entry = next(each for each in asked(made, "rejected_list").entries if each.payload.get("key") == "o2")
    with pytest.raises(InvalidValue, match="give the correction as `event`"):
        asked(made, "rejected_resubmit", id=entry.id)
    native = next(each for each in made.catalogue.operations if each.name == "rejected_resubmit").example.event
    receipt = asked(
        made, "rejected_resubmit", id=entry.id, event=type(native)(type="page", identifiers={"user_id": "1"})
    ).receipt
    event = made.log.of_key("default", "import", "o2")
    assert event is not None
    assert event.id == receipt.id
    assert event.event.historical, "as the row is that it corrects"


def test_lines_that_are_no_objects_are_bad_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    lines = [
        json.dumps(row(1)),
        "{broken",
        "[1]",
        "\x00",
        json.dumps({"deep": 1}).replace("1", "[" * 5_000 + "]" * 5_000),
        '{"long": "' + "x" * LINE_BYTES_MAX + '"}',
        json.dumps(row(2)),
    ]
    path.write_text("\n".join(lines))
    made = engine()
    summary = import_file(made, plan(path))
    assert counts(summary) == (0, 2, 0, 0, 5)
    said = {problem.row: problem.code for problem in summary.problems}
    assert (said[2], said[3], said[4], said[6]) == ("invalid_json", "not_an_object", "invalid_json", "too_large")


def ordered(number: int) -> str:
    return f"{number},ada,2025-03-0{number % 9 + 1},1\n"


@pytest.mark.parametrize(
    ("torn", "recorded", "rejected"),
    [
        (ordered(1) + '2,ada,2025-03-02,"1\n' + ordered(3) + ordered(4), 3, {2: '2,ada,2025-03-02,"1\n'}),
        (ordered(1) + '2,"ada\n' + ordered(3) * 8_000, 2, {2: '2,"ada\n'}),
        (
            ordered(1) + '2,ada,2025-03-02,"1\n3,ada,2025-03-03,"x\n' + ordered(4),
            2,
            {2: '2,ada,2025-03-02,"1\n', 3: '3,ada,2025-03-03,"x\n'},
        ),
        (ordered(1) + '2,"ada,2025-03-02,1\n' + ordered(3) + '4,"ada",2025-03-04,1\n', 3, {2: '2,"ada,2025-03-02,1\n'}),
        (
            ordered(1) + '2,"ada\n' + "x" * (3 * LINE_BYTES_MAX) + '"\n' + ordered(3),
            2,
            {2: '2,"ada\n', 3: "x" * RAW_LENGTH_MAX},
        ),
    ],
    ids=["to the end", "too far", "up to another", "up to a quoted cell", "up to a line without end"],
)
def test_a_quote_that_nothing_closes_spoils_its_own_row_only(
    torn: str, recorded: int, rejected: dict[int, str], tmp_path: Path
) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("order,customer,day,dollars\n" + torn)
    on = engine()
    summary = import_file(on, plan(path))
    assert (summary.accepted, summary.rejected) == (recorded, len(rejected))
    assert {e.payload["row"]: e.payload["cells"] for e in asked(on, "rejected_list").entries} == rejected


@pytest.mark.parametrize(
    ("longer", "said"), [("x" * 200_000, "a cell may have"), ("," * LINE_BYTES_MAX, "a line may have")]
)
def test_a_row_of_csv_that_is_too_long_says_so(longer: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text(f"\norder,customer,day,dollars\n1,ada,2025-03-01,{longer}\n{ordered(2)}")
    summary = import_file(engine(), plan(path))
    assert (summary.accepted, summary.rejected) == (1, 1)
    (problem,) = summary.problems
    assert (problem.row, problem.code) == (1, "too_large")
    assert said in problem.message


def test_quotes_may_hold_lines_and_quotes(tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text('order,customer,day,dollars\n1,"a ""dear""\ncustomer",2025-03-01,"1"\n2,ada,2025-03-02,1')
    on = engine()
    assert counts(import_file(on, plan(path)))[1] == 2
    assert on.reader.person("default", 'user_id:a "dear"\ncustomer').position == 1


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
        "order": ["1", "2"],
        "customer": ["ada", "bob"],
        "dollars": [1, 2],
        "day": pyarrow.array(nanoseconds, pyarrow.timestamp("ns", tz="Europe/Rome")),
        "clock": pyarrow.array([1_001, 2], pyarrow.time64("ns")),
        "took": pyarrow.array([1_001, 2], pyarrow.duration("ns")),
    }
    path = tmp_path / "orders.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    on = engine()
    clock = plan(path, properties={"clock": "clock"})
    assert import_file(on, clock).accepted == 2
    (told,) = on.reader.events(on.reader.person("default", "user_id:ada"))
    assert (told.event.occurred_at, told.event.properties) == (nanoseconds[0] // 1_000, {"clock": "00:00:00.000001"})


def test_times_inside_lists_and_structs_are_cut_as_well(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    instant = 1_700_000_000_123_456_789
    fine = pyarrow.timestamp("ns", tz="UTC")
    columns = {
        "order": ["1", "2"],
        "customer": ["ada", "bob"],
        "dollars": [1, 2],
        "day": ["2025-01-01", "2025-01-02"],
        "seen": pyarrow.array([[instant], None], pyarrow.list_(fine)),
        "made": pyarrow.array([{"at": [instant]}, None], pyarrow.struct([("at", pyarrow.large_list(fine))])),
        "took": pyarrow.array([[instant, 1], None], pyarrow.list_(pyarrow.duration("ns"), 2)),
        "log": pyarrow.array([[("open", instant)], None], pyarrow.map_(pyarrow.string(), fine)),
    }
    path = tmp_path / "orders.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    first, second = ParquetFile(path).rows()
    told = "2023-11-14 22:13:20.123456+00:00"
    assert (str(first["seen"][0]), str(first["made"]["at"][0]), str(first["log"][0][1])) == (told, told, told)
    assert [each.microseconds for each in first["took"]] == [123_456, 0]
    assert second["seen"] is second["log"] is None
    assert import_file(engine(), plan(path)).accepted == 2


def test_parquet_with_two_columns_of_a_name_is_refused(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "orders.parquet"
    parquet.write_table(pyarrow.table([["1"], ["ada"], ["bob"]], names=["order", "customer", "customer"]), path)
    with pytest.raises(InvalidValue, match="two columns are named 'customer'"):
        import_file(engine(), plan(path))


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
    with pytest.raises(InvalidValue, match="damaged from this point"):
        import_file(made, plan(path))
    assert events_in(made) >= BATCH_ROWS
    path.write_bytes(whole)
    import_file(made, plan(path))
    assert sum(person.events for person in asked(made, "people_list").people) == 4_000


@pytest.mark.parametrize("count", [BATCH_ROWS - 1, BATCH_ROWS, BATCH_ROWS + 1])
def test_every_row_before_the_damage_is_imported(count: int, tmp_path: Path) -> None:
    made = engine()
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(csv_text([row(number) for number in range(count)]).encode()) + b"no gzip")
    for _ in range(2):
        with pytest.raises(InvalidValue, match="damaged from this point"):
            import_file(made, plan(path))
        assert events_in(made) == count


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("rows.xlsx", b"", "must end in"),
        ("rows.csv", b"", "is empty"),
        ("rows.csv", b"a,b,a\n1,2,3\n", "two columns"),
        ("rows.csv", "order,customer\n1,ada\n".encode("utf-16"), "not text in UTF-8"),
        ("rows.parquet", b"PAR0", "not a Parquet file"),
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
        3: "missing_column",
        4: "no_identifier",
        5: "missing_column",
    }
    kept = {entry.payload["row"]: entry.payload["cells"] for entry in asked(made, "rejected_list").entries}
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
    assert asked(made, "rejected_list").entries == []


@pytest.mark.parametrize(
    ("name", "sign", "said"),
    [
        ("rows.csv", ";", "is the delimiter `;`? try --delimiter ';'"),
        ("rows.csv", "|", "is the delimiter `|`? try --delimiter '|'"),
        ("rows.txt", "\t", "is the delimiter a tab? try --delimiter $'\\t'"),
        ("rows.tsv", ",", "is the delimiter `,`? try --delimiter ','"),
    ],
)
def test_a_file_of_another_delimiter_is_recognised_by_its_first_line(
    name: str, sign: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(csv_text([row(1)]).replace(",", sign))
    with pytest.raises(InvalidDefinition) as refused:
        import_file(engine(), plan(path))
    assert str(refused.value).endswith(f"has no column 'customer'; {said}")
    assert counts(import_file(engine(), plan(path)._replace(delimiter=sign))) == (0, 1, 0, 0, 0)


@pytest.mark.parametrize("beside", ["", " "])
def test_columns_without_a_name_and_empty_cells_behind_the_last_are_none(beside: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(
        f"order,,customer,day,dollars,{beside},{beside}\n"
        "o1,,1,2025-03-01,1,,\n"
        "o2,,1,2025-03-01,1\n"
        "o3,,1,2025-03-01,1,,,,\n"
        "o4,,1,2025-03-01,1,,lost\n"
        "o5,lost,1,2025-03-01,1,,\n"
        "o6,,1,2025-03-01,1,,,lost\n"
    )
    made = engine()
    summary = import_file(made, plan(path, properties={"*": True}))
    assert counts(summary) == (0, 3, 0, 0, 3)
    assert {problem.row: problem.message for problem in summary.problems} == {
        4: "the row has a value in column 7, which has no name in the first line",
        5: "the row has a value in column 2, which has no name in the first line",
        6: "the row has 8 cells, but there are 7 columns",
    }
    read = preview(plan(path, properties={"*": True}), NOW, 3)
    expected = [{"order": f"o{number}", "dollars": "1"} for number in (1, 2, 3)]
    assert [getattr(each, "properties", None) for each in read] == expected


def test_one_column_without_a_name_is_a_column(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(",order,customer,day,dollars\n0,o1,1,2025-03-01,1\n")
    assert counts(import_file(engine(), plan(path))) == (0, 1, 0, 0, 0)


def test_a_preview_shows_the_first_rows(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(BAD_CSV)
    first = preview(plan(path), NOW, 3)
    assert isinstance(first[0], Event)
    assert (first[0].key, first[0].properties) == ("o1", {"total": 1, "currency": "USD"})
    assert [getattr(each, "code", "") for each in first] == ["", "invalid_time", "invalid_value"]
