"""GraphQL: the answers of HTTP in another form, who may ask what, and what is too much to ask."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from graphql import get_introspection_query
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tests.surfaces.appaction_stage import as_user, settings, ux
from tests.surfaces.conftest import NOW, Clock, Keys, client_of, keys_of
from tests.surfaces.operations_stage import PROBLEM
from threadline.app import open_engine
from threadline.engine.engine import Engine
from threadline.kernel import limits
from threadline.kernel.applied import Filling, IndexPart
from threadline.kernel.event import Event, Identifier
from threadline.kernel.operation import Operation
from threadline.kernel.store import Key
from threadline.settings import Settings
from threadline.surfaces.graphql.schema import OF_PERSON, OF_ROOT
from threadline.surfaces.operation_calls import shown

__all__ = ["ux"]

PATH = "/graphql"
GRAPHQL_JSON = "application/graphql-response+json"
DEFINITIONS = """
segments: {spenders: {when: {field: features.monetary_total, greater_than: 5}}}
streaks: {daily: {events: [purchase_completed]}}
points: {tables: [{version: 2, from: 2000-01-01T00:00:00Z, earn: {purchase_completed: 5}}]}
leaderboards: {best: {score: points.earned, periods: [all]}}
"""
PEOPLE = 30


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def engine(clock: Clock, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """People of whom much is known."""
    file = tmp_path_factory.mktemp("graphql") / "threadline.yaml"
    file.write_text(DEFINITIONS)
    made = open_engine("memory:", Settings(definitions=str(file)), clock)
    for number in range(PEOPLE):
        who = (Identifier("user_id", f"u{number}"),)
        for key, (type, properties) in enumerate(
            [
                ("purchase_completed", {"total": 10, "currency": "EUR"}),
                ("tag_added", {"tag": "vip"}),
                ("identify", {"plan": "pro", "nested": {"a": [1, None, 2**60]}}),
                ("app_action", {"topic": "Article", "scopes": [{"topic": "category", "value": "A"}]}),
                ("interest_detected", {"topic": "shoes"}),
            ]
        ):
            event = Event(
                type=type,
                identifiers=who,
                occurred_at=NOW - 100 + key,
                key=f"{number}/{key}",
                source="shop",
                properties=properties,
            )
            assert made.recorder.record([event])[0].status == "accepted"
    clock.now += 1_000_000
    yield made
    made.close()


@pytest.fixture(scope="module")
def keys(engine: Engine) -> Keys:
    return keys_of(engine)


@pytest.fixture(scope="module")
def client(engine: Engine) -> Iterator[TestClient]:
    with client_of(engine) as made:
        yield made


@pytest.fixture
def alert(client: TestClient, keys: Keys, clock: Clock) -> None:
    client.post("/v1/alerts/sale", json={"title": "A sale"}, headers=keys.bearer("admin"))
    clock.now += 1


def ask(client: TestClient, headers: dict[str, str], query: str, **variables: Any) -> dict[str, Any]:
    answer = client.post(PATH, json={"query": query, "variables": variables}, headers=headers)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def data(client: TestClient, keys: Keys, query: str, **variables: Any) -> Any:
    told = ask(client, keys.bearer("read"), query, **variables)
    assert "errors" not in told, told
    return told["data"]


# --- one truth ---------------------------------------------------------------------------------


OMITTED = {"why": "live"}
"""What HTTP leaves out of an event where it is so, and is not empty."""


class Shape:
    """The types of the schema, as it describes itself: what to select of each, and how HTTP has the same."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.types = {each["name"]: each for each in schema["types"]}

    def fields(self, name: str) -> dict[str, Any]:
        return {each["name"]: each for each in self.types[name]["fields"] or []}

    def selection(self, name: str) -> str:
        """All of a type, but for people, of whom the id is enough."""
        if name == "Person":
            return "{ id }"
        inner = [f"{field} {self.selection(named(each['type'])[0])}" for field, each in self.fields(name).items()]
        return "{ " + " ".join(inner) + " }" if inner else ""

    def of_http(self, name: str, is_list: bool, value: Any) -> Any:
        """What HTTP says, as GraphQL has to say it."""
        if name == "Person" and not is_list:
            return {"id": value} if value else None
        if value is None or not self.fields(name):
            return value
        if is_list and isinstance(value, dict):
            value = [{"name": key, **each} for key, each in value.items()]
        if is_list:
            return [{"id": each["id"]} if name == "Person" else self.of_http(name, False, each) for each in value]
        return {
            field: self.of_http(
                *named(each["type"]),
                value[snake(field)] if snake(field) in value else OMITTED.get(field, default(each["type"])),
            )
            for field, each in self.fields(name).items()
        }


