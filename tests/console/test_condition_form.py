"""Conditions as a form: whatever it says is said by its YAML and back, and what it cannot say stays YAML."""

from __future__ import annotations

import html
import html.parser
import math
import re
from collections.abc import Sequence
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities import conditions_drawn as drawn
from tests.console.stage import HOSTILE, close_up, csrf_of, opened, record, signed_in, unsafe
from threadline.capabilities.foundation.conditions import Node, plain, read_json
from threadline.capabilities.foundation.conditions.operators import OPERATORS
from threadline.engine.engine import Engine
from threadline.kernel.time import check_date
from threadline.surfaces.console.condition_form import (
    DENIED,
    NOT,
    Group,
    Known,
    Row,
    Unfinished,
    changed,
    comparisons,
    fitted,
    form_of,
    kinds_of,
    path_of,
    read_fields,
    shown,
    tree_of,
)
from threadline.surfaces.console.conditions_yaml import tree_in, value_in, with_value
from threadline.surfaces.console.frame import render

FLOAT = re.compile(r"-?([0-9]+(\.[0-9]+)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
TEXTS = st.sampled_from(
    [text for text in HOSTILE if text and "\n" not in text and "\r" not in text and "\0" not in text]
)
VALUES = {
    "text": TEXTS | st.sampled_from(["80", "true", "2026-03-01", " a ", "NO", "12:30", "01234", "1e3"]),
    "number": (st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)).map(str),
    "flag": st.sampled_from(["true", "false"]),
}
FIELDS = st.sampled_from(["traits.plan", "features.monetary_total", '["memory", "a.b", "c"]', "traits.[x", "tags"])


