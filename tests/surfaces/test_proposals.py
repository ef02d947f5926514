"""A definition is proposed by one, put in force by another with one call, and written into the file it belongs in."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.capabilities.asked import Asked
from tests.surfaces.test_http_server import Process
from threadline.kernel.errors import Conflict, InvalidDefinition, LimitExceeded, NotFound
from threadline.settings import Settings
from threadline.surfaces.http.server.definition_files import NEW_FILE, DefinitionFiles

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
    assert (tmp_path / "threadline.yaml").read_text() == f"{FILE}  vip:\n    {VIP}"
    assert client.get("/v1/definitions/proposals").json()["proposals"] == []
    for _ in range(200):
        if client.get("/v1/segments/vip/members").json()["members"]:
            break
        time.sleep(0.1)
    assert len(client.get("/v1/segments/vip/members").json()["members"]) == 1
    audited = [each["operation"] for each in client.get("/v1/audit-log").json()["entries"]]
    assert audited[:2] == ["definitions_accept", "definitions_accept"]
    assert client.post("/v1/definitions/proposals/segments/vip/accept", json={}).status_code == 404


def test_what_is_wrong_or_breaks_another_is_refused_and_the_file_is_as_it_was(
    client: httpx.Client, tmp_path: Path
) -> None:
    wrong = {"section": "segments", "name": "vip", "text": "when: {field: tags, contain: vip}"}
    for path in ("proposals", "declare"):
        refused = client.post(f"/v1/definitions/{path}", json=wrong)
        assert refused.status_code == 400
        assert "did you mean 'contains'" in refused.text
    right = {"section": "segments", "name": "big", "text": VIP}
    assert client.post("/v1/definitions/proposals", json=right).json()["replaces"]
    # Somebody breaks the file by hand: what is accepted then must not make it worse.
    (tmp_path / "threadline.yaml").write_text(f"{FILE}rules: {{a: 1}}\n")
    assert client.post("/v1/definitions/proposals/segments/big/accept", json={}).status_code == 400
    assert (tmp_path / "threadline.yaml").read_text() == f"{FILE}rules: {{a: 1}}\n"
    assert names(client) == ["big"]
    (tmp_path / "threadline.yaml").write_text("segments: {big: {when: {field: tags, exists: true}}}")
    by_hand = client.post("/v1/definitions/declare", json=right)
    assert (by_hand.status_code, by_hand.json()["hint"][:18]) == (409, "put the definition")
    (tmp_path / "threadline.yaml").write_text(FILE)
    assert client.post("/v1/definitions/declare", json=right).status_code == 200
    assert (tmp_path / "threadline.yaml").read_text() == f"# Ours.\nsegments:\n  big:\n    {VIP}"
    assert client.get("/v1/definitions/proposals").json()["proposals"] == [], "what was proposed for it is settled"


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
"""


@pytest.mark.parametrize(
    ("section", "name", "text"),
    [
        ("segments", "big", "{when: {field: features.monetary_total, greater_than: 50}}\n"),
        ("segments", "vip", "# by hand\nwhen:\n  field: tags   # of people\n  contains: vip\n"),
        ("leaderboards", "best", "score: features.monetary_total\n"),
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


def test_a_definition_goes_into_the_file_that_has_it_or_into_one_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "definitions"
    folder.mkdir()
    (folder / "a.yaml").write_text("features: {}\n")
    (folder / "b.yaml").write_text(FILE)
    files = DefinitionFiles(Settings(store=str(tmp_path / "x.db"), definitions=str(folder)))
    with files.writing("segments", "big", VIP):
        assert (folder / "b.yaml").read_text() == f"# Ours.\nsegments:\n  big:\n    {VIP}"
    with pytest.raises(InvalidDefinition), files.writing("segments", "vip", VIP):
        raise InvalidDefinition("as a reload does" if (folder / NEW_FILE).exists() else "")
    assert sorted(each.name for each in folder.iterdir()) == ["a.yaml", "b.yaml"], "nothing is left of what failed"
    beside = DefinitionFiles(Settings(store=str(tmp_path / "x.db")))
    with beside.writing("segments", "vip", VIP):
        assert (tmp_path / "threadline.yaml").read_text() == f"segments:\n  vip:\n    {VIP}"


def test_a_file_that_cannot_be_written_is_a_conflict_that_names_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "threadline.yaml").write_text(FILE)
    files = DefinitionFiles(Settings(store=str(tmp_path / "x.db")))
    (tmp_path / ".threadline.yaml.new").mkdir()  # whoever runs the tests may write everywhere, but not here
    with files.writing("segments", "vip", VIP):
        assert "vip" in (tmp_path / "threadline.yaml").read_text(), "then the file itself is written"
    nowhere = DefinitionFiles(Settings(store=str(tmp_path / "gone" / "x.db")))
    with pytest.raises(Conflict, match="cannot be written") as raised, nowhere.writing("segments", "vip", VIP):
        raise AssertionError("nothing is done then")
    assert raised.value.hint.startswith("put the definition")
