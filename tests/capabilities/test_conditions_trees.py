"""Trees of conditions against a slow evaluator of their own, the way they are written, and their limits."""

from __future__ import annotations

import sys
from typing import Any

import jsonschema_rs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.conditions_drawn import NAMES, traits, trees, values
from threadline.capabilities.foundation.conditions import Conditions, Subject, Traced, plain, read_json
from threadline.capabilities.foundation.conditions.forms import CONDITION, DEFS, WHEN_FORM
from threadline.capabilities.foundation.definitions import Document, Noted, Plain
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.limits import CONDITION_DEPTH_MAX, CONDITION_VALUES_MAX, CONDITIONS_MAX
from threadline.testing.audits.segments import outcome, satisfied


def subject(traits: dict[str, Any]) -> Subject:
    return Subject({"profile": {"traits": traits, "tags": [], "groups": {}}}.get)


def traced(conditions: Conditions, traits: dict[str, Any]) -> Traced:
    return conditions.trace(subject(traits))


@given(trees, traits)
def test_a_tree_is_what_the_slow_evaluator_says(tree: dict[str, Any], traits: dict[str, Any]) -> None:
    conditions = Conditions(read_json(tree))
    expected = satisfied(tree, {"traits": traits})
    assert conditions.test(subject(traits)) == expected
    assert traced(conditions, traits).matched == expected


@given(trees, traits)
def test_a_trace_tells_what_was_asked_and_no_more_is_needed(tree: dict[str, Any], traits: dict[str, Any]) -> None:
    conditions = Conditions(read_json(tree))
    trace = traced(conditions, traits)
    steps = trace.steps
    assert [step.step for step in steps] == list(range(1, len(steps) + 1))
    for step in steps:
        value = traits.get(str(step.field).removeprefix("traits."))
        if step.note == "skipped":
            assert step.matched is None
            assert step.actual is None
        else:
            assert step.matched == outcome(step.operator, value, step.expected)
            assert step.actual == value
            assert (step.note == "missing") == (value is None)
    # What was skipped has no say: with all of it turned round the tree answers the same.
    asked = {id(step) for step in steps if step.note != "skipped"}
    assert folded(tree, iter(steps), asked, False) == folded(tree, iter(steps), asked, True) == trace.matched


def read_yaml(document: Document, root: yaml.Node) -> Any:
    """The tree under a node; None if something is wrong with it."""
    try:
        return WHEN_FORM.read(Plain(document, "a condition").part(root)).tree
    except Noted:
        return None


def folded(tree: dict[str, Any], steps: Any, asked: set[int], otherwise: bool) -> bool:
    """The tree over the outcomes in a trace, with ``otherwise`` for what was skipped."""
    for name, settle in (("all", all), ("any", any)):
        if name in tree:
            return settle([folded(part, steps, asked, otherwise) for part in tree[name]])
    if "not" in tree:
        return not folded(tree["not"], steps, asked, otherwise)
    step = next(steps)
    return bool(step.matched) if id(step) in asked else otherwise


@given(trees)
def test_what_is_read_is_written_again_and_alike_in_yaml(tree: dict[str, Any]) -> None:
    node = read_json(tree)
    assert plain(node) == tree
    assert read_json(plain(node)) == node
    document = Document("test.yaml")
    root = document.compose(yaml.safe_dump(tree, allow_unicode=True))
    assert root is not None
    read = read_yaml(document, root)
    assert document.problems == []
    assert read == node


