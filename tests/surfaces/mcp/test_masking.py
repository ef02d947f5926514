"""Personal data in answers is masked by what each field declares, and by the form of an address wherever it stands."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.capabilities.profile.people.definition import rules
from threadline.kernel.disclosure import (
    FREE,
    IDENTIFIER_VALUE,
    IDENTIFIERS,
    NOT_PERSONAL,
    PERSONAL,
    SENTENCE,
    Shown,
    free,
    not_personal,
    words,
)
from threadline.surfaces.mcp.masking import MASK, Masker, undeclared

SCHEMAS = {
    "ordered": {
        "properties": {
            "size": {"enum": ["small", "large"]},
            "shelf": {"type": "string", "x-personal": False},
            "plan": {"x-personal": True},
            "gift": {"type": "object", "x-personal": False},
            "items": {"type": "array", "items": {"$ref": "#/$defs/item"}},
            "kind": {"anyOf": [{"const": "new"}, {"x-personal": True, "enum": ["old"]}]},
        },
        "allOf": [{"properties": {"gift": {"properties": {"for": {"x-personal": True}}}, "shelf": {"type": "string"}}}],
        "$defs": {"item": {"properties": {"colour": {"x-personal": False}, "sku": {"x-personal": True}}}},
    }
}
MASKER = Masker(Shown({"left": ("segment",)}, SCHEMAS), rules())


class Inner(msgspec.Struct):
    id: str = ""
    said: Annotated[str, PERSONAL] = ""
    forgotten: str = ""


@not_personal
class Ours(msgspec.Struct):
    about: str = ""
    when: dict[str, Any] | None = None
    inner: Inner | None = None
    told: Annotated[str, PERSONAL] = ""


class Theirs(Ours):
    more: str = ""


class Identifier(msgspec.Struct):
    kind: str
    value: Annotated[str, IDENTIFIER_VALUE]


class Answer(msgspec.Struct):
    type: str = ""
    field: Annotated[str, NOT_PERSONAL] = ""
    properties: Annotated[dict[str, Any], free(type_by="type")] = {}
    anything: Annotated[Any, FREE] = None
    found: Annotated[Any, free(named_by="field")] = None
    value: Annotated[str, free(values=("(other)",), asked_by="by", type_by="event")] = ""
    counts: Annotated[dict[str, int], free(asked_by="by")] = {}
    names: Annotated[list[str], IDENTIFIERS] = []
    identifiers: list[Identifier] = []
    ending: Annotated[str, words("completed")] = ""
    sentence: Annotated[str, SENTENCE] = ""
    inner: dict[str, Inner] = {}
    ours: Ours | None = None


def shown(params: dict[str, Any] | None = None, /, **answer: Any) -> Any:
    """What an agent sees of an answer with these fields."""
    made = MASKER.masked(answer, Answer, params or {})
    return made if len(made) > 1 else next(iter(made.values()))


_WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=20)
_EMAILS = st.from_regex(r"[a-z0-9.+_-]{1,12}@[a-z0-9-]{1,12}\.[a-z]{2,6}", fullmatch=True)


def _nested(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(leaf, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_WORDS, inner, max_size=4))


@pytest.mark.parametrize("field", ["anything", "field", "sentence", "ours", "names", "forgotten"])
@given(_EMAILS.flatmap(lambda email: st.tuples(st.just(email), _nested(_WORDS | st.just(f"to {email} from me")))))
def test_an_address_is_found_wherever_it_stands(field: str, drawn: tuple[str, Any]) -> None:
    email, value = drawn
    masked = MASKER.masked({field: {email: value} if field in ("anything", "forgotten") else value}, Answer, {})
    assert email not in msgspec.json.encode(masked).decode()


@given(_nested(st.text(st.characters(categories=("Lu",)), min_size=3, max_size=20)))
def test_of_free_data_no_text_is_shown_that_nothing_says_is_shown(value: Any) -> None:
    def texts(value: Any) -> set[str]:
        if isinstance(value, dict | list):
            return {text for inner in (value.values() if isinstance(value, dict) else value) for text in texts(inner)}
        return {value}

    assert texts(shown(anything=value)) <= {"[masked]"}


@pytest.mark.parametrize(
    ("properties", "seen"),
    [
        ({"colour": "red", "count": 3, "gift": True, "none": None, "empty": ""}, {"colour": MASK}),
        ({"phone": 4915112345678, "Age": 44}, {"phone": MASK, "Age": MASK}),
        ({"birthday": {"year": 1980}}, {"birthday": {"year": MASK}}),
        ({"total": "29.33", "currency": "EUR", "productId": "p-1"}, {}),
        ({"n": "37", "digits": "01511234567"}, {"digits": MASK}),
        ({"at": "2026-03-01T12:00:00Z", "ref": "0" * 32, "born": "1980-03-01"}, {"born": MASK}),
        ({"category": ["shoes", {"of": "Ada", "coupon": "s"}]}, {"category": ["shoes", {"of": MASK, "coupon": "s"}]}),
        ({"sku": "personal in one schema"}, {"sku": MASK}),
        ({"campaign": {"name": "spring", "for": "Ada"}}, {"campaign": {"name": "spring", "for": MASK}}),
        ({"event.properties.brand": "b", "event.properties.wife": "Eve"}, {"event.properties.wife": MASK}),
        ({"field": "traits.city", "actual": "Turin", "expected": 3}, {"field": MASK, "actual": MASK, "expected": MASK}),
        ({"field": "traits.age_group", "actual": "old", "expected": 3}, {"field": MASK, "actual": MASK}),
    ],
)
def test_of_properties_numbers_and_what_a_shop_sells_are_shown(properties: Any, seen: Any) -> None:
    assert shown(properties=properties) == {**properties, **seen}


@pytest.mark.parametrize(
    ("type", "properties", "seen"),
    [
        ("ordered", {"size": "large"}, {"size": "large"}),
        ("ordered", {"size": "as Ada's"}, {"size": "[masked]"}),
        ("ordered", {"shelf": "A", "gift": {"to": "the shop"}}, {"shelf": "A", "gift": {"to": "the shop"}}),
        ("ordered", {"kind": "new"}, {"kind": "[masked]"}),
        ("ordered", {"plan": "pro"}, {"plan": "[masked]"}),
        ("ordered", {"items": [{"colour": "red", "on": "Ada"}]}, {"items": [{"colour": "red", "on": "[masked]"}]}),
        ("ordered", {"items": [{"sku": "as for Ada"}]}, {"items": [{"sku": "[masked]"}]}),
        ("viewed", {"shelf": "A", "size": "large"}, {"shelf": "[masked]", "size": "[masked]"}),
        # What one type declares personal is so wherever no schema says otherwise.
        ("viewed", {"plan": "pro"}, {"plan": "[masked]"}),
        ("left", {"segment": "spenders", "why": "Ada"}, {"segment": "spenders", "why": "[masked]"}),
    ],
)
def test_a_schema_and_a_capability_say_what_of_their_type_is_personal(type: str, properties: Any, seen: Any) -> None:
    assert shown(type=type, properties=properties) == {"type": type, "properties": seen}


@pytest.mark.parametrize(
    ("params", "value", "seen"),
    [
        ({"by": "properties.street"}, "Hidden Lane 7", "[masked]"),
        ({"by": "address.street"}, "(other)", "(other)"),
        ({"by": "phone"}, "123", "[masked]"),
        ({"by": "answer"}, "123", "123"),
        ({"by": "answer"}, "Ada", "[masked]"),
        ({"by": "context.campaign.source"}, "letter", "letter"),
        ({"by": "event.source"}, "web", "web"),
        ({"by": "event.segment"}, "a property called event has it", "[masked]"),
        ({"by": "shelf", "event": "ordered"}, "A", "A"),
        ({"by": "shelf", "event": ""}, "A", "[masked]"),
        ({"by": "features.last_answer"}, "Ada", "[masked]"),
        ({"by": ""}, "form_sent", "form_sent"),
    ],
)
def test_a_break_down_is_as_personal_as_what_it_is_by(params: dict[str, Any], value: str, seen: str) -> None:
    assert shown(params, value=value) == seen


def test_keys_that_are_values_of_a_break_down_are_masked_with_it() -> None:
    assert shown({"by": "street"}, counts={"Hidden Lane 7": 3}) == "[masked]"
    assert shown({"by": "answer"}, counts={"Ada": 3}) == "[masked]"
    assert shown({"by": "brand"}, counts={"b": 3}) == {"b": 3}


def test_a_value_is_as_personal_as_the_field_that_it_was_found_in() -> None:
    assert shown(field="traits.city", found="Turin")["found"] == "[masked]"
    assert shown(field="traits.brand", found=["b"])["found"] == ["b"]
    assert shown(field="features.spent", found=29.5)["found"] == 29.5


def test_identifiers_are_shown_by_their_kind() -> None:
    names = ["user_id:ada", "email:ada@example.com", "phone:0151", "ip_address:local", "card:7"]
    assert shown(names=names) == ["user_id:ada", "email:[email]", "phone:[masked]", "ip_address:[masked]", "card:7"]
    pairs = [dict(zip(("kind", "value"), name.split(":"), strict=True)) for name in names]
    assert [pair["value"] for pair in shown(identifiers=pairs)] == ["ada", "[email]", "[masked]", "[masked]", "7"]


def test_words_of_ours_are_shown_and_no_others() -> None:
    assert [shown(ending=text) for text in ("completed", "", "moved to Eve")] == ["completed", "", "[masked]"]
    text = "properties.name: 'Ada \\'A\\' L' is no number; did you mean 'total'? \"Eve\" isn't"
    assert shown(sentence=text) == "properties.name: '[masked]' is no number; did you mean 'total'? \"[masked]\" isn't"
    assert shown({"type": "Ada"}, sentence="there is no 'Ada'") == "there is no 'Ada'"


def test_what_a_struct_does_not_declare_is_masked_and_named() -> None:
    inner = {"id": "x", "said": "Ada", "forgotten": "Eve", "new": 3}
    masked = {"id": "x", "said": "[masked]", "forgotten": "[masked]", "new": "[masked]"}
    assert shown(inner={"one": inner}) == {"one": masked}
    ours = {"about": "a rule", "when": {"equals": "Turin"}, "told": "Ada", "inner": inner}
    assert shown(ours=ours) == {"about": "a rule", "when": {"equals": "Turin"}, "told": "[masked]", "inner": masked}
    assert set(undeclared(Answer)) == {"Inner.forgotten"}
    assert set(undeclared(Theirs)) == {"Inner.forgotten", "Theirs.more"}


def test_what_was_masked_in_one_field_is_masked_where_the_answer_repeats_it() -> None:
    answer = {"ours": {"about": "Ada and LOVELACE came to Adak", "told": "Ada Lovelace"}, "type": "ada"}
    assert shown(**answer) == {
        "ours": {"about": "[masked] and [masked] came to Adak", "told": "[masked]"},
        "type": "ada",
    }
