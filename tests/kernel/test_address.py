"""Mail addresses: one form for all spellings of one mailbox, a reason for what is none, and the forms of before."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from threadline.kernel.address import normal_address, parse_address
from threadline.kernel.errors import InvalidAddress
from threadline.kernel.identity import address_in_event, former_addresses

NO_ADDRESSES = [
    "", " ", "no", "keine", "none given", "x", "@", "a@", "@x.example", "no@no", "n.a.", "tbd", "http://x.example",
    "ann@x.example, bob@x.example", "ann@x.example;bob@x.example", "ann;ann@x.example;x", "<ann@x.example>",
    "Ann <ann@x.example>", "ann@x.example;", "mailto:ann@x.example", "'ann@x.example'", "(ann@x.example)",
    "ann@@x.example", '"ann b"@x.example', "ann@localhost", "ann@10.0.0.1", "ann@[10.0.0.1]", "ann@x..example",
    "ann@-x.example", "ann@x_y.example", ".ann@x.example", "ann.@x.example", "a\u200bnn@x.example",
    "a" * 65 + "@x.example", "ann@" + "x" * 64 + ".example", "ann@x.example..", "ann\0@x.example", "\ud800@x.example",
]  # fmt: skip
SPELLINGS = [
    "jürgen@bücher.example",
    "ju\u0308rgen@bu\u0308cher.example",
    "JÜRGEN@BÜCHER.EXAMPLE",
    "jürgen@xn--bcher-kva.example",
    "jürgen@XN--BCHER-KVA.example",
    " jürgen@bücher.example\u200b",
    "\u2068jürgen@bücher.example\u2069",
    "jürgen@bücher.example.",
    "jürgen@bücher。example",
    "JU\u0308RGEN@bu\u0308cher.example",
]
LETTERS = st.text(st.sampled_from("abé\u0301İıß.+'-_@ ;<\u200b例"), max_size=12)


@pytest.mark.parametrize("text", NO_ADDRESSES)
def test_a_text_that_is_no_address_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(InvalidAddress) as refused:
        parse_address(text)
    assert refused.value.code == "invalid_address"
    assert "is not a mail address: " in str(refused.value)
    assert normal_address(text) == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no", "it has no @"),
        ("a@x.example, b@x.example", "one address alone"),
        ("a@x.example;", "one address alone"),
        ("<a@x.example>", "without a name, brackets"),
        ("mailto:a@x.example", "or mailto:"),
        ("a@x", "has no dot"),
        ("a@x_y.example", "is not a domain"),
        (".a@x.example", "before the @"),
    ],
)
def test_a_refusal_names_what_is_wrong(text: str, reason: str) -> None:
    with pytest.raises(InvalidAddress, match=reason):
        parse_address(text)


@pytest.mark.parametrize("text", SPELLINGS)
def test_every_spelling_of_a_mailbox_has_one_form(text: str) -> None:
    assert normal_address(text) == "jürgen@xn--bcher-kva.example"


@pytest.mark.parametrize(
    ("text", "local", "domain"),
    [
        ("Ann.O'Brien+x@X.Example", "Ann.O'Brien+x", "x.example"),
        ("!#$%&'*+-/=?^_`{|}~@x.example", "!#$%&'*+-/=?^_`{|}~", "x.example"),
        ("a@i❤.ws", "a", "xn--i-7iq.ws"),
        ("a@faß.example", "a", "xn--fa-hia.example"),
        ("a@例え.jp", "a", "xn--r8jz45g.jp"),
        ("a@123.example", "a", "123.example"),
    ],
)
def test_an_unusual_address_is_read(text: str, local: str, domain: str) -> None:
    assert parse_address(text) == (local, domain)


@given(st.one_of(st.text(max_size=20), st.builds("{}@{}.example".format, LETTERS, LETTERS)))
@example("İ@x.example")
def test_the_form_of_an_address_is_its_own_form_also_where_events_hold_it(text: str) -> None:
    normal = normal_address(text)
    assert normal_address(normal) == normal
    assert address_in_event(normal) == normal
    assert unicodedata.normalize("NFC", normal) == normal


@pytest.mark.parametrize("text", SPELLINGS)
def test_a_form_that_an_earlier_version_stored_is_among_the_former_ones(text: str) -> None:
    normal = normal_address(text)
    stored = {address_in_event(text), address_in_event(text.strip().lower())}
    if "\u2068" not in text:  # such a one was an address of its own
        assert stored <= {normal, *former_addresses(normal)}


def test_an_address_in_ascii_has_no_other_form() -> None:
    assert former_addresses("ann@x.example") == ()
