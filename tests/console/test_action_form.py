"""What a rule does as a form: whatever it says is said by its YAML and back, and what it cannot say stays YAML."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.console.stage import HOSTILE, csrf_of, opened, signed_in, unsafe
from tests.console.test_condition_form import Sent
from threadline.capabilities.decide.rules.actions import KINDS, SYNONYMS, Param
from threadline.surfaces.console.action_form import (
    ADD,
    MORE,
    PREFIX,
    Act,
    Field,
    Given,
    Unfinished,
    changed,
    fitted,
    form_of,
    is_written,
    list_of,
    read_fields,
    shown,
)
from threadline.surfaces.console.conditions_yaml import value_in, with_value
from threadline.surfaces.console.frame import render

LINES = st.sampled_from([text for text in HOSTILE if text and "\r" not in text and "\0" not in text])
TEXTS = LINES.filter(lambda text: "\n" not in text) | st.sampled_from(
    ["80", "true", " a ", "NO", "${traits.name}", "0x"]
)
NUMBERS = st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = TEXTS | LINES | NUMBERS | st.booleans()
OBJECTS = st.dictionaries(TEXTS, SCALARS | st.just(""), min_size=1, max_size=3)


def values_of(param: Param) -> st.SearchStrategy[Any]:
    if param.choices:
        return st.sampled_from([*param.choices, "${traits.level}"])
    by_kind = {
        "text": TEXTS,
        "lines": TEXTS | LINES,
        "number": NUMBERS | st.just("${event.properties.total}"),
        "object": OBJECTS,
        "anything": SCALARS | OBJECTS,
    }
    return by_kind[param.takes]


@st.composite
def actions(draw: st.DrawFn) -> dict[str, Any]:
    kind = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    one = draw(st.sampled_from(kind.one_of)) if kind.one_of else ""
    params = {
        name: draw(values_of(param))
        for name, param in kind.params.items()
        if (name == one if name in kind.one_of else param.required or draw(st.booleans()))
    }
    if kind.open:
        params |= {name: value for name, value in draw(OBJECTS).items() if name not in params}
    return {kind.name: params}


def exactly(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def sent(form: tuple[Act, ...], text: str = "") -> dict[str, str]:
    """The fields of a form as a browser sends the page that shows it."""
    context = {"kind": {"text": "rule:yaml", "section": "rules", "first": []}, "view": "form", "text": text}
    rest = {"fields": [], "offered": {}, "condition_fields": {}}
    markup = render("editor_panel.html", {**context, **rest, "acts": shown(form, None)})
    assert unsafe(markup) == []
    return Sent(markup).fields


@given(st.lists(actions(), max_size=3))
def test_actions_come_back_from_the_form_the_browser_and_the_yaml_as_they_were(wanted: list[dict[str, Any]]) -> None:
    form = form_of(wanted)
    assert form is not None
    assert exactly(list_of(form)) == exactly(wanted)
    assert exactly(list_of(fitted(read_fields(sent(form))))) == exactly(wanted)
    text = with_value("# ours\nactions: []\npriority: 3  # a note\n", "actions", wanted)
    assert is_written(value_in(text, "actions"), wanted)
    assert exactly(value_in(text, "actions")) == exactly(wanted)
    assert text.startswith("# ours\n")
    assert "priority: 3  # a note" in text


@pytest.mark.parametrize(
    "written",
    [
        [{"emit_event": {"type": "paid", "properties": {"items": [1, 2]}}}],
        [{"emit_event": {"type": "paid", "properties": {"inner": {"a": 1}}}}],
        [{"emit_event": {"type": "paid", "properties": {}}}],
        [{"tag": {"tag": 5}}],
        [{"tag": {"tag": ""}}],
        [{"tag": {"tag": "vip", "other": 1}}],
        [{"tag": {}}],
        [{"award_points": {"points": "5"}}],
        [{"set_value": {"trait": "a", "fact": "b", "value": 1}}],
        [{"set_value": {"trait": "a", "value": None}}],
        [{"log_event": {"message": "two\r\nlines"}}],
        [{"store_decision": {"result": "reject", "more": [1]}}],
        [{"no_such": {}}],
        [{"tag": {"tag": "a"}, "untag": {"tag": "b"}}],
        ["tag"],
        {"tag": {"tag": "vip"}},
        "tag",
    ],
)
def test_what_the_form_cannot_say_stays_yaml_and_is_not_touched(written: Any) -> None:
    assert form_of(written) is None
    with opened() as engine:
        client = signed_in(engine)
        text = yaml.safe_dump({"conditions": {"field": "tags", "exists": True}, "actions": written})
        data = {"rule:yaml": text, "_by": "yaml", "_to": "form", "_csrf": csrf_of(client, engine)}
        panel = client.post("/rules/new?part=panel", data=data).text
        assert "What the rule then does is shown as YAML only" in panel
        fields = Sent(panel).fields
        assert "_acts" not in fields
        again = client.post("/rules/new?part=panel", data={**fields, "_to": "yaml", "_csrf": data["_csrf"]}).text
    assert yaml.safe_load(Sent(again).fields["rule:yaml"]) == yaml.safe_load(text)


def test_a_rule_that_decides_by_a_model_is_yaml_and_has_no_row_of_conditions() -> None:
    with opened() as engine:
        client = signed_in(engine)
        text = "model: {linear: {weights: {features.monetary_total: 0.5}}, at_least: 10}\nactions: []\n"
        data = {"rule:yaml": text, "_by": "yaml", "_to": "form", "_csrf": csrf_of(client, engine)}
        panel = client.post("/rules/new?part=panel", data=data).text
    assert yaml.safe_load(Sent(panel).fields["_f.model.yaml"]) == yaml.safe_load(text)["model"]
    assert "_when" not in panel
    assert yaml.safe_load(Sent(panel).fields["rule:yaml"]) == yaml.safe_load(text)


def test_other_spellings_of_a_kind_are_the_same_and_stay_as_they_are_written() -> None:
    for spelled, name in SYNONYMS.items():
        params = {"tag": "vip"} if name in ("tag", "untag") else {"points": 3} if name == "award_points" else None
        if params is not None:
            form = form_of([{spelled: params}])
            assert form is not None
            assert list_of(form) == [{name: params}]
            assert is_written([{spelled: params}], [{name: params}])


def test_the_form_shows_every_parameter_of_every_kind_that_is_declared() -> None:
    for kind in KINDS.values():
        for one in kind.one_of or ("",):
            (found,) = shown(fitted((Act(kind.name, one),)), None)
            names = {each["param"] for each in (*found["asked"], *found["folded"])}
            assert names == {name for name in kind.params if name not in kind.one_of or name == one}
            assert {each["param"] for each in found["asked"]} == {
                name for name, param in kind.params.items() if name == one or (param.required and name in names)
            }
            assert found["does"].endswith(".")
            assert (found["open"] is not None) == kind.open


def emitting(field: Field) -> Act:
    return Act("emit_event", "", {"type": Given(value="a"), "properties": Given(fields=(field,))})


@pytest.mark.parametrize(
    ("act", "problem", "where"),
    [
        (Act(), "choose what is to be done", "kind"),
        (Act("tag"), "give the tag", "of.tag"),
        (Act("award_points", "", {"points": Given("text", "many")}), "'many' is no number", "of.points"),
        (Act("set_value", "trait", {"trait": Given("text", "plan")}), "give the value", "of.value"),
        (Act("send_notification", "template"), "give the template", "of.template"),
        (emitting(Field("", "text", "x")), "give the field a name of one line", "of.properties.0.name"),
        (
            Act("store_decision", "", {"result": Given(value="a"), MORE: Given(fields=(Field("result", "", "x"),))}),
            "choose another name: 'result' is given above",
            f"of.{MORE}.0.name",
        ),
        (emitting(Field("a", "number", "nan")), "'nan' is no number", "of.properties.0.value"),
    ],
)
def test_an_action_that_is_not_finished_says_what_is_missing_and_where(act: Act, problem: str, where: str) -> None:
    with pytest.raises(Unfinished) as raised:
        list_of((Act("tag", "", {"tag": Given("text", "vip")}), act))
    assert (str(raised.value), raised.value.name) == (problem, f"{PREFIX}.1.{where}")
    if where != f"of.{MORE}.0.name":
        page = render(
            "editor_panel.html",
            {
                "kind": {"key": "conditions"},
                "view": "form",
                "form": {"parts": []},
                "offered": {},
                "acts": shown((Act(), act), raised.value),
            },
        )
        assert html.escape(problem, quote=False) in html.unescape(page)
        assert 'aria-invalid="true"' in page


def test_buttons_add_and_remove_actions_and_fields_and_say_where_to_go_on() -> None:
    form, focus = changed((), ADD)
    assert (form, focus) == ((Act(),), "_act.0.kind")
    form = fitted((Act("emit_event", "", {}), Act("tag", "", {"tag": Given("text", "vip")})))
    grown, focus = changed(form, "act.field:0:properties")
    assert (grown[0].given["properties"].fields, focus) == ((Field(),), "_act.0.of.properties.0.name")
    less, focus = changed(grown, "act.less:0:properties:0")
    assert (less[0].given["properties"].fields, focus) == ((), "_act.0.of.properties.add")
    assert changed(form, "act.drop:0") == ((form[1],), "_act.0.kind")
    assert changed(form[:1], "act.drop:0") == ((), ADD)
    assert changed(form, "act.drop:1") == ((form[0],), "_act.0.kind")
    for odd in (
        "act.drop:9",
        "act.drop",
        "act.drop:x",
        "act.less:0:properties:9",
        "act.field:",
        "row",
        "",
        "act.less:0",
    ):
        assert changed(form, odd)[0] == form


def test_a_value_of_another_kind_keeps_what_can_be_kept() -> None:
    def after(kind: str, value: str) -> Given:
        return fitted((Act("set_value", "trait", {"value": Given(kind, value)}),))[0].given["value"]

    assert after("number", "3") == Given("number", "3")
    assert after("number", "pro") == Given("number", "")
    assert after("flag", "pro") == Given("flag", "true")
    assert after("object", "pro").fields == (Field(),)
    assert after("no such kind", "pro") == Given("text", "pro")
    assert fitted((Act("set_value", "no such parameter"),))[0].alternative == "trait"


# --- the page -----------------------------------------------------------------------------------


def _filled(*fields: tuple[str, str]) -> dict[str, str]:
    condition = {
        "_by": "form",
        "_key": "conditions",
        "_section": "rules",
        "_text": "rule:yaml",
        "_acts": "actions",
        "_when.how": "all",
        "_when.single": "1",
        "_when.0.field": "tags",
        "_when.0.is": "exists",
        "_when.0.value": "",
        "rule:yaml": "priority: 3\n",
    }
    return {**condition, **{f"_act.{name}": value for name, value in fields}}


DEAR = (
    ("0.kind", "award_points"),
    ("0.of.points", "25"),
    ("0.of.reason", "a large order"),
    ("1.kind", "set_value"),
    ("1.one", "trait"),
    ("1.of.trait", "dear"),
    ("1.as.value", "flag"),
    ("1.of.value", "true"),
    ("2.kind", "emit_event"),
    ("2.of.type", "large_order"),
    ("2.of.properties.0.name", "total"),
    ("2.of.properties.0.kind", "text"),
    ("2.of.properties.0.value", "${event.properties.total}"),
)
WRITTEN = [
    {"award_points": {"points": 25, "reason": "a large order"}},
    {"set_value": {"trait": "dear", "value": True}},
    {"emit_event": {"type": "large_order", "properties": {"total": "${event.properties.total}"}}},
]


def test_a_rule_is_written_with_the_actions_of_the_form_and_says_them_in_words() -> None:
    with opened() as engine:
        client = signed_in(engine)
        data = {**_filled(*DEAR), "_csrf": csrf_of(client, engine), "id": "dear"}
        panel = Sent(client.post("/rules/new?part=panel", data=data).text).fields
        assert yaml.safe_load(panel["rule:yaml"]) == {
            "priority": 3,
            "conditions": {"field": "tags", "exists": True},
            "actions": WRITTEN,
        }
        assert "It is valid." in client.post("/rules/new?part=checked", data=data).text
        accept = {"accept": "application/json"}
        made = client.post("/do/rules_write", data=data, headers=accept)
        assert made.status_code == 200, made.text
        page = html.unescape(client.get("/rules/dear").text)
        assert "<strong>Award points</strong>" in page
        assert '<span class="muted">reason</span> a large order' in page
        begun = Sent(client.get("/rules/new?id=dear").text).fields
        assert (begun["_act.0.of.points"], begun["_act.1.as.value"]) == ("25", "flag")
        unfinished = {**data, "_act.0.of.points": ""}
        assert "An action is not finished" in client.post("/rules/new?part=checked", data=unfinished).text
        refused = client.post("/do/rules_write", data=unfinished, headers=accept)
        assert (refused.status_code, refused.json()["problem"], refused.json()["param"]) == (
            400,
            "an action is not finished: give the points",
            "_act.0.of.points",
        )


def test_a_text_with_actions_in_another_spelling_is_not_written_anew() -> None:
    text = "conditions: {field: tags, exists: true}\nactions:  # what it does\n  - AwardPoints: {points: 25}\n"
    with opened() as engine:
        client = signed_in(engine)
        right = {"_csrf": csrf_of(client, engine)}
        panel = client.post("/rules/new?part=panel", data={"rule:yaml": text, "_by": "yaml", "_to": "form", **right})
        fields = Sent(panel.text).fields
        back = client.post("/rules/new?part=panel", data={**fields, "_to": "yaml", **right})
        assert Sent(back.text).fields["rule:yaml"].replace("\r\n", "\n") == text


@pytest.mark.parametrize("part", ["panel", "checked", ""])
def test_hostile_texts_in_every_field_are_texts(part: str) -> None:
    with opened() as engine:
        client = signed_in(engine, "marketer")
        for text in HOSTILE[:: 1 if part == "panel" else 23]:
            rows = [
                ("0.kind", "tag"),
                ("0.of.tag", text),
                ("1.kind", text),
                ("2.kind", "set_value"),
                ("2.one", text),
                ("2.of.trait", text),
                ("2.as.value", text),
                ("2.of.value", text),
                ("3.kind", "store_decision"),
                ("3.of.result", text),
                (f"3.of.{MORE}.0.name", text),
                (f"3.of.{MORE}.0.kind", text),
                (f"3.of.{MORE}.0.value", text),
                ("4.kind", "log_event"),
                ("4.of.message", text),
                ("4.of.level", text),
            ]
            data = {**_filled(*rows), "_do": text, "_csrf": csrf_of(client, engine)}
            answer = client.post(f"/rules/new?part={part}", data=data)
            assert answer.status_code == 200, (text, answer.text)
            assert unsafe(answer.text) == []


def test_a_button_adds_an_action_and_one_that_is_not_chosen_yet_stays() -> None:
    with opened() as engine:
        client = signed_in(engine)
        right = {"_csrf": csrf_of(client, engine)}
        fields = Sent(client.get("/rules/new").text).fields
        for button, wanted in (
            ("act.add", 1),
            ("act.add", 2),
            ("act.field:0:properties", 2),
            ("", 2),
            ("act.drop:1", 1),
            ("act.drop:0", 0),
        ):
            page = client.post("/rules/new", data={**fields, "_do": button, **right}).text
            fields = Sent(page).fields
            assert len({name for name in fields if re.fullmatch(r"_act\.\d+\.kind", name)}) == wanted, button
            assert ("An action is not finished" in page) == (wanted > 0)
            if wanted == 1 and button == "act.add":
                fields["_act.0.kind"] = "emit_event"
            if button == "":
                assert "_act.0.of.properties.0.name" in fields


def test_names_of_what_there_is_are_offered_where_an_action_asks_for_them() -> None:
    with opened() as engine:
        client = signed_in(engine)
        right = {"_csrf": csrf_of(client, engine)}
        panel = client.post("/rules/new?part=panel", data={**_filled(("0.kind", "emit_event")), **right}).text
        assert re.search(
            r'<datalist id="offered-event-type">.*<option value="purchase_completed">Purchase completed<',
            panel,
            re.DOTALL,
        )
        assert 'list="offered-event-type"' in panel
        panel = client.post("/rules/new?part=panel", data={**_filled(("0.kind", "tag")), **right}).text
        assert re.findall(r'list="offered-(.*?)"', panel) == ["tag"]
