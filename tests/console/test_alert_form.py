"""The form of an alert: it says what is stored, comes in force without JSON, and stays a form whatever is typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.console.stage import HOSTILE, csrf_of, opened, record, signed_in, unsafe
from tests.console.test_condition_form import Sent
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.surfaces.console.fields import fields_of
from threadline.surfaces.console.screens.alerts import FORM_PATH
from threadline.surfaces.operation_calls import run

DEEP = {"any": [{"all": [{"any": [{"field": "tags", "contains": "vip"}]}]}]}
ALERTS: dict[str, dict[str, Any]] = {
    "plain": {"title": "Closed on Sunday"},
    "all": {
        "title": "A sale",
        "body": "Two lines:\nthis is the second.",
        "link": "/sale",
        "severity": "warning",
        "start": "2026-03-01T10:30:00Z",
        "stop": "2026-03-08T00:00:15Z",
        "tags": ["vip", "press"],
        "segments": ["pros"],
        "when": {"all": [{"field": "traits.plan", "equals": "pro"}]},
        "dismissable": False,
    },
    "deep": {"title": "For few", "when": DEEP},
}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    file = tmp_path / "definitions.yaml"
    file.write_text("segments:\n  pros: {when: {field: traits.plan, equals: pro}}\n")
    with opened(file) as made:
        record(made, ("ada", "identify", {"plan": "pro"}), ("bob", "identify", {"plan": "free"}))
        yield made


@pytest.fixture
def admin(engine: Engine) -> TestClient:
    return signed_in(engine)


def written(engine: Engine, id: str, alert: dict[str, Any]) -> None:
    operation = engine.catalogue.operation("alerts_write")
    context = Context(engine, "default", engine.now(), "test", True)
    run(operation, context, operation.params(id=id, **alert))


def shown(engine: Engine, client: TestClient, id: str) -> dict[str, Any]:
    operation = engine.catalogue.operation("alerts_show")
    context = Context(engine, "default", engine.now(), "test", True)
    made: Any = run(operation, context, operation.params(id=id))
    return {name: getattr(made.alert, name) for name in made.alert.__struct_fields__}


@pytest.mark.parametrize("id", ALERTS)
def test_the_form_of_a_stored_alert_sent_as_it_is_says_the_same_alert(
    engine: Engine, admin: TestClient, id: str
) -> None:
    written(engine, id, ALERTS[id])
    before = shown(engine, admin, id)
    page = admin.get(FORM_PATH, params={"id": id})
    again = admin.post(FORM_PATH, data=Sent(page.text).fields)
    for markup in (page.text, again.text):
        done = admin.post("/do/alerts_write", data=Sent(markup).fields, headers={"accept": "application/json"})
        assert done.status_code == 200, done.text
        assert done.json()["result"]["created"] is False
    assert shown(engine, admin, id) == before


def test_a_new_alert_comes_in_force_by_its_form_with_conditions_and_both_values_of_its_switch(
    engine: Engine, admin: TestClient
) -> None:
    for value in ("true", "false"):
        fields = Sent(admin.get(FORM_PATH).text).fields
        fields |= {"id": f"sale-{value}", "title": "A sale", "_when.0.field": "traits.plan", "_when.0.is": "equals"}
        fields |= {"_when.0.value": "pro", "dismissable": value}
        beside = admin.post(f"{FORM_PATH}?part=count", data=fields)
        assert "<strong>1</strong>" in beside.text
        done = admin.post("/do/alerts_write", data=fields, headers={"accept": "application/json"})
        assert done.status_code == 200, done.text
        alert = shown(engine, admin, f"sale-{value}")
        assert alert["when"] == {"field": "traits.plan", "equals": "pro"}
        assert alert["dismissable"] is (value == "true")


def test_a_new_alert_with_the_name_of_another_is_refused(engine: Engine, admin: TestClient) -> None:
    written(engine, "sale", {"title": "An older sale"})
    fields = Sent(admin.get(FORM_PATH).text).fields | {"id": "sale", "title": "A sale"}
    done = admin.post("/do/alerts_write", data=fields, headers={"accept": "application/json"})
    assert done.status_code == 409
    assert shown(engine, admin, "sale")["title"] == "An older sale"


def test_every_parameter_of_an_alert_has_a_field(engine: Engine, admin: TestClient) -> None:
    written(engine, "all", ALERTS["all"])
    names = Sent(admin.get(FORM_PATH, params={"id": "all"}).text).fields
    asked = {field.name for field in fields_of(engine.catalogue.operation("alerts_write").params)}
    # An unchecked box sends nothing.
    sent = {name.partition(".")[0] for name in names} | {"shown_again"}
    assert asked - sent == {"when"}
    assert "_when.0.field" in names
    assert ":json" not in "".join(names)


def test_segments_and_tags_are_filled_in_a_row_each_with_those_that_there_are(
    engine: Engine, admin: TestClient
) -> None:
    tag = engine.catalogue.operation("people_tag")
    run(tag, Context(engine, "default", engine.now(), "test", True), tag.params(id="user_id:ada", add=["vip"]))
    page = admin.get(FORM_PATH).text
    options = {
        name: set(
            re.findall(
                r'<option value="([^"]*)"', re.split(f'<datalist id="{name}-names">', page)[1].split("</datalist>")[0]
            )
        )
        for name in ("segments", "tags")
    }
    assert "pros" in options["segments"]
    assert "vip" in options["tags"]
    fields = Sent(page).fields | {"id": "sale", "title": "A sale", "tags.0": "vip", "_do": "more:tags"}
    more = admin.post(f"{FORM_PATH}?part=panel", data=fields).text
    sent = Sent(more).fields
    assert (sent["tags.0"], sent["tags.1"], sent["segments.0"]) == ("vip", "", "")
    assert "segments.1" not in sent
    assert 'data-focus="tags.1"' in more
    done = admin.post(
        "/do/alerts_write",
        data=fields | {"tags.1": "press", "tags.2": "", "segments.0": "pros", "_do": ""},
        headers={"accept": "application/json"},
    )
    assert done.status_code == 200, done.text
    alert = shown(engine, admin, "sale")
    assert (alert["tags"], alert["segments"]) == (["vip", "press"], ["pros"])


def test_a_condition_that_is_not_finished_is_named_and_nothing_is_published(engine: Engine, admin: TestClient) -> None:
    fields = Sent(admin.get(FORM_PATH).text).fields | {"id": "sale", "title": "A sale", "_when.0.field": "traits.plan"}
    assert "not finished" in admin.post(f"{FORM_PATH}?part=checked", data=fields).text
    done = admin.post("/do/alerts_write", data=fields, headers={"accept": "application/json"})
    assert done.status_code == 400
    assert "a condition is not finished" in done.json()["problem"]


def test_hostile_texts_in_every_field_of_an_alert_are_texts(engine: Engine, admin: TestClient) -> None:
    shown_fields = Sent(admin.get(FORM_PATH).text).fields
    for text in HOSTILE[::17]:
        data = {name: text if name[:1] != "_" or "field" in name else value for name, value in shown_fields.items()}
        data |= {"_csrf": csrf_of(admin, engine), "_when.0.value": text, "_beyond": text}
        for part in ("", "panel", "checked", "count"):
            answer = admin.post(f"{FORM_PATH}?part={part}", data=data)
            assert answer.status_code == 200, (part, text)
            assert unsafe(answer.text) == [], (part, text)
