"""`threadline.Client` and `AsyncClient` against a real server, over a network that breaks."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import threadline
from tests.clients.network import LOSE, PASS, REFUSE, RESET, Network
from tests.clients.server import Server
from threadline import AsyncClient, Client
from threadline.kernel.errors import InvalidSetting, InvalidValue, NotFound, Unauthorized, Unavailable
from threadline.surfaces.python.call import call_of
from threadline.surfaces.python.exchange import PAUSE_SECONDS_MAX, Lost, Response, pause
from threadline.surfaces.python.methods import built_in
from threadline.surfaces.python.operations import Operations

ORDER = {"total": 29.33, "currency": "EUR"}
CALLS = {operation.name: call_of(operation) for operation in built_in()}
FATES = ([REFUSE], [LOSE], [RESET], [REFUSE, LOSE, RESET])


@pytest.fixture
def shop(network: Network, server: Server) -> Iterator[Client]:
    with Client(network.url, server.token) as made:
        yield made


@pytest.fixture
def direct(server: Server) -> Iterator[Client]:
    with Client(server.url, server.token) as made:
        yield made


def somebody() -> str:
    return f"somebody/{secrets.token_hex(4)} ü"


def test_an_answer_over_http_is_the_answer_of_a_store_in_this_process(direct: Client) -> None:
    who, at = somebody(), datetime(2026, 3, 1, 12, tzinfo=UTC)

    def told(on: Any) -> list[Any]:
        assert on.track(who, "Order Completed", ORDER, occurred_at=at, key=f"{who} 1").status == "accepted"
        assert on.identify(who, {"plan": "pro"}, occurred_at=at + timedelta(seconds=1), key=f"{who} 2").code == ""
        assert isinstance(on, Operations)
        page = on.events.of(who, order="asc", types=["purchase_completed", "identify"], stop=datetime.now(UTC))
        return [
            [(event.type, event.properties, event.occurred_at) for event in page.events],
            on.person(who).traits,
            on.features.of(who, names="monetary_total", as_of=datetime.now(UTC)).features["monetary_total"].value,
            on.people.list(identifier=who, limit=3).people[0].identifiers,
            on.memory.variables(who, variables=["a.b.c", "purchase.x.y"]).missing,
        ]

    with threadline.open("memory:") as store:
        assert told(direct) == told(store)


@pytest.mark.parametrize("fates", FATES)
def test_an_event_is_recorded_once_over_a_network_that_breaks(shop: Client, network: Network, fates: list[str]) -> None:
    who = somebody()
    network.plan(fates)
    (receipt,) = shop.record([{"type": "click", "identifiers": {"user_id": who}, "occurred_at": datetime.now(UTC)}])
    assert receipt.status in ("accepted", "duplicate")
    assert [taken.fate for taken in network.taken] == [*fates, PASS]
    assert len({taken.body for taken in network.taken}) == 1


@pytest.mark.parametrize("fates", FATES)
def test_a_change_is_made_once_over_a_network_that_breaks(
    shop: Client, direct: Client, network: Network, fates: list[str]
) -> None:
    who = somebody()
    direct.track(who, "click")
    network.plan(fates)
    shop.people.tag(who, add=["vip"])
    assert len({taken.headers["idempotency-key"] for taken in network.taken}) == 1
    assert [event.type for event in direct.events.of(who, type="tag_added").events] == ["tag_added"]
    shop.people.tag(who, remove=["vip"])
    shop.people.tag(who, add=["vip"])
    assert len(direct.events.of(who, type="tag_added").events) == 2


def test_what_two_requests_would_do_twice_is_not_sent_again_if_it_may_have_arrived(
    shop: Client, direct: Client, network: Network
) -> None:
    name = somebody()
    network.plan([LOSE])
    with pytest.raises(Unavailable, match="does not answer"):
        shop.keys.create(name=name)
    assert [each.name for each in direct.keys.list().keys].count(name) == 1
    network.plan([REFUSE])
    shop.keys.create(name=name)
    assert [each.name for each in direct.keys.list().keys].count(name) == 2


def test_errors_are_those_of_a_store_in_this_process(direct: Client, server: Server) -> None:
    with pytest.raises(NotFound, match="nobody is known as 'nobody'") as caught:
        direct.person("nobody")
    assert (caught.value.code, caught.value.status) == ("not_found", 404)
    assert "others have their kind first" in caught.value.hint
    with pytest.raises(InvalidValue, match="limit: expected `int` >= 1"):
        direct.events.feed(limit=0)
    with Client(server.url, "tl_none") as stranger, pytest.raises(Unauthorized):
        stranger.person("ada")


def test_without_a_server_the_error_names_what_can_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        Client("http://127.0.0.1:1", attempts=2) as nowhere,
        pytest.raises(Unavailable, match="does not answer") as told,
    ):
        nowhere.person("ada")
    assert "threadline serve" in told.value.hint
    monkeypatch.delenv("THREADLINE_URL", raising=False)
    for url in ("", "localhost:8000", "shop.db"):
        with pytest.raises(InvalidSetting, match="not the address of a server"):
            Client(url)


def test_the_asynchronous_client_answers_the_same_at_once(server: Server, network: Network) -> None:
    people = [somebody() for _ in range(5)]

    async def main() -> list[int]:
        async with AsyncClient(network.url, server.token) as shop:
            network.plan([REFUSE, LOSE, RESET])
            await asyncio.gather(*(shop.track(who, "click", key=who) for who in people))
        async with AsyncClient(server.url, server.token) as shop:
            with pytest.raises(NotFound):
                await shop.person("nobody")
            return [(await shop.person(who)).position for who in people]

    assert asyncio.run(main()) == [1] * 5


@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.sampled_from((200, 404, 429, 500, 503)),
    st.integers(0, 99),
    st.booleans(),
)
def test_it_waits_at_least_as_long_as_the_server_asks_and_never_for_what_waiting_does_not_help(
    attempt: int, attempts: int, status: int, seconds: int, sent: bool
) -> None:
    waited = pause(CALLS["person"], attempt, attempts, Response(status, {"retry-after": str(seconds)}, b""))
    assert (waited is not None) == (status in (429, 503) and attempt < attempts)
    if waited is not None:
        assert min(seconds, PAUSE_SECONDS_MAX) <= waited <= min(seconds, PAUSE_SECONDS_MAX) + PAUSE_SECONDS_MAX
    for call in (CALLS["person"], CALLS["keys_create"]):
        waited = pause(call, attempt, attempts, Lost("reset", sent))
        assert (waited is not None) == (attempt < attempts and (call.repeatable or not sent))
