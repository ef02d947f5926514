"""What people are shown: what says most is whole, what is long yields, whatever the width."""

from __future__ import annotations

import io
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from threadline.app import operations
from threadline.kernel.key_fields import key_columns, key_fields, summary_fields
from threadline.settings import describe
from threadline.surfaces.cli.printing import layout_of, show, visible, visible_lines
from threadline.surfaces.row_formats import Column, rows_of


def printed(value: Any, width: int) -> list[str]:
    told = io.StringIO()
    show(value, Console(file=told, width=width, emoji=False))
    return told.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_names_of_settings_are_never_cut_and_reasons_are_told_whole(width: int) -> None:
    rows = [
        {"setting": each.variable, "now": each.default, "unit": each.unit, "reason": each.reason} for each in describe()
    ]
    lines = printed(rows, width)
    for each in describe():
        assert any(line.startswith(f"{each.variable} ") for line in lines), each.variable
    if width >= 120:
        assert "".join(lines).count("…") == sum(each.reason.count("…") for each in describe())
        place = lines[0].index("reason")
        words = " ".join(line[place:] for line in lines).split()
        for each in describe():
            assert each.reason.replace(" ", "") in "".join(words), each.reason
            assert any(each.unit in line for line in lines)
    else:
        assert "reason" in lines[0] or any("with --json also:" in line and "reason" in line for line in lines)


@pytest.mark.parametrize("width", [80, 120])
def test_a_long_property_yields_to_what_says_more(width: int) -> None:
    events = [
        {
            "id": "0123456789",
            "type": "purchase_completed",
            "occurred_at": "2026-03-01T12:00:00.000000Z",
            "properties": {"note": "x" * 500, "total": 1},
        },
        {"id": "0123456789", "type": "click", "occurred_at": "2026-03-01T12:00:00.000000Z", "properties": {}},
    ]
    lines = printed(events, width)
    assert sum("2026-03-01 12:00:00" in line for line in lines) == 2
    assert sum("purchase_completed" in line for line in lines) == 1
    assert sum("0123456789" in line for line in lines) == 2


NAMES = st.sampled_from(["id", "type", "now", "properties", "reason", "message", "other", "name", "x"])


@given(st.lists(st.dictionaries(NAMES, st.text("ab ", max_size=200), min_size=1), min_size=1), st.integers(40, 200))
def test_no_line_is_wider_than_the_terminal(rows: list[dict[str, str]], width: int) -> None:
    for line in printed(rows, width):
        assert len(line) <= width


@given(st.text())
def test_lines_of_our_own_are_kept_and_nothing_else_steers_a_terminal(text: str) -> None:
    assert visible_lines(text).split("\n") == [visible(line) for line in text.split("\n")]
    assert "\n" not in visible(text)


@pytest.mark.parametrize("width", [80, 120])
def test_a_message_is_told_whole(width: int) -> None:
    message = "no usable identifier: give a user_id, anonymous_id, email, phone or external id, each of which is text"
    rows = [{"id": "f" * 32, "status": "rejected", "code": "no_identifier", "message": message}] * 2
    lines = printed({"receipts": rows}, width)
    if "message" in lines[1]:
        place = lines[1].index("message")
        assert " ".join(line[place:].strip() for line in lines[2:]).count(message) == 2
    else:
        assert "with --json also: message" in " ".join(lines)


OF_PEOPLE = {
    operation.name: rows.columns
    for operation in operations()
    if (rows := rows_of(operation.result)) is not None
    and "identifiers" in {column.name for column in rows.columns}
    # Of these the entries have ids of their own, which the next command needs.
    and not {"type", "event"} & {column.name for column in rows.columns}
}
"""List operation whose entries are about somebody each, named by identifiers -> the columns as they are declared."""
IDS = ("id", "person", "thread")
OF_KIND: dict[str, Any] = {"integer": 3, "number": 105.5, "flag": True}


