"""Forms of definitions: laws over every section, by discovery, and what a browser sends back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.console.stage import HOSTILE, unsafe
from tests.console.test_condition_form import Sent as Browser
from threadline.app import catalogue
from threadline.capabilities.decide.drafts.sections import BY_MEMBER, OWN, by_hand_of, members_of
from threadline.capabilities.foundation.definitions.splicing import saying, value_of
from threadline.capabilities.foundation.definitions.writing import yaml_of
from threadline.surfaces.console.definition_form import (
    Page,
    Raw,
    Sent,
    _normal,
    fields_of,
    fill,
    filled_in,
    read_sent,
    shown_fields,
    written,
)
from threadline.surfaces.console.editing import APART, definition_shape
from threadline.surfaces.console.frame import render
from threadline.surfaces.console.shapes import VALUE, Shape


def _shapes() -> Iterator[tuple[str, Shape]]:
    made = catalogue()
    for section in (*by_hand_of(made), *OWN):
        for name in members_of(made, section) if section in BY_MEMBER else ("",):
            shape = definition_shape(made, section, name)
            assert shape is not None, section
            yield f"{section}.{name}" if name else section, shape


SHAPES = dict(_shapes())
CONDITION = st.sampled_from(
    [
        {"field": "tags", "contains": "vip"},
        {"all": [{"field": "traits.age", "greater_than": 3}, {"not": {"field": "tags", "exists": True}}]},
        {"any": [{"all": [{"any": [{"field": "tags", "exists": True}]}]}]},
    ]
)
WHERE = st.sampled_from(
    [{"total": {"gt": 5}, "plan": ["a", "b"]}, {"plan": "pro"}, [{"field": "event.properties.total", "less_than": 2}]]
)
TEXTS = st.sampled_from([text for text in HOSTILE if text and "\0" not in text]) | st.sampled_from(
    ["a", "NO", "1", "1.50", "2026-03-01", "two\nlines\n", " x ", "#", "a\rb"]
)
PLAIN: Mapping[str, Callable[[Shape], st.SearchStrategy[Any]]] = {
    "text": lambda shape: TEXTS,
    "lines": lambda shape: TEXTS,
    "date": lambda shape: st.sampled_from(["2026-03-01", "soon"]),
    "number": lambda shape: st.integers(-3, 10**9) | (st.nothing() if shape.is_whole else st.floats(0.001, 1e6)),
    "loose": lambda shape: st.sampled_from(["1.50", "2", 7, 1.5, "v2", "1e5"]),
    "switch": lambda shape: st.booleans(),
    "choice": lambda shape: st.sampled_from(shape.choices),
    "choices": lambda shape: (
        st.lists(st.sampled_from(shape.choices), min_size=1, unique=True)
        | (st.sampled_from(shape.choices) if shape.is_alone else st.nothing())
    ),
    "duration": lambda shape: st.sampled_from(["30d", "1d12h", "90m", "10ms", "2w", *shape.choices]),
    "scalar": lambda shape: TEXTS | st.booleans() | st.integers() | st.just([1, {"a": 2}]) | st.none(),
    "fixed": lambda shape: st.just(shape.value),
    "condition": lambda shape: CONDITION,
    "where": lambda shape: WHERE,
    "yaml": lambda shape: st.sampled_from([[{"wait": "1d"}], {"a": {"b": [1, None]}}]),
}


def values_of(shape: Shape) -> st.SearchStrategy[Any]:
    """Values of a shape, as somebody may write them."""
    if shape.kind == "ways":
        return st.one_of(*map(values_of, shape.ways))
    if shape.kind == "list":
        assert shape.item is not None
        listed = st.lists(values_of(shape.item), min_size=1, max_size=3)
        return listed | (values_of(shape.item) if shape.is_alone else st.nothing())
    if shape.kind == "mapping":
        assert shape.item is not None
        names = st.sampled_from(["signed_up", "purchase_completed", "a.b", "NO", "{{ 7 * 7 }}"])
        return st.dictionaries(names, values_of(shape.item), min_size=1, max_size=2)
    if shape.kind == "group":
        choices = shape.fields[shape.by].choices if shape.by else ("",)
        return st.sampled_from(choices).flatmap(lambda chosen: _group(shape, chosen))
    return PLAIN[shape.kind](shape)


def _group(shape: Shape, chosen: str) -> st.SearchStrategy[dict[str, Any]]:
    fields = shape.fields_for(chosen)
    own = {name: values_of(field) for name, field in fields.items() if name != shape.by}
    by = {shape.by: st.just(chosen)} if shape.by else {}
    needed = {name: value for name, value in own.items() if fields[name].is_required}
    needed |= {name: own[name] for name in shape.needs_one[:1]}
    rest = {name: value for name, value in own.items() if name not in needed}
    return st.fixed_dictionaries({**by, **needed}, optional=rest)


def sent_back(shape: Shape, filled: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a form as a browser sends the page that shows it."""
    fields = shown_fields(shape, filled, Page(None, lambda kind: {}, set()), {})
    context = {"kind": {"text": "text", "section": "x", "first": []}, "view": "form", "text": ""}
    markup = render("editor_panel.html", {**context, "fields": fields, "offered": {}, "condition_fields": {}})
    assert unsafe(markup) == []
    return Browser(markup).fields


def exactly(value: Any) -> str:
    return json.dumps(value, default=repr)


