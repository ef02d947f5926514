"""Law: what a stranger says in Threadline's name counts for nothing by the doors that are no address for events.

Which doors there are is found: the files of the surfaces that record, the surfaces that show an operation that takes an
event, the choices of the tools for agents, the fields of GraphQL.
"""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from starlette.testclient import TestClient

import threadline
from tests.surfaces.conftest import NOW, Keys
from tests.surfaces.mcp.mcp_stage import Agent
from threadline.app import composition, open_engine
from threadline.capabilities.foundation.events.forms import NativeEvent
from threadline.engine.engine import Engine
from threadline.engine.folding.packing import unpack_event
from threadline.kernel.event import NOT_COUNTED, Event
from threadline.kernel.event_type import EventType, may_say
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.operation import Operation
from threadline.kernel.store import feed_pages
from threadline.settings import Settings
from threadline.surfaces.cli.program import run
from threadline.surfaces.graphql.schema import OF_PERSON, OF_ROOT, made
from threadline.surfaces.importing.recording import import_file
from threadline.surfaces.importing.rows import Plan
from threadline.surfaces.mcp.tool import Tool
from threadline.surfaces.mcp.tools import TOOLS
from threadline.surfaces.operation_calls import field_names
from threadline.surfaces.queues.intake import EventIntake, QueueMessage
from threadline.wire.table import parse_mapping

SURFACES = Path(threadline.__file__).parent / "surfaces"
MARKER = "said by a stranger"


def restricted(engine: Engine) -> list[EventType]:
    """The types that not everybody may say, those of the engine aside: any door rejects these."""
    types = engine.catalogue.event_types.declared.values()
    return [type for type in types if type.speaker != "anyone" and not type.name.startswith(SYSTEM_PREFIX)]


def native(type: str) -> dict[str, Any]:
    properties = {"points": 1_000, "rule": "mine", "marker": MARKER}
    return {"type": type, "identifiers": {"user_id": "ada"}, "key": f"forged/{type}", "properties": properties}


def forged(engine: Engine) -> list[Event]:
    """The events in the log that a stranger has said."""
    events = [unpack_event(entry.entry).event for entry in feed_pages(engine.store)]
    return [event for event in events if event.properties.get("marker") == MARKER]


# --- what records ---------------------------------------------------------------------------------


def by_queue(folder: Path, types: list[str]) -> Engine:
    engine = open_engine("memory:", Settings(), lambda: NOW)
    intake = EventIntake(engine, "default", "leads")
    taken = intake.take([QueueMessage(type, json.dumps(native(type)), NOW) for type in types])
    assert {each.status for each in taken} == {"done"}
    return engine


