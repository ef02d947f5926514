"""Editors in a real browser: problems beside the lines, previews, without the script, and the gate of a rule."""

from __future__ import annotations

import html
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.clients.server import Server
from tests.console.browser import serious
from tests.console.flows import TOKEN, Visit, post, running
from tests.console.stage import close_up, csrf_of, opened, signed_in, unsafe
from tests.console.test_console_flows import DEFINITIONS
from threadline.kernel.roles import Role

WRONG = "when:\n  all:\n    - {field: features.monetary_total, greter_than: 100}\n"

MAIL = """mail:
  senders: {shop: {from: shop@example.com}}
  templates: {hello: {subject: Hello, text: Hello}}
"""


def brought_up(page: Any) -> None:
    """Wait for the page of the job that brings everybody up to what was put in force, and for its end."""
    page.wait_for_url("**/jobs/definitions_apply.*")
    page.wait_for_selector("#state .badge:has-text('done')")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("editor"), DEFINITIONS + MAIL) as served:
        events = [
            {
                "type": "purchase_completed",
                "key": f"p{n}",
                "identifiers": {"user_id": f"u{n}"},
                "properties": {"total": n, "currency": "EUR"},
            }
            for n in range(40)
        ]
        post(served.url, "/v1/events", {"events": events})
        for above in (30, 35):
            rule = {"conditions": {"field": "event.properties.total", "greater_than": above}}
            post(served.url, "/v1/rules/dear/versions", {"rule": rule})
        post(served.url, "/v1/rule-sets/dear", {"events": ["purchase_completed"], "rules": ["dear"]})
        post(served.url, "/v1/rules/dear/activate", {"version": 1, "untested": True})
        post(served.url, "/v1/rules/dear/tested", {"version": 2})
        yield served


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1_600, "light"), (380, "dark")])
def test_a_problem_stands_beside_its_line_while_it_is_typed(
    browser: Any, server: Server, width: int, scheme: str
) -> None:
    visit = Visit(browser, server.url, width, scheme)
    page = visit.page
    visit.open("/segments/new?_to=yaml")
    page.fill("textarea", WRONG)
    page.wait_for_selector(".problems li")
    assert page.inner_text(".problems li").startswith("line 3, column 40")
    assert "did you mean 'greater_than'?" in page.inner_text(".problems li")
    assert page.locator(".gutter li.bad").all_inner_texts() == ["3"]
    assert page.locator("textarea[aria-invalid]").count() == 1
    page.click(".problems button")
    assert page.evaluate("document.querySelector('textarea').selectionStart") == WRONG.index("greter_than")
    page.keyboard.type("a")  # the page is used by keyboard from here on: a letter before, and away again
    page.keyboard.press("Backspace")
    page.fill("textarea", WRONG.replace("greter_than", "greater_than").replace("100", "30"))
    page.wait_for_selector("text=It is valid.")
    assert page.locator(".gutter li.bad").count() == 0
    assert page.inner_text("dl.facts dd strong") == "9", "31 to 39"
    assert page.locator("#checked a[href^='/people/']").count() == 9
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert visit.faults == []
    page.context.close()


@pytest.mark.browser
def test_the_editor_works_by_its_button_without_the_script(browser: Any, server: Server) -> None:
    visit = Visit(browser, server.url, java_script_enabled=False)
    page = visit.page
    page.goto(f"{server.url}/segments/new?name=good_customers&_to=yaml")
    assert "monetary_total" in page.input_value("textarea"), "it begins with what is in force"
    page.fill("textarea", WRONG)
    page.click("text=Check")
    assert page.input_value("textarea") == WRONG
    assert page.inner_text(".problems li").startswith("line 3, column 40")
    assert page.locator(".gutter li.bad").all_inner_texts() == ["3"]
    page.fill("textarea", "when: {field: features.monetary_total, greater_than: 30}")
    page.click("text=Check")
    assert page.locator("dl.facts dt").all_inner_texts() == ["People", "Entering", "Leaving", "Looked at"]
    page.context.close()