def named(type: dict[str, Any]) -> tuple[str, bool]:
    is_list = False
    while type["ofType"]:
        is_list = is_list or type["kind"] == "LIST"
        type = type["ofType"]
    return type["name"], is_list


LEFT_OUT = {"String": "", "Boolean": False, "JSON": {}}
"""What a value is that HTTP leaves out, by its type."""


def default(type: dict[str, Any]) -> Any:
    inner = type["ofType"] if type["kind"] == "NON_NULL" else None
    return None if inner is None else [] if inner["kind"] == "LIST" else LEFT_OUT.get(inner["name"])


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name)


@pytest.fixture
def shape(client: TestClient, keys: Keys) -> Shape:
    return Shape(data(client, keys, get_introspection_query())["__schema"])


def over_http(client: TestClient, keys: Keys, operation: Operation, **params: Any) -> Any:
    path = operation.path
    for name in [part[1:-1] for part in path.split("/") if part.startswith("{")]:
        path = path.replace(f"{{{name}}}", params.pop(name))
    answer = client.get(path, params=params, headers=keys.bearer("read"))
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.usefixtures("alert")
@pytest.mark.parametrize("name", OF_PERSON)
def test_a_field_of_a_person_says_what_its_operation_says_over_http(
    client: TestClient, keys: Keys, engine: Engine, shape: Shape, name: str
) -> None:
    field = OF_PERSON[name]
    operation = shown(engine.catalogue.operations, "http")[field.operation]
    kind, is_list = named(shape.fields("Person")[name]["type"])
    found = data(client, keys, f'{{ person(id: "u1") {{ {name} {shape.selection(kind)} }} }}')["person"][name]
    told = over_http(client, keys, operation, id="u1")
    assert found == shape.of_http(kind, is_list, told[field.member] if field.member else told)
    assert found, "a comparison of nothing with nothing proves nothing"


@pytest.mark.parametrize("name", OF_ROOT)
def test_a_field_of_the_root_says_what_its_operation_says_over_http(
    client: TestClient, keys: Keys, engine: Engine, shape: Shape, name: str
) -> None:
    field = OF_ROOT[name]
    event = engine.reader.events(engine.reader.person("default", "u1"), limit=1)[0].id
    params = {"event": {"id": event}, "segment_members": {"name": "spenders"}, "leaderboard": {"name": "best"}}.get(
        name, {}
    )
    operation = shown(engine.catalogue.operations, "http")[field.operation]
    camel = re.sub("_(.)", lambda found: found[1].upper(), name)
    kind, is_list = named(shape.fields("Query")[camel]["type"])
    arguments = "(" + ", ".join(f"{key}: {json.dumps(value)}" for key, value in params.items()) + ")" if params else ""
    found = data(client, keys, f"{{ {camel}{arguments} {shape.selection(kind)} }}")[camel]
    told = over_http(client, keys, operation, **params)
    assert found == shape.of_http(kind, is_list, told[field.member] if field.member else told)
    assert found


