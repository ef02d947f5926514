"""Rows of tables as events of history: what a mapping may say, what each cell becomes, and which rows are refused."""

from __future__ import annotations

import csv
import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import HOUR, parse_time
from threadline.wire.rejection import CODES, Rejection
from threadline.wire.table import RowDecoder, parse_mapping

RECEIVED = parse_time("2026-11-21T00:46:26Z")
SMALL = {"type": "purchase_completed", "time": "at", "user_id": "who"}


def read(row: Any, mapping: Any = None, number: int = 1, file: str = "orders.csv", **more: Any) -> Event | Rejection:
    declared = parse_mapping({**SMALL, **(mapping or {}), **more})
    return RowDecoder(declared, file=file, source="import", workspace="acme").decode(row, number, RECEIVED)


def event(row: Any, **mapping: Any) -> Event:
    result = read({"at": "1997-01-01", "who": "4", **row}, mapping)
    assert isinstance(result, Event), result
    return result


def code(row: Any, **mapping: Any) -> str:
    result = read({"at": "1997-01-01", "who": "4", **row}, mapping)
    assert isinstance(result, Rejection), result
    assert result.code in CODES
    assert result.index == 1
    return result.code


def test_a_file_of_orders_becomes_a_history() -> None:
    lines = ["customer,date,cds,dollars", "0004,19970101,2,29.33", "0004,19970118,2,29.73", ",19970801,1,14.96"]
    mapping = parse_mapping(
        {
            "type": "purchase_completed",
            "time": {"column": "date", "format": "%Y%m%d"},
            "user_id": "customer",
            "properties": {
                "total": {"column": "dollars", "number": True},
                "quantity": {"column": "cds", "number": True},
                "currency": {"value": "USD"},
            },
        }
    )
    rows = csv.DictReader(lines)
    decoder = RowDecoder(mapping, file="cdnow.csv", source="import", workspace="w")
    results = [decoder.decode(row, number, RECEIVED) for number, row in enumerate(rows, 2)]
    assert results[0] == Event(
        type="purchase_completed",
        identifiers=(Identifier("user_id", "0004"),),
        occurred_at=parse_time("1997-01-01"),
        key="cdnow.csv:2",
        source="import",
        source_type="external",
        workspace="w",
        properties={"total": 29.33, "quantity": 2, "currency": "USD"},
        received_at=RECEIVED,
        sent_time=parse_time("1997-01-01"),
        historical=True,
    )
    assert isinstance(results[1], Event)
    assert results[1].key == "cdnow.csv:3"
    last = results[2]
    assert isinstance(last, Rejection)
    assert (last.index, last.key, last.code) == (4, "cdnow.csv:4", "no_identifier")
    assert json.loads(last.raw) == {"customer": "", "date": "19970801", "cds": "1", "dollars": "14.96"}


# --- times -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "cell", "expected"),
    [
        ({}, "2026-03-29T12:00:00Z", "2026-03-29T12:00:00Z"),
        ({}, "2026-03-29", "2026-03-29T00:00:00Z"),
        ({}, 20260329, "2026-03-29T00:00:00Z"),
        ({"zone": "Europe/Berlin"}, "2026-07-01 12:00:00", "2026-07-01T10:00:00Z"),
        ({"zone": "Europe/Berlin"}, "2026-07-01", "2026-06-30T22:00:00Z"),
        ({"zone": "Europe/Berlin"}, "2026-07-01T12:00:00Z", "2026-07-01T12:00:00Z"),
        ({"zone": "Europe/Berlin"}, "2026-07-01T12:00:00-03:00", "2026-07-01T15:00:00Z"),
        ({"zone": "Europe/Berlin"}, "2026-07-01T12:00+02", "2026-07-01T10:00:00Z"),
        # The hour that is there twice is the first one, the hour that is not there is the one after it.
        ({"zone": "Europe/Berlin"}, "2026-10-25T02:30:00", "2026-10-25T00:30:00Z"),
        ({"zone": "Europe/Berlin"}, "2026-03-29T02:30:00", "2026-03-29T01:30:00Z"),
        ({"format": "%d.%m.%Y %H:%M", "zone": "America/New_York"}, "01.07.2026 08:30", "2026-07-01T12:30:00Z"),
        ({"format": "%d/%b/%Y:%H:%M:%S %z"}, "17/May/2015:10:05:03 +0200", "2015-05-17T08:05:03Z"),
        ({"format": "unix"}, "1772366400.25", "2026-03-01T12:00:00.25Z"),
        ({"format": "unix"}, 1772366400, "2026-03-01T12:00:00Z"),
        ({"format": "unix_ms"}, 1772366400123, "2026-03-01T12:00:00.123Z"),
        ({"format": "unix_us"}, "1772366400123456", "2026-03-01T12:00:00.123456Z"),
        ({"format": "unix"}, "-0.000001", "1969-12-31T23:59:59.999999Z"),
        ({"format": "excel", "zone": "Europe/Berlin"}, "46204.5", "2026-07-01T10:00:00Z"),
        ({"format": "excel"}, "46204,25", "2026-07-01T06:00:00Z"),
        ({"format": "excel"}, 46204, "2026-07-01T00:00:00Z"),
        ({"format": "excel"}, "46204.520833333336", "2026-07-01T12:30:00Z"),
        ({"format": "excel"}, "1", "1900-01-01T00:00:00Z"),
        ({"format": "excel"}, 59, "1900-02-28T00:00:00Z"),
        ({"format": "excel"}, 61, "1900-03-01T00:00:00Z"),
        ({}, datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2))), "2026-03-01T10:00:00Z"),
        ({"zone": "Asia/Tokyo"}, datetime(2026, 3, 1, 12), "2026-03-01T03:00:00Z"),  # noqa: DTZ001
        ({"zone": "Asia/Tokyo"}, date(2026, 3, 1), "2026-02-28T15:00:00Z"),
    ],
)
def test_times_in_every_form(rule: Any, cell: Any, expected: str) -> None:
    assert event({"at": cell}, time={"column": "at", **rule}).occurred_at == parse_time(expected)


