"""A mail opened in a real browser: its links show, its buttons act, and its pages fit a phone in light and dark."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn

from tests.capabilities.mail_stage import SHOP, MailStage
from tests.chromium import launched
from tests.surfaces.test_pages_browser import CONTRAST_MIN, contrast
from threadline.capabilities.reach.consent.links import preferences_url
from threadline.settings import Settings
from threadline.surfaces.http.server.application import Application

pytestmark = pytest.mark.browser

DEFINITIONS = (
    SHOP
    + """
    ask:
      subject: Please confirm
      html: "<p><a href='{{ confirm_url }}'>Confirm {{ topic_title }}</a></p>"
      transactional: true
      variables: {topic_title: {}}
consent:
  brand: The Shop
  topics:
    news: {title: Weekly news, description: What is new., default: opted_in}
    offers: {title: Offers}
    club: {title: Members, confirm: ask}
"""
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as made:
        yield made


@pytest.fixture
def stage() -> Iterator[MailStage]:
    made = MailStage(DEFINITIONS)
    listening = socket.create_server(("127.0.0.1", 0))
    made.engine.public_address.use_local(f"http://127.0.0.1:{listening.getsockname()[1]}")
    application = Application(made.engine, Settings(access_log=False))
    server = uvicorn.Server(uvicorn.Config(application, log_config=None, lifespan="on"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    made.person(first_name="Ada")
    yield made
    server.should_exit = True
    thread.join()
    listening.close()


def html_of(stage: MailStage) -> str:
    part = stage.box.messages[-1].get_body(("html",))
    assert part is not None
    return str(part.get_content())


def statuses(stage: MailStage) -> dict[str, str]:
    return {each.topic: each.status for each in stage.ask("consent_of", id="ada").subscriptions}


def test_the_link_of_a_mail_shows_and_its_button_unsubscribes(browser: Any, stage: MailStage) -> None:
    stage.send(variables={"code": "X1"})
    tab = browser.new_page(java_script_enabled=False)
    tab.set_content(html_of(stage))
    tab.click("text=Unsubscribe")
    assert tab.inner_text("h1") == "Unsubscribe"
    assert "Weekly news" in tab.inner_text("p")
    assert statuses(stage)["news"] == "opted_in"
    stage.now += 1
    tab.click("text=Yes, unsubscribe")
    assert tab.inner_text("[role=status]").startswith("Done.")
    assert statuses(stage)["news"] == "unsubscribed"
    stage.send(variables={"code": "X2"})
    assert len(stage.box.sent) == 1
    assert stage.outcomes()[-1][0] == "mail_skipped"
    tab.click("text=Choose what you get instead")
    assert [tab.is_checked(f"input[value={topic}]") for topic in ("news", "offers", "club")] == [False] * 3
    stage.now += 1
    tab.check("input[value=offers]")
    tab.click("text=Save")
    assert (tab.is_checked("input[value=offers]"), statuses(stage)["offers"]) == (True, "subscribed")
    stage.now += 1
    tab.click("text=Unsubscribe from everything")
    assert set(statuses(stage).values()) == {"unsubscribed"}
    tab.close()


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/x-www-form-urlencoded", b"List-Unsubscribe=One-Click"),
        (
            'multipart/form-data; boundary="b1"',
            b'--b1\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--b1--\r\n',
        ),
    ],
)
def test_the_header_of_a_mail_unsubscribes_as_rfc_8058_has_it(stage: MailStage, content_type: str, body: bytes) -> None:
    stage.send(variables={"code": "X1"})
    [message] = stage.box.messages
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    found = re.fullmatch(r"<(http://[^>]+)>(, <mailto:[^>]+>)?", message["List-Unsubscribe"])
    assert found is not None
    link = urlsplit(found[1])
    for _ in range(2):
        connection = HTTPConnection(link.netloc)
        connection.request("POST", link.path, body, {"Content-Type": content_type})
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("location"), answer.read()) == (200, None, b"Unsubscribed.\n")
        assert answer.getheader("set-cookie") is None
        connection.close()
    assert statuses(stage) == {"news": "unsubscribed", "offers": "opted_out", "club": "opted_out"}


def test_a_subscription_is_confirmed_by_the_mail_that_it_led_to(browser: Any, stage: MailStage) -> None:
    stage.record("subscribed", topic="club")
    stage.work()
    assert [each["Subject"] for each in stage.box.messages] == ["Please confirm"]
    assert statuses(stage)["club"] == "unconfirmed"
    stage.record("subscribed", topic="club")
    stage.work()
    assert len(stage.box.sent) == 1
    tab = browser.new_page(java_script_enabled=False)
    tab.set_content(html_of(stage))
    tab.click("text=Confirm Members")
    assert statuses(stage)["club"] == "unconfirmed"
    stage.now += 1
    tab.click("button")
    assert tab.inner_text("[role=status]") == "Thank you. You are subscribed."
    assert statuses(stage)["club"] == "subscribed"
    tab.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 380, 1_100])
def test_the_preferences_page_fits_and_can_be_read(browser: Any, stage: MailStage, scheme: str, width: int) -> None:
    id = stage.engine.reader.person("default", "ada").id
    tab = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 800})
    problems: list[str] = []
    tab.on("console", lambda message: problems.append(message.text))
    tab.goto(preferences_url(stage.engine, "default", id, "ada@example.com"))
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    for chosen, ground in (("h1", "main"), ("main p", "main"), ("small", "main"), ("button", "button")):
        assert contrast(_colour(tab, chosen, "color"), _colour(tab, ground, "backgroundColor")) >= CONTRAST_MIN, chosen
    for chosen in ("button", "label"):
        assert tab.eval_on_selector(chosen, "each => each.getBoundingClientRect().height") >= 44
    order = []
    for _ in range(5):
        tab.keyboard.press("Tab")
        order.append(tab.evaluate("document.activeElement.value"))
    assert order == ["news", "offers", "club", "1", "1"]
    assert problems == []
    tab.close()


def _colour(tab: Any, chosen: str, of: str) -> tuple[int, int, int]:
    colour = tab.eval_on_selector(chosen, f"each => getComputedStyle(each).{of}")
    red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
    return red, green, blue
