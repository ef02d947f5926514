"""Personal data in answers is masked by the name of its field and by its form."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.surfaces.mcp.masking import masked

_WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=20)
_EMAILS = st.from_regex(r"[a-z0-9.+_-]{1,12}@[a-z0-9-]{1,12}\.[a-z]{2,6}", fullmatch=True)


def _nested(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(leaf, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_WORDS, inner, max_size=4))


@given(_EMAILS.flatmap(lambda email: st.tuples(st.just(email), _nested(_WORDS | st.just(f"to {email} from me")))))
def test_an_address_is_found_wherever_it_stands(drawn: tuple[str, Any]) -> None:
    email, value = drawn
    assert email not in msgspec.json.encode(masked({email: value})).decode()


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"email": "ada@example.com"}, {"email": "[masked]"}),
        ({"identifier": "email:ada@example.com"}, {"identifier": "email:[email]"}),
        ({"note": "call +49 30 1234567 today"}, {"note": "call [phone] today"}),
        ({"context": {"ip": "10.1.2.3", "os": "linux"}}, {"context": {"ip": "[masked]", "os": "linux"}}),
        ({"line": "seen from 10.1.2.3"}, {"line": "seen from [ip]"}),
        ({"traits": {"firstName": "Ada", "plan": "pro"}}, {"traits": {"firstName": "[masked]", "plan": "pro"}}),
        (
            {"traits": {"name": {"value": "Ada", "at": 3}}},
            {"traits": {"name": {"value": "[masked]", "at": "[masked]"}}},
        ),
        ({"email": None, "phone": ""}, {"email": None, "phone": ""}),
        # What names a definition or an instant is not personal.
        ({"name": "spenders", "text": "a rule"}, {"name": "spenders", "text": "a rule"}),
        ({"at": "2026-03-01T12:00:00.000000Z", "id": "0" * 32}, {"at": "2026-03-01T12:00:00.000000Z", "id": "0" * 32}),
    ],
)
def test_a_field_is_masked_or_not(value: Any, shown: Any) -> None:
    assert masked(value) == shown


def test_what_was_masked_in_one_field_is_masked_where_the_answer_repeats_it() -> None:
    value = {"traits": {"firstName": "Ada", "lastName": "Lovelace"}, "summary": "Ada and LOVELACE came to Adak"}
    assert masked(value)["summary"] == "[masked] and [masked] came to Adak"


def test_a_mail_of_text_alone_is_masked_as_one_with_html_is() -> None:
    mail = {"template": "hello", "subject": "Hello, Ada", "html": "", "text": "Ada, your order of 3 CDs left.", "n": 3}
    assert masked(mail) == {**mail, "subject": "[masked]", "text": "[masked]"}