@pytest.mark.browser
def test_a_feature_is_drawn_while_it_is_written(browser: Any, server: Server) -> None:
    visit = Visit(browser, server.url)
    visit.open("/features/new?_to=yaml")
    visit.page.fill("textarea", "{aggregate: sum, events: purchase_completed, of: total}")
    visit.page.wait_for_selector("text=0, 19.50, 39")
    assert visit.page.locator("#checked figure").count() == 1
    assert visit.faults == []
    visit.page.context.close()


@pytest.mark.browser
def test_a_version_is_activated_only_after_its_what_if_was_seen(browser: Any, server: Server) -> None:
    visit = Visit(browser, server.url)
    page = visit.page
    visit.open("/rules/dear?version=2")
    page.wait_for_selector("text=no what-if of it was saved")
    assert page.locator("button", has_text="Activate").count() == 0
    page.click("text=Try it on history")
    page.wait_for_url("**/what-if/*")
    page.click("text=go back to version 2")
    page.wait_for_selector("text=5 of 40 answers would be different")
    page.click(".matrix summary")
    assert page.locator(".matrix a[href^='/people/']").count() == 5, "31 to 35"
    page.click("text=Activate version 2")
    page.click("dialog button.danger")
    page.wait_for_selector("text=It is active.")
    assert "active" in page.inner_text(".sub")
    visit.open("/audit")
    assert "Activated version 2 of the rule dear" in page.inner_text("main")
    assert visit.faults == []
    page.context.close()


@pytest.mark.browser
def test_a_rule_is_written_in_the_editor_as_a_draft(browser: Any, server: Server) -> None:
    visit = Visit(browser, server.url)
    page = visit.page
    visit.open("/rules/new?_to=yaml")
    page.fill("[name=id]", "cheap")
    page.fill("textarea", "conditions: {field: event.properties.total, less_than: 3}\n")
    page.wait_for_selector("text=1 warning.")
    page.click("text=Write the draft")
    page.wait_for_url("**/rules/cheap?version=1")
    assert "draft" in page.inner_text(".sub")
    visit.open("/rules/new?id=cheap&_to=yaml")
    assert "less_than: 3" in page.input_value("textarea")
    assert visit.faults == []
    page.context.close()


@pytest.mark.browser
def test_a_rule_goes_from_the_empty_form_to_its_first_decision_without_a_file(browser: Any, server: Server) -> None:
    visit = Visit(browser, server.url)
    page = visit.page
    visit.open("/rules/new")
    page.fill("[name=id]", "big-basket")
    page.wait_for_selector("text=is in no rule set here")
    page.fill("[name='events.0']", "purchase_completed")
    page.fill("[name='events.1']", "basket_checked")
    page.click("text=Check")
    page.wait_for_selector("text=is in no rule set here", state="detached")
    assert serious(page) == []
    page.click("text=Write the draft")
    page.wait_for_url("**/rules/big-basket?version=1")
    page.click("text=Mark as tested")
    page.wait_for_selector(".sub:has-text('tested')")
    page.click("text=Try it on history")
    page.wait_for_url("**/what-if/*")
    page.click("text=go back to version 1")
    page.wait_for_selector("text=of 40 answers would be different")
    page.click("text=Activate version 1")
    page.click("dialog button.danger")
    page.wait_for_selector("text=It is active.")
    # No purchase: others look at what people of this server have spent.
    event = {"type": "basket_checked", "key": "1", "identifiers": {"user_id": "u1"}, "properties": {"total": 500}}
    post(server.url, "/v1/events", {"events": [event]})
    visit.open("/events?rule=big-basket&kind=decision")
    assert "big-basket" in page.inner_text("main")
    visit.open("/rules/new?id=big-basket")
    assert page.input_value("[name='events.0']") == "purchase_completed"
    assert visit.faults == []
    page.context.close()