@pytest.mark.parametrize(
    ("rule", "cell"),
    [
        ({}, "soon"),
        ({}, 1772366400),
        ({}, True),
        ({}, [1]),
        ({}, "0001-01-01T00:00:00+01:00"),
        ({"format": "unix"}, "soon"),
        ({"format": "unix"}, "nan"),
        ({"format": "unix"}, float("inf")),
        ({"format": "unix"}, "1e999"),
        ({"format": "unix"}, "1" * 50),
        ({"format": "excel"}, "2026-07-01"),
        ({"format": "excel"}, "0.5"),
        ({"format": "excel"}, 60),
        ({"format": "excel"}, "2958466"),
        ({"format": "excel"}, "1e99"),
        ({"format": "excel"}, True),
        ({"format": "%Y%m%d"}, "1997-01-01"),
        ({"format": "%Y%m%d"}, "19970230"),
        ({"zone": "Asia/Tokyo"}, "0001-01-01"),
    ],
)
def test_what_is_no_time_is_refused(rule: Any, cell: Any) -> None:
    assert code({"at": cell}, time={"column": "at", **rule}) in ("invalid_time", "invalid_value")


def test_a_time_in_another_form_is_refused_with_the_form_that_was_declared() -> None:
    rejected = read({"at": "soon", "who": "4"}, time={"column": "at", "format": "%d.%m.%Y"})
    assert isinstance(rejected, Rejection)
    assert rejected.message == "'at': 'soon' is not a time in the form %d.%m.%Y"


def test_a_time_far_ahead_is_clamped() -> None:
    late = event({"at": "2100-01-01"})
    assert (late.occurred_at, late.sent_time, late.marks) == (RECEIVED, parse_time("2100-01-01"), ("clamped",))


