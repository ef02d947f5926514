"""The import in the console: a file is uploaded, mapped, tried and recorded, and no row of it is lost unseen."""

from __future__ import annotations

import csv
import gzip
import html
import io
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.console.stage import HOSTILE, csrf_of, opened, signed_in, unsafe
from tests.console.test_broadcast_form import fields_of
from threadline.engine.engine import Engine
from threadline.kernel.limits import UPLOADS_MAX
from threadline.surfaces.cli.import_ import declared_mapping
from threadline.surfaces.importing import rows as importing_rows
from threadline.surfaces.importing import uploads
from threadline.surfaces.importing.rows import Plan, preview
from threadline.wire.multipart import read_multipart
from threadline.wire.table import parse_mapping

DEFINITIONS = """
segments:
  pros: {when: {field: traits.plan, equals: pro}}
"""
ORDERS = """Order no;Customer;Datum;Betrag;Paid;Note
o1;ada;31.12.2024;1.234,50;yes;
o2;bob;30.12.2024;7,5;no;x
o3;ada;soon;1;no;
"""
SECONDS = 20


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    file = tmp_path / "threadline.yaml"
    file.write_text(DEFINITIONS)
    with opened(file) as made:
        yield made


@pytest.fixture
def client(engine: Engine) -> TestClient:
    return signed_in(engine, "operator")


def _upload(client: TestClient, engine: Engine, name: str, content: str | bytes, **fields: str) -> Any:
    body = content.encode() if isinstance(content, str) else content
    form = {"_csrf": csrf_of(client, engine), **fields}
    return client.post("/imports", data=form, files={"file": (name, body)})


def _page(client: TestClient, engine: Engine, name: str, content: str | bytes) -> str:
    answer = _upload(client, engine, name, content)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


def _step(client: TestClient, path: str, step: str, fields: dict[str, str]) -> Any:
    return client.post(f"{path}/{step}", data=fields, headers={"accept": "application/json"})


def _settled(client: TestClient, path: str) -> str:
    for _ in range(SECONDS * 20):
        state = client.get(f"{path}?part=state").text
        if "data-ended" in state:
            return _text(state)
        time.sleep(0.05)
    raise AssertionError(f"still busy after {SECONDS} s")


def _text(page: str) -> str:
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", page)).split())


def _imported(
    client: TestClient, engine: Engine, name: str, content: str | bytes, **changes: str
) -> tuple[str, str, str]:
    """The page of the file, and the texts after the check and after the import."""
    path = _page(client, engine, name, content)
    fields = {**dict(fields_of(client.get(path).text, "stack")), **changes}
    answer = _step(client, path, "check", fields)
    assert answer.status_code == 200, answer.text
    checked = _settled(client, path)
    answer = _step(client, path, "start", {"_csrf": fields["_csrf"]})
    assert answer.status_code == 200, answer.text
    return path, checked, _settled(client, path)


def _events(engine: Engine) -> list[Any]:
    return [engine.log.read(entry).event for entry in engine.store.feed()]


def test_a_file_of_orders_is_guessed_checked_and_recorded_and_its_rejects_come_back(
    client: TestClient, engine: Engine
) -> None:
    path, checked, done = _imported(client, engine, "orders.csv", ORDERS, type="purchase_completed")
    assert "Would be recorded 2" in checked
    assert "Rejected 1" in checked
    assert "Row 3 'Datum'" in checked
    assert _events(engine)
    assert "Recorded 2" in done
    orders = [event for event in _events(engine) if event.type == "purchase_completed"]
    assert [(event.properties["betrag"], event.properties["paid"], event.key) for event in orders] == [
        (1234.5, True, "o1"),
        (7.5, False, "o2"),
    ]
    assert {event.historical for event in orders} == {True}
    assert "note" not in orders[0].properties
    rows = [*csv.DictReader(io.StringIO(client.get(f"{path}/rejects").text))]
    assert [(row["row"], row["Order no"], row["Datum"]) for row in rows] == [("3", "o3", "soon")]
    assert rows[0]["reason"]
    entries = engine.audit_log.page("default")[0]
    imported = next(entry for entry in entries if entry.operation == "import")
    assert (imported.who, imported.given) == ("operator", {"accepted": 2, "rejected": 1})
    # The same file once more is settled.
    assert (
        "earlier import of this file 3" in _imported(client, engine, "orders.csv", ORDERS, type="purchase_completed")[2]
    )


