"""Boards hold what a slow count over all people gives: by period, region and tag, through late events and merges."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from tests.capabilities.points_stage import STARTS_AT, Stage
from threadline.engine.ranks import Ranks
from threadline.kernel.errors import Conflict, InvalidDefinition, InvalidValue, NotFound
from threadline.kernel.event import Identifier
from threadline.kernel.ranking import TABLE, Board, Place, board_of, place_of, row_of
from threadline.kernel.store import scan_pages
from threadline.kernel.time import DAY, HOUR, MINUTE, WEEK, format_time, parse_time
from threadline.testing import scenarios

BOARDS = """
points: {tables: [{version: 2, earn: {tool_used: 3}}]}
leaderboards:
  points: {score: points.earned, periods: [day, week, month, all], per: country, tags: [vip]}
  purse: {score: points.balance}
"""
STREAKS = """
leaderboards:
  streak: {score: streaks.daily.current, per: country}
  longest: {score: streaks.daily.longest}
"""
FEATURES = """
features:
  uses_3d: {aggregate: count, events: tool_used, window: 3d}
  spent: {aggregate: sum, events: purchase_completed, of: total}
leaderboards:
  busy: {score: features.uses_3d}
  spenders: {score: features.spent}
"""


def staged(definitions: str, **more: Any) -> Stage:
    return Stage(definitions, "streaks", "leaderboards", **more)


def board(stage: Stage, name: str, limit: int = 1_000, **params: Any) -> list[tuple[int, str, float]]:
    """Rank, identifier and score of the first places."""
    found = stage.ask("leaderboard", name=name, limit=limit, identifiers=True, **params)
    return [(each["rank"], each["identifiers"][0], each["score"]) for each in found["places"]]


def standing(stage: Stage, who: str, name: str, **params: Any) -> dict[str, Any]:
    found: dict[str, Any] = stage.ask("leaderboard_standing", id=f"user_id:{who}", name=name, **params)
    return found


def competition(scores: dict[str, int]) -> set[tuple[int, str, int]]:
    """Ranks as in sport: 1 and how many have more."""
    return {(1 + sum(o > s for o in scores.values()), name, s) for name, s in scores.items() if s}


def text(kind: str, at: int) -> str:
    """The period of an instant in UTC, reckoned from its date alone."""
    import datetime as dt

    day = dt.date(1970, 1, 1) + dt.timedelta(days=at // DAY)
    week = day - dt.timedelta(days=day.weekday())
    return {"day": day.isoformat(), "week": week.isoformat(), "month": day.isoformat()[:7], "all": "all"}[kind]


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
    ids = [each["person"] for each in stage.ask("leaderboard", name="points")["places"]]
    assert ids[1:4] == sorted(ids[1:4])
    for who, rank in {"a": 1, "b": 2, "c": 2, "d": 2, "e": 5}.items():
        assert standing(stage, who, "points")["rank"] == rank


def test_around_somebody_in_the_middle_of_equals_and_at_both_ends() -> None:
    stage = staged(BOARDS)
    for number in range(30):
        for _ in range(1 + number // 10):
            stage.tell("tool_used", f"u{number}")
    everyone = stage.ask("leaderboard", name="points", limit=100)["places"]
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
    assert fired == 2  # one for each board


def test_merge_and_split_move_scores_at_once() -> None:
    stage = staged(STREAKS + BOARDS.split("leaderboards:\n")[1])
    for day in range(4):
        stage.now = STARTS_AT + day * DAY
        stage.tell("tool_used", "ada" if day % 2 else "bob")
    ids = [stage.engine.person("default", f"user_id:{who}").id for who in ("ada", "bob")]
    stage.engine.merge("default", *ids, request="join", force=True)
    assert [score for _, _, score in board(stage, "streak")] == [4]
    assert [score for _, _, score in board(stage, "points")] == [20]
    survivor = stage.engine.person("default", ids[0])
    other = next(str(i) for thread, i in survivor.identifiers.items() if thread != survivor.id)
    stage.engine.split("default", survivor.id, [other], request="split")
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


def test_a_past_instant_is_as_it_was() -> None:
    stage = staged(STREAKS)
    told = {}
    for day in range(9):
        stage.now = STARTS_AT + day * DAY
        for number in range(4):
            if day % (number + 1) == 0:
                stage.tell("page", f"u{number}")
        stage.now += HOUR
        told[stage.now + 1] = set(board(stage, "streak"))
    for at, then in told.items():
        again = stage.ask("leaderboard", name="streak", at=format_time(at), identifiers=True)
        assert {(e["rank"], e["identifiers"][0], e["score"]) for e in again["places"]} == then
        assert again["people_read"] == 4


@pytest.mark.parametrize("around", [0, 1, 4, 100])
def test_who_stood_around_somebody_is_the_same_from_rows_and_from_the_log(around: int) -> None:
    stage = staged(BOARDS)
    for number in range(15):
        for _ in range(1 + number // 5):
            stage.tell("tool_used", f"u{number}")
    stage.tell("page", "nobody")
    at = format_time(stage.now)
    people = [*(f"u{number}" for number in range(15)), "nobody"]
    asked = {"name": "points", "period": "day", "around": around, "identifiers": True}
    live = {who: standing(stage, who, **asked) for who in people}
    stage.now += 9 * DAY
    for who in people:
        past = standing(stage, who, at=at, **asked)
        assert (past.pop("people_read"), live[who].pop("people_read")) == (16, 0)
        assert {**past, "as_of": ""} == {**live[who], "as_of": ""}
        assert bool(past["places"]) == (who != "nobody" and around > 0)


def test_a_region_of_the_past_is_one_of_the_present() -> None:
    stage = staged(BOARDS)
    countries = ("IT", 7, 2.5, True, None, "", "I\nT", "x" * 101)
    for number, country in enumerate(countries):
        stage.tell("tool_used", f"u{number}")
        stage.tell("identify", f"u{number}", properties={"country": country})
    stage.tell("tool_used", "unknown")
    at = format_time(stage.now)
    scopes = [f"country={country}" for country in (*countries, "None", "true") if country != ""]
    live = [board(stage, "points", period="day", scope=scope) for scope in scopes]
    stage.now += 9 * DAY
    past = [board(stage, "points", period="day", scope=scope, at=at) for scope in scopes]
    assert past == live
    assert [scope for scope, found in zip(scopes, live, strict=True) if found] == ["country=IT", "country=7"]


# --- segments -------------------------------------------------------------------------------

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
        staged(text)


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
    assert later.ask("leaderboards_refresh") == {"people": 2}
    assert board(later, "points") == [(1, "user_id:ada", 9), (2, "user_id:bob", 6)]
    assert {name for _, name, _ in board(later, "streak")} == {"user_id:ada", "user_id:bob"}
    later.tell("tool_used", "bob", key="after")
    later.tell("tool_used", "bob", key="and again")
    assert board(later, "points") == [(1, "user_id:bob", 12), (2, "user_id:ada", 9)]
    assert later.ask("leaderboards_refresh") == {"people": 2}
    assert board(later, "points") == [(1, "user_id:bob", 12), (2, "user_id:ada", 9)]


def test_a_board_by_another_number_does_not_meet_the_old_rows() -> None:
    stage = staged(BOARDS)
    stage.tell("tool_used", "ada")
    other = staged(BOARDS.replace("points.balance", "streaks.daily.longest"), store=stage.engine.store)
    other.ask("leaderboards_refresh")
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
        ({"name": "points", "at": "2027-01-01"}, InvalidValue, "lies ahead"),
    ],
)
def test_questions_that_have_no_answer(params: dict[str, str], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        staged(BOARDS).ask("leaderboard", **params)


@pytest.mark.parametrize(
    "country", [None, 7, 7.5, True, "", "x" * 101, "é" * 51, "a/b", "tag=vip", "\ud800", ["IT"], "I\nT"]
)
def test_a_region_can_be_called_whatever(country: Any) -> None:
    stage = staged(BOARDS)
    stage.tell("tool_used", "ada")
    stage.tell("identify", "ada", properties={"country": country}, source_type="internal")
    ada = stage.engine.person("default", "user_id:ada")
    [mine] = stage.engine.views(ada, stage.now + 1)["leaderboards"]["points"]["scopes"] or [""]
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


def test_who_travels_keeps_the_streak_until_midnight_over_there() -> None:
    stage = staged(STREAKS)
    stage.now = STARTS_AT + 9 * HOUR
    stage.tell("page", "ada", context={"timezone": "UTC"})
    stage.tell("page", "ada", context={"timezone": "Asia/Tokyo"})  # the same day, and nothing more is counted
    person = stage.engine.person("default", "user_id:ada")
    told = stage.engine.views(person, stage.now + 1, names=["streaks"])["streaks"]["daily"]["expires_at"]
    dies_at = parse_time(told)
    stage.now = dies_at - 2
    assert standing(stage, "ada", "streak")["score"] == 1
    stage.now = dies_at - 1
    assert standing(stage, "ada", "streak")["score"] == 0
