"""``threadline check``: all mistakes of all files at once, and warnings of what is hardly meant."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

import threadline
from tests.surfaces.cli_stage import call, composed
from threadline.capabilities.foundation.schemas import definition
from threadline.kernel.errors import InvalidDefinition

__all__ = ["call", "composed"]

BAD = {
    "a.yaml": "settings:\n  prot: 1\n  host: 3\nfeatures:\n  wrong: {aggregate: cuont, events: click}\n",
    "b.yaml": "settings: {port: many}\nsegments: {big: {when: {field: features.order_cuont, exists: true}}}\nzzz: 1\n",
    "c.yaml": "streaks: [\n",
}
LINES = ["a.yaml:2", "a.yaml:3", "a.yaml:5", "b.yaml:1", "b.yaml:2", "b.yaml:3", "c.yaml:2"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in BAD.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_check_names_every_mistake_of_all_files_settings_among_them(call, folder: Path) -> None:  # type: ignore[no-untyped-def]
    told = call("check", str(folder))
    assert told.code == 1
    assert [without_column(line).partition(": ")[0] for line in told.out.splitlines()] == [
        *(f"{folder}/{line}" for line in LINES), "3 files",
    ]  # fmt: skip
    told_as_text = told.out
    told = call("check", str(folder), "--json")
    problems = json.loads(told.out)["problems"]
    assert (told.code, [f"{Path(each['file']).name}:{each['line']}" for each in problems]) == (1, LINES)
    for problem in problems:
        at = f"{problem['line']}:{problem['column']}:" if problem["column"] else f"{problem['line']}:"
        assert f"{problem['file']}:{at} error: {problem['message']}" in told_as_text
    assert any(problem["column"] > 1 for problem in problems)
    assert sorted(each.name for each in folder.iterdir()) == sorted(BAD), "no store is made"


def without_column(line: str) -> str:
    return re.sub(r"(:\d+):\d+: (error|warning): ", r"\1: \2: ", line)


def test_whatever_reads_definitions_names_the_same_mistakes(
    call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("THREADLINE_DEFINITIONS", str(folder))
    lines = [without_column(line).replace(": error: ", ": ") for line in call("check").out.splitlines()[:-1]]
    told = call("serve", "--port", "0")
    assert (told.code, [line for line in told.err.splitlines() if str(folder) in line]) == (
        1,
        [f"{'Error: ' if number == 0 else ''}{line}" for number, line in enumerate(lines)],
    )
    with pytest.raises(InvalidDefinition) as raised:
        threadline.open(folder / "x.db")
    assert str(raised.value).splitlines() == lines


NAMED = """
features:
  orders: {aggregate: count, events: [purchase_complete, invoice_paid]}
streaks:
  reading: {events: page_red}
points:
  tables:
    - version: 2
      earn: {invoice_payed: 5, signed_up: 3}
rules:
  lonely: {conditions: {field: tags, exists: true}, actions: [{emit_event: {type: made_by_a_rule}}]}
  asked: {conditions: {field: tags, exists: true}}
rule_sets:
  shop:
    events:
      - Order Completed
      - made_by_a_rule
      - invoice_paid
    rules: [asked]
"""


def test_without_a_store_a_type_is_suspicious_only_beside_one_spelled_alike(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "threadline.yaml").write_text(NAMED)
    told = call("check", "--file", str(tmp_path / "none.db"), "--json")
    unknown = "nothing else knows the event type"
    warned = [(each["line"], each["message"]) for each in json.loads(told.out)["warnings"]]
    assert told.code == 0
    assert warned == [
        (3, f"feature 'orders': {unknown} 'purchase_complete'; did you mean 'purchase_completed'?"),
        (9, f"`points`: {unknown} 'invoice_payed'; did you mean 'invoice_paid'?"),
        (11, "rule 'lonely' is in no rule set here, so nothing asks it; name it under `rules` of a set"),
        (16, f"rule set 'shop': {unknown} 'Order Completed'; did you mean 'purchase_completed'?"),
    ]


def test_with_a_store_every_type_that_nobody_has_sent_is_named(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "x.db"
    with threadline.open(path) as tl:
        tl.track("42", "invoice_paid")
        tl.track("42", "page_read")
    (tmp_path / "threadline.yaml").write_text(NAMED)
    told = call("check", "--file", str(path), "--json")
    warned = {(each["line"], each["message"]) for each in json.loads(told.out)["warnings"]}
    assert {
        (3, "feature 'orders': nobody has ever sent 'purchase_complete'; did you mean 'purchase_completed'?"),
        (5, "streak 'reading': nobody has ever sent 'page_red'; did you mean 'page_read'?"),
        (9, "`points`: nobody has ever sent 'signed_up'"),
    } < warned
    assert not any("invoice_paid'" in message.partition(";")[0] for _, message in warned)
    assert "nobody has ever sent 'page_red'" in " ".join(call("doctor", "--file", str(path)).out.split())
    with threadline.open(path) as tl:
        for type in ("purchase_complete", "page_red", "signed_up", "invoice_payed"):
            tl.track("42", type)
    warned = {each["line"] for each in json.loads(call("check", "--file", str(path), "--json").out)["warnings"]}
    assert warned == {11, 16}


def test_check_needs_no_extra_for_what_declares_no_schema(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    definition.shipped_schemas.cache_clear()
    (tmp_path / "a.yaml").write_text("features:\n  n: {aggregate: count, events: sentiment_detected}\n")
    told = call("check", str(tmp_path))
    assert (told.code, told.err, told.out) == (0, "", "1 file: 0 mistakes, 0 warnings.\n")


COMPARED = """
segments:
  late: {when: {all: [{field: traits.since, SIGN: DATE}, {field: traits.plan, equals: "06-Sep-2024"}]}}
features:
  pages: {aggregate: count, events: page, where: {at: {SIGN: DATE}}}
"""


@pytest.mark.parametrize("sign", ["greater_than", "lte"])
@pytest.mark.parametrize(
    "date", ["06-Sep-2024", "6.9.2024", "09/06/24", "2024/09/06", "Sep 6, 2024", "6. September 2024"]
)
def test_a_date_that_is_compared_letter_by_letter_is_warned_of_where_it_stands(  # type: ignore[no-untyped-def]
    call, date: str, sign: str, tmp_path: Path
) -> None:
    (tmp_path / "a.yaml").write_text(COMPARED.replace("SIGN", sign).replace("DATE", f'"{date}"'))
    said = call("check", str(tmp_path)).out.splitlines()
    warned = [line for line in said if "letter by letter" in line]
    assert [line.partition(": ")[0].rpartition("/")[2] for line in warned] == ["a.yaml:3:45", "a.yaml:5:56"], said
    assert all("warning" in line and repr(date) in line for line in warned), said


@pytest.mark.parametrize("text", ["2024-09-06", "2024-09-06T12:00:00Z", "1.2.3", "10.0.0.1", "20", "v2024", "Ada"])
def test_a_text_that_is_no_date_or_one_that_is_understood_is_not_warned_of(  # type: ignore[no-untyped-def]
    call, text: str, tmp_path: Path
) -> None:
    (tmp_path / "a.yaml").write_text(COMPARED.replace("SIGN", "gt").replace("DATE", f'"{text}"'))
    told = call("check", str(tmp_path))
    assert (told.code, "letter by letter" in told.out) == (0, False), told.out
