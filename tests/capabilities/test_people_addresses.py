"""Identifiers that join nobody, such as network addresses: strangers share one, and anybody can name anybody's."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from tests.capabilities.asked import Asked

HERE, THERE = "192.0.2.5", "2001:db8::1"
TOLD: list[dict[str, str]] = [
    {"ip_address": HERE},
    {"ip_address": HERE, "user_id": "ada"},
    {"anonymous_id": "phone", "ip_address": HERE},
    {"user_id": "eve", "email": "eve@shop.example", "ip_address": HERE},
]


@pytest.mark.parametrize("order", list(permutations(range(len(TOLD)))))
def test_an_address_joins_nobody_in_any_order(order: tuple[int, ...]) -> None:
    asked = Asked()
    for number in order:
        asked.tell("page", **TOLD[number])
    assert {name: known_by(asked, name) for name in (f"ip_address:{HERE}", "user_id:ada", "anonymous_id:phone")} == {
        f"ip_address:{HERE}": [f"ip_address:{HERE}"],
        "user_id:ada": ["user_id:ada"],
        "anonymous_id:phone": ["anonymous_id:phone"],
    }
    assert known_by(asked, "user_id:eve") == ["email:eve@shop.example", "user_id:eve"]
    assert asked.ask("person", id=f"ip_address:{HERE}")["position"] == 1
    assert asked.ask("quarantine_list")["joins"] == []


def known_by(asked: Asked, name: str) -> list[str]:
    person = asked.ask("person", id=name)
    return sorted(f"{each['kind']}:{each['value']}" for each in person["identifiers"] if each["linked"])


def test_two_addresses_of_one_event_are_not_joined_either() -> None:
    asked = Asked()
    asked.tell("page", ip_address=[THERE, HERE])
    assert known_by(asked, f"ip_address:{HERE}") == [f"ip_address:{HERE}"]
    assert asked.tell("page", ip_address=THERE)["sequence"] == 1


@pytest.mark.parametrize(("declared", "joined"), [({"ip_address": {"joins": True}}, True), ({}, False)])
def test_definitions_and_operators_may_join_all_the_same(declared: dict[str, Any], joined: bool) -> None:
    asked = Asked(declared)
    first = asked.tell("page", ip_address=HERE)["person"]
    ada = asked.tell("page", ip_address=HERE, user_id="ada")["person"]
    assert (first == ada) is joined
    if not joined:
        asked.ask("people_merge", id=ada, other=first)
    assert known_by(asked, "user_id:ada") == [f"ip_address:{HERE}", "user_id:ada"]