def test_two_files_whose_numbers_repeat_are_kept_apart_by_a_source_each(client: TestClient, engine: Engine) -> None:
    people, orders = "id,email\n1,ada@example.com\n", "id,email,total\n1,bob@example.com,5\n"
    key = {"c.0.use": "property", "c.0.key": "1", "at": "2026-01-02"}
    assert "Recorded 1" in _imported(client, engine, "people.csv", people, type="identify", **key)[2]
    clash = _imported(client, engine, "orders.csv", orders, type="ordered", **key)[2]
    assert "Key used for other content 1; another source keeps them apart" in clash
    apart = _imported(client, engine, "orders.csv", orders, type="ordered", source="orders", **key)[2]
    assert "Recorded 1" in apart
    assert [(event.type, event.source, event.key) for event in _events(engine) if event.key == "1"] == [
        ("identify", "import", "1"),
        ("ordered", "orders", "1"),
    ]


def test_people_without_a_time_are_recorded_as_of_one_time_and_cause_no_mail(
    client: TestClient, engine: Engine
) -> None:
    people = "email,plan,age\nada@example.com,pro,36\nbob@example.com,free,\n"
    path, checked, done = _imported(client, engine, "people.csv", people, at="2026-01-02")
    assert "Would be recorded 2" in checked
    assert "It causes 1 entry into a segment, 0 mails, 0 webhooks" in checked
    assert "Recorded 2" in done
    identified = [event for event in _events(engine) if event.type == "identify"]
    assert [event.properties for event in identified] == [{"plan": "pro", "age": 36}, {"plan": "free"}]
    assert "mapping.yaml" in client.get(path).text


def test_nested_json_is_mapped_by_paths(client: TestClient, engine: Engine) -> None:
    rows = [{"event": "Signed Up", "properties": {"distinct_id": "u1", "total": 1.5}, "timestamp": 1712345678}]
    text = "\n".join(map(json.dumps, rows))
    _, _, done = _imported(client, engine, "export.jsonl.gz", gzip.compress(text.encode()))
    assert "Recorded 1" in done
    (event,) = [event for event in _events(engine) if event.historical]
    assert (event.type, event.properties, str(event.identifiers[0])) == ("Signed Up", {"total": 1.5}, "user_id:u1")


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_of_a_file_of_hostile_rows_every_row_is_recorded_or_comes_back_with_a_reason(
    client: TestClient, engine: Engine, form: str
) -> None:
    rows = [
        {"id": f"k{n}", "user": text, "when": ("2026-01-01", text)[n % 2], "note": text}
        for n, text in enumerate(HOSTILE)
    ]
    if form == "csv":
        out = io.StringIO()
        writer = csv.DictWriter(out, ["id", "user", "when", "note"])
        writer.writeheader()
        writer.writerows(rows)
        content = out.getvalue().encode("utf-8", "surrogatepass") + b'k,"open quote\nx,\xff\xfe,2026-01-01,\n'
    else:
        lines = [json.dumps(row) for row in rows]
        content = "\n".join([*lines, "[]", "{", '{"id": 1e999}', "null"]).encode()
    path, _, done = _imported(
        client,
        engine,
        f"hostile.{form}",
        content,
        **{
            "type": "noted",
            "c.0.use": "",
            "c.0.key": "1",
            "c.1.use": "user_id",
            "c.2.use": "time",
            "format": "",
            "c.3.use": "property",
            "c.3.name": "note",
            "c.3.read": "plain",
        },
    )
    assert unsafe(client.get(path).text) == []
    counts = dict(re.findall(r"(Recorded|Rejected|Key used for other content) ([\d,]+)", done))
    recorded, rejected = (int(counts[name].replace(",", "")) for name in ("Recorded", "Rejected"))
    csv.field_size_limit(10_000_000)
    back = [*csv.DictReader(io.StringIO(client.get(f"{path}/rejects").text))]
    assert len(back) == rejected > 0
    assert all(row["reason"] for row in back)
    number = len(rows) + (2 if form == "csv" else 4)
    assert recorded + rejected == number
    assert len([event for event in _events(engine) if event.type == "noted"]) == recorded > 0


