"""Events in words, and what Threadline made of an event under it."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest

from tests.console.stage import csrf_of, opened, record, signed_in
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.folding.catalogue import Catalogue
from threadline.surfaces.console.sentences import event_words

DEFINITIONS = """
points: {tables: [{version: 2, from: 2000-01-01, earn: {purchase_completed: 50}}], expires_after: 30d}
streaks: {daily: {milestones: [2]}}
segments: {regulars: {when: {field: streaks.daily.current, greater_than: 2}}}
leaderboards: {longest: {score: streaks.daily.current}}
mail: {senders: {shop: {from: shop@example.com}}, templates: {first: {subject: First, text: Hello}}}
journeys: {win_back: {trigger: {event: purchase_completed}, steps: [{send: first}]}}
"""
WORDS = event_words(Catalogue.declared(Definitions([("threadline.yaml", DEFINITIONS)]), rules(Definitions())))


def event(type: str, cause: str = "", /, **properties: Any) -> dict[str, Any]:
    internal = type not in ("record_played", "purchase_completed")
    return {
        "id": f"{type}-id",
        "type": type,
        "cause": cause,
        "properties": properties,
        "source_type": "internal" if internal else "external",
    }


@pytest.mark.parametrize(
    ("type", "properties", "line", "more"),
    [
        ("points_earned", {"points": 2, "rule": "record_played", "table": 2}, "Earned 2 points for record played", ""),
        ("points_earned", {"points": 1, "rule": "page"}, "Earned 1 point for page", ""),
        ("points_earned", {"points": 2}, "Points earned", "points 2"),
        ("leaderboard_scored", {"board": "spenders", "score": 17_900_000}, "Score on spenders is now 17.90", ""),
        ("leaderboard_scored", {"board": "spenders", "score": "<b>"}, "Score on spenders is now <b>", ""),
        ("threadline.timer_fired", {"policy": "segments", "key": "turn"}, "Checked segments again", ""),
        ("threadline.effect_done", {}, "Effect done", ""),
        ("record_played", {"artist": "Can", "minutes": 1_234}, "Record played", "artist Can · minutes 1,234"),
        ("tag_added", {"tag": {"a": 1}}, "Tag added", ""),
        (
            "address_suppressed",
            {"address": "no_one@mail.example.com", "reason": "manual"},
            "no_one@mail.example.com gets no mail any more: manual",
            "",
        ),
    ],
)
def test_an_event_is_a_sentence_where_it_has_what_the_sentence_names(
    type: str, properties: dict[str, Any], line: str, more: str
) -> None:
    it = event(type, **properties)
    assert (WORDS.sentence(it), WORDS.details(it)) == (line, more)


@pytest.mark.parametrize(
    ("policy", "key", "line"),
    [
        ("journeys", "win_back/0123456789abcdef", "Goes on in the journey win back"),
        ("journeys", "rest/0123456789abcdef", "Goes on in its journeys"),
        ("journeys", "of another kind", "Journeys"),
        ("segments", "turn", "May enter or leave a segment"),
        ("leaderboards", "look", "May go up or down on a leaderboard"),
        ("streaks", "milestones", "May reach a milestone of a streak"),
        ("points", f"lot {2026 * 12 + 2}", "Points of March 2026 expire"),
        ("points", "lot 99999999999999999999", "Points"),
        ("campaign_ignored", "campaign:{spring}\n<b>", "Will have ignored the campaign {spring}\n<b>"),
        ("campaign_ignored", "after:spring", "May have ignored a campaign"),
        ("weekday_habit", "look", "Weekday habit"),
    ],
)
def test_a_timer_is_a_sentence_by_its_policy_and_key(policy: str, key: str, line: str) -> None:
    assert WORDS.timer_sentence({"policy": policy, "key": key}) == line


def test_what_follows_from_an_event_stands_below_it_and_the_rest_is_noted_together() -> None:
    bought, decided = event("purchase_completed"), event("decision_made", "purchase_completed-id")
    tagged, timed = event("tag_added", "decision_made-id"), event("threadline.timer_fired", "elsewhere")
    scored, played = event("leaderboard_scored", "threadline.timer_fired-id"), event("record_played")
    rows = WORDS.folded([played, timed, scored, tagged, decided, bought])
    assert [row.get("event", {}).get("type", row.get("noted")) for row in rows] == [
        "record_played",
        [timed, scored],
        "purchase_completed",
    ]
    assert rows[2]["led_to"] == [tagged, decided]
    assert [row["event"] for row in WORDS.folded([played, timed], True)] == [played, timed]


def test_events_that_are_each_other_s_cause_are_no_loop() -> None:
    one, other = event("tag_added", "tag_removed-id"), event("tag_removed", "tag_added-id")
    assert WORDS.folded([one, other]) == [{"noted": [one, other]}]


@pytest.mark.parametrize(
    ("type", "machine", "own"),
    [
        ("mail_opened", False, True),
        ("mail_opened", True, False),
        ("mail_sent", False, False),
        ("record_played", False, True),
    ],
)
def test_a_mail_that_was_opened_is_an_act_unless_a_machine_did_it(type: str, machine: bool, own: bool) -> None:
    assert WORDS.is_own(event(type, machine=machine)) == own


POINTS = "points: {tables: [{version: 2, from: 2000-01-01, earn: {purchase_completed: 50}}]}"


def test_a_timeline_folds_what_follows_and_shows_all_of_it_when_asked(tmp_path: Path) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text(POINTS)
    with opened(file) as engine:
        record(engine, ("ada", "purchase_completed", {"total": 120, "currency": "EUR"}))
        client = signed_in(engine)
        form = {"_csrf": csrf_of(client, engine), "id": "ada", "add:list": "vip"}
        assert client.post("/do/people_tag", data=form).status_code == 303
        folded_page, whole = (html.unescape(client.get(f"/people/ada{query}").text) for query in ("", "?all=1"))
    earned = re.compile(r'<ul class="led-to".*?Earned \d+ points for purchase completed', re.DOTALL)
    assert earned.search(folded_page)
    assert not earned.search(whole)
    assert re.search(r"Earned \d+ points for purchase completed", whole)
    assert "Tagged vip" in whole


def test_joins_of_a_person_are_listed_and_can_be_undone() -> None:
    with opened() as engine:
        record(engine, ("ada", "page", {}), ("bob", "page", {}))
        client = signed_in(engine)
        form = {"_csrf": csrf_of(client, engine), "id": "ada", "other": "bob", "force": "true"}
        assert client.post("/do/people_merge", data=form).status_code == 303
        page = client.get("/people/ada?tab=identity").text
    assert "Joined with another person" in page
    assert 'action="/do/people_unmerge"' in page
