"""Retention: what is past its time goes, what is left is folded, and nothing comes back."""

from __future__ import annotations

import pytest

from tests.capabilities.asked import Asked
from tests.capabilities.segments_stage import members
from tests.mortal import Fate, Killed
from threadline.capabilities.foundation.events.forms import instant
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.maintenance.rebuild import refold_everybody
from threadline.kernel.errors import NotFound
from threadline.kernel.store import feed_pages, is_erased, scan_pages
from threadline.kernel.time import DAY, HOUR, MINUTE

RULES = """
retention: {visits: {types: [page_viewed], days: 30}, mail: {days: 365, drops_results: true}}
streaks: {daily: false}
features:
  views: {aggregate: count, events: page_viewed, window: 30d}
  visits: {aggregate: count, events: [page_viewed, bought], window: 30d}
segments: {visitors: {when: {field: features.views, greater_than: 1}}}
leaderboards: {viewers: {score: features.visits}}
"""
PEOPLE = ("ada", "bob", "eve")


def told() -> Asked:
    """Ada views long ago and lately, Bob only long ago, Eve only lately; everybody buys lately."""
    asked = Asked(definitions=RULES)
    for who, views in {"ada": (2, 3), "bob": (4, 0), "eve": (0, 2)}.items():
        for number in range(views[0]):
            asked.tell("page_viewed", user_id=who, at=asked.now - (60 - number) * DAY, key=f"{who}-old-{number}")
        asked.tell("bought", user_id=who, at=asked.now - 15 * DAY)
        for number in range(views[1]):
            asked.tell("page_viewed", user_id=who, at=asked.now - (20 - number) * DAY)
    work(asked)
    return asked


def work(asked: Asked, waits: int = 0) -> None:
    """Do what is due, by a process that has looked for it for a while."""
    dispatcher = Dispatcher(asked.engine, {}, f"worker {asked.now}")
    if waits:
        dispatcher.run_once()
        asked.now += waits
    while dispatcher.run_once():
        asked.now += 1


def views(asked: Asked) -> dict[str, tuple[int, int]]:
    found = {}
    for who in PEOPLE:
        person = asked.engine.reader.person("default", f"user_id:{who}")
        features = asked.engine.reader.views(person, asked.now, names=["features"])["features"]
        found[who] = (features["views"]["value"], features["visits"]["value"])
    return found


def undamaged(asked: Asked) -> None:
    """Everybody is the fold of what the log has, with the rows that it asks for."""
    done = refold_everybody(asked.engine.store, asked.engine.catalogue, write=False)
    assert (done.differing, done.rows_amiss) == ((), ())


def erased(asked: Asked) -> int:
    return sum(is_erased(each.entry) for each in feed_pages(asked.engine.store))


def test_clock_that_is_ahead_for_less_than_a_day_erases_nothing_and_the_job_goes_on_once_it_is_right() -> None:
    asked = told()
    gone = erased(asked)
    asked.now += 400 * DAY
    work(asked)
    asked.now += DAY - HOUR
    work(asked)
    assert erased(asked) == gone
    asked.now -= 401 * DAY - HOUR
    asked.now += 11 * DAY + HOUR
    work(asked, waits=MINUTE)  # for the lease of the process with the wrong clock
    assert erased(asked) == gone + 5, (
        "views of twenty and nineteen days before, and the opening in whose place another one is"
    )
    undamaged(asked)


def test_look_after_a_longer_stop_erases_on_the_next_day() -> None:
    asked = told()
    gone = erased(asked)
    asked.now += 40 * DAY
    work(asked)
    assert erased(asked) == gone
    asked.now += DAY
    work(asked)
    assert erased(asked) == gone + 6, "five views, and the opening in whose place another one is"
    undamaged(asked)


def test_old_events_of_the_types_go_and_the_others_stay() -> None:
    asked = told()
    assert views(asked) == {"ada": (3, 4), "bob": (0, 1), "eve": (2, 3)}
    assert erased(asked) == 6
    undamaged(asked)
    found = asked.ask("jobs_show", id="retention")
    assert (found["state"], found["counts"]) == ("running", {"people": 3, "erased.visits": 6})
    visitors = {asked.engine.reader.person("default", f"user_id:{who}").id for who in ("ada", "eve")}
    assert set(members(asked, "visitors")) == visitors
    places = asked.ask("leaderboards_top", name="viewers")["places"]
    assert [each["score"] for each in places] == [4, 3, 1]


def test_event_that_is_sent_again_stays_away() -> None:
    asked = told()
    receipt = asked.tell("page_viewed", user_id="bob", at=asked.now - 60 * DAY, key="bob-old-0")
    assert (receipt["status"], receipt["code"]) == ("duplicate", "erased")
    assert views(asked)["bob"] == (0, 1)


