"""From an empty store each definition comes in force by its form alone: no file, by keyboard, clean for axe."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
import yaml

from tests.chromium import launched
from tests.clients.server import Server
from tests.console.browser import serious
from tests.console.flows import TOKEN, Visit, running
from tests.console.stage import HOSTILE, csrf_of, opened, signed_in, unsafe
from tests.console.test_condition_form import Sent
from threadline.app import catalogue
from threadline.capabilities.decide.drafts.sections import BY_MEMBER, by_hand_of, members_of
from threadline.surfaces.console.screens.drafts import FORM_PATHS, KINDS, MAIL

FILLED: dict[str, tuple[str, dict[str, str], dict[str, Any]]] = {
    "mail.senders": ("shop", {"_f.from": "shop@example.com"}, {"from": "shop@example.com"}),
    "mail.templates": ("hello", {"_f.subject": "Hello"}, {**yaml.safe_load(MAIL), "subject": "Hello"}),
    "consent.topics": ("news", {"_f.title": "News", "_f.confirm": ""}, {"title": "News"}),
    "features": (
        "orders",
        {"_f.events.0": "Purchase completed", "_f.window": "7"},
        {"aggregate": "count", "events": "purchase_completed", "window": "7d"},
    ),
    "segments": (
        "buyers",
        {"_when.0.field": "features.orders", "_when.0.value": "2"},
        {"when": {"all": [{"field": "features.orders", "greater_than": 2}]}},
    ),
    "leaderboards": ("best", {"_f.score": "features.orders"}, {"score": "features.orders"}),
    "streaks": ("monthly", {"_f.times": "2", "_f.milestones.0": "3"}, {"times": 2, "milestones": 3}),
    "journeys": ("hello", {}, {"trigger": {"event": "signed_up"}, "steps": [{"wait": "1d"}, {"send": "hello"}]}),
    "points": ("points", {"_f.expires_after": "90"}, {"expires_after": "90d"}),
    "interests": ("interests", {"_f.half_life": "14"}, {"half_life": "14d"}),
}
"""Section -> its name, what is filled in, and what is then in force; in this order, each upon those before."""


OTHERS: dict[tuple[str, str], tuple[dict[str, str], Any]] = {
    ("calendar", "calendar"): ({"_f.week_starts_on": "sunday"}, {"week_starts_on": "sunday"}),
    ("campaigns", "campaigns"): ({"_f.ignored_after": "3", "_f.ignored_after.as": "d"}, {"ignored_after": "3d"}),
    ("consent", "brand"): ({"_f.value": "The shop: one"}, "The shop: one"),
    ("consent", "texts"): (
        {"_f.value.count": "1", "_f.value.0.name": "title", "_f.value.0.of": "Your mails"},
        {"title": "Your mails"},
    ),
    ("currencies", "currencies"): ({"_f.total_in": "EUR", "_f.default": "EUR"}, {"total_in": "EUR", "default": "EUR"}),
    ("destinations", "crm"): ({"_f.url": "https://crm.example/hook"}, {"url": "https://crm.example/hook"}),
    ("event_schemas", "order_shipped"): (
        {"_f.required.count": "1", "_f.required.0": "order_id", "_f.properties.yaml": "order_id: {type: string}"},
        {"required": ["order_id"], "properties": {"order_id": {"type": "string"}}},
    ),
    ("feature_updates", "feature_updates"): ({"_f.at": "07:00"}, {"at": "07:00"}),
    ("feedback", "feedback"): ({"_f.transient_max": "3"}, {"transient_max": 3}),
    ("mail", "caps"): (
        {"_f.value.count": "1", "_f.value.0.mails": "2", "_f.value.0.per": "7", "_f.value.0.per.as": "d"},
        [{"mails": 2, "per": "7d"}],
    ),
    ("mail", "give_up_after"): ({"_f.value": "3", "_f.value.as": "d"}, "3d"),
    ("mail", "provider"): ({"_f.per_second": "5"}, {"per_second": 5}),
    ("mail", "quiet_hours"): ({"_f.from": "22:00", "_f.to": "08:00"}, {"from": "22:00", "to": "08:00"}),
    ("mail", "timezone"): ({"_f.value": "Europe/Berlin"}, "Europe/Berlin"),
    ("memory", "shoe_size"): (
        {
            "_f.events.way": "0",
            "_f.events.count": "1",
            "_f.events.0": "purchase_completed",
            "_f.fact": "preference/shoe_size",
            "_f.value.way": "0",
            "_f.value": "size",
        },
        {"events": "purchase_completed", "fact": "preference/shoe_size", "value": "size"},
    ),
    ("retention", "mail"): (
        {"_f.days": "365", "_f.drops_results": "true"},
        {"days": 365, "drops_results": True},
    ),
    ("timezone", "timezone"): ({"_f.value": "Europe/Berlin"}, "Europe/Berlin"),
}
"""(Section, name) of what has no page of its own -> what is filled in, and what is then in force."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("forms")) as served:
        yield served


