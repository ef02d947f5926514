"""Variables of templates: which value of which fact each stands for, and how they are named."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capabilities.asked import Asked
from threadline.capabilities.profile.memory import resolve
from threadline.kernel.errors import InvalidValue

ADA = "user_id:ada"


def told(value: Any) -> dict[str, Any]:
    return {"value": value}


def shop_with(**facts: Any) -> Asked:
    shop = Asked()
    for key, value in facts.items():
        shop.tell("fact_remembered", user_id="ada", properties={"type": "fact", "key": key, "value": value})
    return shop


def test_variables_are_type_key_and_path() -> None:
    memory: dict[str, Any] = {
        "purchase": {"last_transaction": told({"product_name": "Tent", "lines": [{"n": 1}, {"n": 2}]})},
        "form": {"v1.0": told({"a": 1}), "v1": told({"0": {"a": 2}, "b": 3})},
        "retracted": [],
    }
    for variable, value in {
        "purchase.last_transaction.product_name": "Tent",
        "purchase.last_transaction.lines.1.n": 2,
        "purchase.last_transaction.lines.2.n": None,
        "purchase.last_transaction.product_name.x": None,
        "purchase.last_transaction": memory["purchase"]["last_transaction"]["value"],
        "form.v1.0.a": 1,
        "form.v1.b": 3,
        "form.v2.b": None,
        "form": None,
        "retracted.0": None,
        "": None,
    }.items():
        assert resolve(memory, variable) == value, variable


def test_variables_of_a_template_are_resolved() -> None:
    shop = shop_with(city="Rome")
    said = shop.ask("memory_variables", id=ADA, names="fact.city, fact.town,fact.city")
    assert (said["values"], said["missing"]) == ({"fact.city": "Rome", "fact.town": None}, ["fact.town"])


def test_a_key_with_a_comma_in_it_is_named_in_a_list() -> None:
    shop = shop_with(**{"Rome, Italy": {"visits": 3}, "city": "Oslo"})
    names = ["fact.Rome, Italy.visits", "fact.Rome", "fact.city"]
    said = shop.ask("memory_variables", id=ADA, names="fact.city", variables=names)
    assert said["values"] == {"fact.city": "Oslo", "fact.Rome, Italy.visits": 3, "fact.Rome": None}
    assert said["missing"] == ["fact.Rome"]
    with pytest.raises(InvalidValue, match="name the variables"):
        shop.ask("memory_variables", id=ADA, names=" , ")
