"""Who is meant: junk names nobody in any form, and two identifiers never lead to one thread."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.capabilities.profile.people.definition import rules
from threadline.kernel.event import Identifier, event_id, thread_id
from threadline.kernel.identity import is_kind
from threadline.kernel.limits import IDENTIFIER_LENGTH_MAX

RULES = rules()
JUNK = [
    "",
    " ",
    "0",
    "000",
    "0.0",
    "00-00",
    "-1",
    " -1 ",
    "null",
    "NULL",
    "undefined",
    "anonymous",
    "[object Object]",
    "+",
    "x" * (IDENTIFIER_LENGTH_MAX + 1),
]
JUNK_PHONES = ["0000000000", "00-00-00-00-00", "000 000 0000", "(000) 000-0000", "+0", "+00 000", "tel:000", "n/a"]


@pytest.mark.parametrize("kind", ["user_id", "email", "phone", "whatsapp", "card"])
@pytest.mark.parametrize("value", JUNK)
def test_junk_names_nobody(kind: str, value: str) -> None:
    assert RULES.normalise(Identifier(kind, value)) is None


@pytest.mark.parametrize("kind", ["phone", "whatsapp"])
@pytest.mark.parametrize("value", JUNK_PHONES)
def test_a_phone_without_a_digit_but_zeros_names_nobody(kind: str, value: str) -> None:
    assert RULES.normalise(Identifier(kind, value)) is None


@given(st.text())
def test_whatever_a_phone_is_told_as_it_has_a_number(value: str) -> None:
    found = RULES.normalise(Identifier("phone", value))
    assert found is None or set(found.value) & set("123456789")


@pytest.mark.parametrize(
    ("kind", "told", "kept"),
    [
        ("phone", "0039 (06) 10-20", "+39061020"),
        ("whatsapp", "447700900123", "+447700900123"),
        ("email", "ju\u0308rgen@bücher.example", "jürgen@xn--bcher-kva.example"),
        ("whatsapp", "+1 000 000 0000", "+10000000000"),
        ("email", " Ada@Example.com ", "ada@example.com"),
        ("user_id", " 007 ", "007"),
        ("user_id", "0x0", "0x0"),
    ],
)
def test_the_form_under_which_an_identifier_is_kept(kind: str, told: str, kept: str) -> None:
    assert RULES.normalise(Identifier(kind, told)) == Identifier(kind, kept)


@pytest.mark.parametrize("kind", ["", "a:b", "a\0b", "a\nb", "a\x7f", "\ud800", "k" * 65])
def test_what_no_kind_may_be_called(kind: str) -> None:
    assert not is_kind(kind)


texts = st.text(st.sampled_from("ab:\0 "), max_size=4)


@given(texts, texts, texts, texts)
def test_two_identifiers_have_two_threads(kind: str, value: str, other: str, told: str) -> None:
    if is_kind(kind) and is_kind(other) and (kind, value) != (other, told):
        assert thread_id("w", Identifier(kind, value)) != thread_id("w", Identifier(other, told))


@given(texts, texts, texts, texts)
def test_two_keys_have_two_ids_if_no_source_holds_a_nul(source: str, key: str, other: str, told: str) -> None:
    if "\0" not in source + other and (source, key) != (other, told):
        assert event_id("w", source, key) != event_id("w", other, told)
