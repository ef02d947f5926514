"""The drawing of a journey in a real browser: by mouse, by keyboard, without the script; undone, and put in force."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.clients.server import Server
from tests.console.browser import serious
from tests.console.flows import Visit, running
from tests.console.stage import csrf_of, opened, signed_in
from tests.console.test_editor_flows import brought_up
from threadline.capabilities.foundation.definitions.splicing import value_of

DEFINITIONS = """\
mail:
  senders: {shop: {from: shop@example.com}}
  templates:
    hello: {subject: Hello, text: Hello}
    offer: {subject: An offer, text: An offer}
journeys:
  welcome:
    # For those who are new.
    trigger: {event: signed_up}
    steps:
      - send: hello
      # A week is long.
      - wait: 7d
"""
POINT = "button[aria-label='Add a step here']"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("drawing"), DEFINITIONS) as served:
        yield served


def text_of(page: Any) -> str:
    """The text behind the drawing, once it has settled."""
    page.wait_for_selector("[aria-busy=true]", state="detached")
    text: str = page.input_value("[data-text]")
    return text


def pressed(page: Any, selector: str, number: int = 0) -> str:
    """The text after a button of the panel was pressed, and its answer has come."""
    with page.expect_response(lambda answer: "part=panel" in answer.url):
        page.locator(selector).nth(number).click()
    return text_of(page)


def turned(page: Any, turn: Callable[[], None]) -> str:
    """The same after the last change was undone, or done again."""
    with page.expect_response(lambda answer: "part=panel" in answer.url):
        turn()
    return text_of(page)


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1_440, "light"), (390, "dark")])
def test_a_journey_is_drawn_from_nothing_and_put_in_force(
    browser: Any, server: Server, width: int, scheme: str
) -> None:
    visit = Visit(browser, server.url, width, scheme)
    page, name = visit.page, f"spring_{scheme}"
    visit.open("/journeys")
    page.click("text=Draw a journey")
    page.wait_for_url("**/journeys/new")
    page.fill("[name=name]", name)
    pressed(page, ".box.wait")
    pressed(page, "button:has-text('Remove')")
    pressed(page, POINT, 1)
    pressed(page, "text=Wait for an event")
    pressed(page, POINT, 3)
    text = pressed(page, "text=Send a mail")
    steps = value_of(text)["steps"]
    assert steps == [
        {"send": "hello"},
        {"wait": {"event": "purchase_completed", "timeout": "3d"}, "else": [{"send": "hello"}]},
    ]
    page.select_option("select[id$='.way']", label="With details")
    page.fill("[id='_f.send.template']", "offer")
    page.keyboard.press("Tab")
    page.wait_for_selector(".box.send:has-text('offer')")
    page.wait_for_selector("text=It is valid.")
    page.wait_for_selector("text=What it would have done")
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.click("button:has-text('Put in force')")
    brought_up(page)
    page.goto(f"{server.url}/journeys/{name}")  # its numbers come later
    page.wait_for_selector("a.step.send:has-text('send offer')")
    assert visit.faults == []
    page.context.close()


@pytest.mark.browser
def test_each_change_is_undone_and_done_again_to_the_letter(browser: Any, server: Server, seed: int) -> None:
    visit, random = Visit(browser, server.url), Random(seed)
    page = visit.page
    visit.open("/journeys/new?name=welcome")
    texts = [text_of(page)]
    assert "# A week is long." in texts[0]
    for _ in range(6):
        points = page.locator(POINT).count()
        pressed(page, POINT, random.randrange(points))
        kinds = ["Send a mail", "Wait for a while", "Ask a question", "Choose one of several paths"]
        texts.append(pressed(page, f"aside button:has-text('{random.choice(kinds)}')"))
    assert len(set(texts)) == 7
    for text in reversed(texts[:-1]):
        assert turned(page, lambda: page.click("[data-undo]")) == text
    assert page.locator("[data-undo]").is_disabled()
    for text in texts[1:]:
        assert turned(page, lambda: page.keyboard.press("Control+Shift+Z")) == text
    assert visit.faults == []
    page.context.close()


@pytest.mark.browser
def test_a_step_is_moved_by_keyboard_and_by_mouse(browser: Any, server: Server) -> None:
    visit = Visit(browser, server.url)
    page = visit.page
    visit.open("/journeys/new?name=welcome")
    page.focus(".box.wait")
    page.keyboard.press("Enter")
    page.wait_for_selector("button[value='move:steps.1']")
    page.focus("button[value='move:steps.1']")
    page.keyboard.press("Enter")
    page.wait_for_selector("button[value='put:steps.0']")
    page.focus("button[value='put:steps.0']")
    page.keyboard.press("Enter")
    page.wait_for_selector(".box.wait[value='at:steps.0']")
    moved = text_of(page)
    assert moved.index("# A week is long.\n  - wait: 7d") < moved.index("- send: hello")
    page.drag_and_drop(".box.wait", ".point >> nth=2")
    page.wait_for_selector(".box.wait[value='at:steps.1']")
    assert value_of(text_of(page))["steps"] == [{"send": "hello"}, {"wait": "7d"}]
    assert visit.faults == []
    page.context.close()


@pytest.mark.browser
def test_a_journey_is_drawn_without_the_script(browser: Any, server: Server) -> None:
    visit = Visit(browser, server.url, java_script_enabled=False)
    page = visit.page
    page.goto(f"{server.url}/journeys/new?name=welcome")
    page.locator(POINT).last.click()
    page.click("text=End the journey")
    page.fill("[id='_f.exit']", "enough")
    page.click("form.editor button:has-text('Check')")
    assert page.locator(".box.exit").inner_text() == "exit: enough"
    page.click("button:has-text('YAML')")
    assert page.input_value("textarea#text").endswith("- wait: 7d\n  - exit: enough\nversion: 2\n")
    page.context.close()


def test_what_is_wrong_stands_at_its_step(tmp_path: Path) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text(DEFINITIONS)
    with opened(file) as engine:
        client = signed_in(engine)
        text = "trigger: {event: signed_up}\nsteps:\n  - send: hello\n  - send: helo\n"
        sent = {"_csrf": csrf_of(client, engine), "_by": "form", "name": "spring", "text": text}
        page = client.post("/journeys/new?part=panel", data=sent).text
        boxes = {box.partition('"')[0]: box.partition("</button>")[0] for box in page.split('value="at:')[1:]}
        assert '<span class="mark bad">' in boxes["steps.1"]
        assert '<span class="mark' not in boxes["steps.0"]
        chosen = html.unescape(client.post("/journeys/new?part=panel", data={**sent, "_do": "at:steps.1"}).text)
        assert "did you mean 'hello'?" in chosen


def test_what_differs_from_what_is_in_force_is_marked_in_the_drawing(tmp_path: Path) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text(DEFINITIONS)
    with opened(file) as engine:
        client = signed_in(engine)
        text = "trigger: {event: signed_up}\nsteps:\n  - wait: 1d\n  - send: hello\n  - wait: 3d\n"
        sent = {"_csrf": csrf_of(client, engine), "_by": "form", "name": "welcome", "text": text}
        page = client.post("/journeys/new?part=panel", data=sent).text
        marks = {box.partition('"')[0]: box for box in page.split('value="at:')[1:]}
        assert 'title="1: new"' in marks["steps.0"]
        assert 'title="2"' in marks["steps.1"]
        assert 'title="3: changed"' in marks["steps.2"]


def test_a_step_that_is_not_finished_stays_chosen(tmp_path: Path) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text(DEFINITIONS)
    with opened(file) as engine:
        client = signed_in(engine)
        text = "trigger: {event: signed_up}\nsteps:\n  - send: hello\n  - exit: done\n"
        sent = {"_csrf": csrf_of(client, engine), "_by": "form", "name": "spring", "text": text, "_of": "steps.0"}
        unfinished = {"_at": "steps.0", "_f.send.way": "1", "_f.send.template": "", "_f.send.variants.count": "0"}
        page = client.post("/journeys/new?part=panel", data={**sent, **unfinished, "_do": "at:steps.1"}).text
        assert 'name="_of" value="steps.0"' in page
        gone = client.post("/journeys/new?part=panel", data={**sent, **unfinished, "_do": "remove:steps.0"}).text
        assert value_of(html.unescape(gone.split('name="text" value="')[1].split('"')[0]))["steps"] == [
            {"exit": "done"}
        ]


def test_a_journey_that_is_changed_gets_the_next_version_and_one_that_is_not_keeps_its_own(tmp_path: Path) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text(DEFINITIONS)
    with opened(file) as engine:
        client = signed_in(engine)
        begun = html.unescape(client.get("/journeys/new?name=welcome").text)
        text = begun.split('name="text" value="')[1].split('"')[0]
        assert "version" not in text
        sent = {"_csrf": csrf_of(client, engine), "_by": "form", "name": "welcome", "text": text}
        changed = html.unescape(client.post("/journeys/new?part=panel", data={**sent, "_do": "remove:steps.1"}).text)
        assert value_of(changed.split('name="text" value="')[1].split('"')[0])["version"] == 2