@given(trees, st.recursive(values, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_nothing_that_a_field_may_hold_raises(tree: dict[str, Any], held: Any) -> None:
    assert Conditions(read_json(tree)).test(subject(dict.fromkeys(NAMES, held))) in (True, False)


@pytest.mark.parametrize("held", [float("nan"), float("inf"), -float("inf"), "\ud800", "x" * 100_000, 2**64, b"80"])
def test_neither_do_values_that_only_python_can_tell(held: Any) -> None:
    for tree in (
        {"field": "traits.a", "greater_than": 1},
        {"field": "traits.a", "regex": "^x+$"},
        {"field": "traits.a", "in": [1, "a"]},
        {"field": "traits.a", "equals": "2026-03-01"},
    ):
        assert Conditions(read_json(tree)).test(subject({"a": held})) in (True, False)
    if isinstance(held, float):
        assert not Conditions(read_json({"field": "traits.a", "greater_than": -5})).test(subject({"a": held}))


def test_a_regular_expression_cannot_hang() -> None:
    """One that goes back over what it has tried would never end."""
    conditions = Conditions(read_json({"field": "traits.a", "regex": "^(a|a)*(a|aa)+$"}))
    assert not conditions.test(subject({"a": "a" * 30_000 + "b"}))


SCHEMA = jsonschema_rs.Draft202012Validator({**CONDITION, "$defs": DEFS})


@given(trees)
def test_the_schema_for_editors_takes_whatever_can_be_written(tree: dict[str, Any]) -> None:
    assert SCHEMA.is_valid(tree)


@pytest.mark.parametrize(
    "tree",
    [
        {},
        7,
        {"all": []},
        {"all": {}},
        {"field": "tags"},
        {"field": "tags", "exists": 1},
        {"exists": True},
        {"field": "tags", "contain": "x"},
        {"field": "tags", "in": []},
        {"field": "tags", "equals": None},
        {"field": "tags", "equals": 1, "exists": True},
        {"not": {"field": "tags"}},
        {"all": [{"x": 1}]},
        {"field": "tags", "less_than": True},
        {"any": [{"field": "tags", "exists": True}], "field": "x"},
    ],
    ids=str,
)
def test_the_schema_refuses_what_is_refused(tree: Any) -> None:
    assert not SCHEMA.is_valid(tree)
    with pytest.raises(InvalidDefinition):
        read_json(tree)


# --- fields -----------------------------------------------------------------------------------

EVENT = Event(
    type="purchase_completed",
    identifiers=(Identifier("user_id", "42"),),
    occurred_at=1_772_366_400_000_000,
    key="k",
    source="web",
    source_type="external",
    properties={"total": "29.33", "order": {"id": 7}, "note": None},
    context={"ip": "::1", "page": {"url": "/x"}},
    received_at=1_772_366_401_000_000,
    object_ref="order-7",
)
RECORDED = Recorded(EVENT, "0" * 32, "t" * 32, 1, 1_772_366_402_000_000)
VIEWS: dict[str, Any] = {
    "profile": {
        "traits": {"plan": "pro", "weight": {"value": 3, "unit": "kg"}, "renews_at": 1_772_366_400},
        "tags": ["vip"],
        "groups": {"acme": {}},
    },
    "features": {
        "spend": {"value": 80.5, "status": "PRESENT", "computed_at": 1_772_366_400_000_000, "changes_at": None},
        "score_at": {"value": 7, "computed_at": 0},
    },
    "memory": {
        "purchase": {
            "last": {"value": {"name": "shoe", "value": 5, "box": {"value": 2}}, "confidence": 0.9},
            "a.b": {"value": 1},
            "due_at": {"value": {"paid_at": 1_772_366_400}, "confidence": 1},
        }
    },
    "points": {"balance": 15},
    "odd": ["a", "list"],
}
FIELDS = [
    ("event.type", "purchase_completed"),
    ("event.key", "k"),
    ("event.source", "web"),
    ("event.source_type", "external"),
    ("event.id", "0" * 32),
    ("event.occurred_at", "2026-03-01T12:00:00.000000Z"),
    ("event.historical", False),
    ("event.received_at", "2026-03-01T12:00:01.000000Z"),
    ("event.recorded_at", "2026-03-01T12:00:02.000000Z"),
    ("event.object_ref", "order-7"),
    ("event.schema_version", None),
    ("event.identifiers", ["user_id:42"]),
    ("event.properties.total", "29.33"),
    ("event.properties.order.id", 7),
    ("event.properties.note", None),
    ("event.properties.order.id.x", None),
    ("event.context.ip", "::1"),
    ("event.context.page.url", "/x"),
    ("traits.plan", "pro"),
    ("traits.weight", {"value": 3, "unit": "kg"}),
    ("traits.weight.unit", "kg"),
    ("traits.plan.x", None),
    ("tags", ["vip"]),
    ("groups", {"acme": {}}),
    ("groups.acme", {}),
    ("features.spend", 80.5),
    ("features.spend.value", 80.5),
    ("features.spend.status", "PRESENT"),
    ("features.spend.computed_at", "2026-03-01T12:00:00.000000Z"),
    ("features.other", None),
    # Only what Threadline tells is its own kind of time; a number that somebody told is a number.
    ("traits.renews_at", 1_772_366_400),
    ("features.score_at", 7),
    ("memory.purchase.due_at.paid_at", 1_772_366_400),
    ("features.score_at.computed_at", "1970-01-01T00:00:00.000000Z"),
    ("memory.purchase.last", {"name": "shoe", "value": 5, "box": {"value": 2}}),
    ("memory.purchase.last.box", {"value": 2}),
    ("memory.purchase.last.name", "shoe"),
    ("memory.purchase.last.value.value", 5),
    ("memory.purchase.last.confidence", 0.9),
    (["memory", "purchase", "a.b"], 1),
    ("points.balance", 15),
    ("odd.x", None),
    ("nobody.knows", None),
]


@pytest.mark.parametrize(("field", "held"), FIELDS, ids=str)
def test_fields_reach_the_event_and_whatever_is_known(field: Any, held: Any) -> None:
    conditions = Conditions(read_json({"field": field, "exists": True}))
    (step,) = conditions.trace(Subject(VIEWS.get, RECORDED)).steps
    assert step.actual == held
    assert step.field == field
    assert conditions.test(Subject(VIEWS.get, RECORDED)) == (held is not None)


def test_without_an_event_its_fields_are_missing() -> None:
    for field in (
        "event.type",
        "event.id",
        "event.occurred_at",
        "event.properties.a",
        "event.context.a",
        "event.properties.a.b",
    ):
        assert not Conditions(read_json({"field": field, "exists": True})).test(Subject(VIEWS.get))


def test_each_view_is_made_once_and_only_when_a_field_needs_it() -> None:
    made: list[str] = []

    def make(name: str) -> Any:
        made.append(name)
        return VIEWS.get(name)

    tree = {
        "all": [
            {"field": "features.spend", "greater_than": 80},
            {"field": "features.spend.status", "equals": "PRESENT"},
            {"any": [{"field": "tags", "contains": "vip"}, {"field": "points.balance", "exists": True}]},
        ]
    }
    conditions = Conditions(read_json(tree))
    asked = Subject(make)
    assert conditions.test(asked)
    assert conditions.trace(asked).matched
    assert made == ["features", "profile"]
    assert conditions.reads == (
        ("features", ("spend",)),
        ("features", ("spend", "status")),
        ("profile", ("tags",)),
        ("points", ("balance",)),
    )


# --- mistakes ---------------------------------------------------------------------------------

MISTAKES: list[tuple[Any, str]] = [
    (7, "c: a condition is a mapping"),
    ([], "c: a condition is a mapping"),
    ({}, "c: a condition names its `field`"),
    ({"al": []}, "c: a condition names its `field`, or is one of all, any and not; did you mean 'all'?"),
    ({"all": []}, "c.all: `all` takes a list of at least one condition"),
    ({"any": {"field": "tags", "exists": True}}, "c.any: `any` takes a list"),
    ({"all": [1]}, "c.all[0]: a condition is a mapping"),
    ({"not": [{"field": "tags", "exists": True}]}, "c.not: a condition is a mapping"),
    ({"not": {"all": [{"x": 1}]}}, "c.not.all[0]: a condition names its `field`"),
    ({"all": [{"field": "tags", "exists": True}], "field": "x"}, "c.field: `all` stands alone"),
    ({"field": "traits.a"}, "c: a condition has one operator"),
    ({"field": "traits.a", "equals": 1, "exists": True}, "c: a condition has one operator"),
    ({"field": "traits.a", "equal": 1}, "c.equal: unknown operator 'equal'; did you mean 'equals'?"),
    ({"field": "traits.a", "gtt": 1}, "c.gtt: unknown operator 'gtt'; did you mean 'gt'?"),
    ({"field": "traits.a", "gt": 1, "greater_than": 1}, "c: a condition has one operator"),
    ({"field": "traits.a", "gt": True}, "c.gt: `gt` takes a number or a text"),
    ({"field": "traits.a", "not": 1}, "c.not: unknown operator 'not'; write `not_equals`, or `not_in` for a list"),
    ({"field": "", "equals": 1}, "c.field: a field is a path"),
    ({"field": "traits..a", "equals": 1}, "c.field: a field is a path"),
    ({"field": ["traits", 1], "equals": 1}, "c.field: a field is a path"),
    ({"field": 5, "equals": 1}, "c.field: a field is a path"),
    ({"field": "traits", "equals": 1}, "c.field: name one trait"),
    ({"field": "event", "equals": 1}, "c.field: an event has type"),
    ({"field": "event.tpye", "equals": 1}, "c.field: an event has type"),
    ({"field": "event.properties", "exists": True}, "c.field: event.properties is a whole object"),
    ({"field": "event.type.x", "exists": True}, "c.field: event.type is a plain value"),
    ({"field": "traits." + "a" * 1_000, "exists": True}, "c.field: a field has at most 1000 characters"),
    ({"field": "traits.a", "equals": None}, "c.equals: `equals` takes no null"),
    ({"field": "traits.a", "equals": [1]}, "c.equals: `equals` takes a text, a number, true or false"),
    ({"field": "traits.a", "equals": {"b": 1}}, "c.equals: `equals` takes a text, a number, true or false"),
    ({"field": "traits.a", "equals": float("nan")}, "c.equals: `equals` takes finite numbers"),
    ({"field": "traits.a", "equals": 2**64}, "c.equals: `equals` takes numbers of 64 bits"),
    ({"field": "traits.a", "equals": "x" * 1_001}, "c.equals: `equals` takes a text of at most 1000 characters"),
    ({"field": "traits.a", "less_than": True}, "c.less_than: `less_than` takes a number or a text"),
    ({"field": "traits.a", "starts_with": 8}, "c.starts_with: `starts_with` takes a text"),
    ({"field": "traits.a", "in": 8}, "c.in: `in` takes a list of 1 to 1000 values"),
    ({"field": "traits.a", "in": []}, "c.in: `in` takes a list of 1 to 1000 values"),
    ({"field": "traits.a", "not_in": [1, None]}, "c.not_in: `not_in` takes no null"),
    ({"field": "traits.a", "in": list(range(CONDITION_VALUES_MAX + 1))}, "c.in: `in` takes a list"),
    ({"field": "traits.a", "exists": 1}, "c.exists: `exists` takes true or false"),
    ({"field": "traits.a", "regex": "(a"}, "c.regex: `regex` cannot be used: '(a' is not a regular expression of RE2"),
    ({"field": "traits.a", "regex": r"(a)\1"}, "c.regex: `regex` cannot be used"),
    ({"field": "traits.a", "regex": "(a{999}){999}"}, "c.regex: `regex` cannot be used"),
    ({"all": [{"field": "tags", "exists": True}] * (CONDITIONS_MAX + 1)}, "c: 51 conditions stand here, 50 may"),
]


@pytest.mark.parametrize(("tree", "message"), MISTAKES, ids=lambda each: str(each)[:60])
def test_each_mistake_is_named_where_it_stands(tree: Any, message: str) -> None:
    with pytest.raises(InvalidDefinition) as raised:
        read_json(tree, "c")
    assert str(raised.value).startswith(message), str(raised.value)


def nested(depth: int) -> dict[str, Any]:
    tree: dict[str, Any] = {"field": "tags", "exists": True}
    for _ in range(depth):
        tree = {"not": tree}
    return tree


def test_depth_is_bounded() -> None:
    assert Conditions(read_json(nested(CONDITION_DEPTH_MAX))).test(subject({})) in (True, False)
    for depth in (CONDITION_DEPTH_MAX + 1, 10_000):
        with pytest.raises(InvalidDefinition, match="5 levels deep"):
            read_json(nested(depth))


def test_several_mistakes_are_told_at_once_with_their_lines() -> None:
    document = Document("segments.yaml")
    root = document.compose(
        "all:\n  - {field: traits.a, equals: 1}\n  - field: traits.b\n    equalz: 2\n"
        "  - any:\n      - {field: event.x, in: [1]}\n"
        "      - {field: traits.c, equals: 1, equals: 2}\n"
    )
    assert root is not None
    assert read_yaml(document, root) is None
    assert document.problems == ["segments.yaml:7: a condition: `all[2].any[1]`: 'equals' is listed twice; keep one"]
    document = Document("segments.yaml")
    root = document.compose("all:\n  - field: traits.b\n    equalz: 2\n  - any:\n      - {field: event.x, in: [1]}\n")
    assert root is not None
    assert read_yaml(document, root) is None
    assert sorted(problem.split(": ")[0] for problem in document.problems) == ["segments.yaml:3", "segments.yaml:5"]


@pytest.mark.parametrize("text", ["&a [*a]", "&a {all: [*a]}", "{not: &a {not: *a}}"])
def test_an_alias_that_goes_in_circles_is_refused(text: str) -> None:
    document = Document("t.yaml")
    root = document.compose(text)
    if root is not None:
        assert read_yaml(document, root) is None
    assert document.problems


@pytest.mark.slow
def test_aliases_that_multiply_are_refused_soon() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    document = Document("t.yaml")
    root = document.compose("\n".join(lines))
    assert root is None or read_yaml(document, root) is None
    assert document.problems


def test_without_re2_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(InvalidDefinition, match=r"pip install '\.\[rules\]'"):
        read_json({"field": "traits.a", "regex": "^x"})