def test_the_console_and_the_command_line_read_a_row_alike(client: TestClient, engine: Engine, tmp_path: Path) -> None:
    path = _page(client, engine, "orders.csv", ORDERS)
    fields = {**dict(fields_of(client.get(path).text, "stack")), "type": "purchase_completed"}
    assert _step(client, path, "check", fields).status_code == 200
    _settled(client, path)
    written = html.unescape(re.search(r'<pre id="mapping">(.*?)</pre>', client.get(path).text, re.DOTALL)[1])  # type: ignore[index]
    (tmp_path / "mapping.yaml").write_text(written)
    (tmp_path / "orders.csv").write_text(ORDERS)
    nothing: dict[str, Any] = {"identifiers": (), "properties": (), "keys": ()}
    nothing |= dict.fromkeys(("type_", "time_", "time_format", "zone", "user_id", "email", "all_columns", "reopen"))
    mapping = parse_mapping(declared_mapping(tmp_path / "mapping.yaml", nothing))
    rows = preview(Plan(tmp_path / "orders.csv", mapping, "default", "import", ";"), engine.now())
    assert [getattr(row, "properties", {}).get("betrag") for row in rows] == [1234.5, 7.5, None]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("orders.xlsx", "PK", "must end in"),
        ("orders.csv", "", "empty"),
        (".csv", "a,b", "must end in"),
        ("", "a,b", "must end in"),
        ("twice.csv", "a,a\n1,2\n", "two columns"),
        ("broken.csv.gz", "no gzip", "damaged"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_and_says_why(
    client: TestClient, engine: Engine, name: str, content: str, said: str
) -> None:
    answer = (
        _upload(client, engine, name, content)
        if name
        else client.post("/imports", data={"_csrf": csrf_of(client, engine)}, files={"file": ("x", content)})
    )
    assert answer.status_code == 400
    assert said in _text(answer.text)
    assert "No file yet" in client.get("/imports").text


def test_a_file_that_is_too_large_is_refused_with_what_to_do(
    client: TestClient, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "UPLOAD_BYTES_MAX", 1_000)
    answer = _upload(client, engine, "large.csv", "a,b\n" + "1,2\n" * 1_000)
    assert answer.status_code == 413
    assert "threadline import" in _text(answer.text)


def test_only_who_may_record_events_may_import_and_no_other_session_can_forge_it(
    engine: Engine, client: TestClient
) -> None:
    path = _page(client, engine, "orders.csv", ORDERS)
    for role in ("viewer", "marketer"):
        other = signed_in(engine, role)  # type: ignore[arg-type]
        assert _upload(other, engine, "orders.csv", ORDERS).status_code == 403
        assert other.get(path).status_code == 403
        assert other.get(f"{path}/rejects").status_code == 403
        assert _step(other, path, "check", {"_csrf": csrf_of(other, engine)}).status_code == 403
    assert client.post("/imports", data={"_csrf": "x"}, files={"file": ("a.csv", b"a\n1\n")}).status_code == 403
    assert _step(client, path, "check", {"_csrf": "x"}).status_code == 403


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"type": ""}, "say what the rows are"),
        ({"type": "threadline.x"}, "type"),
        ({"c.0.use": "user_id"}, "two columns are the user id"),
        ({"c.2.use": "", "at": ""}, "one time for all rows"),
        ({"c.3.name": "paid"}, "two columns are called 'paid'"),
        ({"c.5.use": "identifier", "c.5.name": "a:b"}, "identifier kind"),
        ({"zone": "Mars"}, "IANA"),
        ({"format": "words"}, "time.format"),
        ({"c.1.use": ""}, "whose event"),
    ],
)
def test_a_mistake_in_the_columns_is_named_before_any_row_is_read(
    client: TestClient, engine: Engine, changes: dict[str, str], said: str
) -> None:
    path = _page(client, engine, "orders.csv", ORDERS)
    fields = {**dict(fields_of(client.get(path).text, "stack")), "type": "purchase_completed", **changes}
    answer = _step(client, path, "check", fields)
    assert answer.status_code == 400
    assert said in answer.json()["problem"]
    assert _step(client, path, "start", {"_csrf": fields["_csrf"]}).status_code == 409
    assert _events(engine) == []


