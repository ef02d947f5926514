"""One limit is refused with one code and message at every door: HTTP, Python, command line, wire formats, import."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import msgspec
import pytest
from starlette.testclient import TestClient

from tests.surfaces import import_stage
from tests.surfaces.conftest import NOW, Keys
from threadline.app import operations
from threadline.engine.engine import Engine
from threadline.kernel import limits
from threadline.kernel.errors import NotFound, ThreadlineError
from threadline.kernel.event import Event, Identifier
from threadline.kernel.operation import Operation
from threadline.surfaces.importing.recording import import_file
from threadline.surfaces.operation_calls import method_name
from threadline.surfaces.python.embedded import Threadline

pytest_plugins = ["tests.surfaces.cli_stage"]

Answer = tuple[str, str]
"""Code and message of a refusal."""


# --- limits of parameters: each bound that any operation declares -----------------------------------


class Bound(NamedTuple):
    operation: Operation
    field: str
    value: Any
    """Just beyond the bound."""

    def __str__(self) -> str:
        return f"{self.operation.name}.{self.field}"


def metas(hint: Any) -> Iterator[tuple[Any, msgspec.Meta]]:
    """The type and each `Meta` of a hint, inside of unions as well, but not of what a list holds."""
    if get_origin(hint) is Annotated:
        yield from ((hint.__origin__, each) for each in hint.__metadata__ if isinstance(each, msgspec.Meta))
        yield from metas(hint.__origin__)
    elif get_origin(hint) is not list:
        for inside in get_args(hint):
            yield from metas(inside)


def beyond(kind: Any, meta: msgspec.Meta) -> Iterator[Any]:
    text = kind is str or (get_origin(kind) is not list and str in get_args(kind))
    if meta.max_length is not None:
        yield "x" * (meta.max_length + 1) if text else ["x"] * (meta.max_length + 1)
    if meta.le is not None:
        yield int(meta.le) + 1
    if meta.ge is not None:
        yield int(meta.ge) - 1


def bounds() -> list[Bound]:
    found: dict[Any, tuple[Operation, str, Any]] = {}
    for operation in operations():
        for name, hint in get_type_hints(operation.params, include_extras=True).items():
            for kind, meta in metas(hint):
                for value in beyond(kind, meta):
                    found.setdefault((operation.name, name, type(value) is int and value < 1), (operation, name, value))
    return [Bound(*each) for each in found.values()]


BOUNDS = [each for each in bounds() if {"http", "python"} <= each.operation.shown_on]


def values_of(bound: Bound) -> dict[str, Any]:
    example = bound.operation.example
    values: dict[str, Any] = {} if example is None else msgspec.to_builtins(example)
    return {**{name: value for name, value in values.items() if value is not None}, bound.field: bound.value}


def in_path(operation: Operation) -> list[str]:
    return [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]


def over_http(client: TestClient, keys: Keys, bound: Bound) -> Answer:
    values = values_of(bound)
    path = bound.operation.path
    for name in in_path(bound.operation):
        path = path.replace(f"{{{name}}}", str(values.pop(name)))
    given = {"json": values} if bound.operation.method == "POST" else {"params": values}
    answer = client.request(bound.operation.method, path, headers=keys.bearer("admin"), **given)
    assert 400 <= answer.status_code < 500, answer.text
    return answer.json()["code"], answer.json()["detail"]


def in_python(engine: Engine, bound: Bound, values: dict[str, Any]) -> Any:
    operation = bound.operation
    group = Threadline(engine) if operation.group is None else getattr(Threadline(engine), operation.group.name)
    return getattr(group, method_name(operation))(**values)


def over_python(engine: Engine, bound: Bound) -> Answer:
    with pytest.raises(ThreadlineError) as refused:
        in_python(engine, bound, values_of(bound))
    return refused.value.code, str(refused.value)


LISTS = [each for each in BOUNDS if each.field == "limit" and each.value > 1 and "python" in each.operation.shown_on]


@pytest.mark.parametrize("bound", LISTS, ids=str)
def test_a_page_of_the_largest_size_is_answered(bound: Bound, engine: Engine) -> None:
    largest = bound._replace(value=bound.value - 1)
    with suppress(NotFound):  # what the example names
        assert in_python(engine, bound, values_of(largest)) is not None


def test_there_are_bounds_of_every_kind() -> None:
    assert len(BOUNDS) > 80
    assert {type(each.value) for each in BOUNDS} == {str, int, list}


def test_a_parameter_beyond_its_bound_is_refused_alike_over_http_and_python(
    client: TestClient, keys: Keys, engine: Engine
) -> None:
    answers = {str(bound): (over_http(client, keys, bound), over_python(engine, bound)) for bound in BOUNDS}
    assert {name: both for name, both in answers.items() if both[0] != both[1]} == {}
    assert {code for (code, _), _ in answers.values()} == {"invalid_value"}
    assert [
        name for name, ((_, text), _) in answers.items() if f"{name.partition('.')[2]}: expected " not in text
    ] == []


@pytest.mark.parametrize("name", ["people", "events", "leaderboard"])
def test_a_parameter_beyond_its_bound_is_refused_alike_on_the_command_line(
    name: str, client: TestClient, keys: Keys, store: Path, call: Any
) -> None:
    for bound in (each for each in BOUNDS if each.operation.name == name and each.field not in in_path(each.operation)):
        values = values_of(bound)
        arguments = [str(values.pop(each)) for each in in_path(bound.operation)]
        options = [f"--{each.replace('_', '-')}={value}" for each, value in values.items() if type(value) in (str, int)]
        if type(bound.value) is list:
            options += [f"--{bound.field}={value}" for value in bound.value]
        answer = call(name, *arguments, *options)
        assert answer.code == 2
        assert over_http(client, keys, bound)[1] in " ".join(answer.err.split())


# --- limits of events ---------------------------------------------------------------------------------


class Doors:
    """One event by each way in; each answers the code and message of its refusal."""

    def __init__(self, engine: Engine, client: TestClient, keys: Keys, folder: Path) -> None:
        self.engine, self.client, self.keys, self.folder = engine, client, keys, folder

    def native(self, event: dict[str, Any]) -> Answer:
        body = json.dumps({"events": [{"type": "t", "identifiers": {"user_id": "1"}, "key": "k", **event}]})
        answer = self.client.post("/v1/events", content=body, headers=self.keys.bearer("writer")).json()
        said = answer["receipts"][0] if "receipts" in answer else answer
        return said["code"], said.get("message") or said["detail"]

    def mapping(self, event: dict[str, Any]) -> Answer:
        whole = {"type": "t", "identifiers": {"user_id": "1"}, "key": "k", **event}
        (receipt,) = Threadline(self.engine).record([whole])
        return receipt.code, receipt.message

    def object(self, event: dict[str, Any]) -> Answer:
        identifiers = tuple(
            Identifier(kind, each)
            for kind, value in event.get("identifiers", {"user_id": "1"}).items()
            for each in ([value] if type(value) is str else value)
        )
        made = Event(
            type=event.get("type", "t"),
            identifiers=identifiers,
            occurred_at=NOW,
            key=event.get("key", "k"),
            properties=event.get("properties", {}),
        )
        (receipt,) = Threadline(self.engine).record([made])
        return receipt.code, receipt.message

    def segment(self, event: dict[str, Any]) -> Answer:
        external = [
            {"type": kind, "id": each, "collection": "users"}
            for kind, value in event.get("identifiers", {}).items()
            for each in ([value] if type(value) is str else value)
        ]
        message = {
            "type": "track",
            "event": event.get("type", "t"),
            "userId": "1",
            "messageId": event.get("key", "k"),
            "properties": event.get("properties", {}),
            "context": {"externalIds": external},
        }
        if external:
            del message["userId"]
        return self._rejected("/v1/batch", json.dumps({"batch": [message]}))

    def cloudevent(self, event: dict[str, Any]) -> Answer:
        message = {
            "specversion": "1.0",
            "id": "1",
            "source": "/s",
            "type": event.get("type", "t"),
            "subject": "user_id:1",
            "data": event.get("properties", {}),
        }
        return self._rejected("/v1/cloudevents", json.dumps([message]), "application/cloudevents-batch+json")

    def _rejected(self, path: str, body: str, content_type: str = "application/json") -> Answer:
        headers = {**self.keys.bearer("writer"), "content-type": content_type}
        answer = self.client.post(path, content=body, headers=headers).json()
        said = answer["rejected"][0] if answer.get("rejected") else answer
        return said["code"], said.get("message") or said["detail"]


@pytest.mark.parametrize("length", [100, 101, 2_000])
def test_a_key_of_any_length_makes_a_retry_harmless_at_every_door(
    length: int, engine: Engine, client: TestClient, keys: Keys
) -> None:
    key, headers = "ü" * length, keys.bearer("writer")
    native = {"type": "t", "identifiers": {"user_id": "1"}, "key": key}
    segment = {"type": "track", "event": "t", "userId": "1", "messageId": key}
    cloud = {"specversion": "1.0", "id": key, "source": "/s", "type": "t", "subject": "user_id:1"}
    batch = {**headers, "content-type": "application/cloudevents-batch+json"}
    for path, body, sent_as in (
        ("/v1/events", {"events": [native]}, headers),
        ("/v1/batch", {"batch": [segment]}, headers),
        ("/v1/cloudevents", [cloud], batch),
    ):
        answers = [client.post(path, content=json.dumps(body), headers=sent_as).json() for _ in range(2)]
        # One key of one credential is one event, whichever door it came by first.
        counted = [(answer["accepted"], answer["duplicates"]) for answer in answers]
        assert counted == ([(0, 1), (0, 1)] if path == "/v1/batch" else [(1, 0), (0, 1)]), (path, answers)
    shown = Threadline(engine).messages.show(message_id=key, source="writer").event
    assert shown is not None
    assert (shown.key if length == 100 else shown.wire["key"]) == key
    python = [Threadline(engine).record([native])[0].status for _ in range(2)]
    assert python == ["accepted", "duplicate"]


@pytest.fixture
def doors(engine: Engine, client: TestClient, keys: Keys, tmp_path: Path) -> Doors:
    return Doors(engine, client, keys, tmp_path)


def nested(levels: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return {"a": value}


ALL = ("native", "mapping", "object", "segment")
BROKEN: dict[str, tuple[dict[str, Any], tuple[str, ...], Answer]] = {
    "type": (
        {"type": "x" * 500},
        (*ALL, "cloudevent"),
        ("invalid_type", f"an event type has 1 to {limits.EVENT_TYPE_LENGTH_MAX} characters, not 500"),
    ),
    "key": (
        {"key": "x" * 500},
        ("object",),
        ("invalid_key", f"an idempotency key has 1 to {limits.EVENT_KEY_LENGTH_MAX} characters, not 500"),
    ),
    "identifiers": (
        {"identifiers": {"external_id": [str(number) for number in range(17)]}},
        ALL,
        ("too_many_identifiers", f"an event has at most {limits.IDENTIFIERS_PER_EVENT_MAX} identifiers, not 17"),
    ),
    "depth": (
        {"properties": nested(100)},
        (*ALL, "cloudevent"),
        ("too_deep", f"JSON may be nested {limits.JSON_DEPTH_MAX} levels deep"),
    ),
}


@pytest.mark.parametrize(("limit", "door"), [(name, door) for name, (_, names, _) in BROKEN.items() for door in names])
def test_an_event_beyond_a_limit_is_refused_alike_at_every_door(limit: str, door: str, doors: Doors) -> None:
    event, _, expected = BROKEN[limit]
    ask: Callable[[dict[str, Any]], Answer] = getattr(doors, door)
    assert ask(event) == expected


@pytest.mark.parametrize("door", ALL)
def test_a_kind_of_identifiers_beyond_its_limit_is_refused_alike_at_every_door(door: str, doors: Doors) -> None:
    ask: Callable[[dict[str, Any]], Answer] = getattr(doors, door)
    form = f"up to {limits.IDENTIFIER_KIND_LENGTH_MAX} printable characters without a colon"
    shown = "k" * limits.IDENTIFIER_KIND_LENGTH_MAX
    expected = ("invalid_identifier", f"{shown!r} is not an identifier kind: {form}")
    assert ask({"identifiers": {f"{shown}k": "1"}}) == expected


@pytest.mark.parametrize("limit", [limit for limit, (_, doors, _) in BROKEN.items() if "native" in doors])
def test_an_event_beyond_a_limit_is_refused_alike_on_the_command_line(limit: str, store: Path, call: Any) -> None:
    broken, _, (code, message) = BROKEN[limit]
    event = {"type": "t", "identifiers": {"user_id": "1"}, "key": "k", **broken}
    answer = call("record", "--json", "--events", json.dumps([event]))
    assert answer.code == 1
    (receipt,) = json.loads(answer.out)["receipts"]
    assert (receipt["code"], receipt["message"]) == (code, message)


def test_more_events_than_one_request_may_hold_are_refused_alike_in_every_form(doors: Doors) -> None:
    many = limits.BATCH_EVENTS_MAX + 1
    message = f"a request holds at most {limits.BATCH_EVENTS_MAX:,} events, and nothing of this one was taken"
    events = {"events": [{"type": "t", "identifiers": {"user_id": "1"}, "key": "k"}] * many}
    segment = {"batch": [{"type": "track", "event": "t", "userId": "1", "messageId": "k"}] * many}
    cloud = [{"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "subject": "user_id:1"}] * many
    for path, body, kind in (
        ("/v1/events", events, "application/json"),
        ("/v1/batch", segment, "application/json"),
        ("/v1/cloudevents", cloud, "application/cloudevents-batch+json"),
    ):
        headers = {**doors.keys.bearer("writer"), "content-type": kind}
        answer = doors.client.post(path, content=json.dumps(body), headers=headers)
        assert (answer.status_code, answer.json()["code"], answer.json()["detail"]) == (413, "limit_exceeded", message)


def test_a_row_with_a_type_beyond_its_limit_is_refused_as_any_event_is(doors: Doors, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(import_stage.csv_text([import_stage.row(1) | {"order": "x" * 500}]))
    summary = import_file(doors.engine, import_stage.plan(path, type={"column": "order"}))
    assert [(each.code, each.message) for each in summary.problems] == [BROKEN["type"][2]]
