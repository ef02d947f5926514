"""Law: a misspelt name is refused with the nearest at every door, for every kind of name that a parameter may be of.

Doors are the surfaces that operations say they are shown on, tools for agents and GraphQL; the calls are written by
what the console shows as the same call elsewhere.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import threadline
from tests.surfaces.conftest import client_of, keys_of
from tests.surfaces.mcp.mcp_stage import Agent
from tests.surfaces.test_names_asked import (
    CATALOGUE,
    DEFINITIONS,
    OPERATIONS,
    STORED,
    good_name,
    parameters,
    plain,
    value,
)
from threadline.app import composition, open_engine
from threadline.kernel.errors import ThreadlineError
from threadline.settings import Settings
from threadline.surfaces.cli.program import run
from threadline.surfaces.console.as_call import Call
from threadline.surfaces.graphql.schema import OF_ROOT
from threadline.surfaces.mcp.tools import TOOLS


class Doors:
    """One store with one of everything, and the ways to ask it; each gives what was answered, in words."""

    def __init__(self, folder: Path, capture: Callable[[], tuple[str, str]]) -> None:
        self.capture = capture
        self.file = folder / "shop.db"
        definitions = folder / "shop.yaml"
        definitions.write_text(DEFINITIONS)
        self.settings = {"THREADLINE_DEFINITIONS": str(definitions)}
        with self.shop() as shop:
            shop.track("ada", "record_played")
            shop.people.tag(id="ada", add=[STORED["tag"]])
            shop.broadcasts.create(id=STORED["broadcast"], template="onboarding/welcome")

    def shop(self) -> Any:
        definitions = self.settings["THREADLINE_DEFINITIONS"]
        return threadline.open(self.file, definitions=definitions)

    def served(self) -> tuple[TestClient, Any]:
        engine = open_engine(self.file, Settings(definitions=self.settings["THREADLINE_DEFINITIONS"]))
        return client_of(engine, Settings(access_log=False)), engine

    def python(self, call: Call, name: str) -> str:
        with self.shop() as shop:
            try:
                answer = eval(call.python(), {"shop": shop})  # noqa: S307 — what we have written ourselves
            except ThreadlineError as error:
                return str(error)
        return f"answered {answer}"

    def cli(self, call: Call, name: str) -> str:
        self.capture()
        _, *arguments = shlex.split(call.command())
        code = run(composition, [*arguments, "--file", str(self.file), "--json"])
        assert code != 0
        return "".join(self.capture())

    def http(self, call: Call, name: str) -> str:
        client, engine = self.served()
        url, *_ = [part for part in shlex.split(call.http("http://testserver")) if part.startswith("http://")]
        body = (
            None
            if call.operation.method == "GET"
            else {key: item for key, item in call.values.items() if f"{{{key}}}" not in call.operation.path}
        )
        answer = client.request(call.operation.method, url, headers=keys_of(engine).bearer("admin"), json=body)
        engine.close()
        assert answer.status_code in (400, 404)
        return str(answer.json()["detail"])

    def mcp(self, call: Call, name: str) -> str:
        client, engine = self.served()
        agent = Agent(client, keys_of(engine).bearer("admin"))
        tool, choice, its = tools()[call.operation.name]
        words = {parameter: argument for argument, parameter in its.renamed.items()}
        given = {words.get(key, key): item for key, item in call.values.items() if key not in {*its.fixed, "request"}}
        answer = agent.call(tool.name, **{tool.choice: choice}, **given)
        if token := answer.get("confirm"):
            answer = agent.call("confirm", token=token, tool=tool.name, arguments={tool.choice: choice, **given})
        engine.close()
        return str(answer["error"]["detail"])

    def graphql(self, call: Call, name: str) -> str:
        client, engine = self.served()
        (field,) = [field for field, its in OF_ROOT.items() if its.operation == call.operation.name]
        query = f'{{ {camel(field)}({camel(name)}: "{call.values[name]}") {{ __typename }} }}'
        answer = client.post("/graphql", json={"query": query}, headers=keys_of(engine).bearer("admin")).json()
        engine.close()
        return str(answer["errors"][0]["message"])


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def tools() -> dict[str, Any]:
    """The tool and the choice by which an agent calls an operation, and what the tool makes of the call."""
    return {
        call.operation: (tool, choice, call) for tool in TOOLS for choice, call in tool.all_calls(OPERATIONS).items()
    }


def is_shown(operation: str, param: str, door: str) -> bool:
    if door == "mcp":
        return operation in tools()
    if door == "graphql":
        return any(field.operation == operation and param not in field.left_out for field in OF_ROOT.values())
    return door in OPERATIONS[operation].shown_on


def cases() -> Iterator[Any]:
    """For each door and kind the first operation there that takes a name of the kind."""
    for door in ("http", "cli", "python", "mcp", "graphql"):
        for kind in sorted({kind for _, _, kind in parameters()}):
            taken = [(name, param) for name, param, of in parameters() if of == kind and is_shown(name, param, door)]
            if taken:
                yield pytest.param(door, kind, *taken[0], id=f"{door}-{kind}-{taken[0][0]}")


@pytest.fixture
def doors(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Doors:
    monkeypatch.chdir(tmp_path)
    made = Doors(tmp_path, lambda: tuple(capfd.readouterr()))
    for name, text in made.settings.items():
        monkeypatch.setenv(name, text)
    return made


@pytest.mark.parametrize(("door", "kind", "name", "param"), [*cases()])
def test_a_misspelt_name_is_refused_with_the_nearest_at_every_door(
    doors: Doors, door: str, kind: str, name: str, param: str
) -> None:
    operation, good = OPERATIONS[name], good_name(kind)
    given = plain(operation, {param: value(operation, param, f"{good}q")})
    call = Call(operation, {key: item for key, item in given.items() if item is not None})
    said = CATALOGUE.names.kinds[kind].never or f"there is no {kind}"
    answer = getattr(doors, door)(call, param).replace('\\"', '"')
    assert f"{said} '{good}q'; did you mean '{good}'?" in answer.replace("\\'", "'")


def test_every_kind_of_name_is_tried_at_the_doors_where_all_operations_are() -> None:
    kinds = {kind for _, _, kind in parameters()}
    for door in ("http", "cli", "python"):
        assert {case.values[1] for case in cases() if case.values[0] == door} == kinds