@pytest.mark.browser
def test_a_rule_set_is_written_changed_and_removed_by_forms(browser: Any, server: Server) -> None:
    visit = Visit(browser, server.url)
    page = visit.page
    visit.open("/rules")
    page.click("text=New rule set")
    page.fill("[name=name]", "after-sign-up")
    page.fill("[id='_f.events.0']", "signed_up")
    page.click("[id='_f.events.add']")
    page.wait_for_selector("[id='_f.events.1']:focus")
    page.keyboard.type("renewed")
    page.fill("[id='_f.rules.0']", "dear")
    page.select_option("[id='_f.policy']", "first")
    page.click("details.more summary")
    page.check("[id='_f.existing']")
    page.wait_for_selector("text=It is valid.")
    page.click("text=Put in force")
    page.wait_for_selector("strong:has-text('after-sign-up')")
    written = _set(server, "after-sign-up")
    assert (written["events"], written["policy"], written["existing"]) == (["signed_up", "renewed"], "first", True)
    own = page.locator("div:has(> strong:text('after-sign-up'))")
    own.locator("text=Change it").click()
    assert page.input_value("[id='_f.events.1']") == "renewed"
    page.uncheck("[id='_f.existing']")
    page.click("text=Put in force")
    page.wait_for_selector("strong:has-text('after-sign-up')")
    assert not _set(server, "after-sign-up")["existing"]
    own = page.locator("div:has(> strong:text('after-sign-up'))")
    own.locator("text=Remove it").click()
    page.click("dialog button.danger")
    page.wait_for_selector("strong:has-text('after-sign-up')", state="detached")
    assert visit.faults == []
    page.context.close()


def _set(server: Server, name: str) -> dict[str, Any]:
    request = urllib.request.Request(f"{server.url}/v1/rule-sets", headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request) as answer:
        return next(each for each in json.load(answer)["rule_sets"] if each["name"] == name)


def _typed(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key) if key in ("Tab", "Enter", "Shift+Tab", "ArrowDown") else page.keyboard.type(key)


def _at(page: Any) -> str:
    return page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()")


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1_600, "light"), (380, "dark")])
def test_a_segment_of_two_conditions_is_built_with_the_keyboard_alone(
    browser: Any, server: Server, width: int, scheme: str
) -> None:
    visit = Visit(browser, server.url, width, scheme)
    page = visit.page
    visit.open("/segments/new")
    options = page.eval_on_selector_all("datalist#condition-fields option", "all => all.map(each => each.value)")
    assert {"monetary total (feature)", "tags", "days since joining good customers (segment)"} <= {*options}
    page.focus("[name=name]")
    _typed(page, "dear_buyers", *["Tab"] * 4)
    assert _at(page) == "_when.0.field"
    assert page.input_value("[id='_when.0.field']") == "monetary total (feature)"
    _typed(page, "Tab", "Tab")
    assert _at(page) == "_when.0.value"
    page.keyboard.press("Control+a")
    _typed(page, "30")
    page.wait_for_selector("#preview dl.facts dd strong:has-text('9')")
    _typed(page, "Tab", "Tab")
    assert _at(page) == "Add a condition"
    _typed(page, "Enter")
    page.wait_for_selector("[id='_when.1.field']:focus")
    page.wait_for_selector("text=A condition is not finished")
    _typed(page, "frequency purchases 90d (feature)", "Tab")
    page.wait_for_selector("[id='_when.1.about'] code:has-text('features.frequency_purchases_90d')")
    assert _at(page) == "_when.1.is"
    _typed(page, "is at l")
    page.wait_for_timeout(300)
    assert page.inner_text("[id='_when.1.about'] .problem-text") == "give a value"
    _typed(page, "Tab", "1")
    page.wait_for_selector("[id='_when.1.about'] .problem-text", state="detached")
    page.wait_for_selector("#preview dl.facts dd strong:has-text('9')")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.click("text=Add a group")
    page.wait_for_selector("[id='_when.2.0.field']:focus")
    assert serious(page) == []
    page.click("text=Remove the group")
    page.wait_for_selector("[id='_when.2.0.field']", state="detached")
    page.focus("button[name=_to][value=yaml]")
    _typed(page, "Enter")
    page.wait_for_selector("textarea#text")
    text = page.input_value("textarea#text")
    assert "{field: features.frequency_purchases_90d, greater_than_or_equal: 1}" in text
    page.focus("button[name=_to][value=form]")
    _typed(page, "Enter")
    page.wait_for_selector("[id='_when.1.is']")
    assert page.input_value("[id='_when.1.is']") == "greater_than_or_equal"
    assert visit.faults == []
    page.context.close()


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1_600, "light"), (380, "dark")])
def test_what_a_rule_does_is_built_with_the_keyboard_alone(
    browser: Any, server: Server, width: int, scheme: str
) -> None:
    visit = Visit(browser, server.url, width, scheme)
    page = visit.page
    visit.open("/rules/new")
    page.focus("[name=id]")
    _typed(page, f"kind-{width}")
    page.focus("[id='act.add']")
    _typed(page, "Enter")
    page.wait_for_selector("[id='_act.0.kind']:focus")
    page.wait_for_selector("text=An action is not finished")
    _typed(page, "A")
    page.wait_for_selector("[id='_act.0.of.points']")
    assert _at(page) == "_act.0.kind"
    _typed(page, "Tab", "Tab")
    assert _at(page) == "_act.0.of.points"
    _typed(page, "many")
    page.wait_for_selector("text='many' is no number")
    page.keyboard.press("Control+a")
    _typed(page, "25")
    page.wait_for_selector("text=It is valid.")
    page.focus("[id='act.add']")
    _typed(page, "Enter")
    page.wait_for_selector("[id='_act.1.kind']:focus")
    _typed(page, "E")
    page.wait_for_selector("[id='_act.1.of.type']")
    page.focus("[id='_act.1.of.type']")
    _typed(page, "large_order")
    page.focus("summary:has-text('More: properties')")
    _typed(page, "Enter", "Tab")
    assert _at(page) == "_act.1.of.properties.add"
    _typed(page, "Enter")
    page.wait_for_selector("[id='_act.1.of.properties.0.name']:focus")
    _typed(page, "total", "Tab", "Tab", "${event.properties.total}")
    page.wait_for_selector("text=It is valid.")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert serious(page) == []
    page.focus("button[name=_to][value=yaml]")
    _typed(page, "Enter")
    page.wait_for_selector("textarea#text")
    text = page.input_value("textarea#text")
    assert "- award_points: {points: 25}" in text
    assert "type: large_order" in text
    assert "properties: {total: '${event.properties.total}'}" in text
    page.focus("button[name=_to][value=form]")
    _typed(page, "Enter")
    page.wait_for_selector("[id='_act.1.of.properties.0.value']")
    assert page.input_value("[id='_act.1.of.properties.0.value']") == "${event.properties.total}"
    page.focus("button[aria-label='Remove action 1']")
    _typed(page, "Enter")
    page.wait_for_selector("[id='_act.1.kind']", state="detached")
    assert _at(page) == "_act.0.kind"
    page.click("text=Write the draft")
    page.wait_for_url(f"**/rules/kind-{width}?version=1")
    assert "Emit event" in page.inner_text("main")
    assert visit.faults == []
    page.context.close()


