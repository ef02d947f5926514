"""Law: what a stranger says in Threadline's name counts for nothing, by whichever door it comes.

Doors over HTTP are those of the OpenAPI document: each takes every form of an event that it can, with a write key and
with a token. What stamps an event with its speaker is found in the source.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from starlette.testclient import TestClient

import threadline
from tests.surfaces.conftest import NOW, Keys
from tests.surfaces.segment_stage import basic
from threadline.app import open_engine
from threadline.engine.engine import Engine
from threadline.kernel.event import NOT_COUNTED
from threadline.settings import Settings

SOURCE = Path(threadline.__file__).parent
MESSAGES = ("track", "page", "screen", "identify", "group", "alias")
DOORS_MIN = 12
"""Doors that took a forged event when this was written, those that are another spelling of one included."""


def bodies(type: str, key: str) -> Iterator[tuple[str, Any]]:
    """The forms of an event that something may take, by the media type."""
    given = {"points": 1_000, "rule": "mine"}
    track = {"type": "track", "userId": "ada", "event": type, "properties": given, "messageId": f"{key}/s"}
    native = {"type": type, "identifiers": {"user_id": "ada"}, "key": f"{key}/n", "properties": given}
    cloud = {"specversion": "1.0", "type": type, "source": "/forged", "id": f"{key}/c", "userid": "ada", "data": given}
    yield "application/json", track
    yield "application/json", {"batch": [{**track, "messageId": f"{key}/b"}]}
    yield "application/json", native
    yield "application/json", {"event": {**native, "key": f"{key}/e"}}
    yield "application/json", {"events": [{**native, "key": f"{key}/es"}]}
    yield "application/cloudevents+json", cloud
    yield "application/cloudevents-batch+json", [{**cloud, "id": f"{key}/cb"}]


def test_a_forged_event_counts_for_nothing_by_every_door_of_http(
    engine: Engine, client: TestClient, keys: Keys, seed: int
) -> None:
    client.post("/v1/track", json={"userId": "ada", "event": "waved", "messageId": "1"}, headers=basic(keys.write))
    credentials = {"write": basic(keys.write), "writer": keys.bearer("writer"), "admin": keys.bearer("admin")}
    paths = [path for path, methods in client.get("/openapi.json").json()["paths"].items() if "post" in methods]
    types = Random(seed).sample(("points_earned", "segment_entered", "mail_bounced", "decision_made"), 4)
    doors = set()
    before, counted = position(engine), 0
    for path in paths:
        for name, headers in credentials.items():
            for type in types:
                if type != types[0] and position(engine) == before:
                    break  # where nothing of the type that the seed draws is recorded, no event is taken
                for media, body in bodies(type, f"{path}/{name}/{type}"):
                    content = msgspec.json.encode(body)
                    client.post(
                        path.replace("{id}", "user_id:ada"), content=content, headers={**headers, "content-type": media}
                    )
            if (after := position(engine)) != before:  # else nobody need read all of her events again
                before, former, counted = after, counted, len(forged(engine))
                if counted > former:
                    doors.add((path, name))
    assert len(doors) >= DOORS_MIN, doors
    assert all(NOT_COUNTED in event.event.marks for event in forged(engine))
    assert views(engine) == views(without_forged(engine))


def position(on: Engine) -> int:
    """How many events Ada has."""
    return sum(on.reader.person("default", "user_id:ada").heads.values())


def forged(on: Engine) -> list[Any]:
    """The events of Ada that say what their source may not say."""
    ada = on.reader.person("default", "user_id:ada")
    return [one for one in on.reader.all_events(ada) if not on.catalogue.event_types.counts(one.event)]


def without_forged(on: Engine) -> Engine:
    """An engine in which nobody has forged anything, and all else has happened."""
    other = open_engine("memory:", Settings(), lambda: NOW)
    ada = on.reader.person("default", "user_id:ada")
    for one in on.reader.all_events(ada):
        if on.catalogue.event_types.counts(one.event) and one.event.source_type != "internal":
            [receipt] = other.recorder.record([one.event])
            assert receipt.status == "accepted"
    return other


def views(on: Engine) -> Any:
    ada = on.reader.person("default", "user_id:ada")
    return msgspec.to_builtins(on.reader.views(ada, NOW))


def test_nothing_that_takes_events_from_outside_stamps_them_as_threadline_s_own() -> None:
    stamps = {
        f"{path.relative_to(SOURCE)}:{line}": stamp
        for room in ("wire", "surfaces")
        for path in (SOURCE / room).rglob("*.py")
        if "source_type" in (text := path.read_text())  # to read the syntax of every file takes seconds
        for line, stamp in stamps_in(ast.parse(text))
    }
    assert len(stamps) >= 6
    allowed = {"'external'", "source_type_of(source)", "source_type"}
    assert {place: stamp for place, stamp in stamps.items() if stamp not in allowed} == {}


def stamps_in(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """What is handed on as `Event.source_type`, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg == "source_type":
                    yield node.lineno, ast.unparse(keyword.value)
