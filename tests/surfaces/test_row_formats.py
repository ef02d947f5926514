"""Lists as CSV and Parquet, over HTTP and on the command line: the same entries as in JSON."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from pyarrow import parquet
from starlette.testclient import TestClient

from tests.surfaces.cli_stage import Ran, call, composed, store
from tests.surfaces.conftest import NOW, Keys
from tests.surfaces.operations_stage import PROBLEM, record
from threadline.engine.engine import Engine
from threadline.kernel.time import format_time
from threadline.surfaces.operation_calls import shown
from threadline.surfaces.row_formats import MEDIA_TYPES, accepted, rows_of

__all__ = ["call", "composed", "store"]

Row = dict[str, Any]
READERS: dict[str, Callable[[bytes], list[Row]]] = {
    "csv": lambda body: list(csv.DictReader(io.StringIO(body.decode(), newline=""))),
    "parquet": lambda body: parquet.read_table(io.BytesIO(body)).to_pylist(),
}
TEXT = '=1+1, "two"\nlines'


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, separators=(",", ":"))


@pytest.fixture
def people(engine: Engine) -> Engine:
    for number in range(1, 6):
        record(engine, str(number), f"k{number}", total=number, note=TEXT)
    return engine


def test_every_list_of_the_api_has_rows(engine: Engine) -> None:
    listing = {name for name, each in shown(engine.catalogue.operations, "http").items() if rows_of(each.result)}
    assert listing >= {
        "people_list",
        "segments_members",
        "segments_leaving",
        "segments_list",
        "leaderboards_top",
        "features_top",
        "features_list",
        "features_training_set",
        "events_of",
        "events_feed",
        "decisions_list",
        "rejected_list",
        "points_ledger",
        "quarantine_list",
        "rules_list",
    }


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("by_accept", [True, False])
def test_rows_are_the_entries_of_the_json(
    client: TestClient, keys: Keys, people: Engine, form: str, by_accept: bool
) -> None:
    for path, member in (("/v1/people", "people"), ("/v1/people/user_id:1/events", "events")):
        headers = keys.bearer("read")
        expected = client.get(path, headers=headers).json()[member]
        if by_accept:
            answer = client.get(path, headers={**headers, "accept": f"{MEDIA_TYPES[form]}, */*;q=0.1"})  # type: ignore[index]
        else:
            answer = client.get(path, params={"format": form}, headers=headers)
        assert (answer.status_code, answer.headers["content-type"]) == (200, MEDIA_TYPES[form])  # type: ignore[index]
        rows = READERS[form](answer.content)
        assert len(rows) == len(expected) > 0
        for row, entry in zip(rows, expected, strict=True):
            for name, value in entry.items():
                plain = form == "csv" or isinstance(value, dict) or value == [] or name in ("identifiers", "marks")
                assert as_text(row[name]) == as_text(value) if plain else row[name] == value, name


def test_the_link_of_a_page_leads_to_the_rest(client: TestClient, keys: Keys, people: Engine) -> None:
    url, found = "/v1/people?format=csv&limit=2", []
    while url:
        answer = client.get(url, headers=keys.bearer("read"))
        found += READERS["csv"](answer.content)
        url = "/v1/people" + answer.links["next"]["url"] if "next" in answer.links else ""
    assert sorted(row["identifiers"] for row in found) == [f'["user_id:{number}"]' for number in range(1, 6)]


def test_a_csv_of_people_has_a_column_for_each_kind_of_identifiers_with_the_first_of_them(
    client: TestClient, keys: Keys, engine: Engine
) -> None:
    event = {
        "type": "identify",
        "identifiers": {"user_id": "1", "email": "ada@example.com", "account": "a7"},
        "key": "k",
    }
    event["properties"] = {"name": "Ada"}
    client.post("/v1/events", json={"events": [event]}, headers=keys.bearer("admin"))
    (row,) = READERS["csv"](client.get("/v1/people?format=csv", headers=keys.bearer("read")).content)
    assert (row["user_id"], row["phone"], row["account"]) == ("1", "", "a7")
    assert (row["name"], row["email"]) == ("Ada", "ada@example.com")
    assert json.loads(row["identifiers"]) == ["user_id:1", "email:ada@example.com", "account:a7"]


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("=1", "'=1"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ('=HYPERLINK("http://shop.example","x")', '\'=HYPERLINK("http://shop.example","x")'),
        ("+49 (170) 123-45", "+49 (170) 123-45"),
        ("-5", "-5"),
        ("Ada = Bob", "Ada = Bob"),
    ],
)
def test_a_name_that_a_spreadsheet_would_work_out_is_a_text_in_csv(
    client: TestClient, keys: Keys, engine: Engine, name: str, cell: str
) -> None:
    event = {"type": "identify", "identifiers": {"user_id": "1"}, "key": "k", "properties": {"name": name}}
    client.post("/v1/events", json={"events": [event]}, headers=keys.bearer("admin"))
    (row,) = READERS["csv"](client.get("/v1/people?format=csv", headers=keys.bearer("read")).content)
    assert row["name"] == cell


def test_a_training_set_has_a_column_for_each_feature(client: TestClient, keys: Keys, people: Engine) -> None:
    labels = [{"person": f"user_id:{who}", "at": format_time(NOW), "label": who} for who in (1, 9)]
    body = {"labels": labels, "names": ["recency_days", "has_purchased"]}
    for form in ("csv", "parquet"):
        headers = {**keys.bearer("read"), "accept": MEDIA_TYPES[form]}  # type: ignore[index]
        rows = READERS[form](client.post("/v1/features/training_set", json=body, headers=headers).content)
        assert [as_text(row["status"]) for row in rows] == ["ok", "not_found"]
        assert [as_text(row["values.recency_days"]) for row in rows] == ["0" if form == "csv" else "0.0", ""]
        assert [row["statuses.has_purchased"] for row in rows] == ["NOT_FOUND", "NOT_FOUND"]


def test_parquet_without_pyarrow_says_what_to_install(
    client: TestClient, keys: Keys, people: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    answer = client.get("/v1/people?format=parquet", headers=keys.bearer("read"))
    assert (answer.status_code, answer.headers["content-type"]) == (400, PROBLEM)
    assert "needs pyarrow" in answer.json()["detail"]
    assert "pip install '.[parquet]'" in answer.text


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("/v1/people?format=xml", "'xml' is not one of json, csv, parquet"),
        ("/v1/people/user_id:1?format=csv", "'format' is not a parameter of 'person'"),
    ],
)
def test_a_form_that_there_is_not_is_refused(
    client: TestClient, keys: Keys, people: Engine, path: str, detail: str
) -> None:
    answer = client.get(path, headers=keys.bearer("read"))
    assert (answer.status_code, detail in answer.json()["detail"]) == (400, True), answer.text


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "json"),
        ("*/*", "json"),
        ("text/csv", "csv"),
        ("TEXT/CSV; charset=utf-8", "csv"),
        ("text/html, */*", "json"),
        ("application/json, text/csv", "json"),
        ("application/json;q=0.5, text/csv", "csv"),
        ("text/csv;q=0", "json"),
        ("application/vnd.apache.parquet;q=0.9, text/csv;q=0.8", "parquet"),
        ("text/csv;q=x", "csv"),
        (";;,,", "json"),
    ],
)
def test_accept_chooses_the_form(accept: str, form: str) -> None:
    assert accepted(accept) == form


def test_the_command_line_prints_rows_and_where_to_go_on(store: object, call: Callable[..., Ran]) -> None:
    call("record", "--events", '[{"type": "page", "identifiers": {"user_id": "7"}, "key": "p"}]')
    first = call("people", "list", "--format", "csv", "--limit", "1")
    assert first.code == 0
    cursor = first.err.split("--cursor ")[1].strip()
    rest = call("people", "list", "--format", "csv", "--cursor", cursor)
    assert rest.err == ""
    rows = READERS["csv"](first.out.encode()) + READERS["csv"](rest.out.encode())
    assert sorted(row["identifiers"] for row in rows) == ['["user_id:42"]', '["user_id:7"]']
    assert json.loads(call("people", "list", "--format", "json").out)["people"]