@pytest.mark.browser
def test_what_a_rule_does_is_filled_in_without_the_script(browser: Any, server: Server) -> None:
    visit = Visit(browser, server.url, java_script_enabled=False)
    page = visit.page
    page.goto(f"{server.url}/rules/new")
    page.fill("[id='_when.0.value']", "34")
    page.click("text=Add an action")
    page.select_option("[id='_act.0.kind']", "set_value")
    page.click("form.editor button:has-text('Check')")
    page.fill("[id='_act.0.of.trait']", "dear")
    page.select_option("[id='_act.0.as.value']", "flag")
    page.click("form.editor button:has-text('Check')")
    page.select_option("[id='_act.0.of.value']", "true")
    page.click("text=As YAML")
    assert "- set_value: {trait: dear, value: true}" in page.input_value("textarea#text")
    page.click("text=As a form")
    page.click("button[aria-label='Remove action 1']")
    page.click("text=As YAML")
    assert "actions: []" in page.input_value("textarea#text")
    page.context.close()


@pytest.mark.browser
def test_a_journey_is_proposed_and_put_in_force_with_one_click(browser: Any, server: Server) -> None:
    visit = Visit(browser, server.url, 380, "dark")
    page = visit.page
    visit.open("/journeys")
    page.click("text=Draw a journey")
    page.wait_for_url("**/journeys/new")
    page.fill("[name=name]", "spring")
    page.click("button[name=_to][value=yaml]")
    page.fill("textarea", "trigger: {event: signed_up}\nsteps:\n  - send: helo\n")
    page.wait_for_selector(".problems li >> text=line 3")
    page.fill("textarea", "trigger: {event: signed_up}\nsteps:\n  - send: hello\n")
    page.wait_for_selector("text=It is valid.")
    assert serious(page) == []
    page.click("button:has-text('Propose it')")
    page.wait_for_selector("#proposals >> text=spring")
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.click("#proposals button:has-text('Put in force')")
    page.click("dialog button.danger")
    brought_up(page)
    visit.open("/journeys")
    page.wait_for_selector("a[href='/journeys/spring']")
    assert page.locator("#proposals").count() == 0
    assert visit.faults == []
    page.context.close()


