"""An engine with a few people, and agents of every scope."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.surfaces.conftest import Clock, Keys, client_of, keys_of
from tests.surfaces.mcp.mcp_stage import DEFINITIONS, Agent, fill
from threadline.app import open_engine
from threadline.engine.engine import Engine
from threadline.settings import Settings


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def engine(clock: Clock, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    file = tmp_path_factory.mktemp("mcp") / "threadline.yaml"
    file.write_text(DEFINITIONS)
    made = open_engine("memory:", Settings(definitions=str(file)), clock)
    fill(made)
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


@pytest.fixture(scope="module")
def admin(client: TestClient, keys: Keys) -> Agent:
    return Agent(client, keys.bearer("admin"))


@pytest.fixture(scope="module")
def reader(client: TestClient, keys: Keys) -> Agent:
    return Agent(client, keys.bearer("read"))


@pytest.fixture(scope="module")
def writer(client: TestClient, keys: Keys) -> Agent:
    return Agent(client, keys.bearer("writer"))