def test_who_is_split_off_was_created_by_the_first_event_of_theirs_that_is_left() -> None:
    asked = Asked(definitions=RULES)
    asked.tell("bought", user_id="ada")
    asked.now += DAY
    asked.tell("page_viewed", email="ada@example.com", at=asked.now - 60 * DAY)
    asked.now += DAY
    asked.tell("bought", email="ada@example.com")
    recorded_at = asked.now
    asked.now += DAY
    asked.ask("people_merge", id="ada", other="email:ada@example.com", reason="one")
    work(asked)
    assert erased(asked) == 1
    done = asked.ask("people_split", id="ada", identifiers=["email:ada@example.com"], reason="two")
    created = asked.engine.reader.person("default", "email:ada@example.com").created_at
    assert (done["new"]["created_at"], created) == (instant(recorded_at), recorded_at)


def test_a_preview_of_an_erasure_counts_the_events_that_are_left() -> None:
    asked = told()
    preview = asked.engine.erasures.preview("default", "user_id:bob")
    position = asked.engine.reader.person("default", "user_id:bob").position
    done = asked.engine.erasures.run("default", asked.engine.erasures.begin("default", "user_id:bob").id)
    assert preview.removed["events"] == done.events == position - 4


def test_a_day_later_what_has_grown_old_goes() -> None:
    asked = told()
    asked.now += 10 * DAY + 12 * HOUR
    work(asked)
    assert views(asked) == {"ada": (2, 3), "bob": (0, 1), "eve": (1, 2)}
    undamaged(asked)


def test_preview_counts_what_would_go_and_names_what_folds_it() -> None:
    asked = Asked(definitions=RULES)
    for number in range(3):
        asked.tell("page_viewed", user_id="ada", at=asked.now - (40 + number) * DAY)
    found = asked.ask("retention_preview")
    assert [(each["rule"], each["people"], each["events"]) for each in found["rules"]] == [
        ("mail", 0, 0),
        ("visits", 1, 3),
    ]
    assert {"features", "activity"} <= set(found["carried"])
    assert {"mail", "broadcasts"} <= set(found["projections"])
    assert found["uncounted"] == {}
    assert erased(asked) == 0


@pytest.mark.parametrize("through", [0, 1])
def test_killed_at_any_commit_it_ends_as_undisturbed(through: int) -> None:
    expected = views(told())
    for number in range(1, 60):
        asked = Asked(definitions=RULES)
        store, fate = asked.engine.store, Fate(asked.engine.store)
        for each in range(4):
            asked.tell("page_viewed", user_id="bob", at=asked.now - (60 - each) * DAY, key=f"bob-old-{each}")
        asked.tell("bought", user_id="bob", at=asked.now - 15 * DAY)
        fate.killed_at, fate.through = fate.commits + number, through
        try:
            work(asked)
        except Killed:
            asked.engine = Engine(store, asked.engine.catalogue, lambda asked=asked: asked.now)
            asked.now += DAY // 2
            work(asked)
            person = asked.engine.reader.person("default", "user_id:bob")
            found = asked.engine.reader.views(person, asked.now, names=["features"])["features"]
            assert (found["views"]["value"], found["visits"]["value"]) == expected["bob"]
            assert members(asked, "visitors") == []
            undamaged(asked)
            continue
        assert number > 5
        return
    raise AssertionError("it was killed at every commit")


def test_without_a_rule_there_is_no_job() -> None:
    asked = Asked()
    asked.tell("page_viewed", user_id="ada")
    work(asked)
    assert not list(scan_pages(asked.engine.store, "job"))


def test_balance_stays_when_all_lines_of_the_ledger_have_left() -> None:
    asked = Asked(definitions="retention: {lines: {types: [points_adjusted], days: 30}}")
    asked.tell("identify", user_id="ada")
    for number in range(3):
        asked.ask("points_adjust", id="user_id:ada", points=10, reason="a gift", request=f"{number}")
    asked.now += 31 * DAY
    work(asked)
    found = asked.ask("points_of", id="user_id:ada")
    assert (found["balance"], found["adjusted"]) == (30, 30)
    assert asked.ask("points_ledger", id="user_id:ada")["lines"] == []
    refused = asked.ask("points_spend", id="user_id:ada", points=31, request="too-much")
    assert (refused["status"], refused["balance"]) == ("refused", 30)
    undamaged(asked)


def test_spend_that_is_asked_for_again_after_its_line_has_left_moves_nothing_and_says_why() -> None:
    asked = Asked(definitions="retention: {lines: {types: [points_spent, points_spend_requested], days: 30}}")
    asked.tell("identify", user_id="ada")
    asked.ask("points_adjust", id="user_id:ada", points=10, reason="a gift", request="gift")
    asked.ask("points_spend", id="user_id:ada", points=4, request="order")
    asked.now += 31 * DAY
    work(asked)
    with pytest.raises(NotFound, match="erased by its age"):
        asked.ask("points_spend", id="user_id:ada", points=4, request="order")
    assert asked.ask("points_of", id="user_id:ada")["balance"] == 6
