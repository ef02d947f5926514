"""The editor of mail templates in a real browser: a mail with a picture in two languages, from nothing to in force."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.capabilities.pictures import PICTURES
from tests.clients.server import Server
from tests.console.browser import serious
from tests.console.flows import Visit, post, running
from tests.console.stage import csrf_of, opened, signed_in
from tests.console.test_editor_flows import brought_up
from threadline.capabilities.foundation.definitions.splicing import value_of

PERSON = {
    "type": "identify",
    "identifiers": {"user_id": "eva"},
    "key": "1",
    "properties": {"first_name": "Eva", "locale": "de-AT", "email": "eva@example.com"},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("templates")) as served:
        post(served.url, "/v1/events", {"events": [PERSON]})
        yield served


@pytest.fixture(scope="module")
def with_sender(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("sender"), "mail: {senders: {shop: {from: shop@example.com}}}\n") as served:
        yield served


def text_of(page: Any) -> dict[str, Any]:
    """What is written, once the page has settled."""
    page.wait_for_selector("[aria-busy=true]", state="detached")
    values: dict[str, Any] = value_of(page.input_value("[data-text]"))
    return values


def pressed(page: Any, selector: str) -> dict[str, Any]:
    """What is written after a button of the panel was pressed, and its answer has come."""
    with page.expect_response(lambda answer: "part=panel" in answer.url):
        page.locator(selector).first.click()
    return text_of(page)


def written(page: Any, field: str, words: str) -> dict[str, Any]:
    """What is written after a field of the panel was filled in."""
    with page.expect_response(lambda answer: "part=panel" in answer.url):
        page.fill(f"[id='{field}']", words)
        page.keyboard.press("Tab")
    return text_of(page)


def seen(page: Any, words: str, frame: str = "desk") -> None:
    """Wait for words of the mail in a frame."""
    page.frame_locator(f"iframe[name={frame}]").locator(f"text={words}").first.wait_for()


@pytest.mark.browser
def test_a_mail_with_a_picture_in_two_languages_is_written_from_nothing_put_in_force_and_taken_back(
    browser: Any, server: Server
) -> None:
    visit = Visit(browser, server.url)
    page = visit.page
    visit.open("/senders/new")
    page.fill("[name=name]", "shop")
    page.fill("[id='_f.from']", "shop@example.com")
    page.wait_for_selector("text=It is valid.")
    page.click("button:has-text('Put in force')")
    brought_up(page)
    visit.open("/templates/new")
    page.fill("[name=name]", "welcome")
    written(page, "_f.subject", "Good to see you")
    page.fill("[name=_person]", "user_id:eva")
    seen(page, "Hello Eva")
    pressed(page, ".block:has-text('Some words')")
    page.fill("#fallback", "friend")
    page.click("[id='_f.text']")
    page.keyboard.press("Control+A")
    page.click("[data-insert='person.traits.first_name']")
    page.wait_for_selector("[aria-busy=true]", state="detached")
    page.keyboard.press("End")
    page.keyboard.type(", **good** that you are here.")
    page.keyboard.press("Tab")
    seen(page, "good", "phone")
    assert text_of(page)["blocks"][1] == {
        "text": '{{ person.traits.first_name | default("friend") }}, **good** that you are here.'
    }
    page.click("summary:has-text('Add a block above')")
    pressed(page, "[value='new:blocks.1:picture']")
    page.set_input_files("[data-upload]", {"name": "shoe.png", "mimeType": "image/png", "buffer": PICTURES["png"]})
    page.wait_for_selector(".thumb")
    picture = text_of(page)["blocks"][1]["picture"]
    assert picture["source"].startswith("picture:")
    page.frame_locator("iframe[name=dark]").locator(f"img[src$='{picture['source'][8:]}']").wait_for()
    pressed(page, "button:has-text('Subject and settings')")
    page.click("summary:has-text('Another language')")
    page.fill("[name=_new_language]", "de")
    page.keyboard.press("Tab")
    assert page.input_value("[name=_new_language]") == "de"
    pressed(page, "button:has-text('Add the language')")
    written(page, "_f.subject", "Hallo")
    pressed(page, ".block:has-text('Heading')")
    values = written(page, "_f.heading", "Willkommen {{ person.traits.first_name }}")
    assert values["languages"]["also"]["de"]["subject"] == "Hallo"
    assert values["blocks"][0]["heading"].startswith("Hello"), "the other language is as it was"
    seen(page, "Willkommen Eva")
    page.wait_for_selector("text=In every language")
    assert serious(page) == []
    page.click("button:has-text('Put in force')")
    brought_up(page)
    visit.open("/templates/welcome")
    page.wait_for_selector("text=From")
    visit.open("/mail-pictures")
    page.wait_for_selector("text=Used by")
    assert page.locator("button:has-text('Delete')").count() == 0
    visit.open("/definitions/versions/1")
    page.click("button:has-text('Go back')")
    page.click("dialog button.danger")
    brought_up(page)
    visit.open("/templates")
    page.wait_for_selector("text=There is no template yet")
    # A picture of another server is not loaded: whoever serves it would learn who looks.
    assert [fault for fault in visit.faults if "https://example.com/picture.png" not in fault] == []
    page.context.close()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_editor_fits_a_phone_and_undoes_to_the_letter_by_keyboard(
    browser: Any, server: Server, scheme: str
) -> None:
    visit = Visit(browser, server.url, 390, scheme)
    page = visit.page
    visit.open("/templates/new")
    before = page.input_value("[data-text]")
    pressed(page, ".block:has-text('Some words')")
    for action in ("copy", "up", "copy"):
        pressed(page, f"[value^='{action}:blocks']")
    assert page.input_value("[data-text]") != before
    while page.locator("[data-undo]").is_enabled():
        with page.expect_response(lambda answer: "part=panel" in answer.url):
            page.locator("[data-undo]").focus()
            page.keyboard.press("Enter")
        text_of(page)
    assert page.input_value("[data-text]") == before
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert serious(page) == []
    assert visit.faults == []
    page.context.close()


@pytest.mark.browser
def test_without_the_script_a_block_is_added_and_the_mail_is_shown_in_its_frame(
    browser: Any, with_sender: Server
) -> None:
    server = with_sender
    visit = Visit(browser, server.url, java_script_enabled=False)
    page = visit.page
    page.goto(f"{server.url}/templates/new?name=plain")
    page.click("summary:has-text('Add a block at the end')")
    page.click("[value='new:blocks.3:divider']")
    assert value_of(page.input_value("[data-text]"))["blocks"][3] == {"divider": "line"}
    page.click("button:has-text('Show')")
    seen(page, "Some words")
    page.context.close()


def test_a_person_who_is_not_there_and_a_text_that_is_wrong_say_so() -> None:
    with opened() as engine:
        client = signed_in(engine)
        form = {"_csrf": csrf_of(client, engine), "name": "x", "text": "subject: Hello\nblocks: [{txt: x}]\n"}
        page = client.post("/templates/new", data=form, headers={"origin": "http://testserver"})
        assert page.status_code == 200
        assert "unknown key" in page.text
        assert "Unknown" in page.text
