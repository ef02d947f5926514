"""The pages behind a mail's links: GET only shows, POST acts at once, and a token that is not ours learns nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.capabilities.asked import Asked
from tests.surfaces.conftest import NOW, Clock
from threadline.capabilities.reach.consent.links import confirm_url, preferences_url, unsubscribe_url
from threadline.capabilities.reach.consent.privacy import privacy_projection
from threadline.capabilities.reach.consent.refusal import Mailing, refusals
from threadline.engine.engine import Engine
from threadline.engine.public_address import PublicAddress
from threadline.kernel.event import GLOBAL_PRIVACY_CONTROL, Event, Identifier, Receipt, Recorded
from threadline.stores.memory import MemoryStore

DEFINITIONS = """
consent:
  brand: Bücher & Co
  topics:
    news: {title: "News <weekly>", description: What is new., default: opted_in}
    offers: {title: Offers}
    club: {confirm: welcome}
"""
CATALOGUE = Asked(definitions=DEFINITIONS).engine.catalogue
ADDRESS = "ada@example.com"
URLENCODED = ("application/x-www-form-urlencoded", b"List-Unsubscribe=One-Click")
MULTIPART = (
    "multipart/form-data; boundary=----b",
    b'------b\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n------b--\r\n',
)
FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture
def engine(clock: Clock) -> Iterator[Engine]:
    made = Engine(MemoryStore(), CATALOGUE, clock)
    made.public_address = PublicAddress("http://testserver")
    identifiers = (Identifier("user_id", "ada"), Identifier("email", ADDRESS))
    made.recorder.record([Event(type="signed_up", identifiers=identifiers, occurred_at=NOW - 10, key="1")])
    clock.now += 1_000
    yield made
    made.close()


def person(engine: Engine) -> str:
    return engine.reader.person("default", "user_id:ada").id


def link(engine: Engine, topic: str) -> str:
    return unsubscribe_url(engine, "default", person(engine), ADDRESS, topic)


def refused(engine: Engine, topic: str, address: str = ADDRESS, ref: str = "user_id:ada") -> str:
    view = engine.reader.as_of(engine.reader.person("default", ref), engine.recorder.now())
    return refusals(engine, [Mailing("default", address, topic, False, view)])[0]


def events(engine: Engine) -> list[Event]:
    return [each.event for each in engine.reader.events(engine.reader.person("default", "user_id:ada"))[1:]]


@pytest.mark.parametrize(("content_type", "body"), [URLENCODED, MULTIPART, ("text/plain", b""), ("", b"\xff\0")])
def test_a_one_click_post_unsubscribes_with_200_and_no_redirect(engine, client, content_type, body):
    url = link(engine, "news")
    assert len(url) < 200
    for _ in range(2):
        answer = client.post(url, content=body, headers={"content-type": content_type}, follow_redirects=False)
        assert (answer.status_code, answer.content) == (200, b"Unsubscribed.\n")
        assert "location" not in answer.headers
    assert [(each.type, each.properties) for each in events(engine)] == [
        ("unsubscribed", {"address": ADDRESS, "topic": "news", "via": "one_click"})
    ]
    assert (refused(engine, "news"), refused(engine, "offers")) == ("unsubscribed", "opted_out")


def test_a_one_click_post_from_anywhere_needs_no_origin_and_no_cookie(engine, client):
    headers = {"origin": "https://evil.example", "sec-fetch-site": "cross-site", "cookie": "a=b"}
    assert client.post(link(engine, "news"), data={"List-Unsubscribe": "One-Click"}, headers=headers).status_code == 200
    assert refused(engine, "news") == "unsubscribed"


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("path", ["u", "p", "c"])
def test_looking_changes_nothing(engine, client, method, path):
    urls = {
        "u": link(engine, "news"),
        "p": preferences_url(engine, "default", person(engine), ADDRESS),
        "c": confirm_url(engine, "default", person(engine), ADDRESS, "club"),
    }
    client.request(method, urls[path])
    assert events(engine) == []


def test_a_link_without_a_topic_unsubscribes_from_everything_until_a_later_subscription(engine, client, clock):
    preferences = preferences_url(engine, "default", person(engine), ADDRESS)
    client.post(preferences, content="save=1&topic=news&topic=offers", headers=FORM)
    assert refused(engine, "offers") == ""
    clock.now += 1
    client.post(link(engine, ""), content=URLENCODED[1], headers=FORM)
    assert [refused(engine, topic) for topic in ("news", "offers", "club", "")] == ["unsubscribed"] * 4
    clock.now += 1
    client.post(preferences, content="save=1&topic=offers", headers=FORM)
    assert [refused(engine, topic) for topic in ("news", "offers", "club", "")] == [
        "unsubscribed",
        "",
        *["unsubscribed"] * 2,
    ]
    client.post(link(engine, ""), content=URLENCODED[1], headers=FORM)
    assert refused(engine, "offers") == "unsubscribed"


def test_the_preferences_page_ticks_what_is_subscribed_and_saves_what_is_ticked(engine, client):
    url = preferences_url(engine, "default", person(engine), ADDRESS)

    def ticked(text: str) -> set[str]:
        return {name for name in ("news", "offers", "club") if f'value="{name}" checked' in text}

    assert ticked(client.get(url).text) == {"news"}
    assert ticked(client.get(url, headers={"sec-gpc": "1"}).text) == set()
    assert events(engine) == []
    for wanted in ({"offers", "club"}, {"offers", "club"}, set(), {"news"}):
        answer = client.post(url, content="&".join(["save=1", *(f"topic={name}" for name in wanted)]), headers=FORM)
        assert answer.status_code == 200
        assert ticked(answer.text) == ticked(client.get(url).text) == wanted
        assert {name for name in ("news", "offers", "club") if refused(engine, name) == ""} == wanted
    said = [(each.type, each.properties["topic"]) for each in events(engine)]
    assert sorted(said[:3]) == [("subscribed", "club"), ("subscribed", "offers"), ("unsubscribed", "news")]
    assert len(said) == 6
    client.post(url, content="all=1", headers={**FORM, "sec-gpc": "1"})
    assert events(engine)[-1].properties == {"address": ADDRESS, "via": "preferences", "gpc": True}
    assert ticked(client.get(url).text) == set()


def test_confirming_subscribes_and_an_unconfirmed_subscription_does_not(engine, client):
    identifiers = (Identifier("user_id", "ada"),)
    given = {"topic": "club", "confirmed": True}
    event = Event(
        type="subscribed",
        identifiers=identifiers,
        occurred_at=NOW,
        key="site",
        source_type="external",
        properties=given,
    )
    engine.recorder.record([event])
    assert refused(engine, "club") == "unconfirmed"
    url = confirm_url(engine, "default", person(engine), ADDRESS, "club")
    assert "Yes, subscribe me" in client.get(url).text
    assert client.post(url, content="confirm=1", headers=FORM).status_code == 200
    assert refused(engine, "club") == ""
    client.post(link(engine, "club"), content=URLENCODED[1], headers=FORM)
    assert refused(engine, "club") == "unsubscribed"


def test_pages_mask_the_address_and_escape_what_is_declared(engine, client):
    for url in (link(engine, "news"), preferences_url(engine, "default", person(engine), ADDRESS)):
        page = client.get(url)
        assert page.headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline'")
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["referrer-policy"] == "no-referrer"
        assert "a•••@e•••.com" in page.text
        assert "News &lt;weekly&gt;" in page.text
        for secret in (ADDRESS, "example", person(engine), "user_id", "<script", "<img"):
            assert secret not in page.text


def test_a_link_of_one_kind_opens_no_other_page(engine, client):
    unknown = client.get("/p/AAAA").text
    token = link(engine, "news").rpartition("/")[2]
    assert client.get(f"/p/{token}").text == client.get(f"/c/{token}").text == unknown
    client.post(f"/c/{token}", content="confirm=1", headers=FORM)
    client.post(f"/p/{token}", content="all=1", headers=FORM)
    assert events(engine) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(
    st.text("ABCDEFGabcdefg0123456789-_.~%", min_size=1, max_size=150), st.sampled_from("upc"), st.binary(max_size=50)
)
def test_a_hostile_token_is_answered_with_200_and_discloses_nothing(engine, client, token, path, body):
    shown = client.get(f"/{path}/{token}")
    posted = client.post(f"/{path}/{token}", content=body, headers=FORM)
    if "%" in token and shown.status_code != 200:
        return  # refused before any route: no token can be read of it
    assert (shown.status_code, posted.status_code) == (200, 200)
    assert "This link is not complete" in shown.text
    assert "•" not in shown.text + posted.text


def test_an_unsubscription_reaches_another_person_with_the_address_and_survives_merge_and_split(engine, client, clock):
    bob = Event(
        type="identify",
        identifiers=(Identifier("user_id", "bob"),),
        occurred_at=NOW,
        key="b",
        properties={"email": ADDRESS},
    )
    engine.recorder.record([bob])
    assert refused(engine, "news", ref="user_id:bob") == ""
    client.post(link(engine, "news"), content=URLENCODED[1], headers=FORM)
    assert refused(engine, "news", ADDRESS.upper(), "user_id:bob") == "unsubscribed"
    assert refused(engine, "news", "bob@example.com", "user_id:bob") == ""
    assert refused(engine, "news", "ada@other.example") == "unsubscribed"
    clock.now += 1
    engine.identity.merge("default", "user_id:ada", "user_id:bob", request="m", force=True)
    clock.now += 1
    assert refused(engine, "news", "bob@example.com", "user_id:bob") == "unsubscribed"
    engine.identity.split("default", "user_id:ada", ["user_id:bob"], request="s")
    clock.now += 1
    assert refused(engine, "news", "bob@example.com", "user_id:bob") == ""
    assert refused(engine, "news", ADDRESS, "user_id:bob") == "unsubscribed"


def test_a_link_made_before_a_merge_still_works(engine, client, clock):
    engine.recorder.record(
        [Event(type="x", identifiers=(Identifier("user_id", "eve"),), occurred_at=NOW - 99, key="e")]
    )
    url = link(engine, "news")
    clock.now += 1
    engine.identity.merge("default", "user_id:eve", "user_id:ada", request="m", force=True)
    client.post(url, content=URLENCODED[1], headers=FORM)
    assert refused(engine, "news", ref="user_id:eve") == "unsubscribed"


def test_a_link_to_somebody_who_is_gone_counts_for_the_address(engine, client):
    url = unsubscribe_url(engine, "default", "f" * 32, "info@example.com", "news")
    assert client.post(url, content=URLENCODED[1], headers=FORM).status_code == 200
    assert refused(engine, "news", "info@example.com") == "unsubscribed"


def test_a_link_of_one_workspace_touches_no_other(engine, client):
    url = unsubscribe_url(engine, "other", person(engine), ADDRESS, "news")
    client.post(url, content=URLENCODED[1], headers=FORM)
    assert refused(engine, "news") == ""


def test_a_topic_that_is_not_declared_any_more_can_still_be_left(engine, client):
    client.post(link(engine, "gone"), content=URLENCODED[1], headers=FORM)
    assert refused(engine, "gone") == "unsubscribed"
    assert refused(engine, "news") == ""
    assert "Gone" in client.get(link(engine, "gone")).text


def test_a_browser_with_global_privacy_control_ends_what_only_a_default_allowed(engine, client, clock):
    write_key = engine.credentials.create("default", "write_key", "web")[1]

    def track(message: str, **headers: str) -> None:
        body = {"userId": "ada", "event": "seen", "messageId": message, "writeKey": write_key}
        assert client.post("/v1/track", json=body, headers=headers).status_code == 200
        clock.now += 1

    track("1")
    track("2", **{"sec-gpc": "0"})
    assert refused(engine, "news") == ""
    track("3", **{"sec-gpc": "1"})
    assert refused(engine, "news") == "opted_out"
    assert refused(engine, "") == "opted_out"
    track("3")
    assert len(events(engine)) == 3
    url = preferences_url(engine, "default", person(engine), ADDRESS)
    assert " checked" not in client.get(url).text
    client.post(url, content="save=1&topic=news", headers={**FORM, "sec-gpc": "1"})
    assert refused(engine, "news") == ""


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_signal_is_known_since_its_first_event_in_any_order_and_of_merged_people(order):
    projection = privacy_projection(needed=True)
    told = [
        recorded(Event(type="x", identifiers=(), occurred_at=at, key=str(at), marks=marks), at)
        for at, marks in ((1, ()), (2, (GLOBAL_PRIVACY_CONTROL,)), (3, (GLOBAL_PRIVACY_CONTROL,)))
    ]
    state = projection.empty()
    for place in order:
        state = projection.after(state, told[place])
    assert state == {"since": 2}
    assert projection.faster.merge(state, {}) == projection.faster.merge({}, dict(state)) == {"since": 2}
    assert projection.view({}, 9, [])["global_privacy_control"] is False


def recorded(event: Event, sequence: int) -> Recorded:
    return Recorded(event, f"{sequence:032x}", "0" * 32, sequence, sequence)


def test_an_unsubscription_that_cannot_be_recorded_is_not_answered_with_200(engine, client, monkeypatch):
    url = link(engine, "news")
    rejected = Receipt(status="rejected", code="person_too_large", message="too large")
    monkeypatch.setattr(engine.recorder, "record", lambda events, known: [rejected])
    answer = client.post(url, content=URLENCODED[1], headers=FORM)
    assert answer.status_code == 503
    monkeypatch.undo()
    assert refused(engine, "news") == ""