def test_a_person_says_what_http_says_now_and_as_of_an_instant(client: TestClient, keys: Keys, shape: Shape) -> None:
    fields = [each for each in shape.fields("Person") if each not in OF_PERSON]
    selection = " ".join(f"{each} {shape.selection(named(shape.fields('Person')[each]['type'])[0])}" for each in fields)
    for arguments, params in (
        ("", {}),
        (', asOf: "2026-03-01T11:59:59.999902Z"', {"as_of": "2026-03-01T11:59:59.999902Z"}),
    ):
        found = data(client, keys, f'{{ person(id: "u1"{arguments}) {{ {selection} }} }}')["person"]
        told = client.get("/v1/people/u1", params=params, headers=keys.bearer("read")).json()
        assert found == {
            each: shape.of_http(*named(shape.fields("Person")[each]["type"]), told[snake(each)]) for each in fields
        }


def test_what_is_asked_as_of_an_instant_is_so_for_all_that_is_below(client: TestClient, keys: Keys) -> None:
    query = '{ person(id: "u1", asOf: "2026-03-01T00:00:00Z") { tags segments { member } } }'
    assert data(client, keys, query)["person"] == {"tags": [], "segments": [{"member": False}]}
    query = '{ person(id: "u1") { segments(asOf: "2026-03-01T12:00:00.5Z") { member } now: segments { member } } }'
    assert data(client, keys, query)["person"] == {"segments": [{"member": True}], "now": [{"member": True}]}


# --- who may ask ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "status"), [("write", 403), ("writer", 403), ("read", 200), ("admin", 200)])
def test_asking_takes_the_scope_read(client: TestClient, keys: Keys, key: str, status: int) -> None:
    answer = client.post(PATH, json={"query": "{__typename}"}, headers=keys.bearer(key))
    assert answer.status_code == status
    assert status == 200 or answer.headers["content-type"] == PROBLEM


def test_nobody_asks_without_a_token_or_about_another_workspace(client: TestClient, keys: Keys) -> None:
    assert client.post(PATH, json={"query": "{__typename}"}).status_code == 401
    told = ask(client, keys.bearer("stranger"), '{ person(id: "u1") { tags } people { people { id } } }')
    assert told["data"] == {"person": None, "people": {"people": []}}
    id = ask(client, keys.bearer("read"), '{ person(id: "u1") { id } }')["data"]["person"]["id"]
    other = ask(client, keys.bearer("stranger"), "query ($id: String!) { person(id: $id) { id } }", id=id)
    assert other["data"] == {"person": None}


@pytest.mark.usefixtures("alert")
def test_a_web_token_reads_the_alerts_of_its_user_and_nothing_else(ux: TestClient, clock: Clock) -> None:
    for user in ("u1", "unknown"):
        assert ask(ux, as_user(clock, user), "{ alerts { id } }")["data"] == {"alerts": [{"id": "sale"}]}
    told = ask(
        ux,
        as_user(clock),
        '{ alerts(person: "u1") { id } person(id: "u1") { tags } people { next } segments { name } }',
    )
    assert told["data"] == {"alerts": None, "person": None, "people": None, "segments": None}
    assert [each["extensions"]["code"] for each in told["errors"]] == ["invalid_value", *["forbidden"] * 3]
    expired = ux.post(PATH, json={"query": "{ alerts { id } }"}, headers=as_user(clock, exp=0))
    assert expired.status_code == 401
    assert ux.options(PATH).headers["access-control-allow-origin"] == "*"


def test_a_token_of_the_settings_may_look_like_a_web_token(clock: Clock) -> None:
    engine = open_engine("memory:", Settings(tokens="ops=one.two.three"), clock)
    with client_of(engine, settings()) as made:
        for token, status in (("one.two.three", 200), ("one.two.four", 401)):
            headers = {"Authorization": f"Bearer {token}"}
            assert made.post(PATH, json={"query": "{ segments { name } }"}, headers=headers).status_code == status
    engine.close()


