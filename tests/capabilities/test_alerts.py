"""Alerts: who is shown what and when, versions, dismissals, and what was answered at an earlier instant."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.asked import STARTS_AT, Asked
from tests.capabilities.test_segments_worked import tables
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel import limits
from threadline.kernel.errors import Conflict, InvalidDefinition, InvalidValue, LimitExceeded, NotFound
from threadline.kernel.time import DAY, HOUR, format_time, parse_time

SEGMENTS = "segments: {spenders: {when: {field: features.monetary_total, greater_than: 80}}}"


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Asked(definitions=SEGMENTS).engine.catalogue


@pytest.fixture
def asked(catalogue: Catalogue) -> Asked:
    made = Asked(catalogue=catalogue)
    made.tell("page", user_id="ada")
    return made


def write(asked: Asked, id: str, **content: Any) -> dict[str, Any]:
    written: dict[str, Any] = asked.ask("alerts_write", id=id, **{"title": id, **content})
    return written


def shown(asked: Asked, user: str = "ada", **params: Any) -> list[str]:
    return [each["id"] for each in asked.ask("alerts_of", id=f"user_id:{user}", **params)["alerts"]]


def test_an_alert_is_shown_from_its_start_until_right_before_its_stop(asked: Asked) -> None:
    start, stop = STARTS_AT + DAY, STARTS_AT + 2 * DAY
    write(asked, "sale", start=format_time(start), stop=format_time(stop))
    for now, wanted in ((start - 1, []), (start, ["sale"]), (stop - 1, ["sale"]), (stop, [])):
        asked.now = now - 1  # asking moves the clock by one
        assert shown(asked) == wanted


def test_the_most_severe_comes_first_then_what_began_last(asked: Asked) -> None:
    write(asked, "a")
    write(asked, "b", start=format_time(STARTS_AT - DAY))
    write(asked, "c", severity="critical", start=format_time(STARTS_AT - 2 * DAY))
    write(asked, "d", severity="warning")
    assert shown(asked) == ["c", "d", "a", "b"]
    assert shown(asked, severity="info") == ["a", "b"]


@pytest.mark.parametrize(
    ("audience", "wanted"),
    [
        ({}, True),
        ({"tags": ["other", "vip"]}, True),
        ({"tags": ["other"]}, False),
        ({"segments": ["spenders"]}, True),
        ({"when": {"field": "traits.plan", "equals": "pro"}}, True),
        ({"when": {"field": "traits.plan", "equals": "free"}}, False),
        ({"tags": ["vip"], "segments": ["spenders"], "when": {"field": "traits.plan", "equals": "pro"}}, True),
        ({"tags": ["vip"], "segments": ["spenders"], "when": {"field": "traits.plan", "equals": "free"}}, False),
        ({"tags": ["other"], "when": {"field": "traits.plan", "equals": "pro"}}, False),
    ],
)
def test_the_audience_is_who_has_all_that_is_named(asked: Asked, audience: dict[str, Any], wanted: bool) -> None:
    asked.tell("tag_added", user_id="ada", properties={"tag": "vip"})
    asked.tell("identify", user_id="ada", properties={"plan": "pro"})
    asked.tell("purchase_completed", user_id="ada", properties={"total": 81, "currency": "EUR"})
    write(asked, "sale", **audience)
    assert shown(asked) == (["sale"] if wanted else [])
    assert shown(asked, "nobody", anyone=True) == ([] if audience else ["sale"])


def test_somebody_unknown_is_not_found_unless_anyone_is_meant(asked: Asked) -> None:
    write(asked, "sale")
    with pytest.raises(NotFound):
        shown(asked, "bob")
    assert shown(asked, "bob", anyone=True) == ["sale"]
    with pytest.raises(NotFound):
        asked.ask("alerts_dismiss", id="user_id:bob", alert="sale")
    first = asked.ask("alerts_dismiss", id="user_id:bob", alert="sale", anyone=True)
    again = asked.ask("alerts_dismiss", id="user_id:bob", alert="sale")
    assert (first["receipt"]["status"], again["receipt"]["status"]) == ("accepted", "duplicate")
    assert shown(asked, "bob") == []


def test_who_dismissed_sees_it_again_only_if_a_version_says_so(asked: Asked) -> None:
    write(asked, "sale")
    asked.ask("alerts_dismiss", id="user_id:ada", alert="sale")
    assert shown(asked) == []
    (dismissed,) = asked.ask("alerts_of", id="user_id:ada", dismissed=True)["alerts"]
    assert dismissed["dismissed_at"] == format_time(asked.now - 2)
    assert write(asked, "sale", title="changed")["version"]["version"] == 2
    assert shown(asked) == []
    assert write(asked, "sale", title="changed", shown_again=True)["version"]["version"] == 3
    assert shown(asked) == ["sale"]
    asked.ask("alerts_dismiss", id="user_id:ada", alert="sale")
    assert shown(asked) == []
    write(asked, "sale", title="changed", dismissable=False)
    assert shown(asked) == ["sale"]
    with pytest.raises(Conflict, match="cannot be dismissed"):
        asked.ask("alerts_dismiss", id="user_id:ada", alert="sale")


def test_a_dismissal_that_somebody_sends_as_an_event_does_not_count(asked: Asked) -> None:
    write(asked, "sale")
    asked.ask(
        "record",
        source="web",
        events=[
            {
                "type": "alert_dismissed",
                "key": "k",
                "identifiers": {"user_id": "ada"},
                "properties": {"alert": "sale", "version": 9},
            }
        ],
    )
    assert shown(asked) == ["sale"]


def test_who_is_joined_has_dismissed_what_either_had(asked: Asked) -> None:
    for id in ("a", "b", "c"):
        write(asked, id)
    asked.tell("page", anonymous_id="x")
    asked.ask("alerts_dismiss", id="anonymous_id:x", alert="a")
    asked.ask("alerts_dismiss", id="user_id:ada", alert="b")
    before = asked.now + 1
    asked.now += 2
    asked.tell("identify", user_id="ada", anonymous_id="x")
    assert shown(asked) == ["c"]
    assert shown(asked, at=format_time(before)) == ["c", "a"]


def test_withdrawing_ends_it_and_writing_it_again_continues_its_versions(asked: Asked) -> None:
    write(asked, "sale")
    before = asked.now
    assert asked.ask("alerts_withdraw", id="sale", note="over")["created"]
    assert not asked.ask("alerts_withdraw", id="sale")["created"]
    assert (shown(asked), shown(asked, at=format_time(before))) == ([], ["sale"])
    with pytest.raises(NotFound):
        asked.ask("alerts_dismiss", id="user_id:ada", alert="sale")
    assert asked.ask("alerts_list", state="withdrawn")["alerts"][0]["id"] == "sale"
    write(asked, "sale", body="back")
    assert not write(asked, "sale", body="back")["created"]
    versions = asked.ask("alerts_versions", id="sale", limit=2)
    rest = asked.ask("alerts_versions", id="sale", cursor=versions["next"])
    told = [(v["version"], v["withdrawn"], v["note"]) for v in (*versions["versions"], *rest["versions"])]
    assert (told, rest["next"]) == ([(1, False, ""), (2, True, "over"), (3, False, "")], "")
    assert asked.ask("alerts_show", id="sale", version=1)["alert"]["body"] == ""
    assert asked.ask("alerts_show", id="sale")["version"] == 3


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        ({"link": "javascript:alert(1)"}, InvalidValue, "must be an address"),
        ({"link": "//evil.example"}, InvalidValue, "must be an address"),
        ({"link": "/\\evil.example"}, InvalidValue, "must be an address"),
        ({"link": "https:/\t/evil.example"}, InvalidValue, "must be an address"),
        ({"link": "http://[::1"}, InvalidValue, "must be an address"),
        ({"start": "2026-02-01T00:00:00Z", "stop": "2026-02-01T00:00:00Z"}, InvalidValue, "later than `start`"),
        ({"segments": ["spender"]}, NotFound, "did you mean 'spenders'"),
        ({"when": {"field": "event.type", "equals": "page"}}, InvalidValue, "a person has no event"),
        ({"when": {"field": "feature.monetary_total", "gt": 1}}, InvalidDefinition, "did you mean 'features'"),
        ({"when": {"field": "tags"}}, InvalidDefinition, "when"),
        ({"severity": "fatal"}, InvalidValue, "severity"),
        ({"expected": 3}, Conflict, "is 0, not 3"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    asked: Asked, content: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        write(asked, "sale", **content)
    assert asked.ask("alerts_list")["alerts"] == []


@pytest.mark.parametrize("link", ["https://shop.example/sale?a=b#c", "/sale", "http://localhost:8080"])
def test_a_link_is_a_page(asked: Asked, link: str) -> None:
    assert write(asked, "sale", link=link)["version"]["alert"]["link"] == link


def test_the_limit_counts_what_is_in_force_or_ahead(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threadline.capabilities.reach.alerts.repository.ALERTS_MAX", 3)
    assert limits.ALERTS_MAX > 3
    write(asked, "a", stop=format_time(STARTS_AT + HOUR))
    write(asked, "b", start=format_time(STARTS_AT + HOUR))
    write(asked, "c")
    with pytest.raises(LimitExceeded):
        write(asked, "d")
    write(asked, "c", title="changed")
    before = asked.now
    asked.now = STARTS_AT + 2 * HOUR
    write(asked, "d")
    with pytest.raises(LimitExceeded):
        write(asked, "a")
    assert shown(asked) == ["d", "b", "c"]
    assert shown(asked, at=format_time(before)) == ["c", "a"]
    assert [line["state"] for line in asked.ask("alerts_list")["alerts"]] == ["over", "active", "active", "active"]
    pages, cursor = [], ""
    for _ in range(4):
        page = asked.ask("alerts_list", limit=1, cursor=cursor)
        pages, cursor = [*pages, *page["alerts"]], page["next"]
    assert ([line["id"] for line in pages], cursor) == (["a", "b", "c", "d"], "")


def test_an_audience_that_the_definitions_lack_is_nobody_and_is_listed(catalogue: Catalogue) -> None:
    asked = Asked(catalogue=catalogue)
    asked.tell("purchase_completed", user_id="ada", properties={"total": 81, "currency": "EUR"})
    write(asked, "sale", segments=["spenders"])
    assert shown(asked) == ["sale"]
    later = Asked()
    later.now, later.engine = asked.now, Engine(asked.engine.store, later.engine.catalogue, lambda: later.now)
    assert shown(later) == []
    assert later.ask("alerts_list")["alerts"][0]["problem"] == "there is no segment 'spenders'"


def test_an_audience_that_can_no_longer_be_read_hides_no_other_alert(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(asked, "plain")
    write(asked, "pros", when={"field": "traits.plan", "exists": False})
    assert shown(asked) == ["pros", "plain"]

    def refuse(value: Any, place: str) -> Any:
        raise InvalidDefinition(f"{place}: no longer")

    monkeypatch.setattr("threadline.capabilities.reach.alerts.definition.read_json", refuse)
    write(asked, "third")  # what is cached is made again
    assert shown(asked) == ["third", "plain"]
    assert [line["problem"] for line in asked.ask("alerts_list")["alerts"]] == ["", "when: no longer", ""]


# --- several processes -------------------------------------------------------------------------


def beside(asked: Asked) -> Asked:
    """Another process on the same store."""
    other = Asked(catalogue=asked.engine.catalogue)
    other.engine = Engine(asked.engine.store, asked.engine.catalogue, lambda: max(asked.now, other.now))
    return other


def interrupted(asked: Asked, monkeypatch: pytest.MonkeyPatch, what: Callable[[], object]) -> None:
    """Have something happen right before the next commit of anybody."""
    commit, pending = asked.engine.store.commit, [what]

    def committed(batches: Any) -> Any:
        if pending:
            pending.pop()()
        return commit(batches)

    monkeypatch.setattr(asked.engine.store, "commit", committed)


def test_what_another_process_has_written_is_shown_at_once(asked: Asked) -> None:
    other = beside(asked)
    write(asked, "sale")
    assert (shown(asked), shown(other)) == (["sale"], ["sale"])
    other.now = asked.now
    other.ask("alerts_withdraw", id="sale")
    assert shown(asked) == []


def test_of_two_processes_that_write_at_once_none_is_lost(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    other = beside(asked)
    interrupted(asked, monkeypatch, lambda: write(other, "sale", title="other"))
    assert write(asked, "sale", title="own")["version"]["version"] == 2
    versions = asked.ask("alerts_versions", id="sale")["versions"]
    assert [each["alert"]["title"] for each in versions] == ["other", "own"]
    interrupted(asked, monkeypatch, lambda: write(other, "sale", title="third"))
    with pytest.raises(Conflict, match="is 3, not 2"):
        write(asked, "sale", title="fourth", expected=2)


def test_an_alert_that_is_prolonged_while_it_is_tidied_away_is_shown(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = beside(asked)
    write(asked, "sale", stop=format_time(STARTS_AT + HOUR))
    asked.now = other.now = STARTS_AT + 2 * HOUR
    interrupted(asked, monkeypatch, lambda: write(other, "sale", stop=format_time(STARTS_AT + DAY)))
    write(asked, "next")
    assert set(shown(asked)) == {"next", "sale"}


# --- the law -----------------------------------------------------------------------------------

USERS = ("ada", "bob")


class Reckoner:
    """Alerts by hand: lists of what was written and dismissed, gone through from the beginning each time."""

    def __init__(self) -> None:
        self.written: list[tuple[str, dict[str, Any] | None, bool]] = []
        self.dismissed: list[tuple[str, str, int]] = []
        self.tagged: set[str] = set()

    def newest(self, id: str) -> dict[str, Any] | None:
        return next((content for name, content, _ in reversed(self.written) if name == id), None)

    def number(self, id: str) -> int:
        return sum(name == id for name, _, _ in self.written)

    def shown(self, user: str, now: int) -> set[str]:
        found = set()
        for id in {name for name, _, _ in self.written}:
            content = self.newest(id)
            versions = [again for name, _, again in self.written if name == id]
            since = max([0, *(n for n, again in enumerate(versions, 1) if again)])
            gone = any(who == user and what == id and version >= since for who, what, version in self.dismissed)
            if content is None or gone or not content["start"] <= now < content["stop"]:
                continue
            if not content["tagged"] or user in self.tagged:
                found.add(id)
        return found


@given(st.integers(0, 2**32))
def test_what_is_shown_is_what_a_reckoner_says_and_stays_so_in_the_past(seed: int) -> None:
    random, reckoner = Random(seed), Reckoner()
    asked = Asked()
    for user in USERS:
        asked.tell("page", user_id=user)
    answers: list[tuple[str, int, Any]] = []
    for _ in range(25):
        asked.now += random.choice([1, HOUR, DAY])
        id, user = random.choice("xyz"), random.choice(USERS)
        act = random.choice(["write", "write", "withdraw", "dismiss", "dismiss", "tag"])
        if act == "write":
            start = asked.now + random.randrange(-2, 3) * DAY
            stop, tagged = start + random.randrange(1, 5) * DAY, random.random() < 0.4
            content = {"start": start, "stop": stop, "tagged": tagged}
            again = random.random() < 0.3
            write(
                asked,
                id,
                start=format_time(start),
                stop=format_time(stop),
                tags=["vip"] if tagged else [],
                shown_again=again,
            )
            if reckoner.newest(id) != content or again:
                reckoner.written.append((id, content, again))
        elif act == "withdraw" and reckoner.newest(id) is not None:
            asked.ask("alerts_withdraw", id=id)
            reckoner.written.append((id, None, False))
        elif act == "dismiss" and (content := reckoner.newest(id)) is not None:
            if content["stop"] <= asked.now + 1:
                with pytest.raises(NotFound):
                    asked.ask("alerts_dismiss", id=f"user_id:{user}", alert=id)
            else:
                asked.ask("alerts_dismiss", id=f"user_id:{user}", alert=id)
                reckoner.dismissed.append((user, id, reckoner.number(id)))
        elif act == "tag":
            asked.tell("tag_added", user_id=user, properties={"tag": "vip"})
            reckoner.tagged.add(user)
        asked.now += 1
        answer = asked.ask("alerts_of", id=f"user_id:{user}")
        assert {each["id"] for each in answer["alerts"]} == reckoner.shown(user, asked.now)
        answers.append((user, asked.now, answer["alerts"]))
    asked.now += DAY
    for user, at, alerts in answers:
        past = asked.ask("alerts_of", id=f"user_id:{user}", at=format_time(at))
        assert past["alerts"] == alerts


# --- the page ----------------------------------------------------------------------------------


def test_the_worked_table_of_the_page_holds_as_it_is_lived_and_afterwards() -> None:
    page = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text(encoding="utf-8")
    written, days = tables(page.split("\n## Worked: ")[1])
    assert (len(written), len(days)) == (5, 7)
    asked, rows = Asked(), written[1:]
    asked.now = parse_time("2026-03-01T00:00:00Z")
    asked.tell("page", user_id="ada")
    for day, wanted in days[1:]:
        noon = parse_time(f"{day}T12:00:00Z")
        while rows and parse_time(rows[0][0]) < noon:
            at, id, content = rows.pop(0)
            asked.now = parse_time(at)
            asked.ask("alerts_write", id=id, **json.loads(content))
        asked.now = noon - HOUR
        if day == "2026-03-03":
            asked.tell("tag_added", user_id="ada", properties={"tag": "vip"})
        if day == "2026-03-05":
            asked.ask("alerts_dismiss", id="user_id:ada", alert="sale")
        asked.now = noon
        assert ", ".join(shown(asked)) == wanted, day
    assert not rows
    for day, wanted in days[1:]:
        assert ", ".join(shown(asked, at=f"{day}T12:00:00Z")) == wanted
