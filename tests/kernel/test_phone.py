"""Phone numbers: one form for all spellings of one number, and a reason for what is none or of no country."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.kernel.errors import InvalidValue
from threadline.kernel.phone import DIGITS_MAX, DIGITS_MIN, is_region, parse_phone

NO_NUMBERS = [
    "", " ", "+", "no", "see notes 2", "call after 2", "x5", "5", "a1b2c3", "123", "4.47712E+11", "+4.47712E+11",
    "4,47712E+11", "+15550100", "+447712", "+99912345678", "+44 7700 900123 / +44 7700 900124", "tel:+447700900123",
    "1-800-FLOWERS", "+1234567890123456", "n/a", "112", "-1", "+447700900123 or 5",
]  # fmt: skip


@pytest.mark.parametrize("region", ["", "DE", "GB"])
@pytest.mark.parametrize("text", NO_NUMBERS)
def test_a_text_that_is_no_number_is_refused_in_every_country(text: str, region: str) -> None:
    with pytest.raises(InvalidValue, match="is not a phone number: "):
        parse_phone(text, region)


@pytest.mark.parametrize(
    ("text", "region", "number"),
    [
        ("+44 7700 900123", "", "+447700900123"),
        ("+44 (0)7700 900-123", "", "+447700900123"),
        ("0044 7700/900123", "", "+447700900123"),
        ("0044 7700 900123", "DE", "+447700900123"),
        ("011 44 7700 900123", "US", "+447700900123"),
        ("07700 900123", "GB", "+447700900123"),
        ("7700 900123", "GB", "+447700900123"),
        ("(0171) 123 45 67", "DE", "+491711234567"),
        ("\u202a+44 7700\u00a0900123\u202c", "", "+447700900123"),
        ("+٤٤٧٧٠٠٩٠٠١٢٣", "", "+447700900123"),
        ("+39 06 1234 5678", "", "+390612345678"),
        ("+52 1 55 1234 5678", "", "+5215512345678"),  # longer than the tables know, and in use
        ("+44 20 7946 0018 ext. 5", "", "+442079460018;ext=5"),
        ("+44 20 7946 0018;ext=5", "", "+442079460018;ext=5"),
        ("+44 20 7946 0018 x15", "", "+442079460018;ext=15"),
    ],
)
def test_every_spelling_of_a_number_has_one_form(text: str, region: str, number: str) -> None:
    assert parse_phone(text, region) == number
    assert parse_phone(number, region) == parse_phone(number) == number


def test_a_number_without_a_country_needs_the_region_and_says_so() -> None:
    with pytest.raises(InvalidValue, match="has no country code; declare `identifiers: "):
        parse_phone("07700 900123")


@given(st.text(st.sampled_from("+0123456789 ()-./x#;ext="), max_size=24), st.sampled_from(["", "DE", "US", "IT"]))
def test_the_form_of_a_number_is_its_own_form_in_every_country(text: str, region: str) -> None:
    try:
        number = parse_phone(text, region)
    except InvalidValue:
        return
    assert parse_phone(number) == parse_phone(number, "FR") == number
    assert DIGITS_MIN <= len(number.partition(";")[0]) - 1 <= DIGITS_MAX


def test_a_region_is_a_country_by_its_two_capital_letters() -> None:
    assert [is_region(text) for text in ("DE", "GB", "de", "Germany", "XX", "")] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]
