"""Conditions in words: a field, a comparison and a value as people write them, for every operator there is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from tests.capabilities import conditions_drawn as drawn
from threadline.capabilities.foundation.conditions import read_json
from threadline.capabilities.foundation.conditions.operators import FIELD_TYPES, OPERATORS
from threadline.capabilities.foundation.conditions.wording import TEXT_MAX, condition_text, denied_text, wording

TEXTS: list[tuple[dict[str, Any], str]] = [
    ({"field": "traits.plan", "equals": "club"}, "plan is club"),
    ({"field": "features.monetary_total", "greater_than": 99.5}, "monetary total is more than 99.5"),
    ({"field": "traits.renewal", "less_than": "2026-03-01"}, "renewal is before 2026-03-01"),
    ({"field": "traits.code", "less_than": "abc"}, "code is less than abc"),
    ({"field": "days_since.features.last_order", "gte": 30}, "days since last order is at least 30"),
    ({"field": "features.has_purchased", "equals": False}, "has purchased is no"),
    ({"field": "traits.plan", "exists": False}, "plan is missing"),
    ({"field": "tags", "contains": "vip"}, "tags contains vip"),
    ({"field": "traits.plan", "in": ["pro", "plus", "club"]}, "plan is one of pro, plus or club"),
    ({"field": "traits.size", "not_in": list(range(8))}, "size is none of 0, 1, 2, 3, 4 … (3 more)"),
    ({"field": "event.properties.total", "lte": 5}, "total of the event is at most 5"),
    ({"field": "event.type", "equals": "paid"}, "type of the event is paid"),
    ({"field": "journey.variables.order", "equals": 'a "b"'}, 'order of the journey is “a "b"”'),
    ({"field": "journeys.sent.hello_again", "exists": True}, "was sent hello again"),
    ({"field": "segments.big_spenders", "exists": False}, "is not in big spenders"),
    ({"field": "days_since.segments.vip.since", "gt": 3}, "days since joining vip is more than 3"),
    ({"field": "traits.zip", "equals": "01234"}, "zip is “01234”"),
    ({"not": {"field": "traits.plan", "equals": "club"}}, "not (plan is club)"),
    ({"not": {"field": "traits.plan", "exists": True}}, "plan is missing"),
    (
        {"any": [{"field": "tags", "contains": "a"}, {"all": [{"field": "traits.b", "eq": 1}] * 2}]},
        "tags contains a or (b is 1 and b is 1)",
    ),
]


@pytest.mark.parametrize(("tree", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_a_tree_in_words(tree: dict[str, Any], text: str) -> None:
    assert condition_text(read_json(tree)) == text


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_has_words_of_its_own_and_types_to_be_offered_for(operator: str) -> None:
    known = OPERATORS[operator]
    assert set(known.types) <= set(FIELD_TYPES)
    assert known.types
    assert [other for other, each in OPERATORS.items() if each.text == known.text] == [operator]
    assert (known.operand == "flag") == bool(known.of_false)


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        ({"field": "traits.plan", "equals": "club"}, "plan is not club"),
        ({"field": "traits.plan", "not_in": ["a", "b"]}, "plan is one of a or b"),
        ({"field": "traits.plan", "exists": True}, "plan is missing"),
        ({"field": "traits.age", "less_than": 3}, "not (age is less than 3)"),
    ],
)
def test_a_condition_that_is_not_true_in_words(tree: dict[str, Any], text: str) -> None:
    assert denied_text(read_json(tree)) == text


@given(drawn.trees)
def test_whatever_a_tree_holds_its_words_have_a_bound(tree: dict[str, Any]) -> None:
    assert 0 < len(condition_text(read_json(tree))) <= TEXT_MAX


def test_an_operator_that_is_none_is_shown_as_it_is_written() -> None:
    assert str(wording(("traits", "plan"), "no_such", 1)) == "plan no such 1"
