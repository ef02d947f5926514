"""Clicks and opens: recorded with who made them, leading only to the signed link; machines are told apart, not lost."""

from __future__ import annotations

import html as markup
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.feedback_stage import BROWSER, Stage
from tests.each import each_of
from threadline.capabilities.reach.feedback.links import click_url, message_in, pixel_url, track
from threadline.capabilities.reach.feedback.machines import Click, machine, machine_agent, scanned
from threadline.capabilities.reach.feedback.repetitions import COUNTING
from threadline.capabilities.reach.feedback.routes import location
from threadline.capabilities.reach.feedback.tracking import tracked_html, tracked_text
from threadline.capabilities.reach.mail.message import tagged
from threadline.kernel.store import scan_pages
from threadline.kernel.time import SECOND, format_time

CRAWLERS = json.loads((Path(__file__).parent.parent / "data/crawlers/crawler-user-agents.json").read_text())
CHROME = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/42.0 Safari/537.36"
PEOPLE = [
    BROWSER,
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36",
    f"{CHROME} Edge/12.246",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
    "Mozilla/5.0 (compatible; MSIE 9.0; Windows NT 6.1; Trident/5.0; Microsoft Outlook 16.0)",
]
PROXIES = [
    "Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)",
    "YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html",
]


def follow(stage: Stage, url: str, agent: str = BROWSER, method: str = "GET", **headers: str):
    """Ask for a link or a picture of a mail."""
    kind, token = re.fullmatch(r"http://shop\.example/m/([co])/(.+)", url).groups()
    route = {"c": "mail_click", "o": "mail_open"}[kind]
    return stage.request(route, {"token": token}, {"user-agent": agent, **headers}, method=method)


def test_click_leads_to_the_signed_link_and_is_recorded():
    stage = Stage()
    message = stage.mail(journey="onboarding")
    answer = follow(stage, click_url(stage.engine, "default", message, "https://shop.example/ä?a=1&b=%20#x"))
    assert (answer.status, answer.headers["location"]) == (302, "https://shop.example/%C3%A4?a=1&b=%20#x")
    assert "no-store" in answer.headers["cache-control"]
    asked = {
        "message": message,
        "template": "welcome",
        "journey": "onboarding",
        "address": "ada@example.com",
        "link": "https://shop.example/ä?a=1&b=%20#x",
        "agent": BROWSER,
    }
    (fetch,) = stage.recorded("ada", "mail_fetched")
    assert fetch.event.properties == {**asked, "fetch": "clicked"}
    stage.pass_(9.9)
    stage.work()
    assert stage.events("ada", "mail_clicked") == []
    stage.pass_(0.1)
    stage.work()
    (event,) = stage.events("ada", "mail_clicked")
    assert event.properties == {**asked, "machine": False, "of": fetch.id}
    assert event.occurred_at == fetch.event.occurred_at


def test_pixel_is_a_picture_that_nobody_may_store():
    stage = Stage()
    answer = follow(stage, pixel_url(stage.engine, "default", stage.mail()))
    assert answer.media_type == "image/gif"
    assert answer.body[:10] == b"GIF89a\x01\x00\x01\x00"
    assert "no-store" in answer.headers["cache-control"]
    stage.decide()
    assert stage.events("ada", "mail_opened")[0].properties["machine"] is False


@given(st.text(max_size=80))
def test_changed_token_leads_nowhere_and_records_nothing(text):
    stage = STAGE
    token = re.sub(r".*/m/c/", "", click_url(stage.engine, "default", "0" * 32, "https://evil.example"))
    for each in (text, token[:-2] + text, text + token, token.upper(), f"{token}?url=https://evil.example"):
        if each == token:
            continue
        answer = stage.request("mail_click", {"token": each})
        assert answer.status == 404
        assert "location" not in (answer.headers or {})
    assert stage.request("mail_open", {"token": f"{text}.gif"}).media_type == "image/gif"


STAGE = Stage()


def test_token_of_the_pixel_is_none_of_a_link():
    stage = Stage()
    token = pixel_url(stage.engine, "default", stage.mail()).rpartition("/")[2].removesuffix(".gif")
    assert stage.request("mail_click", {"token": token}).status == 404


@given(st.text(min_size=1, max_size=200))
def test_link_is_a_header_of_one_line(link):
    found = location(link)
    assert found.isascii()
    assert found.isprintable()
    assert " " not in found


@each_of([each for crawler in CRAWLERS for each in crawler.get("instances", ())][::7], str)
def test_crawlers_of_the_list_are_machines(agent):
    proxy = "GoogleImageProxy" in agent
    assert machine_agent(agent, opened=False) == "crawler"
    assert machine_agent(agent, opened=True) == ("" if proxy else "crawler")