@given(st.datetimes(datetime(1990, 1, 1), datetime(2025, 12, 31)))  # noqa: DTZ001 — local times under test
def test_a_local_time_is_the_instant_at_which_the_clocks_showed_it(local: datetime) -> None:
    at = event({"at": local.isoformat()}, time={"column": "at", "zone": "Europe/Berlin"}).occurred_at
    # Berlin is one or two hours ahead; in between lies the one hour that a change of the clocks may cost.
    utc = (local.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert utc - at in (HOUR, 2 * HOUR)
    winter = local.month in (1, 2, 11, 12)
    assert not winter or utc - at == HOUR


@given(st.datetimes(datetime(1900, 3, 1), datetime(2025, 12, 31)))  # noqa: DTZ001 — local times under test
def test_a_local_time_as_a_spreadsheet_has_it_is_that_time_to_the_millisecond(local: datetime) -> None:
    local = local.replace(microsecond=local.microsecond // 1_000 * 1_000)
    days = (local - datetime(1899, 12, 30)) / timedelta(days=1)  # noqa: DTZ001
    rule = {"column": "at", "format": "excel"}
    assert event({"at": repr(days)}, time=rule).occurred_at == parse_time(f"{local.isoformat()}Z")
    assert event({"at": days}, time=rule).occurred_at == event({"at": repr(days)}, time=rule).occurred_at


# --- properties ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "cell", "value"),
    [
        ("x", " as is ", " as is "),
        ("x", "", ...),
        ("x", "  ", ...),
        ("x", None, ...),
        ("x", float("nan"), ...),
        ("x", 5, 5),
        ("x", False, False),
        ("x", {"a": [1, date(2026, 3, 1)]}, {"a": [1, "2026-03-01"]}),
        ("x", Decimal("29.30"), 29.3),
        ("x", Decimal("7.00"), 7),
        ("x", Decimal("NaN"), ...),
        ("x", datetime(2026, 3, 1, tzinfo=UTC), "2026-03-01T00:00:00.000000Z"),
        ({"column": "x", "decimal_comma": True}, "141,50", 141.5),
        ({"column": "x", "decimal_comma": True}, " -1.234.567,8 ", -1234567.8),
        ({"column": "x", "decimal_comma": True}, "1 234,5", 1234.5),
        ({"column": "x", "decimal_comma": True}, "1\u202f234", 1234),
        ({"column": "x", "decimal_comma": True}, "1.234", 1234),
        ({"column": "x", "decimal_comma": True}, "7", 7),
        ({"column": "x", "decimal_comma": True}, 7.5, 7.5),
        ({"column": "x", "number": True}, "11.77", 11.77),
        ({"column": "x", "number": True}, " -5 ", -5),
        ({"column": "x", "number": True}, "9007199254740993", 9007199254740993),
        ({"column": "x", "number": True}, "+.5", 0.5),
        ({"column": "x", "number": True}, "1e3", 1000.0),
        ({"column": "x", "number": True}, 3, 3),
        ({"column": "x", "number": True}, "", ...),
        ({"column": "x", "boolean": True}, "Yes", True),
        ({"column": "x", "boolean": True}, "0", False),
        ({"column": "x", "json": True}, '{"a":[1]}', {"a": [1]}),
        ({"column": "x", "json": True}, "null", ...),
        ({"value": "USD"}, "ignored", "USD"),
        ({"value": {"a": 1}}, "", {"a": 1}),
    ],
)
def test_a_cell_becomes_a_property(rule: Any, cell: Any, value: Any) -> None:
    assert event({"x": cell}, properties={"p": rule}).properties == ({} if value is ... else {"p": value})


@pytest.mark.parametrize(
    ("rule", "cell", "expected"),
    [
        ({"column": "x", "number": True}, "1,000", "invalid_value"),
        ({"column": "x", "decimal_comma": True}, "1.5", "invalid_value"),
        ({"column": "x", "decimal_comma": True}, "1,234.5", "invalid_value"),
        ({"column": "x", "decimal_comma": True}, "1.23.456", "invalid_value"),
        ({"column": "x", "decimal_comma": True}, "1.234'567", "invalid_value"),
        ({"column": "x", "decimal_comma": True}, "1,2,3", "invalid_value"),
        ({"column": "x", "decimal_comma": True}, "٣,5", "invalid_value"),
        ({"column": "x", "decimal_comma": True}, [1], "invalid_value"),
        ({"column": "x", "number": True}, "$5", "invalid_value"),
        ({"column": "x", "number": True}, "٣", "invalid_value"),
        ({"column": "x", "number": True}, "nan", "invalid_value"),
        ({"column": "x", "number": True}, [1], "invalid_value"),
        ({"column": "x", "number": True}, "1e999", "number_out_of_range"),
        ({"column": "x", "number": True}, "9" * 30, "number_out_of_range"),
        ({"column": "x", "boolean": True}, "maybe", "invalid_value"),
        ({"column": "x", "json": True}, "{", "invalid_json"),
        ({"column": "x", "json": True}, "[" * 70 + "]" * 70, "too_deep"),
        ("x", float("inf"), "number_out_of_range"),
        ("x", 2**64, "number_out_of_range"),
        ("x", Decimal("1E+999999"), "number_out_of_range"),
        ("x", b"\xff", "invalid_value"),
        ("x", object(), "invalid_value"),
        ("x", "\udcff", "invalid_value"),
        ("x", "y" * 40_000, "too_large"),
        ("nowhere", 1, "missing_column"),
    ],
)
def test_a_cell_that_is_not_what_the_mapping_says_rejects_its_row(rule: Any, cell: Any, expected: str) -> None:
    assert code({"x": cell}, properties={"p": rule}) == expected


def test_all_columns_are_those_that_have_no_other_place() -> None:
    row = {"at": "1997-01-01", "who": "4", "plan": "pro", "seats": 5, "dollars": "9.90", "empty": ""}
    total = {"column": "dollars", "number": True}
    assert event(row, properties="*").properties == {"plan": "pro", "seats": 5, "dollars": "9.90"}
    assert event(row, properties={"*": True, "total": total}).properties == {"plan": "pro", "seats": 5, "total": 9.9}
    assert event(row, properties={"*": False, "total": total}).properties == {"total": 9.9}


def test_a_row_with_more_cells_than_the_header_is_refused() -> None:
    (row,) = csv.DictReader(["at,who", "1997-01-01,4,surplus"])
    result = read(row, properties="*")
    assert isinstance(result, Rejection)
    assert (result.code, "surplus" in result.raw.decode()) == ("invalid_value", True)


# --- types, people, keys ---------------------------------------------------------------------------------------------


def test_the_type_may_stand_in_a_column_and_be_renamed() -> None:
    rule = {"column": "kind", "names": {"sale": "purchase_completed", "7": "product_viewed"}}
    assert event({"kind": "sale"}, type=rule).type == "purchase_completed"
    assert event({"kind": 7}, type=rule).type == "product_viewed"
    assert event({"kind": "other"}, type=rule).type == "other"
    assert code({"kind": ""}, type=rule) == "missing_column"
    assert code({"kind": "threadline.split"}, type=rule) == "reserved_type"
    assert code({"kind": "x" * 201}, type=rule) == "invalid_type"


def test_people_are_named_by_any_columns() -> None:
    mapping = {"user_id": "who", "email": {"column": "mail"}, "identifiers": {"crm_id": "crm"}}
    found = event({"who": 4.0, "mail": " A@b.c ", "crm": Decimal("12")}, **mapping).identifiers
    assert found == (Identifier("user_id", "4"), Identifier("email", "A@b.c"), Identifier("crm_id", "12"))
    assert event({"who": None, "mail": "a@b.c", "crm": ""}, **mapping).identifiers == (Identifier("email", "a@b.c"),)
    assert code({"who": "\udcff", "mail": "", "crm": ""}, **mapping) == "invalid_value"
    assert code({"who": True, "mail": "", "crm": ""}, **mapping) == "invalid_value"


@pytest.mark.parametrize(
    ("rule", "cell", "expected"),
    [
        ("tz", "Asia/Tokyo", {"timezone": "Asia/Tokyo"}),
        ({"column": "tz"}, " +05:30 ", {"timezone": "+05:30"}),
        ("tz", "", {}),
        ("tz", "No/Where", {"timezone": "No/Where"}),
        ({"value": "Europe/Rome"}, "Asia/Tokyo", {"timezone": "Europe/Rome"}),
    ],
)
def test_a_time_zone_is_that_of_the_person(rule: Any, cell: str, expected: dict[str, str]) -> None:
    assert event({"tz": cell}, timezone=rule).context == expected


@pytest.mark.parametrize("rule", [{"value": "Rome"}, {"value": 1}, {"column": "tz", "number": True}, 7])
def test_a_time_zone_that_cannot_be_one_is_refused(rule: Any) -> None:
    with pytest.raises(InvalidDefinition, match="timezone"):
        parse_mapping({**SMALL, "timezone": rule})


def test_the_column_of_the_time_zone_is_no_property() -> None:
    assert event({"tz": "Asia/Tokyo", "total": "5"}, timezone="tz", properties="*").properties == {"total": "5"}


def test_a_key_is_a_function_of_its_columns_alone() -> None:
    row = {"at": "1997-01-01", "who": "4", "a": "x", "b": 7}
    one = read(row, key=["a"], number=1, file="one.csv")
    again = read({**row, "at": "1997-01-02"}, key=["a"], number=9, file="two.csv")
    assert one.key == again.key == "x"
    assert read(row, key=["a", "b"]).key == '["x","7"]'
    assert read({**row, "a": ""}, key=["a"]).key == ""
    assert code({"a": ""}, key=["a"]) == "missing_column"


def test_without_key_columns_file_and_row_are_the_key() -> None:
    row = {"at": "1997-01-01", "who": "4"}
    files = ("a.csv", "b.csv", "c" * 300, "\udcff")
    keys = {read(row, number=number, file=file).key for number in (1, 2) for file in files}
    assert len(keys) == 8
    assert all(key.encode() for key in keys)
    assert "a.csv:2" in keys
    assert max(map(len, keys)) <= 100


@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), min_size=2, max_size=6, unique=True))
def test_different_keys_stay_apart(cells: list[tuple[str, str]]) -> None:
    rows = [{"at": "1997-01-01", "who": "4", "a": a.strip(), "b": b.strip()} for a, b in cells]
    keys = {}
    for row in rows:
        result = read(row, key=["a", "b"])
        if isinstance(result, Event):
            keys.setdefault(result.key, set()).add((row["a"], row["b"]))
    assert all(len(pairs) == 1 for pairs in keys.values())


