"""Nobody waits for a store that somebody else waits for: what the event loop must know is read beside it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.surfaces.conftest import Clock, Keys
from threadline.engine.credentials import CREDENTIAL
from threadline.engine.engine import Engine
from threadline.kernel.store import Item, Key, Store
from threadline.kernel.time import MINUTE
from threadline.settings import Settings
from threadline.surfaces.http.callers.access import SECRETS_MAX
from threadline.surfaces.http.server.application import Application
from threadline.wire import segment


class HeldStore:
    """A store that answers nothing about credentials, and tells no sizes, until it is let go."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.gate = threading.Event()
        self.begun = threading.Event()
        self.asked: list[int] = []
        """The threads that have asked."""

    def hold(self) -> None:
        """Answer no more, and forget who has asked."""
        self.gate.clear()
        self.begun.clear()
        self.asked.clear()

    def get(self, keys: Sequence[Key]) -> list[Item | None]:
        """As the store, in the end."""
        if any(key.table == CREDENTIAL for key in keys):
            self._wait()
        return self.store.get(keys)

    def stats(self) -> dict[str, int]:
        """As the store, in the end."""
        self._wait()
        return self.store.stats()

    def _wait(self) -> None:
        self.asked.append(threading.get_ident())
        self.begun.set()
        assert self.gate.wait(60)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


@pytest.fixture
def held(engine: Engine, keys: Keys) -> HeldStore:
    held = HeldStore(engine.store)
    engine.store = engine.credentials.store = held  # type: ignore[assignment]  # it answers what a store does
    return held


@asynccontextmanager
async def serving(engine: Engine) -> AsyncIterator[httpx.AsyncClient]:
    application = Application(engine, Settings(access_log=False))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=application), base_url="http://test") as client:
        yield client
    await application.close()


async def beside(held: HeldStore, client: httpx.AsyncClient, *asking: Any) -> list[httpx.Response]:
    """The answers of these requests, which wait for the store, after another one was answered meanwhile."""
    tasks = [asyncio.create_task(each) for each in asking]
    assert await asyncio.to_thread(held.begun.wait, 60)
    alive = await asyncio.wait_for(client.get("/livez"), 60)
    assert alive.status_code == 200
    assert not any(task.done() for task in tasks)
    held.gate.set()
    return await asyncio.gather(*tasks)


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


def test_keys_that_are_guessed_keep_nobody_waiting(engine: Engine, held: HeldStore) -> None:
    async def run() -> None:
        async with serving(engine) as client:
            guesses = [client.get("/v1/features", headers=bearer(f"guess{n}")) for n in range(5)]
            guesses += [client.post("/v1/track", json={}, headers=bearer(f"guess{n}")) for n in range(5)]
            guesses += [client.post("/v1/cloudevents", json={}, headers=bearer(f"guess{n}")) for n in range(5)]
            answers = await beside(held, client, *guesses)
            assert {each.status_code for each in answers} == {401}

    asyncio.run(run())


def test_a_key_is_looked_up_beside_the_loop_and_then_known_without_another_thread(
    engine: Engine, held: HeldStore, keys: Keys, clock: Clock
) -> None:
    async def run() -> None:
        async with serving(engine) as client:
            for _ in range(2):  # new, and known but too long ago
                [found] = await beside(held, client, client.get("/v1/features", headers=keys.bearer("read")))
                assert found.status_code == 200
                assert held.asked
                assert threading.get_ident() not in held.asked
                held.asked.clear()
                await client.get("/v1/features", headers=keys.bearer("read"))
                assert not held.asked, "what is known costs no read"
                held.hold()
                clock.now += MINUTE

    asyncio.run(run())


def test_counting_a_store_keeps_nobody_waiting(engine: Engine, held: HeldStore, keys: Keys) -> None:
    async def run() -> None:
        async with serving(engine) as client:
            held.gate.set()
            await client.get("/v1/keys", headers=keys.bearer("admin"))
            held.hold()
            [page] = await beside(held, client, client.get("/metrics", headers=keys.bearer("admin")))
            assert page.status_code == 200

    asyncio.run(run())


def test_one_request_has_only_so_many_secrets_looked_up(engine: Engine, held: HeldStore) -> None:
    held.gate.set()

    async def run() -> None:
        async with serving(engine) as client:
            query = "&".join(f"access_token=guess{n}" for n in range(100))
            answer = await client.post(f"/v1/cloudevents?{query}", json={})
            assert answer.status_code == 401
        assert len(held.asked) == SECRETS_MAX

    asyncio.run(run())


@pytest.mark.parametrize(("number", "aside"), [(10, False), (2_000, True)])
def test_very_many_messages_are_decoded_beside_the_loop_however_short(
    number: int, aside: bool, engine: Engine, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoding: list[int] = []
    decode = segment.decode

    def noted(*given: Any, **named: Any) -> Any:
        decoding.append(threading.get_ident())
        return decode(*given, **named)

    monkeypatch.setattr(segment, "decode", noted)

    async def run() -> None:
        async with serving(engine) as client:
            body = b'{"batch":[' + b",".join([b"1"] * number) + b"]}"
            told = (await client.post("/v1/batch", content=body, headers=bearer(keys.write))).json()
            assert len(told["rejected"]) == number
            assert [each != threading.get_ident() for each in decoding] == [aside]

    asyncio.run(run())