def test_a_token_says_whose_alerts(client: TestClient, keys: Keys) -> None:
    told = ask(client, keys.bearer("read"), "{ alerts { id } }")
    assert told["errors"][0]["extensions"] == {"code": "invalid_value", "status": 400, "param": "person"}


# --- kept answers and documents ------------------------------------------------------------------


@pytest.mark.usefixtures("alert")
def test_an_answer_by_get_is_kept_until_it_would_be_another_one(client: TestClient, keys: Keys, clock: Clock) -> None:
    params = {"query": "query ($p: String) { alerts(person: $p) { id title } }", "variables": '{"p": "u1"}'}
    first = client.get(PATH, params=params, headers=keys.bearer("read"))
    assert first.json() == {"data": {"alerts": [{"id": "sale", "title": "A sale"}]}}
    known = {**keys.bearer("read"), "If-None-Match": first.headers["etag"]}
    assert client.get(PATH, params=params, headers=known).status_code == 304
    client.post("/v1/alerts/sale", json={"title": "Changed"}, headers=keys.bearer("admin"))
    clock.now += 1
    assert client.get(PATH, params=params, headers=known).json()["data"]["alerts"][0]["title"] == "Changed"
    wrong = client.get(PATH, params={"query": '{ person(id: "nobody") { id } }'}, headers=keys.bearer("read"))
    assert (wrong.status_code, wrong.headers["cache-control"], "etag" in wrong.headers) == (200, "no-store", False)


