"""The development inbox: what is sent there can be read by its API and its page, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.chromium import launched
from tests.surfaces.conftest import Clock, Keys, client_of, keys_of
from tests.surfaces.inbox_stage import deliver, inbox_engine, inbox_sender
from threadline.engine.engine import Engine
from threadline.kernel.inbox import MESSAGE_BYTES_MAX
from threadline.senders import inbox as inbox_module

HOST = "http://inbox.test"


@pytest.fixture
def engine(clock: Clock) -> Iterator[Engine]:
    made = inbox_engine(clock)
    yield made
    made.close()


@pytest.fixture
def client(engine: Engine) -> Iterator[TestClient]:
    with client_of(engine) as made:
        yield made


def asked(client: TestClient, keys: Keys, path: str = "", who: str = "read") -> Any:
    answer = client.get(f"/v1/dev/inbox{path}", headers=keys.bearer(who))
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_list_has_the_newest_message_first_and_finds_recipients(
    client: TestClient, engine: Engine, clock: Clock, keys: Keys
) -> None:
    sender = inbox_sender(engine)
    outcome = deliver(engine, clock, sender, 1, "ana@b.example")
    deliver(engine, clock, sender, 2, "ben@b.example")
    deliver(engine, clock, sender, 3, "ANA@c.example")
    found = asked(client, keys, "?to=ana")["messages"]
    assert [each["to"] for each in found] == ["ANA@c.example", "ana@b.example"]
    assert outcome.type == "mail_sent"
    assert found[1]["id"] == outcome.properties["provider_id"]
    first = asked(client, keys, "?limit=2")
    assert [each["to"] for each in first["messages"]] == ["ANA@c.example", "ben@b.example"]
    assert [each["to"] for each in asked(client, keys, f"?cursor={first['next']}")["messages"]] == ["ana@b.example"]


def test_a_message_shows_its_parts(client: TestClient, engine: Engine, clock: Clock, keys: Keys) -> None:
    id = deliver(engine, clock, inbox_sender(engine), 1, "ana@b.example").properties["provider_id"]
    found = asked(client, keys, f"/{id}")
    assert "<h1" in found["html"]
    assert found["text"] == "Hello Ana, three records left our house today.\r\n"
    assert found["links"] == ["https://shop.example/track?id=7&of=ana", "https://shop.example/help"]
    assert found["attachments"] == [{"name": "invoice.pdf", "type": "application/pdf", "size": 8}]
    assert {"name": "Subject", "value": "Your order is on its way"} in found["headers"]
    assert found["raw"].startswith("From: Shop <news@shop.example>\r\n")


def test_another_workspace_sees_nothing(client: TestClient, engine: Engine, clock: Clock, keys: Keys) -> None:
    id = deliver(engine, clock, inbox_sender(engine), 1, "ana@b.example").properties["provider_id"]
    assert asked(client, keys, who="stranger")["messages"] == []
    assert client.get(f"/v1/dev/inbox/{id}", headers=keys.bearer("stranger")).status_code == 404


def test_clear_removes_everything_of_the_workspace_alone(
    client: TestClient, engine: Engine, clock: Clock, keys: Keys
) -> None:
    sender = inbox_sender(engine)
    for number in range(120):
        deliver(engine, clock, sender, number, f"{number}@b.example", workspace="other" if number == 7 else "default")
    answer = client.post("/v1/dev/inbox/clear", headers=keys.bearer("writer"), json={})
    assert answer.json() == {"removed": 119}
    assert asked(client, keys)["messages"] == []
    assert len(asked(client, keys, who="stranger")["messages"]) == 1
    assert len(engine.store.scan("inbox")) == 2


def test_the_oldest_messages_go_when_there_are_too_many(
    client: TestClient, engine: Engine, clock: Clock, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_module, "MESSAGES_MAX", 20)
    monkeypatch.setattr(inbox_module, "PRUNED_EVERY", 5)
    sender = inbox_sender(engine)
    for number in range(61):
        deliver(engine, clock, sender, number, f"{number}@b.example")
    found = [each["to"] for each in asked(client, keys)["messages"]]
    assert found == [f"{number}@b.example" for number in range(60, 39, -1)]
    assert len(engine.store.scan("inbox")) == 2 * len(found)


def test_a_large_message_is_cut_and_says_its_size(client: TestClient, engine: Engine, clock: Clock, keys: Keys) -> None:
    large = b"Subject: large\r\n\r\n" + b"x" * MESSAGE_BYTES_MAX
    id = deliver(engine, clock, inbox_sender(engine), 1, "a@b.example", message=large).properties["provider_id"]
    found = asked(client, keys, f"/{id}")
    assert (found["size"], len(found["raw"])) == (len(large), MESSAGE_BYTES_MAX)


@pytest.mark.parametrize(
    "message", [b"", b"\xff\xfe", b"Content-Type: text/html; charset=nosuch\r\n\r\n\xff<a href='x'>"]
)
def test_a_message_that_is_none_shows_as_it_is(
    client: TestClient, engine: Engine, clock: Clock, keys: Keys, message: bytes
) -> None:
    id = deliver(engine, clock, inbox_sender(engine), 1, "a@b.example", message=message).properties["provider_id"]
    assert asked(client, keys, f"/{id}")["to"] == "a@b.example"


def test_with_another_provider_there_is_no_inbox(clock: Clock) -> None:
    engine = inbox_engine(clock, "smtp://mail.example")
    bearer = keys_of(engine).bearer("admin")
    with client_of(engine) as client:
        assert client.get("/dev/inbox").status_code == 404
        assert client.get("/v1/dev/inbox", headers=bearer).status_code == 404
        assert client.post("/v1/dev/inbox/clear", headers=bearer, json={}).status_code == 404
    engine.close()


def test_the_page_holds_no_mail_and_the_list_needs_a_token(client: TestClient, engine: Engine, clock: Clock) -> None:
    deliver(engine, clock, inbox_sender(engine), 1, "ana@b.example")
    page = client.get("/dev/inbox")
    assert page.status_code == 200
    assert "ana@b.example" not in page.text
    assert client.get("/v1/dev/inbox").status_code == 401


# --- in a browser ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as made:
        yield made


def opened(browser: Any, client: TestClient, path: str, **options: Any) -> Any:
    """A tab whose requests the application answers; others go nowhere."""
    tab = browser.new_page(**options)

    def answer(route: Any) -> None:
        request = route.request
        if not request.url.startswith(HOST):
            route.abort()
            return
        found = client.request(
            request.method, request.url.removeprefix(HOST), headers=request.headers, content=request.post_data or ""
        )
        headers = {name: value for name, value in found.headers.items() if name != "content-length"}
        route.fulfill(status=found.status_code, headers=headers, body=found.content)

    tab.context.route("**/*", answer)
    tab.goto(HOST + path)
    return tab


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_shows_a_mail_at_two_widths_and_runs_no_script_of_it(
    browser: Any, client: TestClient, engine: Engine, clock: Clock, keys: Keys, scheme: str, tmp_path: Any
) -> None:
    sender = inbox_sender(engine)
    deliver(engine, clock, sender, 1, "ana@b.example")
    deliver(engine, clock, sender, 2, "ben@b.example", subject="<b>Spring</b> sale")
    tab = opened(
        browser, client, f"/dev/inbox#token={keys.read}", color_scheme=scheme, viewport={"width": 1500, "height": 900}
    )
    tab.wait_for_selector("#list li")
    assert "token" not in tab.url
    assert tab.locator("#list .subject").all_inner_texts() == ["<b>Spring</b> sale", "Your order is on its way"]
    tab.fill("#to", "ANA")
    tab.wait_for_selector("#list li:only-child")
    tab.click("#list button")
    tab.wait_for_selector("iframe")
    widths = [frame.evaluate("innerWidth") for frame in tab.frames[1:]]
    assert sorted(widths) == [373, 658]
    inside = tab.frames[1]
    assert inside.locator("h1").inner_text() == "Your order is on its way"
    assert inside.locator("p").first.evaluate("element => getComputedStyle(element).color") == "rgb(1, 2, 3)"
    assert "ran" not in (tab.title(), inside.title())
    tab.screenshot(path=str(tmp_path / f"inbox-{scheme}.png"))
    for part, shown in [("Text", "three records"), ("Raw", "MIME-Version: 1.0"), ("Headers", "news@shop.example")]:
        tab.get_by_role("button", name=part, exact=True).click()
        assert shown in tab.locator("#mail").inner_text()
    tab.get_by_role("button", name="Links").click()
    assert tab.locator("#mail dd a").first.get_attribute("href") == "https://shop.example/track?id=7&of=ana"
    tab.close()


@pytest.mark.browser
def test_a_link_in_a_mail_opens_in_a_tab_of_its_own(
    browser: Any, client: TestClient, engine: Engine, clock: Clock, keys: Keys
) -> None:
    deliver(engine, clock, inbox_sender(engine), 1, "ana@b.example")
    tab = opened(browser, client, f"/dev/inbox#token={keys.read}", viewport={"width": 1500, "height": 900})
    tab.click("#list button")
    with tab.context.expect_page() as opening:
        tab.frame_locator("iframe").last.locator("a").first.click()
    assert re.fullmatch(r"https://shop\.example/track\?id=7&of=ana|chrome-error:.*|about:blank", opening.value.url)
    assert tab.url.startswith(f"{HOST}/dev/inbox?id=")
    tab.close()


@pytest.mark.browser
def test_the_page_fits_a_phone_and_asks_for_a_token(
    browser: Any, client: TestClient, engine: Engine, clock: Clock, keys: Keys
) -> None:
    deliver(engine, clock, inbox_sender(engine), 1, "ana@b.example")
    tab = opened(browser, client, "/dev/inbox", viewport={"width": 390, "height": 844})
    tab.fill("#token", keys.read)
    tab.get_by_role("button", name="Go on").click()
    tab.wait_for_selector("#list li")
    tab.click("#list button")
    tab.wait_for_selector("iframe")
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
    tab.close()
