"""A definition is proposed by one, put in force by another with one call, and lives in the store beside the files."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.capabilities.asked import Asked
from tests.surfaces.test_http_server import Process
from threadline.kernel.errors import Conflict, InvalidDefinition, InvalidValue, LimitExceeded, NotFound

KEYS = {
    "THREADLINE_WRITE_KEYS": "shop=mine-alone",
    "THREADLINE_TOKENS": "admin=tok-alone",
    "THREADLINE_ACCESS_LOG": "false",
}
FILE = "# Ours.\nsegments:\n  big: {when: {field: features.monetary_total, greater_than: 50}}  # euros\n"
VIP = "when: {field: tags, contains: vip}\n"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    (tmp_path / "threadline.yaml").write_text(FILE)
    made = Process(tmp_path / "x.db", KEYS)
    with httpx.Client(base_url=made.url, headers={"Authorization": "Bearer tok-alone"}) as asked:
        yield asked
    made.process.kill()
    made.process.communicate()


def names(client: httpx.Client) -> list[str]:
    return [each["name"] for each in client.get("/v1/segments").json()["segments"]]


def test_a_proposal_is_accepted_with_one_call_and_its_people_are_found(client: httpx.Client, tmp_path: Path) -> None:
    event = {"type": "identify", "key": "1", "identifiers": {"user_id": "ada"}}
    assert client.post("/v1/events", json={"events": [event]}).status_code == 200
    assert client.post("/v1/people/user_id:ada/tags", json={"add": ["vip"]}).status_code == 200
    vip = {"section": "segments", "name": "vip", "text": VIP, "note": "for the sale"}
    made = client.post("/v1/definitions/proposals", json=vip).json()
    assert (made["by"], made["replaces"], made["declined_by"]) == ("admin", False, "")
    assert names(client) == ["big"]
    (listed,) = client.get("/v1/definitions/proposals").json()["proposals"]
    assert listed == made

    again = client.post("/v1/definitions/proposals", json=vip).json()
    stale = client.post("/v1/definitions/proposals/segments/vip/accept", json={"seen": made["at"]})
    assert (stale.status_code, names(client)) == (409, ["big"]), "it is another one than was looked at"
    accepted = client.post("/v1/definitions/proposals/segments/vip/accept", json={"seen": again["at"]})
    assert accepted.status_code == 200, accepted.text
    assert names(client) == ["big", "vip"]
    assert (tmp_path / "threadline.yaml").read_text() == FILE
    (version,) = client.get("/v1/definitions/versions").json()["versions"]
    assert (version["number"], version["by"], version["note"]) == (1, "admin", "for the sale")
    assert client.get("/v1/definitions/proposals").json()["proposals"] == []
    for _ in range(200):
        if client.get("/v1/segments/vip/members").json()["members"]:
            break
        time.sleep(0.1)
    assert len(client.get("/v1/segments/vip/members").json()["members"]) == 1
    audited = [each["operation"] for each in client.get("/v1/audit-log").json()["entries"]]
    assert audited[:2] == ["definitions_accept", "definitions_accept"]
    assert client.post("/v1/definitions/proposals/segments/vip/accept", json={}).status_code == 404


def test_what_is_wrong_or_breaks_another_is_refused_and_nothing_is_changed(
    client: httpx.Client, tmp_path: Path
) -> None:
    wrong = {"section": "segments", "name": "vip", "text": "when: {field: tags, contain: vip}"}
    for path in ("proposals", "declare"):
        refused = client.post(f"/v1/definitions/{path}", json=wrong)
        assert refused.status_code == 400
        assert "did you mean 'contains'" in refused.text
    right = {"section": "segments", "name": "vip", "text": VIP}
    assert not client.post("/v1/definitions/proposals", json=right).json()["replaces"]
    # Somebody breaks the file by hand: what is accepted then must not make it worse.
    (tmp_path / "threadline.yaml").write_text(f"{FILE}rules: {{a: 1}}\n")
    assert client.post("/v1/definitions/proposals/segments/vip/accept", json={}).status_code == 400
    assert (names(client), client.get("/v1/definitions/versions").json()["in_force"]) == (["big"], 0)
    (tmp_path / "threadline.yaml").write_text(FILE)
    assert client.post("/v1/definitions/declare", json=right).status_code == 200
    assert client.get("/v1/definitions/proposals").json()["proposals"] == [], "what was proposed for it is settled"
    by_file = client.post("/v1/definitions/declare", json={**right, "name": "big"})
    assert (by_file.status_code, by_file.json()["hint"][:15]) == (409, "Change it there")


def test_what_was_put_in_force_is_there_after_a_restart_and_gone_back_from(
    client: httpx.Client, tmp_path: Path
) -> None:
    for text in (VIP, "when: {field: tags, exists: true}\n"):
        client.post("/v1/definitions/declare", json={"section": "segments", "name": "vip", "text": text})
    preview = client.get("/v1/definitions/versions/1/go-back").json()
    assert [change["change"] for change in preview["changes"]] == ["changed"]
    assert client.post("/v1/definitions/go-back", json={"version": 1, "seen": 2}).json()["version"] == 3
    assert client.get("/v1/definitions/segments/vip").json()["text"] == VIP
    audited = client.get("/v1/audit-log").json()["entries"][0]
    assert (audited["operation"], audited["outcome"]) == ("definitions_go_back", "done")
    assert client.post("/v1/definitions/delete", json={"section": "segments", "name": "vip"}).json()["version"] == 4
    assert names(client) == ["big"]


def test_what_is_used_is_named_on_the_screen_before_it_is_deleted_there(client: httpx.Client) -> None:
    vip = {"section": "segments", "name": "vip"}
    assert client.post("/v1/definitions/declare", json={**vip, "text": VIP}).status_code == 200
    assert client.post("/v1/alerts/sale", json={"title": "Sale", "segments": ["vip"]}).status_code == 200
    refused = client.post("/v1/definitions/delete", json=vip)
    assert (refused.status_code, "is still used: alert 'sale'" in refused.json()["detail"]) == (409, True)
    with httpx.Client(base_url=client.base_url, follow_redirects=True) as browser:
        browser.post("/sign-in", data={"password": "tok-alone"})
        page = unescape(browser.get("/definitions").text)
        assert "Used by alert 'sale'" in page
        assert "although it is used by alert 'sale'?" in page
        form = page[page.index('action="/do/definitions_delete"') :].partition("</form>")[0]
        fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
        assert (fields["section"], fields["name"], fields["anyway"]) == ("segments", "vip", "true")
        assert browser.post("/do/definitions_delete", data=fields).status_code == 200
    assert names(client) == ["big"]


TOPICS = """mail:
  senders: {shop: {from: shop@example.com}}
  templates:
    hello: {subject: Hello, text: Hello}  # short