@pytest.mark.browser
def test_a_form_works_by_its_buttons_without_the_script(browser: Any, server: Server) -> None:
    visit = Visit(browser, server.url, java_script_enabled=False)
    page = visit.page
    page.goto(f"{server.url}/segments/new")
    page.fill("[id='_when.0.value']", "34")
    page.click("text=Add a group")
    page.fill("[id='_when.1.0.field']", "tags")
    page.click("text=As YAML")
    assert page.locator("textarea#text").count() == 0, "it stays where something is not finished"
    page.select_option("[id='_when.1.0.is']", "exists")
    page.click("text=As YAML")
    assert "any:\n        - {field: tags, exists: true}" in page.input_value("textarea#text")
    page.click("text=As a form")
    page.click("button[aria-label='Remove condition 2.1']")
    page.click("form.editor button:has-text('Check')")
    assert page.inner_text("dl.facts dd strong") == "5", "35 to 39"
    page.context.close()


@pytest.mark.browser
def test_a_segment_is_proposed_and_put_in_force_with_one_click(browser: Any, server: Server) -> None:
    visit = Visit(browser, server.url)
    page = visit.page
    visit.open("/segments/new?name=few_orders")
    page.fill("[id='_when.0.field']", "frequency purchases 90d (feature)")
    page.press("[id='_when.0.field']", "Tab")
    page.wait_for_selector("code:has-text('features.frequency_purchases_90d')")
    page.select_option("[id='_when.0.is']", "less_than")
    page.fill("[id='_when.0.value']", "3")
    page.click("button:has-text('Propose it')")  # at once: what was filled in is what is proposed
    page.wait_for_selector("#proposals >> text=few orders")
    assert serious(page) == []
    assert "frequency purchases 90d is less than 3" in page.inner_text("#proposals").replace("\xa0", " ")
    page.click("#proposals button:has-text('Put in force')")
    page.click("dialog button.danger")
    brought_up(page)
    visit.open("/segments")
    page.wait_for_selector("h2 a[href='/segments/few_orders']")
    assert page.locator("#proposals").count() == 0
    assert "few_orders:" not in (server.file.parent / "threadline.yaml").read_text()
    visit.open("/definitions")
    assert serious(page) == []
    assert "segment few orders added" in page.inner_text("main ol.thread li:first-child").replace("\xa0", " ")
    page.click("main ol.thread li:first-child a.strong")
    page.wait_for_selector("pre .added >> text=few_orders:")
    assert serious(page) == []
    visit.open("/definitions")
    page.click("button[aria-label='Delete few orders']")
    page.click("dialog button.danger")
    page.wait_for_selector("main ol.thread li:first-child >> text=removed")
    page.click("main ol.thread li:nth-child(2) a.strong")
    page.fill("[name=note]", "we need them")
    page.click("main form[data-action] button.primary")
    page.click("dialog button.danger")
    brought_up(page)
    visit.open("/definitions")
    page.wait_for_selector("main ol.thread li:first-child >> text=we need them")
    assert serious(page) == []
    visit.open("/audit")
    assert "Put the proposed segment few_orders in force" in page.inner_text("main")
    assert visit.faults == []
    page.context.close()


# --- without a browser -------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_an_editor_takes_no_form_of_another_session(role: Role) -> None:
    with opened() as engine:
        client = signed_in(engine, role)
        right = {"text": "when: {field: tags, exists: true}", "_csrf": csrf_of(client, engine)}
        assert "It is valid." in client.post("/segments/new?part=checked", data=right).text
        assert client.post("/segments/new", data={**right, "_csrf": "x"}).status_code == 403
        foreign = {"sec-fetch-site": "cross-site"}
        assert client.post("/segments/new", data=right, headers=foreign).status_code == 403
        assert client.post("/segments", data=right).status_code == 405, "a screen that is no form takes none"


