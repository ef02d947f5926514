"""What is declared of leaderboards: boards among segments, boards declared later, and questions without an answer."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.capabilities.asked import job
from tests.capabilities.leaderboards_stage import BOARDS, STREAKS, board, staged, standing
from tests.capabilities.points_stage import STARTS_AT, Stage
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.errors import Conflict, InvalidDefinition, InvalidValue, NotFound
from threadline.kernel.ranking import TABLE, Board, Place, board_of, place_of, row_of
from threadline.kernel.store import scan_pages
from threadline.kernel.time import DAY, HOUR, format_time

AMONG = """
segments:
  buyers: {when: {field: features.days_since_last_purchase, less_than: 3}}
  strangers: {when: {field: traits.plan, exists: false}}
leaderboards:
  points: {score: points.earned, periods: [day, all], segments: [buyers, strangers]}
  longest: {score: streaks.daily.longest, segments: strangers}
"""


def test_members_of_a_segment_are_ranked_among_themselves_from_entering_to_leaving() -> None:
    stage = Stage(AMONG, "streaks", "leaderboards", "segments")
    for number in range(4):
        for _ in range(number + 1):
            stage.tell("tool_used", f"u{number}")
        if number % 2:
            stage.tell("purchase_completed", f"u{number}", properties={"total": 1})
        else:
            stage.tell("identify", f"u{number}", properties={"plan": "pro"})
    for name in ("points", "longest"):
        odd = [f"user_id:u{number}" for number in range(4) if number % 2]
        assert {who for _, who, _ in board(stage, name, scope="segment=strangers")} == set(odd)
    ranks = board(stage, "points", scope="segment=buyers")
    assert [(rank, who) for rank, who, _ in ranks] == [(1, "user_id:u3"), (2, "user_id:u1")]
    assert standing(stage, "u1", "points", scope="segment=buyers", around=1)["total"] == 2
    assert standing(stage, "u0", "points", scope="segment=buyers")["rank"] is None
    then = stage.now
    stage.now = STARTS_AT + 4 * DAY
    stage.dispatch()
    assert board(stage, "points", scope="segment=buyers") == []
    past = {"at": format_time(then), "scope": "segment=buyers"}
    assert board(stage, "points", **past) == ranks, "an instant is shown with its own members"
    assert board(stage, "points", period="day", **past) == [], "a period's points count for the members of today"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (AMONG.replace("[buyers, strangers]", "[buyer]"), "there is no segment 'buyer'; did you mean 'buyers'"),
        ("leaderboards: {points: {score: points.earned, segments: [buyers]}}", "'buyers'; none is declared"),
        (AMONG.replace("segments: strangers}", "segments: strangers, per: segment}"), "cannot be told apart"),
    ],
)
def test_a_board_among_a_segment_that_cannot_be(text: str, message: str) -> None:
    with pytest.raises(InvalidDefinition, match=message):
        Catalogue.declared(Definitions([("shop.yaml", text)]), rules())


# --- declaring, refusing --------------------------------------------------------------------


def test_boards_that_are_declared_later_say_so_until_they_are_refreshed() -> None:
    plain = Stage("points: {tables: [{version: 2, earn: {tool_used: 3}}]}", "streaks")
    for who, uses in {"ada": 3, "bob": 1}.items():
        for _ in range(uses):
            plain.tell("tool_used", who)
    both = BOARDS + STREAKS.replace("leaderboards:\n", "")
    later = staged(both, store=plain.engine.store)
    later.now = plain.now + HOUR
    with pytest.raises(Conflict, match="not everybody is on them yet"):
        board(later, "points")
    later.tell("tool_used", "bob", key="in between")  # live traffic goes on and is not counted twice
    assert job(later, "leaderboards_refresh") == {"people": 2}
    assert board(later, "points") == [(1, "user_id:ada", 9), (2, "user_id:bob", 6)]
    assert {name for _, name, _ in board(later, "streak")} == {"user_id:ada", "user_id:bob"}
    later.tell("tool_used", "bob", key="after")
    later.tell("tool_used", "bob", key="and again")
    assert board(later, "points") == [(1, "user_id:bob", 12), (2, "user_id:ada", 9)]
    assert job(later, "leaderboards_refresh") == {"people": 2}
    assert board(later, "points") == [(1, "user_id:bob", 12), (2, "user_id:ada", 9)]


def test_a_board_by_another_number_does_not_meet_the_old_rows() -> None:
    stage = staged(BOARDS)
    stage.tell("tool_used", "ada")
    other = staged(BOARDS.replace("points.balance", "streaks.daily.longest"), store=stage.engine.store)
    job(other, "leaderboards_refresh")
    assert board(other, "purse") == [(1, "user_id:ada", 1)]


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"name": "no_such"}, NotFound, "there is no leaderboard"),
        ({"name": "purse", "period": "day"}, InvalidValue, "not kept by day"),
        ({"name": "points", "scope": "country="}, InvalidValue, "not ranked among"),
        ({"name": "points", "scope": "city=Rome"}, InvalidValue, "country=… or tag=vip"),
        ({"name": "purse", "scope": "tag=vip"}, InvalidValue, "it is whole"),
        ({"name": "points", "scope": "segment=vip"}, InvalidValue, "not ranked among"),
        ({"name": "points", "at": "2027-01-01"}, InvalidValue, "is in the future"),
    ],
)
def test_questions_that_have_no_answer(params: dict[str, str], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        staged(BOARDS).ask("leaderboards_top", **params)


@pytest.mark.parametrize(
    "country", [None, 7, 7.5, True, "", "x" * 101, "é" * 51, "a/b", "tag=vip", "\ud800", ["IT"], "I\nT"]
)
def test_a_region_can_be_called_whatever(country: Any) -> None:
    stage = staged(BOARDS)
    stage.tell("tool_used", "ada")
    stage.tell("identify", "ada", properties={"country": country}, source_type="internal")
    ada = stage.engine.reader.person("default", "user_id:ada")
    [mine] = stage.engine.reader.views(ada, stage.now + 1)["leaderboards"]["points"]["scopes"] or [""]
    if country in (7, "a/b", "tag=vip"):
        assert mine == f"country={country}"
        assert board(stage, "points", scope=mine) == [(1, "user_id:ada", 3)]
    else:
        assert mine == ""


def test_rows_of_a_board_are_spread_over_partitions() -> None:
    stage = staged(BOARDS)
    for number in range(400):
        stage.tell("tool_used", f"u{number}")
    rows = [item.key for item in scan_pages(stage.engine.store, TABLE)]
    taken = Counter(
        key.partition for key in rows if board_of(key.partition).period == "all" and "points" in key.partition
    )
    assert len(taken) == 16
    assert max(taken.values()) < 400 * 0.15


def test_the_sort_of_a_row_is_its_place() -> None:
    random = Random(3)
    places = [
        Place(
            random.choice((-(2**62), -1, 0, 1, 2**62)),
            f"{random.getrandbits(128):032x}",
            random.choice((None, -5, 2**50)),
        )
        for _ in range(200)
    ]
    assert [place_of(place.sort) for place in places] == places
    in_order = sorted(places, key=lambda place: (-place.score, place.person))
    assert [place.sort for place in in_order] == sorted(place.sort for place in places)
    key = Board("ws", "b.1", "week 2026-03-02", "country=a/b=c")
    assert all(board_of(row_of(key, place).partition) == key for place in places)