consent:
  brand: Shop
  topics:
    news: {title: News}
"""


def test_a_topic_is_put_in_force_within_its_section_and_what_stands_beside_it_stays(
    client: httpx.Client, tmp_path: Path
) -> None:
    (tmp_path / "threadline.yaml").write_text(TOPICS)
    assert client.post("/v1/definitions/reload").status_code == 200
    offers = {"section": "consent.topics", "name": "offers", "text": "title: Offers\nconfirm: hello\n"}
    assert not client.post("/v1/definitions/proposals", json=offers).json()["replaces"]
    assert client.post("/v1/definitions/declare", json=offers).status_code == 200
    assert (tmp_path / "threadline.yaml").read_text() == TOPICS
    topics = client.get("/v1/consent/topics").json()["topics"]
    assert [(topic["name"], topic["title"]) for topic in topics] == [("news", "News"), ("offers", "Offers")]
    assert client.post("/v1/definitions/proposals", json=offers).json()["replaces"]
    welcome = {"section": "mail.templates", "name": "series/welcome", "text": "subject: Welcome\ntext: Welcome\n"}
    assert client.post("/v1/definitions/declare", json=welcome).status_code == 200
    templates = client.get("/v1/mail/templates").json()["templates"]
    assert [template["name"] for template in templates] == ["hello", "series/welcome"]
    points = {"section": "points", "name": "points", "text": "tables:\n  - {version: 2, earn: {order_placed: 20}}\n"}
    assert client.post("/v1/definitions/declare", json=points).status_code == 200
    text = client.get("/v1/definitions/versions/3/text").json()["text"]
    assert text.endswith(f"points:\n  {points['text'].replace('  -', '    -')}")


# --- without a server ------------------------------------------------------------------------------


def test_a_proposal_is_declined_with_a_reason_and_proposed_anew() -> None:
    asked = Asked(definitions=FILE)
    vip: dict[str, Any] = {"section": "segments", "name": "vip"}
    asked.ask("definitions_propose", **vip, text=VIP)
    declined = asked.ask("definitions_decline", **vip, reason="there is one like it")
    assert (declined["declined_by"] != "", declined["reason"]) == (True, "there is one like it")
    with pytest.raises(Conflict, match="put in force by a server"):
        asked.ask("definitions_accept", **vip)
    assert asked.ask("definitions_propose", **vip, text=VIP)["declined_by"] == ""
    for _ in range(2):
        asked.ask("definitions_decline", **vip)
    assert asked.ask("definitions_proposals")["proposals"] == []
    with pytest.raises(NotFound, match="no segments 'vap' is proposed"):
        asked.ask("definitions_decline", section="segments", name="vap")
    with pytest.raises(InvalidDefinition):
        asked.ask("definitions_propose", section="segments", name="Not a name", text=VIP)


MANY = """# Ours.
segments:
  big: {when: {field: features.monetary_total, greater_than: 50}}  # euros
  vip:
    # by hand
    when:
      field: tags   # of people
      contains: vip

  # about the next one
  new: &new
    description: |
      two
      lines
    when: {field: tags, exists: false}
  same: *new