def test_a_text_that_is_too_long_is_a_problem_of_the_page() -> None:
    with opened() as engine:
        client = signed_in(engine)
        answer = client.post("/definitions/new", data={"text": "#" * 100_001, "_csrf": csrf_of(client, engine)})
        assert answer.status_code == 400
        assert "100000" in answer.text.replace(",", "")


def test_an_operator_activates_by_what_was_seen_and_in_no_other_way() -> None:
    with opened() as engine:
        admin, operator = signed_in(engine), signed_in(engine, "operator")
        rule = {"id": "big", "rule:yaml": "conditions: {field: event.properties.total, greater_than: 3}"}
        json_ = {"accept": "application/json"}
        for client, path, form in (
            (operator, "rules_write", rule),
            (admin, "rule_sets_write", {"name": "s", "events:list": "paid", "rules:list": "big"}),
            (operator, "rules_tested", {"id": "big", "version": "1"}),
        ):
            made = client.post(f"/do/{path}", data={**form, "_csrf": csrf_of(client, engine)}, headers=json_)
            assert made.status_code == 200, made.text
        form = {"id": "big", "version": "1", "_csrf": csrf_of(operator, engine)}
        refused = operator.post("/do/rules_activate", data=form, headers=json_)
        assert refused.status_code == 403
        assert "seen" in refused.text
        tried = {"rule": "big", "version": "1", "save": "true", "wait": "true", "_csrf": form["_csrf"]}
        found = operator.post("/do/what_if_run", data=tried, headers=json_).json()["result"]
        done = operator.post("/do/rules_activate", data={**form, "seen": found["id"]}, headers=json_)
        assert done.json()["result"]["active"] == 1


def test_a_marketer_proposes_and_withdraws_and_an_operator_puts_in_force_or_declines() -> None:
    with opened() as engine:
        marketer, operator = signed_in(engine, "marketer"), signed_in(engine, "operator")
        json_ = {"accept": "application/json"}
        vip = {"section": "segments", "name": "vip"}
        page = marketer.get("/segments/new").text
        assert ("/do/definitions_propose" in page, "/do/definitions_declare" in page) == (True, False)
        assert "/do/definitions_declare" in operator.get("/segments/new").text
        form = {**vip, "text": "when: {field: tags, contains: <vip>}", "_by": "yaml", "_then": "/segments"}
        made = marketer.post(
            "/do/definitions_propose", data={**form, "_csrf": csrf_of(marketer, engine)}, headers=json_
        )
        assert (made.status_code, made.json()["go"]) == (200, "/segments")
        assert "Put in force" in operator.get("/segments").text
        assert "marketer proposes the segment vip" in operator.get("/").text
        assert "marketer proposes the segment vip" not in marketer.get("/").text
        listed = close_up(marketer.get("/segments").text)
        assert "tags</span>contains<strong>“&lt;vip&gt;”</strong>" in listed
        assert ("Withdraw" in listed, "Put in force" in listed) == (True, False)
        assert "&lt;vip&gt;" in marketer.get("/segments/new?name=vip&proposal=vip&_to=yaml").text
        for operation in ("definitions_accept", "definitions_declare"):
            data = {**vip, "_csrf": csrf_of(marketer, engine)}
            assert marketer.post(f"/do/{operation}", data=data, headers=json_).status_code == 403
        declined = {**vip, "reason": "<b>too few</b>", "_csrf": csrf_of(operator, engine)}
        assert operator.post("/do/definitions_decline", data=declined, headers=json_).status_code == 200
        assert "&lt;b&gt;too few&lt;" in marketer.get("/segments").text.replace("&#x2f;", "/")