cells = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(), max_size=8),
    st.binary(max_size=4),
    st.decimals(),
    st.dates(),
    st.datetimes(),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.floats()),
)


@given(st.dictionaries(st.sampled_from(["at", "who", "x", "k"]), cells), st.sampled_from(["plain", "number", "json"]))
def test_any_row_has_an_answer_and_the_same_each_time(row: dict[str, Any], reading: str) -> None:
    rule: Any = "x" if reading == "plain" else {"column": "x", reading: True}
    mapping = {"properties": {"*": True, "p": rule}, "key": ["k"]}
    first, second = (read(row, mapping, number=1) for _ in range(2))
    assert repr(first) == repr(second)
    if isinstance(first, Event):
        json.dumps(first.properties, allow_nan=False).encode()
    else:
        assert first.code in CODES


# --- mappings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mapping", "says"),
    [
        ([], "object"),
        ({"time": "at", "user_id": "u"}, "`type`"),
        ({"type": "x", "user_id": "u"}, "`time`"),
        ({"type": "x", "time": "at"}, "whose event"),
        ({**SMALL, "propertys": {}}, "did you mean 'properties'"),
        ({**SMALL, "zzz": 1}, "choose from"),
        ({**SMALL, "type": 5}, "`type`"),
        ({**SMALL, "type": ""}, "name of an event"),
        ({**SMALL, "type": "threadline.x"}, "Threadline's own"),
        ({**SMALL, "type": {"column": ""}}, "column"),
        ({**SMALL, "type": {"column": "c", "names": {"a": 5}}}, "type.names.a"),
        ({**SMALL, "time": {"column": "at", "format": "iso8601"}}, "time.format"),
        ({**SMALL, "time": {"column": "at", "zone": "Berlin"}}, "IANA"),
        ({**SMALL, "time": {"column": "at", "zone": "../etc/passwd"}}, "IANA"),
        ({**SMALL, "time": {"column": "at", "zone": 5}}, "IANA"),
        ({**SMALL, "time": {"format": "iso"}}, "column"),
        ({**SMALL, "time": {"column": "at", "format": "%Y/%Q"}}, "not a time pattern"),
        ({**SMALL, "time": {"column": "at", "format": "%Y-%m-%d%"}}, "not a time pattern"),
        ({**SMALL, "time": {"column": "at", "format": "%d/%d"}}, "not a time pattern"),
        ({**SMALL, "time": {"column": "at", "formt": "iso"}}, "did you mean 'format'"),
        ({**SMALL, "user_id": 5}, "column"),
        ({**SMALL, "identifiers": ["a"]}, "object"),
        ({**SMALL, "identifiers": {"a:b": "c"}}, "kind"),
        ({**SMALL, "properties": []}, "object"),
        ({**SMALL, "properties": {"*": 1}}, "true or false"),
        ({**SMALL, "properties": {"p": 5}}, "properties.p"),
        ({**SMALL, "properties": {"p": {"column": "x", "number": True, "json": True}}}, "one of"),
        ({**SMALL, "properties": {"p": {"column": "x", "number": "yes"}}}, "one of"),
        ({**SMALL, "properties": {"p": {"column": "x", "value": 1}}}, "not both"),
        ({**SMALL, "properties": {"p": {"colum": "x"}}}, "did you mean 'column'"),
        ({**SMALL, "key": 5}, "list of columns"),
        ({**SMALL, "key": [5]}, "column"),
    ],
)
def test_a_wrong_mapping_is_refused_with_what_to_write(mapping: Any, says: str) -> None:
    with pytest.raises(InvalidDefinition, match=says.replace("*", r"\*")):
        parse_mapping(mapping)


def test_rows_keep_their_order() -> None:
    rows = ({"at": f"199{n}-01-01", "who": "4"} for n in range(10))
    mapping = parse_mapping(SMALL)
    decoder = RowDecoder(mapping, file="f", source="s", workspace="w")
    results = [decoder.decode(row, number, RECEIVED) for number, row in enumerate(rows, 1)]
    events = [result for result in results if isinstance(result, Event)]
    assert len(events) == 10
    assert all(one.occurred_at < other.occurred_at for one, other in pairwise(events))
