"""Public routes are limited by address: each of them, by its own declaration, and nobody else waits for it."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
from starlette.testclient import TestClient

from tests.surfaces.conftest import Keys, client_of
from threadline.engine.engine import Engine
from threadline.kernel.errors import NotFound
from threadline.kernel.ports import Ports
from threadline.kernel.public_route import PublicAnswer, PublicRequest, PublicRoute
from threadline.settings import Settings
from threadline.surfaces.http.addresses.public import PublicLimits
from threadline.surfaces.http.answers.problem import RateLimited


def filled(route: PublicRoute, value: str) -> str:
    return "/".join(value if part.startswith("{") else part for part in route.path.split("/"))


def test_every_public_route_tells_an_address_that_asks_too_often_when_to_come_again(engine: Engine, keys: Keys) -> None:
    """By discovery: with a limit of three, whatever the path and the token."""
    answered: Counter[str] = Counter()

    def limited(route: PublicRoute) -> PublicRoute:
        def answer(ports: Ports, request: PublicRequest) -> PublicAnswer:
            answered[route.name] += 1
            raise NotFound("nothing is there")

        return dataclasses.replace(route, answer=answer, per_minute=3)

    routes = engine.catalogue.public_routes
    assert len(routes) > 8
    engine.catalogue.public_routes = tuple(map(limited, routes))
    client = client_of(engine, Settings(access_log=False, forwarded_allow_ips="*"))

    def ask(route: PublicRoute, address: str, value: str = "a") -> int:
        answer = client.request(route.method, filled(route, value), headers={"x-forwarded-for": address})
        if answer.status_code == 429:
            assert int(answer.headers["retry-after"]) > 0
        return answer.status_code

    for route in routes:
        assert [ask(route, "192.0.2.1", value) for value in "abcd"] == [404, 404, 404, 429], route.name
        assert ask(route, "192.0.2.2") == 404, route.name
        assert [ask(route, f"2001:db8::{number}") for number in range(1, 5)] == [404, 404, 404, 429], route.name
    assert set(answered.values()) == {7}


def test_one_link_is_followed_from_one_address_so_often_and_others_go_on() -> None:
    now = [0.0]
    limits = PublicLimits(lambda: now[0])
    route = PublicRoute(
        "link", "Lead on.", "GET", "/l/{token}", lambda *_: PublicAnswer(), per_minute=600, same_per_minute=60
    )
    for _ in range(60):
        limits.charge(route, "192.0.2.1", "/l/a")
    with pytest.raises(RateLimited, match="come again in 1 s"):
        limits.charge(route, "192.0.2.1", "/l/a")
    limits.charge(route, "192.0.2.1", "/l/b")
    limits.charge(route, "192.0.2.2", "/l/a")
    now[0] += 1.0
    limits.charge(route, "192.0.2.1", "/l/a")


def test_a_link_that_is_followed_a_hundred_times_at_once_is_recorded_no_more_than_its_limit(
    engine: Engine, client: TestClient
) -> None:
    link = next(route for route in engine.catalogue.public_routes if route.name == "mail_click")
    statuses = Counter(client.get(filled(link, "token")).status_code for _ in range(100))
    assert statuses[429] >= 100 - link.same_per_minute - 5
    assert statuses[404] >= link.same_per_minute