def by_import(folder: Path, types: list[str]) -> Engine:
    engine = open_engine("memory:", Settings(), lambda: NOW)
    with (folder / "rows.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["type", "user", "day", "points", "marker"])
        rows.writerows([type, "ada", "2026-02-01", 1_000, MARKER] for type in types)
    mapping = {
        "type": {"column": "type"},
        "time": "day",
        "user_id": "user",
        "key": ["type"],
        "properties": {"points": {"column": "points", "number": True}, "marker": "marker"},
    }
    summary = import_file(engine, Plan(folder / "rows.csv", parse_mapping(mapping), "default", "ledger"))
    assert summary.accepted == len(types), summary
    return engine


def by_python(folder: Path, types: list[str]) -> Engine:
    with threadline.open(folder / "x.db", source="shop") as shop:
        assert {receipt.status for receipt in shop.record([native(type) for type in types])} == {"accepted"}
    return open_engine(folder / "x.db", Settings(), lambda: NOW)


def by_command(folder: Path, types: list[str]) -> Engine:
    (folder / "events.json").write_text(json.dumps([native(type) for type in types]))
    answer = run(composition, ["record", str(folder / "events.json"), "--file", str(folder / "x.db"), "--json"])
    assert answer == 0
    return open_engine(folder / "x.db", Settings(), lambda: NOW)


DOORS: Mapping[str, Callable[[Path, list[str]], Engine]] = {
    "queues/intake.py": by_queue,
    "importing/recording.py": by_import,
    "operation by python": by_python,
    "operation by cli": by_command,
}
"""Door -> what goes through it with an event of each of these types. The addresses of HTTP are in test_forging.py."""


def recording() -> Iterator[str]:
    """The files of the surfaces that hand events to the recorder."""
    for path in SURFACES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ".recorder.record" in f".{ast.unparse(node.func)}":
                yield str(path.relative_to(SURFACES))


def takes_an_event(operation: Operation) -> bool:
    """Whether a caller says an event to it, not only names one."""
    return any(NativeEvent.__name__ in str(hint) for hint in getattr(operation.params, "__annotations__", {}).values())


def test_every_way_to_the_recorder_is_a_door_that_is_tried(engine: Engine) -> None:
    files = {file for file in recording() if not file.startswith("http/")}
    shown = {surface for each in engine.catalogue.operations if takes_an_event(each) for surface in each.shown_on}
    assert {*files, *(f"operation by {surface}" for surface in shown - {"http"})} == set(DOORS)


@pytest.mark.parametrize("door", DOORS)
def test_an_event_counts_by_a_door_only_where_its_speaker_comes_by_it(
    door: str, engine: Engine, tmp_path: Path
) -> None:
    speakers = {type.name: type.speaker for type in restricted(engine)}
    on = DOORS[door](tmp_path, sorted(speakers))
    events = forged(on)
    assert {event.type for event in events} == speakers.keys()
    for event in events:
        is_believed = may_say(speakers[event.type], event)
        assert on.catalogue.event_types.counts(event) == is_believed, event.type
        assert (NOT_COUNTED in event.marks) == (not is_believed), event.type
        assert not is_believed or (speakers[event.type], event.source_type) == ("process", "direct")
    on.close()


# --- agents ---------------------------------------------------------------------------------------


def forms(type: str, key: str) -> dict[str, Any]:
    """By the name of a parameter, the form of an event that it may take."""
    event = native(type) | {"key": key}
    stored = event | {"identifiers": [["user_id", "ada"]], "occurred_at": NOW, "source_type": "internal"}
    return {"event": event, "events": [event], "payload": stored}


def test_a_forged_event_counts_for_nothing_by_any_choice_of_any_tool_of_agents(
    engine: Engine, client: TestClient, keys: Keys
) -> None:
    admin = Agent(client, keys.bearer("admin"))
    operations = {operation.name: operation for operation in engine.catalogue.operations}
    types = [type.name for type in restricted(engine)]
    doors = set()
    for tool, choice, operation in choices(operations):
        for parameter in forms("", "").keys() & set(field_names(operation)):
            for type in types:
                given = {tool.choice: choice, parameter: forms(type, f"{choice}/{parameter}/{type}")[parameter]}
                if "id" in field_names(operation):
                    given["id"] = rejected(client, keys)
                answer = admin.call(tool.name, **given)
                if token := answer.get("confirm"):
                    answer = admin.call("confirm", token=token, tool=tool.name, arguments=given)
                if "error" in answer:
                    break  # It takes no event there, whatever its type: a name, or the id of one.
                doors.add((choice, parameter))
    assert doors >= {("resubmit", "event"), ("resubmit", "payload"), ("event", "event")}
    said = forged(engine)
    assert len(said) == 2 * len(types), "by both ways to correct what was rejected, and by no trial"
    assert all(NOT_COUNTED in event.marks and not engine.catalogue.event_types.counts(event) for event in said)


def choices(operations: Mapping[str, Operation]) -> Iterator[tuple[Tool, str, Operation]]:
    """Every choice of every tool, with what it calls."""
    for tool in TOOLS:
        for choice, call in tool.all_calls(operations).items():
            yield tool, choice, operations[call.operation]


def rejected(client: TestClient, keys: Keys) -> str:
    """The id of a new entry of the rejected log, which waits for its correction."""
    body = {"events": [{"type": "seen", "identifiers": {"user_id": "null"}, "key": f"wrong {uuid4()}"}]}
    assert client.post("/v1/events", json=body, headers=keys.bearer("writer")).status_code == 200
    [entry, *_] = client.get("/v1/rejected?status=open", headers=keys.bearer("admin")).json()["entries"]
    return str(entry["id"])


# --- GraphQL ------------------------------------------------------------------------------------------


def test_graphql_has_no_field_that_says_anything(engine: Engine, client: TestClient, keys: Keys) -> None:
    schema = made(engine.catalogue.operations, ()).introspect()["__schema"]
    assert (schema["mutationType"], schema["subscriptionType"]) == (None, None)
    operations = {operation.name: operation for operation in engine.catalogue.operations}
    fields = [*OF_ROOT.values(), *OF_PERSON.values()]
    assert {operations[field.operation].method for field in fields} == {"GET"}
    query = 'mutation { record(events: [{type: "points_earned", key: "1"}]) { accepted } }'
    answer = client.post("/graphql", json={"query": query}, headers=keys.bearer("admin")).json()
    assert answer["errors"]
    assert list(feed_pages(engine.store)) == []
