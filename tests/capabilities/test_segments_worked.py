"""The tables of docs/worked/segments.md, lived through with a clock that moves and a dispatcher that is never late."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.capabilities.asked import Asked
from threadline.engine.context import Context
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import parse_time

PAGE = (Path(__file__).parents[2] / "docs/segments.md").read_text(encoding="utf-8")
WORKED = (Path(__file__).parents[2] / "docs/worked/segments.md").read_text(encoding="utf-8")


def tables(text: str) -> list[list[list[str]]]:
    found = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    rows = [[[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()] for table in found]
    return [[table[0], *table[2:]] for table in rows]


EVENTS, TOLD, STANDING = tables(WORKED)
DEFINITIONS = re.findall(r"```yaml\n(segments:\n.*?)```", PAGE, re.DOTALL)[0]


def told_until(instant: int) -> Asked:
    asked = Asked(definitions=DEFINITIONS)
    dispatcher = Dispatcher(asked.engine, {}, "test")

    def until(at: int) -> None:
        while True:
            dues = [due for person in asked.engine.reader.all_people("default") for due in person.timers.values()]
            if not dues or min(dues) > at:
                break
            asked.now = min(dues)
            dispatcher.run_once()
        asked.now = at

    asked.now = parse_time(EVENTS[1][0]) - 1
    for number, (occurred, type, properties) in enumerate(EVENTS[1:]):
        at = parse_time(occurred)
        if at <= instant:
            until(at)
            event = Event(
                type=type,
                identifiers=(Identifier("user_id", "ada"),),
                occurred_at=at,
                key=str(number),
                properties=json.loads(properties),
            )
            assert asked.engine.recorder.record([event])[0].status == "accepted"
    until(instant)
    return asked


def test_the_page_has_its_tables() -> None:
    assert (len(EVENTS), len(TOLD), len(STANDING)) == (6, 11, 4)


def test_what_is_told() -> None:
    asked = told_until(parse_time("2026-05-01T00:00:00Z"))
    person = asked.engine.reader.person("default", "user_id:ada")
    told = [r.event for r in asked.engine.reader.events(person, limit=1_000) if r.event.type.startswith("segment_")]
    # Of what one event brings with it the order is that of the names.
    assert sorted((e.occurred_at, e.type, e.properties["segment"]) for e in told) == sorted(
        (parse_time(at), type, segment) for at, type, segment in TOLD[1:]
    )


def test_who_belongs_and_until_when() -> None:
    for column, instant in enumerate(STANDING[0][1:], start=1):
        at = parse_time(instant)
        asked = told_until(at)
        shown: dict[str, Any] = {}
        for each in ask(asked, at).segments:
            until = "" if each.until is None else parse_time(each.until)
            shown[each.segment] = (each.member, until)
        assert shown == {row[0]: outcome(row[column]) for row in STANDING[1:]}, instant


def ask(asked: Asked, at: int) -> Any:
    operation = asked.operations["segments_of"]
    return operation.run(Context(asked.engine, "default", at), operation.params(id="user_id:ada"))


def outcome(cell: str) -> tuple[bool, Any]:
    return cell != "no", parse_time(cell.removeprefix("until ")) if cell.startswith("until ") else ""