@pytest.mark.browser
def test_each_definition_comes_in_force_by_its_form_from_an_empty_store(server: Server) -> None:
    declared = {section for section in FORM_PATHS if section and not KINDS[section].write}
    assert declared == FILLED.keys(), "whatever is put in force has been filled in here"
    with launched("--disable-gpu", "--disable-dev-shm-usage") as browser:
        visit = Visit(browser, server.url)
        page = visit.page
        for section, (name, fields, wanted) in FILLED.items():
            visit.open(FORM_PATHS[section])
            if not KINDS[section].is_once:
                page.fill("[name=name]", name)
            for field, text in fields.items():
                _unfolded(page, field)
                page.fill(f"[id='{field}']", text)
            page.wait_for_selector("#checked-summary:has-text('It is valid.')")
            assert serious(page) == [], section
            page.focus("button.primary")
            page.keyboard.press("Enter")
            page.wait_for_url("**/jobs/definitions_apply.*")
            page.wait_for_selector("#state .badge:has-text('done')")
            text = visit.page.request.get(
                f"{server.url}/v1/definitions/{section}/{name}", headers={"Authorization": f"Bearer {TOKEN}"}
            ).json()["text"]
            assert yaml.safe_load(text) == wanted, section
        assert visit.faults == []
        page.context.close()


def test_each_other_section_and_member_comes_in_force_by_its_form_from_an_empty_store(server: Server) -> None:
    made = catalogue()
    wanted = {(section, name) for section in BY_MEMBER for name in members_of(made, section)}
    wanted |= {(section, "") for section in {*by_hand_of(made)} - BY_MEMBER - FORM_PATHS.keys()}
    filled = {(section, name if section in BY_MEMBER else "") for section, name in OTHERS}
    assert filled == wanted, "whatever is put in force has been filled in here"
    token = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=server.url, timeout=60, headers={"origin": server.url}) as client:
        client.post("/sign-in", data={"password": TOKEN})
        for (section, name), (fields, says) in OTHERS.items():
            path = f"/declared/{section}?{urlencode({'name': name})}"
            shown = Sent(client.get(path).text).fields
            data = {**shown, "name": name, **fields}
            assert not data["_by"] or data["_by"] == "form", (section, name)
            checked = client.post(f"{path}&part=checked", data=data).text
            assert "It is valid." in checked, (section, name, checked)
            done = client.post("/do/definitions_declare", data=data, headers={"accept": "application/json"})
            assert done.status_code == 200, (section, name, done.text)
            text = client.get(f"/v1/definitions/{section}/{name}", headers=token).json()["text"]
            assert yaml.safe_load(text) == says, (section, name)
            # What is in force is in the form again, and changes nothing when it is sent as it is.
            again = client.post(f"{path}&part=checked", data=Sent(client.get(path).text).fields).text
            assert "It is valid." in again, (section, name)
        listed = html.unescape(client.get("/declared").text)
        assert all(f"/declared/{section}" in listed for section, _ in OTHERS)


def _unfolded(page: Any, field: str) -> None:
    """Open what a field is folded away in."""
    page.evaluate(
        "id => { for (let box = document.getElementById(id)?.closest('details'); box; "
        "box = box.parentElement.closest('details')) box.open = true }",
        field,
    )


@pytest.mark.parametrize("section", [section for section in FORM_PATHS if section])
def test_hostile_texts_in_every_field_of_a_form_are_texts(section: str) -> None:
    kind = KINDS[section]
    with opened() as engine:
        client = signed_in(engine)
        shown = Sent(client.get(FORM_PATHS[section]).text).fields
        for text in HOSTILE[::29]:
            data = {
                name: text if name.startswith(("_f.", "_description", "_when")) and value == "" else value
                for name, value in shown.items()
            }
            data |= {kind.name: "x", "_csrf": csrf_of(client, engine)}
            for part in ("panel", "checked", ""):
                answer = client.post(f"{FORM_PATHS[section]}?part={part}", data=data)
                assert answer.status_code == 200, (section, part, text, answer.text[-400:])
                assert unsafe(answer.text) == [], (section, part, text)
