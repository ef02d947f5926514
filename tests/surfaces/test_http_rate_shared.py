"""Rate limits of several servers: one count in Redis, and each for itself when Redis is gone."""

from __future__ import annotations

from base64 import b64encode
from contextlib import ExitStack
from pathlib import Path

from starlette.testclient import TestClient

from tests.servers import redis as servers
from tests.surfaces.conftest import Keys
from threadline.app import open_limits
from threadline.engine.engine import Engine
from threadline.settings import Settings
from threadline.surfaces.http.server.application import Application


def test_servers_count_together_as_long_as_redis_is_there(engine: Engine, keys: Keys, tmp_path: Path) -> None:
    headers = {"Authorization": f"Basic {b64encode(f'{keys.write}:'.encode()).decode()}"}

    def tell(client: TestClient, key: str) -> int:
        message = {"userId": "1", "event": "click", "messageId": key}
        return client.post("/v1/t", json=message, headers=headers).status_code

    with servers.running(tmp_path) as redis, ExitStack() as stack:
        settings = Settings(
            access_log=False,
            source_events_per_second=0.001,
            source_burst_events=4,
            cache=redis.url,
            cache_timeout_seconds=10,
        )
        one, two = (
            stack.enter_context(TestClient(Application(engine, settings, limits=open_limits(settings))))
            for _ in range(2)
        )
        told = [tell(client, f"{name}{number}") for number in range(4) for name, client in (("a", one), ("b", two))]
        assert told == [200] * 4 + [429] * 4
        assert tell(one, "a0") == 200  # a retry of what is recorded costs nothing
        redis.kill()
        # From here on each server knows what it let pass itself: two each.
        alone = [
            tell(client, f"{name}{number}") for number in range(8, 12) for name, client in (("a", one), ("b", two))
        ]
        assert alone == [200] * 4 + [429] * 4


def test_without_a_cache_there_is_nothing_to_share() -> None:
    assert open_limits(Settings()) is None
