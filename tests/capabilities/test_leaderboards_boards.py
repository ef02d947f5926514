"""Boards hold what a slow count over all people gives: by period, region and tag, through late events and merges."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings

from tests.capabilities.leaderboards_stage import BOARDS, FEATURES, STREAKS, board, competition, staged, standing, text
from tests.capabilities.points_stage import STARTS_AT, Stage
from threadline.engine.reading.ranks import Ranks
from threadline.kernel.event import Identifier
from threadline.kernel.ranking import TABLE, Board, board_of, place_of
from threadline.kernel.store import scan_pages
from threadline.kernel.time import DAY, HOUR, MINUTE, WEEK, format_time, parse_time
from threadline.testing import scenarios


@given(scenarios.randoms)
@settings(max_examples=25)
def test_a_board_is_what_a_count_over_all_people_gives(random: Random) -> None:
    stage = staged(BOARDS)
    names, countries, told = [f"u{number}" for number in range(7)], {}, []
    for _ in range(60):
        stage.now += random.choice((0, MINUTE, 5 * HOUR, 30 * HOUR))
        who = random.choice(names)
        if random.random() < 0.2:
            countries[who] = random.choice(("IT", "FR"))
            stage.now += 1  # of two words of one instant the event id would decide
            stage.tell("identify", who, properties={"country": countries[who]})
        else:
            at = stage.now - random.choice((0, 0, HOUR, 3 * DAY, 6 * DAY))
            stage.tell("tool_used", who, at=at)
            told.append((who, at))
    now = stage.now + 1
    for kind in ("day", "week", "month", "all"):
        for back in (0, 1, 2, 5, 9, 40):
            at = now - back * DAY
            if kind == "all" and back:
                continue
            for country in ("", "IT", "FR"):
                scores = Counter(
                    f"user_id:{who}"
                    for who, when in told
                    if text(kind, when) == text(kind, at) and (not country or countries.get(who) == country)
                )
                scope = {"scope": f"country={country}"} if country else {}
                when = {"at": format_time(at)} if back else {}
                expected = competition({name: 3 * count for name, count in scores.items()})
                assert set(board(stage, "points", period=kind, **scope, **when)) == expected
                for rank, name, score in expected:
                    mine = standing(stage, name.partition(":")[2], "points", period=kind, **scope, **when)
                    assert (mine["rank"], mine["score"], mine["total"]) == (rank, score, len(expected))


def counts(ranks: Ranks, stage: Stage, board: Board, expiring: bool) -> list[tuple[int, int, int]]:
    return [
        (*ranks.counted(board, score, stage.now, expiring=expiring)[:2], score) for score in range(-1, 10**8, 3 * 10**6)
    ]


@pytest.mark.slow
@given(scenarios.randoms)
@settings(max_examples=12)
def test_what_is_kept_current_is_what_reading_anew_gives(random: Random) -> None:
    stage = staged(BOARDS + STREAKS.replace("leaderboards:\n", ""))
    known = stage.engine.catalogue.operations  # the boards are asked for from the first event on
    assert known
    boards: set[Board] = set()
    for turn in range(70):
        stage.now += random.choice((0, HOUR, 11 * HOUR, 26 * HOUR))
        who = f"u{random.randrange(6)}"
        choice = random.random()
        if choice < 0.1:
            stage.tell("identify", who, properties={"country": random.choice(("IT", "FR", None))})
        elif choice < 0.2:
            stage.tell(random.choice(("tag_added", "tag_removed")), who, properties={"tag": "vip"})
        elif choice < 0.25:
            both = (Identifier("user_id", who), Identifier("anonymous_id", f"a{random.randrange(12)}"))
            stage.tell("page", identifiers=both)
        elif choice < 0.4:
            stage.tell("tool_used", identifiers=(Identifier("anonymous_id", f"a{random.randrange(12)}"),))
        else:
            stage.tell("tool_used", who, at=stage.now - random.choice((0, 0, 0, DAY, 2 * DAY)))
        boards |= {board_of(item.key.partition) for item in scan_pages(stage.engine.store, TABLE)}
        for each in boards:
            expiring = each.name.startswith("streak.")
            kept = stage.engine.ranks.counted(each, 0, stage.now, expiring=expiring)
            if turn % 7 == 0:
                fresh = Ranks(stage.engine.store, lambda: stage.now, stage.engine.recorder.committing)
                assert counts(fresh, stage, each, expiring) == counts(stage.engine.ranks, stage, each, expiring)
                assert kept.total == len(fresh.best(each, stage.now, 1_000, expiring=expiring))


def test_equal_scores_share_a_rank_and_stand_in_the_order_of_ids() -> None:
    stage = staged(BOARDS)
    for who, uses in {"a": 3, "b": 2, "c": 2, "d": 2, "e": 1}.items():
        for _ in range(uses):
            stage.tell("tool_used", who)
    places = board(stage, "points")
    assert [rank for rank, _, _ in places] == [1, 2, 2, 2, 5]
    ids = [each["person"] for each in stage.ask("leaderboards_top", name="points")["places"]]
    assert ids[1:4] == sorted(ids[1:4])
    for who, rank in {"a": 1, "b": 2, "c": 2, "d": 2, "e": 5}.items():
        assert standing(stage, who, "points")["rank"] == rank


def test_around_somebody_in_the_middle_of_equals_and_at_both_ends() -> None:
    stage = staged(BOARDS)
    for number in range(30):
        for _ in range(1 + number // 10):
            stage.tell("tool_used", f"u{number}")
    everyone = stage.ask("leaderboards_top", name="points", limit=100)["places"]
    order = [each["person"] for each in everyone]
    for number in range(30):
        mine = standing(stage, f"u{number}", "points", around=4)
        at = order.index(mine["person"])
        assert mine["places"] == everyone[max(0, at - 4) : at + 5]


def test_who_writes_sees_their_own_rank_at_once() -> None:
    stage = staged(BOARDS)
    for number in range(20):
        stage.tell("tool_used", f"u{number}")
    for turn in range(1, 20):
        stage.tell("tool_used", f"u{turn}")
        assert standing(stage, f"u{turn}", "points")["rank"] == 1
        assert standing(stage, "u0", "points")["rank"] == turn + 1
    assert standing(stage, "u0", "points", scope="tag=vip")["rank"] is None


# --- streaks --------------------------------------------------------------------------------


def test_a_streak_leaves_the_board_at_the_instant_at_which_it_dies() -> None:
    stage = staged(STREAKS)
    for day in range(3):
        stage.now = STARTS_AT + day * DAY + 9 * HOUR
        stage.tell("page", "ada")
    stage.tell("page", "bob")
    dies_at = STARTS_AT + 4 * DAY
    assert board(stage, "streak") == [(1, "user_id:ada", 3), (2, "user_id:bob", 1)]
    for before, there in ((2, True), (0, False)):
        stage.now = dies_at - before - 1  # each question is asked one microsecond later
        assert bool(board(stage, "streak")) == there
        stage.now = dies_at - before - 1
        assert standing(stage, "ada", "streak")["rank"] == (1 if there else None)
        assert standing(stage, "ada", "streak")["total"] == (2 if there and before > 1 else 0)
    assert board(stage, "longest") == [(1, "user_id:ada", 3), (2, "user_id:bob", 1)]


def test_the_departed_cost_readers_nothing() -> None:
    stage = staged(STREAKS)
    for number in range(50):
        stage.now = STARTS_AT + number * WEEK
        for _ in range(2):
            stage.tell("page", f"u{number}")
            stage.now += DAY
    assert [name for _, name, _ in board(stage, "streak")] == ["user_id:u49"]
    held = [place_of(item.key.sort) for item in scan_pages(stage.engine.store, TABLE)]
    assert len([place for place in held if place.expires_at is not None]) == 50  # nobody swept them


def test_a_late_day_repairs_the_place_on_the_board() -> None:
    stage = staged(STREAKS)
    for day in (0, 2):
        stage.now = STARTS_AT + day * DAY
        stage.tell("page", "ada")
    assert standing(stage, "ada", "streak")["score"] == 1
    stage.tell("page", "ada", at=STARTS_AT + DAY)
    assert standing(stage, "ada", "streak")["score"] == 3


def test_an_event_ahead_is_on_no_board_before_its_own_time() -> None:
    stage = staged(FEATURES + STREAKS.replace("leaderboards:\n", ""))
    stage.now = STARTS_AT + 20 * HOUR
    names, ahead = ("streak", "longest", "busy"), stage.now + 8 * HOUR
    stage.tell("tool_used", at=ahead)
    assert [board(stage, name) for name in names] == [[], [], []]
    stage.tell("tool_used")
    assert [board(stage, name) for name in names] == [[(1, "user_id:ada", 1)]] * 3
    stage.now = ahead
    assert stage.dispatch() == 0
    stage.now = ahead + 1
    stage.dispatch()
    assert [board(stage, name) for name in names] == [[(1, "user_id:ada", 2)]] * 3
    stage.now = STARTS_AT + 3 * DAY
    stage.dispatch()
    assert board(stage, "streak") == []


def test_a_day_that_is_active_only_later_today_does_not_hide_that_it_is_so_now() -> None:
    stage = staged(STREAKS)
    stage.tell("page")
    stage.now = STARTS_AT + DAY + 9 * HOUR
    stage.tell("page", at=stage.now + 9 * HOUR)
    assert [score for _, _, score in board(stage, "streak")] == [1]
    stage.tell("page")
    assert [score for _, _, score in board(stage, "streak")] == [2]


def test_many_events_ahead_cost_a_timer_for_what_they_change() -> None:
    stage = staged(STREAKS)
    for number in range(60):
        stage.tell("page", at=STARTS_AT + 12 * HOUR + number * MINUTE)
    stage.now = STARTS_AT + 14 * HOUR
    fired = 0
    while done := stage.dispatch():
        fired, stage.now = fired + done, stage.now + 1
    assert board(stage, "streak") == [(1, "user_id:ada", 1)]
    assert fired == 1  # one for all boards


def test_merge_and_split_move_scores_at_once() -> None:
    stage = staged(STREAKS + BOARDS.split("leaderboards:\n")[1])
    for day in range(4):
        stage.now = STARTS_AT + day * DAY
        stage.tell("tool_used", "ada" if day % 2 else "bob")
    ids = [stage.engine.reader.person("default", f"user_id:{who}").id for who in ("ada", "bob")]
    stage.engine.identity.merge("default", *ids, request="join", force=True)
    assert [score for _, _, score in board(stage, "streak")] == [4]
    assert [score for _, _, score in board(stage, "points")] == [20]
    survivor = stage.engine.reader.person("default", ids[0])
    other = next(str(i) for thread, i in survivor.identifiers.items() if thread != survivor.id)
    stage.engine.identity.split("default", survivor.id, [other], request="split")
    assert sorted(score for _, _, score in board(stage, "streak")) == [1, 1]
    assert sorted(score for _, _, score in board(stage, "points")) == [10, 10]


# --- features -------------------------------------------------------------------------------


def test_a_feature_over_a_window_falls_by_time_alone() -> None:
    stage = staged(FEATURES)
    for hours in (0, 1, 2):
        stage.now = STARTS_AT + hours * HOUR
        stage.tell("tool_used", "ada")
    stage.tell("tool_used", "bob")
    assert board(stage, "busy") == [(1, "user_id:ada", 3), (2, "user_id:bob", 1)]
    for left in (2, 1, 0):
        stage.now = STARTS_AT + (2 - left) * HOUR + 3 * DAY + 1
        stage.dispatch()
        found = {name: score for _, name, score in board(stage, "busy")}
        assert found.get("user_id:ada", 0) == left


def test_amounts_are_exact_and_taken_back() -> None:
    stage = staged(FEATURES)
    for total in (29.33, 0.1, 0.2):
        stage.tell("purchase_completed", "ada", properties={"total": total})
    stage.tell("purchase_completed", "bob", properties={"total": 29.62})
    stage.tell("purchase_completed", "eve", properties={"total": -5})
    assert board(stage, "spenders") == [(1, "user_id:ada", 29.63), (2, "user_id:bob", 29.62), (3, "user_id:eve", -5)]
    stage.tell("purchase_completed", "ada", properties={"total": -29.63})
    assert [name for _, name, _ in board(stage, "spenders")] == ["user_id:bob", "user_id:eve"]


def test_who_travels_keeps_the_streak_until_midnight_over_there() -> None:
    stage = staged(STREAKS)
    stage.now = STARTS_AT + 9 * HOUR
    stage.tell("page", "ada", context={"timezone": "UTC"})
    stage.tell("page", "ada", context={"timezone": "Asia/Tokyo"})  # the same day, and nothing more is counted
    person = stage.engine.reader.person("default", "user_id:ada")
    told = stage.engine.reader.views(person, stage.now + 1, names=["streaks"])["streaks"]["daily"]["expires_at"]
    dies_at = parse_time(told)
    stage.now = dies_at - 2
    assert standing(stage, "ada", "streak")["score"] == 1
    stage.now = dies_at - 1
    assert standing(stage, "ada", "streak")["score"] == 0
