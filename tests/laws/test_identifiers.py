"""What is no address and no number joins nobody; every spelling of one address or number names one person."""

from __future__ import annotations

import pytest

from tests.capabilities.asked import Asked
from tests.kernel.test_address import NO_ADDRESSES, SPELLINGS
from tests.kernel.test_phone import NO_NUMBERS
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import KINDS, rules
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.event import IDENTIFIER_IGNORED, Identifier
from threadline.kernel.identity import is_placeholder

PLACEHOLDERS = [
    r"\N", "#N/A", "#REF!", "#NAME?", "(null)", "<null>", "[null]", "(none)", "anonymousId", "userId", "user_id",
    "USER ID", "customer-id", "{{user_id}}", "{{ user.id }}", "{{{id}}}", "user-{{id}}", "${userId}", "%USER_ID%",
    "%%user_id%%", "*|EMAIL|*", "<%= user.id %>", "{% id %}", "#{id}", "[[id]]", "{user_id}",
    "<USER_ID>", "[user id]", "__USER_ID__",
]  # fmt: skip
NAMES = [
    "ann", "user_12", "user-id-7", "12", "#12", "100%", "50%off", "(ann)", "{3F2504E0-4F89-41D3-9A0C-0305E82C3301}",
    "a$b", "ann [x] 2", "$ann", "<3 ann", "id7", "userid7", "anonymous-1", "a*b", r"DOMAIN\nina", "Null, Ann",
]  # fmt: skip


def garbage() -> list[tuple[str, str]]:
    """(kind, value) of what is none, for every kind that has a form."""
    values = {"email": NO_ADDRESSES, "phone": NO_NUMBERS, "whatsapp": [*NO_NUMBERS, "0049 see notes"]}
    pairs = [(kind.name, value) for kind in KINDS if kind.normalise != "strip" for value in values[kind.normalise]]
    assert {kind for kind, _ in pairs} == {"email", "phone", "whatsapp"}
    # The digits alone are a number to WhatsApp, and a surrogate is no text that an event may hold.
    return [(kind, value) for kind, value in pairs if value.strip() and "\ud800" not in value]


@pytest.mark.parametrize(("kind", "value"), garbage())
def test_what_is_none_joins_nobody_and_stays_readable_with_a_mark(kind: str, value: str) -> None:
    asked = Asked()
    receipts = [
        asked.tell("identify", properties={kind: value}, **{"anonymous_id": who, kind: value}) for who in ("a", "b")
    ]
    assert receipts[0]["person"] != receipts[1]["person"]
    event = asked.ask("events_show", id=receipts[0]["id"])
    assert event["marks"] == [IDENTIFIER_IGNORED]
    assert event["wire"]["ignored"] == {kind: value}
    assert event["properties"] == {kind: value}
    assert event["identifiers"] == [{"kind": "anonymous_id", "value": "a"}]


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        ("email", "no", "email 'no' is not a mail address: it has no @"),
        ("email", "ann@x.example;", "one address alone"),
        ("phone", "07700 900123", "phone '07700 900123' is not a phone number: it has no country code; declare"),
        ("phone", "4.47712E+11", "of digits"),
        ("user_id", "{{user_id}}", "user_id '{{user_id}}' names nobody"),
    ],
)
def test_an_event_with_nothing_else_is_rejected_with_what_is_wrong(kind: str, value: str, why: str) -> None:
    receipt = Asked().tell("page", **{kind: value})
    assert (receipt["status"], receipt["code"]) == ("rejected", "no_identifier")
    assert why in receipt["message"]


def test_every_spelling_of_an_address_is_one_person() -> None:
    asked = Asked()
    assert len({asked.tell("page", email=text)["person"] for text in SPELLINGS}) == 1
    assert [person["identifiers"] for person in asked.ask("people_list")["people"]] == [
        ["email:jürgen@xn--bcher-kva.example"]
    ]


def test_numbers_without_a_country_are_those_of_the_declared_region() -> None:
    asked = Asked(identifiers={"phone_region": "GB"})
    texts = ("07700 900123", "+44 7700 900123", "0044 (0)7700/900123", "7700900123")
    assert len({asked.tell("page", phone=text)["person"] for text in texts}) == 1
    assert asked.ask("person", id="phone:07700 900123") == asked.ask("person", id="phone:+447700900123")


def test_a_number_of_whatsapp_has_its_country_code_without_a_sign() -> None:
    asked = Asked()
    assert (
        asked.tell("page", whatsapp="447700900123")["person"]
        == asked.tell("page", whatsapp="+44 7700 900123")["person"]
    )


@pytest.mark.parametrize("region", ["de", "Germany", "XX", "49", ""])
def test_a_region_that_is_none_is_refused(region: str) -> None:
    definitions = Definitions([("threadline.yaml", f"identifiers: {{phone_region: '{region}'}}")])
    rules(definitions)
    with pytest.raises(InvalidDefinition, match=r"threadline\.yaml:1: .*phone_region"):
        definitions.refuse()


def test_the_region_of_norway_need_not_be_quoted() -> None:
    declared = rules(Definitions([("threadline.yaml", "identifiers: {phone_region: NO}")]))
    assert declared.normalise(Identifier("phone", "22 12 34 56")) == Identifier("phone", "+4722123456")


@pytest.mark.parametrize("value", PLACEHOLDERS)
def test_a_placeholder_that_nobody_filled_in_names_nobody(value: str) -> None:
    asked = Asked()
    assert asked.tell("page", user_id=value)["code"] == "no_identifier"
    spared = Asked(identifiers={"not_junk": [value]})
    assert spared.tell("page", user_id=value)["status"] == "accepted"


@pytest.mark.parametrize("value", NAMES)
def test_an_id_that_only_resembles_a_placeholder_names_somebody(value: str) -> None:
    assert not is_placeholder(value)
    assert Asked().tell("page", user_id=value)["status"] == "accepted"