def test_every_crawler_of_the_list_is_a_machine():
    agents = [each for crawler in CRAWLERS for each in crawler.get("instances", ())]
    assert len(agents) > 1_000
    assert [each for each in agents if not machine_agent(each, opened=False)] == []


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("agent", PEOPLE)
def test_browsers_and_mail_programs_are_people(agent, opened):
    assert machine("GET", {"user-agent": agent}, opened=opened) == ""


@pytest.mark.parametrize("agent", PROXIES)
def test_open_by_an_image_proxy_is_that_of_a_person(agent):
    stage = Stage()
    follow(stage, pixel_url(stage.engine, "default", stage.mail()), agent)
    assert stage.events("ada", "mail_opened")[0].properties["machine"] is False


@pytest.mark.parametrize(
    ("why", "asked"),
    [
        ("head", {"method": "HEAD"}),
        ("prefetch", {"purpose": "prefetch"}),
        ("prefetch", {"sec-purpose": "prefetch;prerender"}),
        ("prefetch", {"x-moz": "prefetch"}),
        ("prefetch", {"x-purpose": "preview"}),
        ("no_agent", {"agent": ""}),
        ("apple_privacy", {"agent": "Mozilla/5.0"}),
        ("crawler", {"agent": "Googlebot/2.1 (+http://www.google.com/bot.html)"}),
        ("crawler", {"agent": "BarracudaCentral"}),
        ("prefetch", {"agent": f"{CHROME} Edge/12.246 Mozilla/5.0"}),
        ("soon", {"age": 0.5}),
    ],
)
def test_open_of_a_machine_is_recorded_at_once_with_the_reason_and_counts_for_no_person(why, asked):
    stage = Stage()
    message = stage.mail()
    stage.now -= int((60 - asked.pop("age", 60)) * 1_000_000)
    follow(stage, pixel_url(stage.engine, "default", message), **asked)
    (opened,) = stage.events("ada", "mail_opened")
    assert (opened.properties["machine"], opened.properties["why"]) == (True, why)
    assert opened.marks == ("by_machine",)
    assert stage.engine.catalogue.event_types.counts_as(opened) == "mail_scanned"
    stage.decide()
    assert len(stage.events("ada", "mail_opened")) == 1
    counts = stage.run("feedback_counters", template="welcome").counts.opened
    assert (counts.unique, counts.total, counts.machine_unique, counts.machine_total) == (0, 0, 1, 1)


def test_link_that_people_do_not_see_gives_a_scanner_away_before_and_after():
    stage = Stage()
    message, other = stage.mail(), stage.mail("bob@example.com", "bob")
    html, _ = track(
        stage.engine, "default", message, "<a href='https://a.example'>a</a><a href='https://b.example'>b</a>", ""
    )
    links = re.findall(r"http://shop\.example/m/c/[\w-]+", html)
    assert len(links) == 3
    follow(stage, links[0])
    stage.pass_(6)
    follow(stage, links[2])
    stage.pass_(20)
    follow(stage, links[0])
    follow(stage, click_url(stage.engine, "default", other, "https://a.example"))
    stage.decide()
    stage.pass_(60)
    follow(stage, links[1])
    stage.decide()
    assert [each.properties["why"] for each in stage.events("ada", "mail_scanned")] == ["honeypot"] * 3
    assert [each.properties["link"] for each in stage.events("ada", "mail_clicked")] == ["https://b.example"]
    counts = stage.run("feedback_counters", template="welcome").counts.clicked
    assert (counts.unique, counts.total, counts.machine_unique, counts.machine_total) == (2, 2, 1, 3)


def test_scanner_that_follows_every_link_within_seconds_never_clicks_nor_opens_afterwards():
    stage = Stage()
    message = stage.mail()
    for number in range(5):
        follow(stage, click_url(stage.engine, "default", message, f"https://shop.example/{number}"))
        stage.pass_(1)
        stage.work()
    follow(stage, pixel_url(stage.engine, "default", message))
    follow(stage, pixel_url(stage.engine, "default", message), PEOPLE[1])
    stage.pass_(3_600)
    follow(stage, click_url(stage.engine, "default", message, "https://shop.example/2"))
    stage.decide()
    (click,), opened = stage.events("ada", "mail_clicked"), stage.events("ada", "mail_opened")
    assert click.occurred_at == stage.now - 10 * SECOND
    assert {each.properties["agent"]: each.properties.get("why") for each in opened} == {
        BROWSER: "scanner",
        PEOPLE[1]: None,
    }
    counts = stage.run("feedback_counters", template="welcome").counts
    assert (counts.clicked.unique, counts.clicked.total, counts.clicked.machine_total) == (1, 1, 5)
    assert (counts.opened.unique, counts.opened.total, counts.opened.machine_total) == (1, 1, 1)