class Sent(html.parser.HTMLParser):
    """What a browser sends of a form: it keeps no text in a field for numbers or dates that is neither."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self._select = self._textarea = ""
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if given.get("type") == "checkbox" and "checked" not in given:
            return
        if tag == "input" and "name" in given:
            self.fields[given["name"]] = _kept(given.get("type", "text"), given.get("value", ""))
        elif tag == "select":
            self._select = given["name"]
        elif tag == "option" and self._select and ("selected" in given or self._select not in self.fields):
            self.fields[self._select] = given["value"]
        elif tag == "textarea":
            self._textarea = given["name"]
            self.fields[self._textarea] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._select = ""
        elif tag == "textarea":
            self.fields[self._textarea] = self.fields[self._textarea].removeprefix("\n").replace("\n", "\r\n")
            self._textarea = ""

    def handle_data(self, data: str) -> None:
        if self._textarea:
            self.fields[self._textarea] += data


def _kept(type: str, value: str) -> str:
    if type == "number":
        return value if FLOAT.fullmatch(value) else ""
    if type == "date":
        check_date(value)
    assert not re.search(r"[\r\n\0]", value) or type == "hidden"
    return value


def sent(form: Group, known: dict[str, Known], text: str = "") -> dict[str, str]:
    """The fields of a form as the page shows it."""
    context = {"kind": {"text": "text", "section": "segments", "first": []}, "view": "form", "text": text}
    field = {"kind": "condition", "key": "when", "needed": True, "form": shown(form, known, None)}
    markup = render("editor_panel.html", {**context, "fields": [field], "offered": {}, "condition_fields": {}})
    assert unsafe(markup) == []
    return Sent(markup).fields


@st.composite
def rows(draw: st.DrawFn) -> Row:
    comparison = draw(st.sampled_from([each.name for each in comparisons()]))
    kinds = kinds_of(comparison)
    if not kinds:
        return Row(draw(FIELDS), comparison)
    kind = draw(st.sampled_from(kinds))
    if OPERATORS[comparison.removeprefix(DENIED)].operand == "list":
        value = "\n".join(draw(st.lists(VALUES[kind], min_size=1, max_size=4)))
    else:
        value = draw(VALUES[kind])
    return Row(draw(FIELDS), comparison, kind, value)


groups = st.builds(
    lambda how, parts: Group(how, tuple(parts)),
    st.sampled_from(["all", "any", "none", "not_all"]),
    st.lists(rows(), min_size=1, max_size=3),
)
forms = st.builds(
    lambda how, parts, is_single: Group(
        how, tuple(parts), is_single and how == "all" and len(parts) == 1 and isinstance(parts[0], Row)
    ),
    st.sampled_from(["all", "any", "none", "not_all"]),
    st.lists(rows() | groups, min_size=1, max_size=4),
    st.booleans(),
)


def exactly(tree: Node) -> str:
    """A tree as text: to Python 1 is 1.0 and true."""
    return repr(plain(tree))


def numbered(form: Group) -> Group:
    """The form with numbers as a tree gives them back: 080 as 80."""
    parts: list[Row | Group] = []
    for part in form.parts:
        if isinstance(part, Group):
            parts.append(numbered(part))
        elif part.kind == "number":
            lines = (line if re.fullmatch("-?[0-9]+", line) else repr(float(line)) for line in part.value.split("\n"))
            parts.append(part._replace(value="\n".join(lines)))
        else:
            parts.append(part)
    return form._replace(parts=tuple(parts))


@given(forms)
def test_a_form_is_said_by_its_tree_and_by_its_yaml(form: Group) -> None:
    tree = tree_of(form)
    assert form_of(tree) == numbered(form)
    text = with_value("description: x\n", "when", plain(tree))
    back = tree_in(text, "when")
    assert not isinstance(back, str)
    assert form_of(back) == numbered(form)


@given(forms, st.sampled_from(["number", "text", "time", "flag", "list", ""]))
def test_a_browser_sends_the_form_that_it_was_shown(form: Group, type: str) -> None:
    known = {"traits.plan": Known("traits.plan", "plan (trait)", type, ["pro", 3, True])}
    fields = sent(form, known)
    assert numbered(fitted(read_fields(fields, {"plan (trait)": "traits.plan"}), known)) == numbered(form)
    assert numbered(fitted(read_fields(fields, {}), {})) == numbered(form), "nothing has to be looked up"


@given(drawn.trees)
def test_a_tree_that_the_form_can_say_comes_back_as_it_was(tree: dict[str, Any]) -> None:
    node = read_json(tree)
    form = form_of(node)
    if form is not None:
        assert exactly(tree_of(fitted(read_fields(sent(form, {}), {}), {}))) == exactly(node)


@given(drawn.trees, drawn.trees)
def test_another_tree_takes_the_place_of_one_in_a_text_and_all_else_stays(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    node = read_json(other)
    text = f"# what it is for\ndescription: Öl  # a note\n{yaml.safe_dump({'when': one})}\n# the end\npriority: 3\n"
    spliced = with_value(text, "when", plain(node))
    back = tree_in(spliced, "when")
    assert not isinstance(back, str)
    assert exactly(back) == exactly(node)
    for line in ("# what it is for", "description: Öl  # a note", "# the end", "priority: 3"):
        assert line in spliced.split("\n")


@pytest.mark.parametrize(
    "tree",
    [
        {"all": [{"any": [{"all": [{"field": "tags", "exists": True}]}]}]},
        {"not": {"not": {"field": "tags", "exists": True}}},
        {"field": "traits.a", "in": [1, "a"]},
        {"field": "traits.a", "in": [True]},
        {"field": "traits.a", "equals": ""},
        {"field": "traits.a", "equals": "two\nlines"},
        {"field": "traits.a", "in": ["a", "b\rc"]},
    ],
)
def test_what_the_form_cannot_say_stays_yaml(tree: dict[str, Any]) -> None:
    assert form_of(read_json(tree)) is None
    with opened() as engine:
        client = signed_in(engine)
        text = yaml.safe_dump({"when": tree})
        page = client.post(
            "/segments/new?part=panel",
            data={"text": text, "_by": "yaml", "_to": "form", "_csrf": csrf_of(client, engine)},
        ).text
    fields = Sent(page).fields
    assert yaml.safe_load(fields["_when.yaml"]) == tree
    assert fields["text"].replace("\r\n", "\n") == text


@pytest.mark.parametrize(
    "text", ["when: {field: a", "[1]", "when: {field: tags, is: vip}", "when: {field: traits.a, equals: NO}"]
)
def test_a_text_that_is_wrong_is_not_touched(text: str) -> None:
    assert tree_in(text, "when") == "wrong"


def test_a_text_in_one_line_keeps_its_other_values() -> None:
    tree = read_json({"field": "tags", "contains": "vip"})
    text = with_value("{description: all of them, when: {field: tags, exists: true}}", "when", plain(tree))
    assert yaml.safe_load(text) == {"description": "all of them", "when": {"field": "tags", "contains": "vip"}}
    assert with_value("", "when", plain(tree)) == "when: {field: tags, contains: vip}\n"


@given(TEXTS | st.sampled_from(["", " a ", "NO", "12:30", "- a", "a: b", "# a", "'"]))
def test_a_description_is_put_into_the_text_and_all_else_stays(description: str) -> None:
    for text in (
        "",
        "when: {field: tags, exists: true}\n# the end\n",
        "description: old  # note\npriority: 3\n",
        "{a: 1}",
    ):
        made = with_value(text, "description", description)
        assert value_in(made, "description") == description
        values = {**(yaml.safe_load(text) or {}), "description": description}
        assert {**values, **(yaml.safe_load(made) or {})} == values
        assert ("# the end" in made) == ("# the end" in text)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (Row(), "choose a field"),
        (Row("tags", "no_such"), "choose a comparison"),
        (Row("tags", "contains", "text"), "give a value"),
        (Row("traits.age", "in", "number", "3\nx"), "'x' is no number"),
        (Row("traits.age", "equals", "number", "nan"), "'nan' is no number"),
    ],
)
def test_a_row_that_is_not_finished_says_what_is_missing(row: Row, problem: str) -> None:
    with pytest.raises(Unfinished) as raised:
        tree_of(Group("all", (Row("tags", "exists"), row)))
    assert str(raised.value) == problem
    assert raised.value.name.startswith("_when.1.")


def test_buttons_add_and_remove_conditions_and_groups_and_say_where_to_go_on() -> None:
    form = Group("all", (Row("a.b", "exists"),))
    form, focus = changed(form, "group")
    assert focus == "_when.1.0.field"
    form, focus = changed(form, "row:1")
    assert focus == "_when.1.1.field"
    form, focus = changed(form, "row")
    assert (focus, len(form.parts)) == ("_when.2.field", 3)
    assert changed(form, "drop:1.0")[0].parts[1] == Group("any", (Row(),))
    assert changed(changed(form, "drop:1.0")[0], "drop:1.0")[0].parts == (Row("a.b", "exists"), Row())
    assert changed(form, "drop:1")[0].parts == (Row("a.b", "exists"), Row())
    assert changed(Group("all", (Row("a.b", "exists"),)), "drop:0")[0].parts == (Row(),)
    for odd in ("drop:9", "row:0", "drop", "nothing", "drop:x.y", ""):
        assert changed(form, odd)[0].parts[:3] == form.parts


def test_comparisons_that_are_offered_fit_the_type_of_the_field_and_read_as_words() -> None:
    def offered(type: str, comparison: str = "exists") -> list[str]:
        known = {"a": Known("a", "a", type, [])}
        (row,) = shown(Group("all", (Row("a", comparison),)), known, None)["parts"]
        return [each["text"] for each in row["offered"]]

    assert offered("flag") == ["is", "is not", "is known", "is missing", "is not, or is missing"]
    assert offered("list") == [
        "contains",
        "does not contain",
        "is known",
        "is missing",
        "does not contain, or is missing",
    ]
    assert offered("number", "!greater_than")[-1] != "not: is more than"
    assert "not: is more than" in offered("number", "!greater_than")
    assert "not: is more than" not in offered("number")
    assert "is after" in offered("time")
    assert "is more than" in offered("number")
    assert "is more than" not in offered("text")
    assert "starts with" in offered("list", "starts_with"), "what is written stays on offer"
    assert len(offered("")) == len(OPERATORS) + 1 + 3, "one takes a flag, and three have a contrary of their own"


def test_a_row_for_another_field_takes_a_comparison_and_a_value_that_fit() -> None:
    known = {"n": Known("n", "n", "number", []), "f": Known("f", "f", "flag", []), "t": Known("t", "t", "time", [])}

    def after(row: Row) -> Row:
        (part,) = fitted(Group("all", (row,)), known).parts
        assert isinstance(part, Row)
        return part

    assert after(Row("n", "starts_with", "", "pro")) == Row("n", "equals", "number", "")
    assert after(Row("n", "less_than", "", "3")) == Row("n", "less_than", "number", "3")
    assert after(Row("f", "less_than", "", "3")) == Row("f", "equals", "flag", "true")
    assert after(Row("f", f"exists{NOT}", "", "")) == Row("f", f"exists{NOT}", "", "")
    assert after(Row("t", "less_than", "", "2026-03-01")).kind == "text"
    assert after(Row("n", "in", "text", "a\nb")) == Row("n", "in", "text", "a\nb"), "what is written is not changed"


# --- the page ---------------------------------------------------------------------------------


def _fill(engine: Engine) -> None:
    record(engine, ("ada", "identify", {"plan": "club", "age": 3}), ("bob", "identify", {"plan": "pro"}))


def _form(*rows: tuple[str, str, str], how: str = "all") -> dict[str, str]:
    fields = {"_by": "form", "_key": "when", "_section": "segments", "_text": "text", "_when.how": how, "text": ""}
    for number, (field, comparison, value) in enumerate(rows):
        name = f"_when.{number}"
        fields |= {f"{name}.field": field, f"{name}.is": comparison, f"{name}.value": value, f"{name}.shown": ""}
    return fields


@pytest.mark.parametrize("part", ["panel", "checked", "preview", ""])
def test_hostile_texts_as_fields_and_values_are_texts(part: str) -> None:
    with opened() as engine:
        _fill(engine)
        client = signed_in(engine, "marketer")
        for text in HOSTILE[:: 1 if part == "panel" else 23]:
            for rows in ([("plan (trait)", "equals", text)], [(text, "in", text), ("tags", text, text)]):
                data = {**_form(*rows), "_csrf": csrf_of(client, engine)}
                answer = client.post(f"/segments/new?part={part}", data=data)
                assert answer.status_code == 200, (text, answer.text)
                assert unsafe(answer.text) == []


def test_a_field_is_chosen_by_its_name_in_words_and_people_are_counted() -> None:
    with opened() as engine:
        _fill(engine)
        client = signed_in(engine, "marketer")
        data = {
            **_form(("plan (trait)", "equals", "club"), ("age (trait)", "less_than", "4")),
            "_csrf": csrf_of(client, engine),
        }
        data["_description"] = "Who pays: all"
        panel = client.post("/segments/new?part=panel", data=data).text
        assert yaml.safe_load(Sent(panel).fields["text"]) == {
            "description": "Who pays: all",
            "when": {"all": [{"field": "traits.plan", "equals": "club"}, {"field": "traits.age", "less_than": 4}]},
        }
        preview = client.post("/segments/new?part=preview", data=data).text
        assert "<strong>1</strong>" in preview
        blank = {**data, "_when.2.field": "", "_when.2.is": "equals", "_when.2.value": ""}
        assert "Please choose a field." in client.post("/segments/new?part=checked", data=blank).text
        unfinished = {**data, "_when.1.value": "", "_to": "yaml"}
        kept = client.post("/segments/new?part=panel", data=unfinished).text
        assert "give a value" in kept
        assert Sent(kept).fields["_by"] == "form", "what is not finished would be lost in the YAML"
        assert "not finished" in client.post("/segments/new?part=checked", data=unfinished).text


def test_a_rule_is_written_with_the_conditions_of_the_form_and_the_rest_of_its_yaml() -> None:
    with opened() as engine:
        _fill(engine)
        client = signed_in(engine)
        data = {
            **_form(("total of the event", "greater_than", "7.50")),
            "_key": "conditions",
            "_section": "rules",
            "_text": "rule:yaml",
            "_csrf": csrf_of(client, engine),
            "id": "dear",
            "rule:yaml": "priority: 3\nconditions: {field: tags, exists: true}\n",
        }
        record(engine, ("ada", "paid", {"total": 3}))
        accept = {"accept": "application/json"}
        made = client.post("/do/rules_write", data=data, headers=accept)
        assert made.status_code == 200, made.text
        shown_page = " ".join(client.get("/rules/dear").text.split())
        assert (
            'title="event.properties.total">total of the event</span> is more than <strong>7.5</strong>' in shown_page
        )
        assert "&quot;priority&quot;: 3" in shown_page
        refused = client.post("/do/rules_write", data={**data, "_when.0.value": ""}, headers=accept)
        assert refused.status_code == 400
        assert refused.json()["problem"] == "a condition is not finished: give a value"
        foreign = client.post("/do/rules_write", data={**data, "_csrf": "x"}, headers=accept)
        assert foreign.status_code == 403


def test_a_field_that_nobody_has_is_called_by_its_name_in_words_and_keeps_its_path() -> None:
    with opened() as engine:
        _fill(engine)
        client = signed_in(engine)
        data = {**_form(("traits.nobody_has", "equals", "x")), "_csrf": csrf_of(client, engine)}
        for _ in range(2):
            page = client.post("/segments/new?part=panel", data=data).text
            data |= Sent(page).fields
            assert (data["_when.0.field"], data["_when.0.path"]) == ("nobody has (trait)", "traits.nobody_has")
            assert yaml.safe_load(data["text"])["when"]["all"][0]["field"] == "traits.nobody_has"
        assert "nobody has (trait)" not in page.partition('id="condition-fields"')[2]
        for odd in ("traits.", "..", '["traits", "a\\u0000"]', "traits.a\u200bb"):
            answer = client.post("/segments/new?part=panel", data={**data, "_when.0.field": odd})
            assert Sent(answer.text).fields["_when.0.field"] == odd, "it is shown as it is where it has no name to show"


def test_a_number_that_is_none_has_no_infinity() -> None:
    with pytest.raises(Unfinished):
        tree_of(Group("all", (Row("a", "equals", "number", str(math.inf)),)))
    assert path_of('["a.b", 1]') == ('["a', 'b", 1]')


def test_two_fields_that_read_alike_are_told_apart_by_their_paths() -> None:
    with opened() as engine:
        record(engine, ("ada", "identify", {"a_b": 1, "a b": 2, "a.b": 3}))
        client = signed_in(engine)
        page = client.get("/segments/new").text
        labels = re.findall(r'<option value="([^"]*)">number', close_up(page))
        assert len(labels) == len(set(labels))
        found = {html.unescape(each) for each in labels}
        wanted = {"a b (trait)", "a.b (trait)", "traits.a_b", "traits.a b"} & found
        assert len(wanted) == 3, "two read alike, and one of these is called by its path"
        paths = set()
        for name in wanted:
            data = {**_form((name, "equals", "1")), "_csrf": csrf_of(client, engine)}
            panel = Sent(client.post("/segments/new?part=panel", data=data).text).fields
            assert panel["_when.0.field"] == name
            paths.add(panel["_when.0.path"])
        assert paths == {"traits.a_b", "traits.a b", '["traits", "a.b"]'}