def test_a_persisted_query_is_known_by_its_hash_once_it_was_sent(client: TestClient, keys: Keys) -> None:
    query = '{ person(id: "u1") { tags } }'
    sha256 = hashlib.sha256(query.encode()).hexdigest()
    named = {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": sha256}}}

    def told(**more: Any) -> Any:
        return client.post(PATH, json={**named, **more}, headers=keys.bearer("read")).json()

    assert told()["errors"][0] == {
        "message": "PersistedQueryNotFound",
        "extensions": {"code": "PERSISTED_QUERY_NOT_FOUND"},
    }
    assert "not that of the query" in told(query="{ __typename }")["errors"][0]["message"]
    assert told(query=query) == told() == {"data": {"person": {"tags": ["vip"]}}}


# --- what is too much ----------------------------------------------------------------------------

FRAGMENTS = " ".join(f"fragment F{n} on Query {{ ...F{n + 1} ...F{n + 1} }}" for n in range(20))
HOSTILE = {
    "aliases": "{" + " ".join(f"a{n}: __typename" for n in range(1000)) + "}",
    "one field a thousand times": "{" + "__typename " * 1000 + "}",
    "tokens": "{" + "a " * 3000 + "}",
    "depth": '{ person(id: "u1")' + "{ events { events { person" * 5 + "{ id }" + "} } }" * 5 + "}",
    "braces": "{" * 5000,
    "brackets": "{ person(id: " + "[" * 900 + "]" * 900 + ") { id } }",
    "a fragment that spreads itself": "{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }",
    "fragments that double": "{ ...F0 } " + FRAGMENTS + " fragment F20 on Query { __typename }",
    "a fragment that nothing spreads": "{ __typename } fragment A on Query {" + " a" * 900 + "}",
    "inline fragments": "{" + "... {" * 450 + "__typename" + "}" * 450 + "}",
    "pages of pages": "{ people(limit: 1000) { people { events { events { type } } } } }",
    "a page that a variable makes large": "query ($n: Int = 2000) { people(limit: $n) { people { tags } } }",
    "circles of the schema": "{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }",
    "an integer of thousands of digits": "{ people(limit: " + "9" * 6000 + ") { next } }",
    "a long text": '{ person(id: "' + "x" * 60_000 + '") { id } }',
    "a name": "{" + "x" * 60_000 + "}",
    "directives": "{ __typename " + "@skip(if: false) " * 300 + "}",
    "surrogates": '{ person(id: "\\ud800") { id } }',
    "NUL": '{ person(id: "\\u0000") { id } }',
    "a mutation": "mutation { a }",
    "a subscription": "subscription { a }",
    "nothing to run": "fragment A on Query { __typename }",
    "two operations": "query A { __typename } query B { __typename }",
    "comments": "#" * 60_000,
    "no schema of this": "{ nothing }",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_document_is_refused_in_a_few_words(client: TestClient, keys: Keys, kind: str) -> None:
    body = {"query": HOSTILE[kind]}
    answer = client.post(PATH, json=body, headers={**keys.bearer("read"), "Accept": GRAPHQL_JSON})
    assert answer.status_code in (200, 400)
    told = answer.json()
    assert told["errors"]
    assert (answer.status_code == 400) == ("data" not in told)
    assert all(len(each["message"]) <= 500 for each in told["errors"])
    assert not any(each.get("extensions", {}).get("code") == "internal" for each in told["errors"]), told


GOOD = (
    (
        "query A($n: Int = 5, $t: String) { people(limit: $n, tag: $t) { people { id tags ...F } next } } "
        'fragment F on Person { traits features(names: "monetary_total") { name value } events(limit: 2) '
        "{ events { type person { id } } } }"
    ),
    (
        '{ person(id: "u1", asOf: "2026-03-01T12:00:01Z") { id points { balance days { day } } memory { key } '
        'alerts(severity: "info") { id } } alerts(person: "u2", at: "2030-01-01T00:00:00Z") { title } event(id: "x") '
        '{ id } segments { name } segmentMembers(name: "spenders") { members { person { id } } } }'
    ),
)
PIECES = (
    "{", "}", "(", ")", "...", "$n", '"x"', "-1", "1e400", "[", "]", "null", "@skip(if: true)", "fragment", "on",
    "query", "mutation", "Person", "__typename", "people", "limit:", "99999999999", '"""a"""', "{ f: 1 }",
    "... on Query { segments { name } }", "#",
)  # fmt: skip
VALUES = (1, None, 2**70, -3, "x", [1], {"a": 1}, True, 3.5, 10.0, "\x00")


@given(seed=st.integers(0, 2**32))
def test_no_document_whatever_is_a_fault_of_the_server(client: TestClient, keys: Keys, seed: int) -> None:
    random = Random(seed)
    pieces = re.findall(r'"[^"]*"|\.\.\.|[\w$]+|[^\s\w]', random.choice(GOOD))
    for _ in range(random.randrange(4)):
        at = random.randrange(len(pieces) + 1)
        pieces[at : at + random.randrange(3)] = random.sample([*PIECES, *pieces], random.randrange(3))
    body = {"query": " ".join(pieces), "variables": {name: random.choice(VALUES) for name in "nt"}}
    answer = client.post(PATH, json=body, headers={**keys.bearer("read"), "Accept": GRAPHQL_JSON})
    assert answer.status_code in (200, 400)
    assert not any(each.get("extensions", {}).get("status") == 500 for each in answer.json().get("errors", ())), body


def test_a_document_within_the_limits_is_answered(client: TestClient, keys: Keys) -> None:
    fields = " ".join(f"a{n}: __typename" for n in range(limits.GRAPHQL_FIELDS_MAX))
    assert len(data(client, keys, f"{{ {fields} }}")) == limits.GRAPHQL_FIELDS_MAX
    assert ask(client, keys.bearer("read"), f"{{ {fields} b: __typename }}")["errors"]
    # 1 for the page, and for each of 499 people 2: what is known of them, and their segments.
    page = "{ people(limit: %d) { people { tags segments { member } } } }"
    assert len(data(client, keys, page % 333)["people"]["people"]) == PEOPLE
    assert "1000 operations" in ask(client, keys.bearer("read"), page % 500)["errors"][0]["message"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"{}", 400),
        (b'{"query": 1}', 400),
        (b'{"query": ""}', 400),
        (b'{"query": "{a}", "variables": []}', 400),
        (b'{"query": "{a}", "operationName": 1}', 400),
        (b'{"query": "{a}", "extensions": "x"}', 400),
        (b'{"query": "{a}", "more": 1}', 400),
        (b'{"query": "' + b"x" * 70_000 + b'"}', 413),
        (b'{"variables": ' + b"[" * 100 + b"]" * 100 + b"}", 400),
    ],
)
def test_what_is_no_request_of_graphql_is_a_problem(client: TestClient, keys: Keys, body: bytes, status: int) -> None:
    headers = {**keys.bearer("read"), "Content-Type": "application/json"}
    answer = client.post(PATH, content=body, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)