@pytest.mark.parametrize(
    ("agents", "events"), [([BROWSER] * 60, 5), ([f"Mozilla/5.0 ({number})" for number in range(130)], 100)]
)
@pytest.mark.parametrize("kind", ["link", "pixel", "ses"])
def test_requests_that_only_repeat_others_are_one_event_an_hour(kind: str, agents: list[str], events: int):
    stage = Stage()
    message = stage.mail()
    url = click_url(stage.engine, "default", message, "https://a.example") if kind == "link" else ""
    for number, agent in enumerate(agents):
        stage.pass_(1)
        if kind == "ses":
            stage.run("feedback_notify", text=ses_click(stage, message, agent, number))
        else:
            follow(stage, url or pixel_url(stage.engine, "default", message), agent)
    assert len(stage.events("ada", "mail_opened" if kind == "pixel" else "mail_fetched")) == events
    stage.pass_(3_700)
    stage.work()
    counted = [each.properties["count"] for each in stage.events("ada", "mail_fetched") if "count" in each.properties]
    assert counted == [len(agents) - events]
    type = "mail_opened" if kind == "pixel" else "mail_clicked"
    assert len(stage.events("ada", type)) == events
    counts = getattr(stage.run("feedback_counters", template="welcome").counts, type.removeprefix("mail_"))
    assert (counts.unique, counts.total, counts.repeats) == (1, events, len(agents) - events)
    assert list(scan_pages(stage.engine.store, COUNTING)) == []


def test_requests_of_a_machine_that_repeat_are_counted_as_its():
    stage = Stage()
    url = pixel_url(stage.engine, "default", stage.mail())
    for _ in range(60):
        follow(stage, url, "Mozilla/5.0")
        stage.pass_(1)
    stage.pass_(3_700)
    stage.work()
    assert len(stage.events("ada", "mail_opened")) == 5
    (counted,) = stage.events("ada", "mail_scanned")
    assert (counted.properties["fetch"], counted.properties["count"], counted.marks) == ("opened", 55, ())
    counts = stage.run("feedback_counters", template="welcome").counts.opened
    assert (counts.total, counts.machine_unique, counts.machine_total) == (0, 1, 60)


def test_person_who_looks_again_a_day_later_opens_again():
    stage = Stage()
    url = pixel_url(stage.engine, "default", stage.mail())
    for _ in range(3):
        for _ in range(6):
            follow(stage, url)
            stage.pass_(1)
        stage.pass_(25 * 3_600)
        stage.work()
    assert len(stage.events("ada", "mail_opened")) == 15


def ses_click(stage: Stage, message: str, agent: str, number: int) -> str:
    """A notification of SES about a click."""
    at = {"timestamp": format_time(stage.now)}
    mail = {**at, "messageId": f"0100{number}", "tags": {}, "destination": ["ada@example.com"]}
    headers = [{"name": "Message-ID", "value": f"<{message}@shop.example>"}]
    click = {**at, "link": "https://a.example", "userAgent": agent}
    return json.dumps({"eventType": "Click", "mail": {**mail, "headers": headers}, "click": click})


CLICKS = st.lists(st.tuples(st.integers(0, 120), st.sampled_from(["", "a", "b", "c", "d"])), max_size=12)


@given(CLICKS)
def test_clicks_of_a_scanner_are_those_near_a_trap_or_in_a_burst(drawn):
    clicks = [Click(at * 1_000_000, link) for at, link in drawn]
    expected = set()
    for each in clicks:
        near_trap = any(not other.link and abs(other.at - each.at) <= 60_000_000 for other in clicks)
        windows = [
            {other.link for other in clicks if first.at <= other.at <= first.at + 10_000_000}
            for first in clicks
            if first.at <= each.at <= first.at + 10_000_000
        ]
        if near_trap or any(len(links) >= 3 for links in windows):
            expected.add(each)
    assert set(scanned(clicks)) == expected


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if tag in ("a", "area") and name == "href" and value]


URLS = st.sampled_from(
    [
        "https://a.example/?x=1&y=2",
        "http://b.example/ü",
        "HTTPS://C.example",
        "mailto:a@b.example",
        "#top",
        "tel:+49",
        "http://shop.example/u/token",
        "javascript:alert(1)",
        "/relative",
        'https://d.example/?q="x"',
        "https://e.example/'y'",
    ]
)


