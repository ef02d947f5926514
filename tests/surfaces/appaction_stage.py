"""An application that takes actions, and users whose tokens it believes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.surfaces.conftest import Clock, client_of
from tests.surfaces.web_tokens import SECRET, token
from threadline.engine.engine import Engine
from threadline.kernel.time import SECOND
from threadline.settings import Settings

USER, VISITOR, RANKING = "/ux/user/appaction", "/ux/appaction", "/ux/user/actions/gettopicvaluefrequency"
ACTION = {"topic": "Article", "applicationId": "web", "scopes": [{"topic": "category", "value": "A"}]}


def settings(**more: Any) -> Settings:
    return Settings(access_log=False, jwt_secret=SECRET, **more)


@pytest.fixture
def ux(engine: Engine) -> Iterator[TestClient]:
    with client_of(engine, settings()) as made:
        yield made


def as_user(clock: Clock, id: str = "42", **claims: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {token({'sub': id, 'exp': clock.now // SECOND + 60, **claims})}"}


def events(engine: Engine, person: str) -> list[Any]:
    return engine.reader.events(engine.reader.person("default", person), limit=100)