def filled(column: Column) -> Any:
    """A value that such a column may have."""
    if column.name in IDS:
        return "0123456789abcdef" * 2
    if column.name == "identifiers":
        return [{"kind": "user_id", "value": "ada"}, {"kind": "email", "value": "ada.lovelace@shop.example"}]
    return OF_KIND.get(column.kind, "2026-03-01T12:00:00.000000Z" if column.name.endswith(("_at", "since")) else "Ada")


def test_lists_of_people_are_found() -> None:
    assert {"people_list", "segments_members", "leaderboards_top", "features_top"} <= set(OF_PEOPLE)


@pytest.mark.parametrize("name", OF_PEOPLE)
def test_a_list_of_people_shows_identifiers_and_its_first_columns_and_no_long_id(name: str) -> None:
    entry = {column.name: filled(column) for column in OF_PEOPLE[name]}
    heading, line = printed([entry, entry], 80)[:2]
    first = [column.name for column in OF_PEOPLE[name] if column.name not in IDS][:3]
    assert set(first) <= set(heading.split())
    assert "user_id:ada" in line
    assert "0123456789" not in line


LISTS = {
    operation.name: operation.result
    for operation in operations()
    if "cli" in operation.shown_on and rows_of(operation.result) is not None
}
"""List operation of the command line -> the type of its answer."""


def in_80_columns(result: type, value: Any, *, everything: bool = False) -> list[str]:
    written = io.StringIO()
    show(value, Console(file=written, width=80, emoji=False), layout_of(result, everything=everything))
    return written.getvalue().splitlines()


@pytest.mark.parametrize("name", LISTS)
def test_a_list_in_80_columns_begins_with_its_key_columns_and_cuts_no_number_time_or_id_of_them(name: str) -> None:
    rows = rows_of(LISTS[name])
    assert rows is not None
    keys = key_columns(LISTS[name]).get(rows.field, ())
    assert keys, f"{name}: say by `key_fields` which columns of an entry answer the question"
    entry = {column.name: filled(column) for column in rows.columns}
    _, heading, line = in_80_columns(LISTS[name], {rows.field: [entry, entry]})[:3]
    assert heading.split()[: len(keys)] == list(keys)
    values = [entry[key] for key in keys]
    shown = re.split(r"\s{2,}", line.strip())
    for value in values:
        if isinstance(value, bool):
            assert "yes" in shown
        elif isinstance(value, int | float) or value == "0123456789abcdef" * 2:
            assert str(value) in shown
        elif str(value).startswith("2026-"):
            assert "2026-03-01 12:00:00" in shown


@pytest.mark.parametrize("name", LISTS)
def test_a_list_with_all_shows_every_field_of_its_entries(name: str) -> None:
    rows = rows_of(LISTS[name])
    assert rows is not None
    entry = {column.name: filled(column) for column in rows.columns}
    text = "\n".join(in_80_columns(LISTS[name], {rows.field: [entry, entry]}, everything=True))
    assert {column.name for column in rows.columns} <= set(text.split())
    assert "also:" not in text


@summary_fields("verdict", "reasons")
class Verdict(msgspec.Struct):
    details: dict[str, int]
    verdict: str
    reasons: list[str]


def test_an_answer_with_a_summary_shows_these_first_and_the_rest_where_it_is_asked_for() -> None:
    value = {"details": {"a": 1}, "verdict": "yes", "reasons": ["x"]}
    assert [line.rstrip() for line in in_80_columns(Verdict, value)] == [
        "verdict  yes",
        "reasons  x",
        "with --all also: details",
    ]
    assert "  a  1" in [line.rstrip() for line in in_80_columns(Verdict, value, everything=True)]


def test_key_fields_that_a_type_does_not_have_are_refused_where_they_are_declared() -> None:
    with pytest.raises(ValueError, match=r"Verdict has no fields \['verdct'\]"):
        key_fields("verdct")(Verdict)