def test_another_delimiter_reads_the_columns_anew_and_files_make_room(client: TestClient, engine: Engine) -> None:
    path = _page(client, engine, "odd.csv", "a;b|c\n1;2|3\n")
    csrf = csrf_of(client, engine)
    assert _step(client, path, "read", {"_csrf": csrf, "delimiter": "|"}).status_code == 200
    assert "a;b" in client.get(path).text
    assert _step(client, path, "read", {"_csrf": csrf, "delimiter": "||"}).status_code == 400
    assert _step(client, path, "remove", {"_csrf": csrf}).json()["go"] == "/imports"
    assert client.get(path).status_code == 404
    path = _page(client, engine, "first.csv", "a\n1\n")
    for number in range(UPLOADS_MAX):
        _page(client, engine, f"n{number}.csv", "a\n1\n")
    assert client.get(path).status_code == 404
    assert client.get("/imports").text.count("/imports/") == UPLOADS_MAX + 1 - 1 + client.get("/imports").text.count(
        'href="/imports/"'
    )


@pytest.mark.parametrize("rows", [1, 7, 30])
def test_an_import_that_is_stopped_after_any_batch_goes_on_and_records_every_row_once(
    engine: Engine, client: TestClient, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(importing_rows, "BATCH_ROWS", rows)
    content = "id,user,day\n" + "".join(f"k{n},u{n % 3},2026-01-01\n" for n in range(40))
    path = _page(client, engine, "orders.csv", content)
    fields = {**dict(fields_of(client.get(path).text, "stack")), "type": "ordered"}
    assert _step(client, path, "check", fields).status_code == 200
    _settled(client, path)
    record, batches = engine.recorder.record_checked, []

    def stopped(events: Any) -> Any:
        batches.append(len(events))
        if len(batches) < 3:
            _step(client, path, "stop", fields)
        return record(events)

    monkeypatch.setattr(engine.recorder, "record_checked", stopped)
    starts = 0
    while "done" not in (state := _settled(client, path)):
        assert starts == 0 or "Go on" in state
        assert _step(client, path, "start", {"_csrf": fields["_csrf"]}).status_code == 200
        starts += 1
    assert starts == 3
    assert len([event for event in _events(engine) if event.type == "ordered"]) == 40


def test_a_check_that_is_stopped_records_nothing_and_can_be_done_again(
    engine: Engine, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _page(client, engine, "orders.csv", ORDERS)
    fields = {**dict(fields_of(client.get(path).text, "stack")), "type": "purchase_completed"}
    rehearse = uploads.foretell_file

    def stopped(*given: Any, **named: Any) -> Any:
        _step(client, path, "stop", fields)
        return rehearse(*given, **named)

    monkeypatch.setattr(uploads, "foretell_file", stopped)
    assert _step(client, path, "check", fields).status_code == 200
    assert "new" in _settled(client, path)
    monkeypatch.undo()
    assert _step(client, path, "start", fields).status_code == 409
    assert _step(client, path, "check", fields).status_code == 200
    assert "Would be recorded 2" in _settled(client, path)
    assert _events(engine) == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--x",
        b"--x\r\n",
        b"--x\r\n\r\nabc",
        b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nabc',
        b"--y--",
    ],
)
def test_a_form_that_is_cut_off_is_none(body: bytes) -> None:
    with pytest.raises(Exception, match="form"):
        read_multipart(body, "multipart/form-data; boundary=x")


def test_a_form_with_a_file_is_read_whatever_is_in_the_file() -> None:
    content = b"--x\r\n\r\n--x-- \r\n\x00\xff"
    head = 'Content-Disposition: form-data; name="file"; filename="a%22b.csv"'
    body = (
        b'--xy\r\nContent-Disposition: form-data; name="t"\r\n\r\n\xc3\xa4\r\n--xy\r\n'
        + head.encode()
        + b"\r\n\r\n"
        + content
        + b"\r\n--xy--\r\n"
    )
    form = read_multipart(body, 'multipart/form-data; boundary="xy"')
    assert (form.fields, form.file_name, form.content) == ({"t": "ä"}, 'a"b.csv', content)
