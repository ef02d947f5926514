"""``people find`` on the command line answers what the Python API does, and shows who it is at 80 columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import threadline
from tests.surfaces.cli_stage import call, composed, store

__all__ = ["call", "composed", "store"]

PEOPLE = (("Ada", "Lovelace", "ada@shop.example"), ("Łucja", "Kovács", "lk@post.example"), ("Søren", "Lovelace", ""))


@pytest.fixture
def people(store: Path) -> Path:
    with threadline.open(store) as shop:
        for number, (first, last, address) in enumerate(PEOPLE):
            own = {"user_id": f"cust-{number}"} | ({"email": address} if address else {})
            traits = {"first_name": first, "last_name": last}
            shop.record([{"type": "identify", "key": f"{number}", "identifiers": own, "properties": traits}])
    return store


@pytest.mark.parametrize("text", ["OVELA", "lucja", "soren", "post.ex", "ust-1", "cust-0", "nobody"])
def test_a_part_finds_the_same_people_as_in_python(people: Path, call: Any, text: str) -> None:
    answer = json.loads(call("people", "find", "--text", text, "--json").out)
    with threadline.open(people) as shop:
        found = shop.people.find(text=text)
    assert [person["id"] for person in answer["people"]] == [person.id for person in found.people]
    assert (answer["total"], bool(answer["people"])) == (found.total, text != "nobody")


def test_a_list_of_nobody_says_so_and_no_more(people: Path, call: Any) -> None:
    shown = call("people", "list", "--tag", "nobody").out.splitlines()
    assert [line.split() for line in shown] == [["people", "none"], ["people_read", "0"]]
    assert "being_filled" in call("people", "list", "--tag", "nobody", "--all").out


def test_the_table_names_each_person_at_80_columns(
    people: Path,
    call: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = call("people", "find", "--text", "lovelace", "--sort", "name").out
    lines = [line for line in shown.splitlines() if "Lovelace" in line]
    assert ["Ada Lovelace" in line and "cust-0" in line for line in lines] == [True, False], shown
    assert "Søren Lovelace" in lines[1]
    assert "cust-2" in lines[1]
