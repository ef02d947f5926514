"""The rejected log over HTTP: what it keeps of a request, and what becomes of it when it is re-submitted."""

from __future__ import annotations

from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.testclient import TestClient

from tests.surfaces.conftest import Keys
from threadline.engine.engine import Engine
from threadline.kernel.event import Event


def basic(secret: str) -> dict[str, str]:
    return {"Authorization": f"Basic {b64encode(f'{secret}:'.encode()).decode()}"}


def entries(client: TestClient, keys: Keys, **params: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/v1/rejected", params=params, headers=keys.bearer("read")).json()[
        "entries"
    ]
    return found


def resubmit(client: TestClient, keys: Keys, entry: dict[str, Any], **correction: Any) -> Any:
    return client.post(f"/v1/rejected/{entry['id']}/resubmit", json=correction, headers=keys.bearer("admin"))


def recorded(engine: Engine) -> list[Event]:
    return [engine.of_entry(each.entry).event for each in engine.feed()]


def test_a_message_without_an_id_is_recorded_once_however_many_put_it_right(
    client: TestClient, keys: Keys, engine: Engine
) -> None:
    client.post("/v1/track", json={"userId": "1", "properties": {"total": 10}}, headers=basic(keys.write))
    (entry,) = entries(client, keys)
    corrected = {**entry["payload"], "event": "Order Completed"}
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda _: resubmit(client, keys, entry, payload=corrected).status_code, range(8)))
    assert sorted(said) == [200] + [409] * 7
    (event,) = recorded(engine)
    assert (event.type, event.key) == ("purchase_completed", f"resubmitted/{entry['id']}")
