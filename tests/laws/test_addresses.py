"""Every door that takes a mail address takes the same ones: what is none is refused, and changes nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.capabilities.asked import Asked
from tests.kernel.test_address import NO_ADDRESSES
from threadline.kernel.errors import InvalidAddress, InvalidValue
from threadline.kernel.operation import Operation

DEFINITIONS = """
consent: {topics: {news: {default: opted_in}}}
mail:
  senders: {shop: {from: shop@example.com}}
  templates: {sale: {subject: Sale, text: Until Sunday.}, welcome: {subject: Welcome, text: Hello.}}
"""


def doors(asked: Asked) -> list[tuple[Operation[Any, Any], str]]:
    """(operation, parameter) of every parameter that holds addresses of mail."""
    found = [
        (operation, field.name)
        for operation in asked.operations.values()
        for field in msgspec.structs.fields(operation.params)
        if field.name in ("address", "addresses")
    ]
    assert {"suppression_add", "suppression_import", "consent_change"} <= {operation.name for operation, _ in found}
    return found


@pytest.mark.parametrize("text", [text for text in NO_ADDRESSES if len(text) > 2])
def test_an_operation_refuses_what_is_no_address_by_name_and_records_nothing(text: str) -> None:
    asked = Asked(definitions=DEFINITIONS)
    asked.tell("signed_up", user_id="42", email="ada@example.com")
    asked.ask("broadcasts_create", id="spring-sale", template="sale")
    before = asked.ask("people_list")
    for operation, param in doors(asked):
        if operation.name == "suppression_import":
            [wrong] = asked.ask(operation.name, **{param: [text]})["wrong"]
            assert wrong["reason"].partition(": ")[2]
            continue
        with pytest.raises(InvalidValue) as refused:
            asked.ask(operation.name, **msgspec.to_builtins(operation.example) | {param: text})
        assert isinstance(refused.value, InvalidAddress) or len(text) > 254
        assert refused.value.param == param
    assert asked.ask("people_list") == before
    assert asked.ask("suppression_list")["addresses"] == []
