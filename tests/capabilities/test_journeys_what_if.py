"""What-if for journeys: the history says who would have got what, before anything is switched on."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from tests.capabilities.asked import STARTS_AT
from tests.capabilities.journeys_stage import Stage
from tests.capabilities.test_journeys_worked import WELCOME
from tests.laws.staging import Crash, CrashingStore
from threadline.engine.delivery import job_worker
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.kernel.errors import InvalidDefinition, NotFound
from threadline.kernel.time import DAY, format_time


def lived(definitions: str) -> Stage:
    """Three people of whom one buys in time, one late and one never."""
    stage = Stage(definitions)
    for who in ("ada", "bob", "cy"):
        stage.tell("signed_up", user_id=who, properties={"plan": "pro" if who == "cy" else "free"})
    for who, day in (("ada", 3), ("bob", 6)):
        stage.until(STARTS_AT + day * DAY)
        stage.tell("purchase_completed", user_id=who, properties={"total": 5, "currency": "EUR"})
    stage.until(STARTS_AT + 10 * DAY)
    return stage


def test_what_if_of_the_journeys_in_force_is_what_happened() -> None:
    stage = lived(WELCOME)
    answer = stage.ask("journeys_what_if", definitions=WELCOME)
    assert (answer["people"], answer["people_changed"], answer["failed"]) == (3, 0, 0)
    for sample in answer["samples"]:
        got = [(at, template) for at, template in stage.got(sample["identifiers"][0].removeprefix("user_id:"))]
        assert sorted((mail["at"][:16], mail["template"]) for mail in sample["new"]) == got
        assert sample["old"] == sample["new"]
    counted = {(each["step"], each["template"]): each["new"] for each in answer["steps"]}
    assert counted[("1", "hello")] == 3
    assert counted[("bought.then.1", "thanks")] == 1


def test_what_if_says_who_would_have_got_what_before_any_journey_is_switched_on() -> None:
    without = lived("")
    with_it = lived(WELCOME)
    answer = without.ask("journeys_what_if", definitions=WELCOME)
    assert (answer["people_old"], answer["people_new"], answer["people_changed"]) == (0, 3, 3)
    assert without.mails == []
    for sample in answer["samples"]:
        who = sample["identifiers"][0].removeprefix("user_id:")
        assert sorted((mail["at"][:16], mail["template"]) for mail in sample["new"]) == with_it.got(who)
    [welcome] = answer["journeys"]
    assert (welcome["entered_old"], welcome["entered_new"]) == (0, 3)
    assert welcome["left_new"] == {"completed": 3}


def test_what_if_shows_the_mails_that_come_at_another_time_or_not_at_all() -> None:
    stage = lived(WELCOME)
    other = WELCOME.replace("wait: 2d", "wait: 1d").replace("goodbye", "bye")
    answer = stage.ask("journeys_what_if", definitions=other)
    [welcome] = answer["journeys"]
    assert (welcome["only_old"], welcome["only_new"]) == (0, 0)
    assert welcome["moved"] >= 3
    assert {each["template"]: (each["old"], each["new"]) for each in answer["steps"]}["bye"] == (0, 3)
    assert answer["people_changed"] == 3


def test_what_if_from_an_instant_is_as_if_it_had_been_switched_on_then() -> None:
    stage = lived("")
    answer = stage.ask("journeys_what_if", definitions=WELCOME, start=format_time(STARTS_AT + DAY))
    assert answer["people_new"] == 0
    only = stage.ask("journeys_what_if", definitions=WELCOME, people=["cy"])
    assert (only["people"], [each["identifiers"] for each in only["samples"]]) == (1, [["user_id:cy"]])


def test_historical_events_send_nobody_anything_and_count_in_a_what_if() -> None:
    stage = Stage(WELCOME)
    stage.tell("signed_up", at=STARTS_AT - 30 * DAY, user_id="ada", historical=True)
    stage.until(STARTS_AT + 10 * DAY)
    assert stage.mails == []
    answer = stage.ask("journeys_what_if", definitions=WELCOME)
    assert [mail["at"][:10] for mail in answer["samples"][0]["new"]] == ["2025-12-02", "2025-12-07", "2025-12-07"]


def test_a_trial_in_the_background_counts_as_one_that_is_waited_for_although_it_was_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_worker, "JOB_PAGE", 1)
    stage = lived("")
    waited = stage.ask("journeys_what_if", definitions=WELCOME, stop=format_time(stage.now))
    id = stage.ask("journeys_what_if_in_background", definitions=WELCOME, stop=format_time(stage.now))["id"]
    assert stage.ask("journeys_tried", id=id)["result"]["people"] == 0
    for _ in range(4):  # dies after half of a commit, or before the job knows of the page that was counted
        breaking: Any = CrashingStore(stage.engine.store, 2, "half")
        with suppress(Crash):
            Dispatcher(Engine(breaking, stage.engine.catalogue, lambda: stage.now), {}, "killed").run_once()
        stage.now += DAY
    worker = Dispatcher(stage.engine, {}, "alive")
    while worker.run_once():
        stage.now += 1
    tried = stage.ask("journeys_tried", id=id)
    assert tried["job"]["state"] == "done"
    assert tried["job"]["counts"] == {"people": 3, "failed": 0}
    assert tried["result"] == {**waited, "samples": [], "stop": tried["result"]["stop"]}
    assert waited["people_new"] == 3


def test_a_trial_in_the_background_is_refused_at_once_if_it_cannot_be_made() -> None:
    stage = lived("")
    with pytest.raises(InvalidDefinition, match="journey 'welcome'"):
        stage.ask("journeys_what_if_in_background", definitions="journeys: {welcome: {steps: [{sned: hello}]}}")
    with pytest.raises(NotFound):
        stage.ask("journeys_tried", id="journeys_what_if.1")