# about boards
leaderboards:
  best:
    score: features.monetary_total
consent:
  topics:
    news:
      title: News  # weekly
points:
  back: 2d
"""


@pytest.mark.parametrize(
    ("section", "name", "text", "problem"),
    [
        ("consent.topics", "offers", "title: Offers\nconfirm: hallo\n", (2, 1, "there is no template 'hallo'")),
        ("consent.topics", "Of fers", "title: Offers\n", (1, 1, "'Of fers'")),
        ("mail.templates", "bye", "subject: Bye\n", (1, 1, "needs `blocks`, `html`, `mjml` or `text`")),
        ("points", "points", "back: 2\n", (1, 1, "must be a duration")),
    ],
)
def test_a_mistake_in_a_part_of_a_section_stands_at_its_line(
    section: str, name: str, text: str, problem: tuple[int, int, str]
) -> None:
    checked = Asked(definitions=TOPICS).ask("definitions_check", section=section, name=name, text=text)
    (first, *_) = checked["problems"]
    assert (first["file"], first["line"], first["column"]) == ("", *problem[:2]), checked
    assert problem[2] in f"{first['message']}; {first['hint']}"
    with pytest.raises(InvalidDefinition):
        Asked(definitions=TOPICS).ask("definitions_propose", section=section, name=name, text=text)


def test_a_mistake_that_a_draft_makes_elsewhere_stands_there() -> None:
    text = "from: other@example.com\n"
    checked = Asked(definitions=TOPICS).ask("definitions_check", section="mail.senders", name="other", text=text)
    (first, *_) = checked["problems"]
    assert (first["file"], first["line"], first["column"]) == ("threadline.yaml", 4, 5), checked
    assert "needs `sender`" in first["message"]


def test_what_is_declared_once_is_called_like_its_section() -> None:
    with pytest.raises(InvalidValue, match="the name is 'points'"):
        Asked().ask("definitions_check", section="points", name="mine", text="back: 2d")


@pytest.mark.parametrize(
    ("section", "name", "text"),
    [
        ("segments", "big", "{when: {field: features.monetary_total, greater_than: 50}}\n"),
        ("segments", "vip", "# by hand\nwhen:\n  field: tags   # of people\n  contains: vip\n"),
        ("leaderboards", "best", "score: features.monetary_total\n"),
        ("consent.topics", "news", "title: News  # weekly\n"),
        ("points", "points", "back: 2d\n"),
    ],
)
def test_a_definition_in_force_is_shown_as_it_is_written(section: str, name: str, text: str) -> None:
    assert Asked(definitions=MANY).ask("definitions_show", section=section, name=name)["text"] == text


def test_a_definition_that_is_an_alias_of_another_is_written_out() -> None:
    asked = Asked(definitions=MANY)
    for name in ("new", "same"):
        shown = asked.ask("definitions_show", section="segments", name=name)["text"]
        assert yaml.safe_load(shown) == {"description": "two\nlines\n", "when": {"field": "tags", "exists": False}}
    with pytest.raises(NotFound, match="no file declares segments 'vap'"):
        asked.ask("definitions_show", section="segments", name="vap")
    with pytest.raises(NotFound):  # it ships, and stands in no file
        asked.ask("definitions_show", section="features", name="monetary_total")


def test_proposals_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threadline.capabilities.decide.drafts.repository.PROPOSALS_MAX", 2)
    asked = Asked(definitions=FILE)
    for name in ("a", "b", "a"):
        asked.ask("definitions_propose", section="segments", name=name, text=VIP)
    with pytest.raises(LimitExceeded):
        asked.ask("definitions_propose", section="segments", name="c", text=VIP)
