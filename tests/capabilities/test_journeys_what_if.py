"""What-if for journeys: the history says who would have got what, before anything is switched on."""

from __future__ import annotations

from tests.capabilities.asked import STARTS_AT
from tests.capabilities.journeys_stage import Stage
from tests.capabilities.test_journeys_worked import WELCOME
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
