"""Links, the pixel and the webhook over HTTP: for anybody; handing in mails: for tokens that may write."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from tests.surfaces.conftest import Clock, Keys
from threadline.capabilities.reach.feedback.links import click_url, pixel_url
from threadline.engine.engine import Engine
from threadline.kernel.event import Event, Identifier

MESSAGE = "0123456789abcdef" * 2
BROWSER = {"user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0"}
RAW = {"raw": "RnJvbTogYWRhQGV4YW1wbGUuY29tDQoNCkhpDQo="}


@pytest.fixture
def sent(engine: Engine) -> Engine:
    """An engine that has sent a mail a minute ago."""
    engine.public_address.use_local("http://testserver")
    properties = {"message": MESSAGE, "address": "ada@example.com", "template": "welcome"}
    event = Event(
        type="mail_sent",
        identifiers=(Identifier("user_id", "ada"),),
        occurred_at=engine.clock() - 60_000_000,
        key=f"{MESSAGE}/0",
        source="threadline.dispatch",
        source_type="internal",
        properties=properties,
    )
    assert engine.recorder.record([event])[0].status == "accepted"
    return engine


def recorded(engine: Engine, type: str) -> list[dict[str, object]]:
    """What happened to Ada."""
    person = engine.reader.person("default", "user_id:ada")
    return [each.event.properties for each in engine.reader.events(person, types=frozenset({type}))]


def test_get_of_a_link_is_a_click_and_head_that_of_a_machine(sent: Engine, client: TestClient, clock: Clock) -> None:
    url = click_url(sent, "default", MESSAGE, "https://shop.example/a?b=c")
    for method in ("GET", "HEAD"):
        clock.now += 1_000_000
        answer = client.request(method, url, headers=BROWSER, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (302, "https://shop.example/a?b=c")
        assert "no-store" in answer.headers["cache-control"]
        assert answer.headers["referrer-policy"] == "no-referrer"
    (fetch,), (scan,) = recorded(sent, "mail_fetched"), recorded(sent, "mail_scanned")
    assert (fetch.get("why"), scan["why"], scan["fetch"]) == (None, "head", "clicked")


def test_pixel_is_a_gif(sent: Engine, client: TestClient) -> None:
    answer = client.get(pixel_url(sent, "default", MESSAGE), headers=BROWSER)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/gif")
    assert answer.content.startswith(b"GIF89a")
    assert "no-store" in answer.headers["cache-control"]
    assert recorded(sent, "mail_opened")[0]["machine"] is False


@pytest.mark.parametrize("path", ["/m/c/x", "/m/c/https:%2F%2Fevil.example", "/m/c/x?url=https://evil.example"])
def test_link_that_is_not_signed_leads_nowhere(client: TestClient, path: str) -> None:
    answer = client.get(path, follow_redirects=False)
    assert answer.status_code == 404
    assert "location" not in answer.headers
    assert "evil" not in answer.text


def test_click_gets_through_although_the_store_is_full(sent: Engine, client: TestClient, monkeypatch) -> None:
    from threadline.kernel.errors import StoreFull

    def full(*args: object, **more: object) -> None:
        raise StoreFull

    url = click_url(sent, "default", MESSAGE, "https://shop.example/")
    monkeypatch.setattr(sent.recorder, "record", full)
    assert client.get(url, headers=BROWSER, follow_redirects=False).status_code == 302


@pytest.mark.parametrize(("body", "status"), [(b"", 400), (b"{}", 400), (b"x" * 300_000, 413)])
def test_webhook_refuses_what_is_no_message(client: TestClient, body: bytes, status: int) -> None:
    assert client.post("/m/sns/default", content=body).status_code == status


def test_webhook_refuses_a_topic_that_is_not_declared(client: TestClient) -> None:
    fields = ("MessageId", "Message", "Timestamp", "Signature")
    body = dict.fromkeys(fields, "x") | {"Type": "Notification", "TopicArn": "arn:aws:sns:eu-west-1:1:x"}
    answer = client.post("/m/sns/default", json=body)
    assert (answer.status_code, answer.json()["code"]) == (403, "forged_message")


@pytest.mark.parametrize("path", ["/v1/feedback/mails", "/v1/feedback/notifications"])
def test_only_a_token_that_may_write_hands_in_mails(client: TestClient, keys: Keys, path: str) -> None:
    body = RAW if path.endswith("mails") else {"text": '{"eventType": "Subscription", "mail": {}}'}
    assert client.post(path, json=body).status_code == 401
    assert client.post(path, json=body, auth=(keys.write, "")).status_code == 403
    assert client.post(path, json=body, headers=keys.bearer("write")).status_code in (401, 403)
    assert client.post(path, json=body, headers=keys.bearer("read")).status_code == 403
    assert client.post(path, json=body, headers=keys.bearer("writer")).status_code == 200