@pytest.mark.parametrize("section", SHAPES)
@given(data=st.data())
def test_what_is_written_comes_back_from_the_form_and_the_browser_as_it_was(section: str, data: st.DataObject) -> None:
    shape = SHAPES[section]
    value = data.draw(values_of(shape))
    value = value | data.draw(st.sampled_from([{}, {"no_such_key": [1]}]))
    filled = filled_in(shape, value)
    fields = sent_back(shape, filled)
    again = read_sent(shape, Sent(fields, "", lambda kind: {}, lambda kind, text: text, []), {})
    assert exactly(written(shape, again, value, {})) == exactly(value)


@pytest.mark.parametrize("section", ["features", "points", "mail.templates"])
@given(data=st.data())
def test_a_text_is_changed_to_what_a_form_says_and_its_comments_stay(section: str, data: st.DataObject) -> None:
    one, other = data.draw(values_of(SHAPES[section])), data.draw(values_of(SHAPES[section]))
    assume(one)  # nothing is written as a mapping on one line
    text = f"# what it is for\n\n{yaml_of(one)}# the end\n"
    made = saying(text, other)
    assert exactly(_sorted(value_of(made) or {})) == exactly(_sorted(other))
    assert saying(text, one) == text
    assert made.startswith("# what it is for\n")


def _sorted(value: Any) -> Any:
    return {key: _sorted(inner) for key, inner in sorted(value.items())} if isinstance(value, dict) else value


@pytest.mark.parametrize("section", SHAPES)
def test_every_field_of_a_declaration_is_in_its_form(section: str) -> None:
    shape, left = SHAPES[section], set(APART.get(section, ()))
    declared = _keys(section) - left
    shown: set[str] = set()
    for chosen in shape.variants or [""]:
        filled = {shape.by: chosen} if shape.by else {}
        shown |= {field["key"] for field in shown_fields(shape, filled, Page(None, lambda kind: {}, set()), {})}
    assert declared <= shown
    assert all(field["title"] for field in shown_fields(shape, {}, Page(None, lambda kind: {}, set()), {}))


def _keys(section: str) -> set[str]:
    """The keys that a declaration has, read from its JSON Schema without what makes the form."""
    if SHAPES[section].is_bare:
        return {VALUE}
    top, *inside = section.split(".")
    declared = next(each for each in catalogue().sections if each.name == top)
    schema: Any = declared.schema
    for step in inside:
        schema = schema["properties"][step]
    inner = schema.get("additionalProperties") or schema
    ways = [inner, *inner.get("oneOf", ())]
    refs = [way["$ref"] for way in ways if "$ref" in way]
    schema = declared.defs[refs[0].rpartition("/")[2]] if refs else inner
    alternatives = (*schema.get("oneOf", ()), *schema.get("anyOf", ()))
    schema = next((way for way in alternatives if "properties" in way), schema)
    return set(schema["properties"]).union(*(each["then"]["properties"] for each in schema.get("allOf", ())))


def _has_switch(shape: Shape) -> bool:
    inner = [*shape.fields.values(), *shape.ways, *([shape.item] if shape.item else [])]
    return shape.kind == "switch" or any(map(_has_switch, inner))


def with_switches(shape: Shape, value: Any) -> Any:
    """A value with each switch that is not written as it then is."""
    if shape.kind == "ways":
        fitting = next((way for way in shape.ways if not isinstance(fill(way, value), Raw)), None)
        return value if fitting is None else with_switches(fitting, value)
    if shape.kind == "list" and shape.item and isinstance(value, list):
        return [with_switches(shape.item, item) for item in value]
    if shape.kind == "mapping" and shape.item and isinstance(value, dict):
        return {name: with_switches(shape.item, inner) for name, inner in value.items()}
    if shape.kind != "group" or not isinstance(value, dict):
        return value
    fields = fields_of(shape, value)
    usual = {name: bool(field.default) for name, field in fields.items() if field.kind == "switch"}
    return {**usual, **{name: with_switches(fields[name], each) for name, each in value.items() if name in fields}}


def turned(shape: Shape, value: Any) -> Iterator[Any]:
    """A value with one of its switches turned, for each of them."""
    if shape.kind == "switch":
        yield not value
    elif shape.kind == "ways":
        fitting = next((way for way in shape.ways if not isinstance(fill(way, value), Raw)), None)
        yield from () if fitting is None else turned(fitting, value)
    elif shape.kind == "list" and shape.item and isinstance(value, list):
        for number, item in enumerate(value):
            yield from ([*value[:number], other, *value[number + 1 :]] for other in turned(shape.item, item))
    elif isinstance(value, dict) and shape.kind in ("group", "mapping"):
        fields = fields_of(shape, value) if shape.kind == "group" else dict.fromkeys(value, shape.item)
        for name, inner in value.items():
            field = fields.get(name)
            yield from ({**value, name: other} for other in (turned(field, inner) if field else ()))


@pytest.mark.parametrize("section", [section for section, shape in SHAPES.items() if _has_switch(shape)])
@given(data=st.data())
def test_every_switch_stores_both_values_wherever_it_stands(section: str, data: st.DataObject) -> None:
    shape = SHAPES[section]
    before = data.draw(values_of(shape))
    for wanted in turned(shape, with_switches(shape, before)):
        fields = sent_back(shape, filled_in(shape, wanted))
        again = read_sent(shape, Sent(fields, "", lambda kind: {}, lambda kind, text: text, []), {})
        assert _normal(shape, written(shape, again, before, {})) == _normal(shape, wanted)


def test_there_are_switches_in_lists_and_mappings_to_be_turned() -> None:
    found = {section for section, shape in SHAPES.items() if _has_switch(shape)}
    assert {"campaigns", "retention"} <= found