# --- how it is run -------------------------------------------------------------------------------


def test_people_who_are_asked_for_together_are_read_together(
    client: TestClient, keys: Keys, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = '{ segmentMembers(name: "spenders", limit: 30) { members { person { tags features { value } } } } }'
    data(client, keys, query)
    reads: list[int] = []
    get = engine.store.get

    def counted(wanted: list[Key]) -> Any:
        reads.append(len(wanted))
        return get(wanted)

    monkeypatch.setattr(engine.store, "get", counted)
    assert len(data(client, keys, query)["segmentMembers"]["members"]) == PEOPLE
    assert len(reads) < PEOPLE / 3, reads


def test_an_operation_that_is_asked_for_twice_runs_once(
    client: TestClient, keys: Keys, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[Any, ...]] = []
    views = type(engine.reader).views

    def counted(self: Any, person: Any, now: int, **how: Any) -> Any:
        ran.append(tuple(how.get("names") or ()))
        return views(self, person, now, **how)

    monkeypatch.setattr(type(engine.reader), "views", counted)
    many = " ".join(f'a{n}: person(id: "u1") {{ tags traits features {{ value }} }}' for n in range(20))
    data(client, keys, f"{{ {many} }}")
    assert sorted(ran) == [(), ("features",)]


def test_a_list_that_is_older_than_the_definitions_says_so(
    client: TestClient, keys: Keys, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    filling = [Filling(IndexPart("segments"), 0.0)]
    monkeypatch.setattr(type(engine.maintenance), "filling", lambda self, parts: filling if parts else [])
    for query, wanted in (('{ segmentMembers(name: "spenders") { next } }', True), ("{ segments { name } }", False)):
        answer = client.post(PATH, json={"query": query}, headers=keys.bearer("read"))
        assert answer.headers.get("threadline-stale", "").startswith("segments; run") == wanted


def test_a_fault_is_told_without_what_is_inside(
    client: TestClient, keys: Keys, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("secret")

    monkeypatch.setattr(type(engine.reader), "person", fail)
    told = ask(client, keys.bearer("read"), '{ person(id: "u1") { tags } segments { name } }')
    assert told["data"] == {"person": None, "segments": [{"name": "spenders"}]}
    assert told["errors"][0]["extensions"] == {"code": "internal", "status": 500}
    assert "secret" not in json.dumps(told)


def test_without_the_extra_it_is_said_what_to_install(
    engine: Engine, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in sys.modules if each.startswith("threadline.surfaces.graphql")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "strawberry", None)
    with client_of(engine) as bare:
        answer = bare.post(PATH, json={"query": "{__typename}"}, headers=keys.bearer("read"))
    assert (answer.status_code, answer.json()["code"]) == (501, "not_installed")
    assert answer.json()["hint"].endswith("pip install '.[graphql]'")


def test_the_schema_is_shown_as_the_setting_says(engine: Engine, keys: Keys) -> None:
    with client_of(engine, settings(graphql_introspection=False)) as closed:
        for query in (get_introspection_query(), "{ ...A } fragment A on Query { __schema { queryType { name } } }"):
            assert "does not show its schema" in ask(closed, keys.bearer("read"), query)["errors"][0]["message"]
        assert ask(closed, keys.bearer("read"), "{ __typename }")["data"] == {"__typename": "Query"}
