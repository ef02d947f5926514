"""Law: however definitions come and go, a board refuses to answer or is right, and a refresh always helps."""

from __future__ import annotations

import threading
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from tests.capabilities.asked import job
from tests.capabilities.points_stage import Stage, catalogue
from threadline.capabilities.profile.leaderboards.projection import NAME
from threadline.engine.maintenance import indexes as indexing
from threadline.engine.maintenance import marks
from threadline.kernel.errors import Conflict
from threadline.kernel.ranking import TABLE, board_of
from threadline.kernel.store import scan_pages
from threadline.kernel.time import DAY, HOUR
from threadline.stores.memory import MemoryStore
from threadline.testing import scenarios

POINTS = "  points: {score: points.earned}\n"
VARIANTS = (
    "",
    "leaderboards:\n" + POINTS,
    "leaderboards:\n  points: {score: points.earned, per: country, tags: [vip]}\n",
    "leaderboards:\n" + POINTS + "  streak: {score: streaks.daily.longest}\n",
    "leaderboards:\n  points: {score: streaks.daily.longest}\n",
    """
segments: {plain: {when: {field: traits.plan, exists: false}}}
leaderboards:
  points: {score: points.earned, segments: [plain]}
""",
)
NAMES = ("ada", "bob", "cleo")


def opened(definitions: str, store: MemoryStore, now: int) -> Stage:
    stage = Stage(definitions, "streaks", "leaderboards", "segments", store=store)
    stage.now = now
    return stage


def expected(stage: Stage, name: str) -> set[tuple[int, str, int]]:
    """Everybody's rank and number, from what is told of each person."""
    scores = {}
    for person in stage.engine.reader.all_people("default"):
        views = stage.engine.reader.views(person, stage.now + 1)
        by_points = name == "points" and "points: {score: points.earned" in stage.definitions
        scores[person.id] = views["points"]["earned"] if by_points else views["streaks"]["daily"]["longest"]
    return {(1 + sum(o > s for o in scores.values()), id, s) for id, s in scores.items() if s}


def found(stage: Stage, name: str) -> set[tuple[int, str, int]]:
    places = stage.ask("leaderboards_top", name=name)["places"]
    for each in places:
        own = stage.ask("leaderboards_standing", id=each["person"], name=name)
        assert (own["rank"], own["score"], own["total"]) == (each["rank"], each["score"], len(places))
    return {(each["rank"], each["person"], each["score"]) for each in places}


@given(scenarios.randoms)
@settings(max_examples=40)
@pytest.mark.slow
def test_a_board_refuses_or_is_right(random: Random) -> None:
    store = MemoryStore()
    stage = opened(random.choice(VARIANTS), store, 0)
    stage.now = scenarios.NOW
    for turn in range(30):
        choice = random.random()
        if choice < 0.2:
            stage = opened(random.choice(VARIANTS), store, stage.now)
        elif choice < 0.3:
            job(stage, "leaderboards_refresh")
            assert all(found(stage, each["name"]) == expected(stage, each["name"]) for each in boards(stage))
        else:
            stage.now += random.choice((0, HOUR, DAY))
            stage.tell(random.choice(("tool_used", "page")), random.choice(NAMES), key=f"{turn}")
        for each in boards(stage):
            try:
                assert found(stage, each["name"]) == expected(stage, each["name"])
            except Conflict:
                continue


def boards(stage: Stage) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = stage.ask("leaderboards_list")["boards"]
    return listed


def test_rows_of_a_definition_that_is_gone_are_removed() -> None:
    stage = opened(VARIANTS[1], MemoryStore(), scenarios.NOW)
    for who in NAMES:
        stage.tell("tool_used", who)
    other = opened(VARIANTS[4], stage.engine.store, stage.now + HOUR)  # type: ignore[arg-type]
    assert job(other, "leaderboards_refresh") == {"people": 3}
    rows = list(scan_pages(other.engine.store, TABLE))
    assert len({board_of(item.key.partition) for item in rows}) == 1
    assert len(rows) == 3


def test_a_refresh_is_for_everybody_whatever_the_workspace() -> None:
    stage = opened("", MemoryStore(), scenarios.NOW)
    for number, who in enumerate(NAMES):
        stage.tell("page", who, workspace=f"w{number}")
    other = opened(VARIANTS[4], stage.engine.store, stage.now + HOUR)  # type: ignore[arg-type]
    assert job(other, "leaderboards_refresh") == {"people": 3}
    workspaces = {board_of(item.key.partition).workspace for item in scan_pages(other.engine.store, TABLE)}
    assert workspaces == {"w0", "w1", "w2"}


def test_of_two_refreshes_at_once_the_one_that_began_later_has_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = opened("", MemoryStore(), scenarios.NOW)
    for who in NAMES:
        stage.tell("tool_used", who)
    now, store = stage.now + HOUR, stage.engine.store
    [projection] = [each for each in catalogue(VARIANTS[1], "leaderboards").projections if each.index.complete]
    emptied, go_on = threading.Event(), threading.Event()
    remove = indexing._empty

    def remove_and_wait(*args: Any) -> None:
        remove(*args)
        emptied.set()
        assert go_on.wait(30)

    one, other = (opened(VARIANTS[1], store, now) for _ in range(2))  # type: ignore[arg-type]
    monkeypatch.setattr(indexing, "_empty", remove_and_wait)
    later = threading.Thread(target=one.engine.maintenance.write_rows, args=[NAME])
    _, begun = marks.begin(store, projection)  # an earlier one, which has got as far as this
    later.start()
    assert emptied.wait(30)
    assert store.commit([indexing.Batch(writes=[marks.rows_mark(projection)._replace(expected=begun)])])[0]
    with pytest.raises(Conflict):
        other.ask("leaderboards_top", name="points")
    go_on.set()
    later.join()
    one.engine.maintenance.note_refreshed(NAME, "")
    assert found(other, "points") == expected(other, "points")
