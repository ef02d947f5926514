"""An engine in memory with a clock that stands still, its HTTP application, and keys for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from starlette.testclient import TestClient

from threadline.app import open_engine
from threadline.engine.engine import Engine
from threadline.kernel.time import parse_time
from threadline.settings import Settings
from threadline.surfaces.http.server.application import Application

NOW = parse_time("2026-03-01T12:00:00Z")


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


class Keys(NamedTuple):
    """Secrets of the workspace `default`, and an admin of another one."""

    write: str
    read: str
    writer: str
    admin: str
    stranger: str

    def bearer(self, name: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {getattr(self, name)}"}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def engine(clock: Clock) -> Iterator[Engine]:
    made = open_engine("memory:", Settings(), clock)
    yield made
    made.close()


@pytest.fixture
def keys(engine: Engine) -> Keys:
    return keys_of(engine)


def keys_of(engine: Engine) -> Keys:
    """Keys of every kind, made in this engine."""
    create = engine.credentials.create
    return Keys(
        write=create("default", "write_key", "shop")[1],
        read=create("default", "token", "reader", ["read"])[1],
        writer=create("default", "token", "writer", ["write"])[1],
        admin=create("default", "token", "admin", ["admin"])[1],
        stranger=create("other", "token", "stranger", ["admin"])[1],
    )


def client_of(engine: Engine, settings: Settings | None = None) -> TestClient:
    """A client of an application that logs nothing. A fault of ours is answered with 500 and not raised."""
    application = Application(engine, settings or Settings(access_log=False))
    return TestClient(application, raise_server_exceptions=False)


@pytest.fixture
def client(engine: Engine) -> Iterator[TestClient]:
    with client_of(engine) as made:
        yield made