def test_what_somebody_else_proposes_a_marketer_neither_declines_nor_withdraws_nor_replaces() -> None:
    with opened() as engine:
        author, operator = signed_in(engine, "marketer"), signed_in(engine, "operator")
        other = signed_in(engine, "marketer", name="other")
        vip = {"section": "segments", "name": "vip"}

        def done(client: TestClient, operation: str, **more: str) -> int:
            data = {**vip, "_csrf": csrf_of(client, engine), **more}
            return client.post(f"/do/{operation}", data=data, headers={"accept": "application/json"}).status_code

        assert done(author, "definitions_propose", text="when: {field: tags, contains: vip}") == 200
        for each in (other, operator):
            assert done(each, "definitions_propose", text="when: {field: tags, contains: mine}") == 409
            assert done(each, "definitions_withdraw") == 403
        assert done(other, "definitions_decline") == 403
        assert "Withdraw" not in other.get("/segments").text
        assert "vip" in author.get("/segments").text
        assert done(author, "definitions_propose", text="when: {field: tags, contains: mine}") == 200
        assert done(author, "definitions_withdraw") == 200
        assert done(author, "definitions_withdraw") == 404

        assert done(author, "definitions_propose", text="when: {field: tags, contains: vip}") == 200
        assert done(operator, "definitions_decline", reason="there is one like it") == 200
        assert "Take it off the list" in author.get("/segments").text
        assert done(other, "definitions_propose", text="when: {field: tags, contains: new}") == 200, "none is open"


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ("journeys", "trigger: {event: signed_up}\nsteps:\n  - send: hello  # <b>at once</b>\n"),
        ("leaderboards", "score: features.monetary_total  # <b>dollars</b>\nperiods: [all]\n"),
    ],
)
def test_a_journey_and_a_leaderboard_are_proposed_and_offered_to_an_operator(
    section: str, text: str, tmp_path: Path
) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text(MAIL)
    with opened(file) as engine:
        marketer, operator = signed_in(engine, "marketer"), signed_in(engine, "operator")
        json_ = {"accept": "application/json"}
        right = {"_csrf": csrf_of(marketer, engine)}
        path = f"/{section}/new"
        assert f'href="{path}"' in marketer.get(f"/{section}").text
        begun = marketer.get(path).text
        assert "It is valid." in begun, "somebody begins with what could be put in force"
        assert ("/do/definitions_propose" in begun, "/do/definitions_declare" in begun) == (True, False)
        checked = marketer.post(f"{path}?part=checked", data={"text": f"{text}stepz: 1\n", **right}).text
        assert "unknown key &#x27;stepz&#x27;" in checked
        form = {"section": section, "name": "spring", "text": text, "_by": "yaml", "_then": f"/{section}", **right}
        made = marketer.post("/do/definitions_propose", data=form, headers=json_)
        assert (made.status_code, made.json()["go"]) == (200, f"/{section}")
        listed = operator.get(f"/{section}").text
        assert "Put in force" in listed
        assert "&lt;b&gt;" in listed
        assert unsafe(listed) == []
        assert f"marketer proposes the {section[:-1]} spring" in operator.get("/").text
        assert f'href="/{section}#proposals"' in html.unescape(operator.get("/").text)
        mine = marketer.get(f"/{section}").text
        assert ("Withdraw" in mine, "Put in force" in mine) == (True, False)
        assert "&lt;b&gt;" in marketer.get(f"{path}?name=spring&proposal=spring").text
        declined = {"section": section, "name": "spring", "reason": "later", "_csrf": csrf_of(operator, engine)}
        assert operator.post("/do/definitions_decline", data=declined, headers=json_).status_code == 200
        assert "declined" in marketer.get(f"/{section}").text


def test_what_is_in_force_is_where_somebody_begins_to_change_it(tmp_path: Path) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text(
        f"{MAIL}journeys:\n  hello:\n    # who is new\n    trigger: {{event: signed_up}}\n"
        "    steps: [{send: hello}]\n"
        "leaderboards:\n  best: {score: features.monetary_total, periods: [all]}\n"
    )
    with opened(file) as engine:
        client = signed_in(engine, "marketer")
        assert 'href="/journeys/new?name=hello"' in client.get("/journeys/hello").text
        page = html.unescape(client.get("/journeys/new?name=hello").text)
        assert "# who is new\ntrigger: {event: signed_up}\nsteps: [{send: hello}]\n" in page
        assert 'href="/leaderboards/new?name=best"' in client.get("/leaderboards/best").text
        assert "score: features.monetary_total\nperiods: [all]\n" in client.get("/leaderboards/new?name=best").text