@given(
    st.lists(st.tuples(URLS, st.sampled_from("\"'"), st.sampled_from(["a", "A", "area", "abbr", "link"])), max_size=6),
    st.text("<>a=\"' href", max_size=30),
)
def test_every_link_to_the_web_is_replaced_and_every_other_byte_stays(drawn, noise):
    html = "<p>" + markup.escape(noise)
    for url, quote, tag in drawn:
        html += f"<{tag} class=x href={quote}{markup.escape(url)}{quote} title='a > b'>x &amp; y</{tag}>"
    tracked = tracked_html(html, lambda url: "" if "shop.example/u" in url else f"T{len(url)}&{url}")
    before, after = _Links(), _Links()
    before.feed(html)
    after.feed(tracked)
    web = re.compile("(?i)https?://(?!shop.example/u)")
    assert after.found == [f"T{len(url)}&{url}" if web.match(url) else url for url in before.found]
    assert tracked_html(html, lambda url: "") == html


def test_text_keeps_what_stands_around_a_link():
    text = "See https://a.example/b_(c). Or (http://d.example/e), <https://f.example>! No link: shop.example"
    assert tracked_text(text, lambda url: f"[{url}]") == (
        "See [https://a.example/b_(c)]. Or ([http://d.example/e]), <[https://f.example]>! No link: shop.example"
    )


def test_own_pages_and_untracked_tags_keep_their_links():
    stage = Stage()
    html = '<a href="http://shop.example/u/x">u</a><a href="https://a.example" clicktracking="off">a</a>'
    tracked, text = track(stage.engine, "default", "0" * 32, html, "http://shop.example/u/x")
    assert tracked.startswith(html)
    assert text == "http://shop.example/u/x"


@given(st.integers(0, 2**128 - 1), st.sampled_from(["reply", "bounce+x", "a.b"]))
def test_address_with_a_token_names_its_mail_however_it_is_written(number, local):
    message = f"{number:032x}"
    address = tagged(f"{local}@shop.example", message)
    assert len(address.partition("@")[0]) <= 64
    assert message_in(address) == message_in(address.upper()) == message_in(f"<{message}@shop.example>") == message


def test_click_counts_when_it_is_the_first_that_is_heard_of_a_mail():
    stage = Stage()
    message = stage.mail(lost=True)
    assert stage.engine.delivery.unknown("default") != []
    follow(stage, click_url(stage.engine, "default", message, "https://shop.example"))
    assert stage.engine.delivery.unknown("default") == []
    stage.decide()
    assert len(stage.events("ada", "mail_sent")) == len(stage.events("ada", "mail_clicked")) == 1


@pytest.mark.parametrize("agent", PEOPLE)
@pytest.mark.parametrize("by", ["pixel", "ses"])
def test_open_by_a_browser_or_a_mail_program_is_recorded_at_once_as_that_of_a_person(by: str, agent: str):
    stage = Stage()
    message = stage.mail()
    if by == "pixel":
        follow(stage, pixel_url(stage.engine, "default", message), agent)
    else:
        stage.run("feedback_notify", text=ses_open(stage, message, agent))
    (opened,) = stage.events("ada", "mail_opened")
    assert (opened.properties["machine"], opened.marks, opened.occurred_at) == (False, (), stage.now)
    stage.pass_(3_600)
    stage.work()
    assert stage.events("ada", "mail_opened", "mail_scanned", "mail_fetched") == [opened]


@pytest.mark.parametrize("seconds", [0.5, 1.9, 2.1])
def test_open_or_click_that_ses_reports_too_soon_after_the_sending_is_that_of_a_machine(seconds: float):
    stage = Stage()
    message = stage.mail()
    stage.now -= int((60 - seconds) * SECOND)
    for notification in (ses_open(stage, message, BROWSER), ses_click(stage, message, BROWSER, 0)):
        stage.pass_(30)  # it comes late, and says when it was
        stage.run("feedback_notify", text=notification)
    stage.decide()
    found = {(each.type, each.properties.get("why")) for each in stage.events("ada", "mail_opened", "mail_scanned")}
    expected = {("mail_opened", "soon"), ("mail_scanned", "soon")} if seconds < 2 else {("mail_opened", None)}
    assert found == expected


def ses_open(stage: Stage, message: str, agent: str) -> str:
    """A notification of SES about an open."""
    at = {"timestamp": format_time(stage.now)}
    headers = [{"name": "Message-ID", "value": f"<{message}@shop.example>"}]
    mail = {**at, "messageId": "0100", "tags": {}, "destination": ["ada@example.com"], "headers": headers}
    return json.dumps({"eventType": "Open", "mail": mail, "open": {**at, "userAgent": agent}})
