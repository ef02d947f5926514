"""What happens at once if a journey is put in force: nobody enters, and who is in it keeps the version or moves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.by_hand_stage import Process
from threadline.stores.memory import MemoryStore

FILES = """
mail:
  senders: {shop: {from: shop@example.com}}
  templates: {hello: {subject: Hello, text: Hello}}
segments:
  vip: {when: {field: tags, contains: vip}}
"""
FIRST = """version: 1
trigger: {segment: vip}
steps:
  - {id: early, wait: 1d}
  - {id: late, wait: 2d}
  - send: hello
"""
SECOND = """version: 2
on_change: %s
trigger: {segment: vip}
steps:
  - {id: late, wait: 2d}
  - send: hello
"""


@pytest.fixture
def process() -> Process:
    made = Process(MemoryStore(), FILES)
    made.ask("definitions_declare", section="journeys", name="thanks", text=FIRST)
    return made


def tagged(process: Process, *names: str) -> None:
    for name in names:
        process.ask("people_tag", id=f"user_id:{name}", add=["vip"])


def known(process: Process, *names: str) -> None:
    events = [{"type": "seen", "identifiers": {"user_id": name}, "key": name} for name in names]
    process.ask("record", events=events)


def now(process: Process, text: str, name: str = "thanks") -> dict[str, Any]:
    shown: dict[str, Any] = process.ask("journeys_preview", text=text, name=name)["now"]
    return shown


def test_members_of_the_segment_are_counted_and_none_of_them_enters_a_journey_that_is_put_in_force() -> None:
    process = Process(MemoryStore(), FILES)
    known(process, "ada", "bob", "eva")
    tagged(process, "ada", "bob")
    assert now(process, FIRST) == {"members": 2, "people": 0, "keeps": True, "leaving": 0}
    process.ask("definitions_declare", section="journeys", name="thanks", text=FIRST)
    process.work()
    assert process.ask("journeys_show", name="thanks")["people"] == 0
    tagged(process, "eva")
    assert process.ask("journeys_show", name="thanks")["people"] == 1


def test_a_journey_that_an_event_lets_people_enter_has_no_members() -> None:
    text = "trigger: {event: signed_up}\nsteps: [{send: hello}]\n"
    assert now(Process(MemoryStore(), FILES), text, "other")["members"] is None


def test_people_in_a_journey_keep_their_version_and_are_shown_by_it(process: Process) -> None:
    known(process, "ada", "bob")
    tagged(process, "ada")
    assert now(process, SECOND % "keep") == {"members": 1, "people": 1, "keeps": True, "leaving": 0}
    process.ask("definitions_declare", section="journeys", name="thanks", text=SECOND % "keep")
    tagged(process, "bob")
    shown = process.ask("journeys_show", name="thanks")
    assert (shown["versions"], shown["keeps"]) == ({"1": 1, "2": 1}, True)
    assert [(each["version"], each["step"], each["label"], each["people"]) for each in shown["waiting"]] == [
        (2, "late", "wait 2 days", 1),
        (1, "early", "wait 1 day", 1),
    ]


def test_who_waits_at_a_step_of_an_earlier_version_is_listed_with_what_it_does(process: Process) -> None:
    known(process, "ada")
    tagged(process, "ada")
    process.ask("definitions_declare", section="journeys", name="thanks", text=SECOND % "keep")
    (ada,) = process.ask("journeys_people", name="thanks")["people"]
    assert (ada["version"], ada["step"], ada["label"]) == (1, "early", "wait 1 day")


def test_people_who_move_to_a_version_without_their_step_leave_as_it_was_said(process: Process) -> None:
    known(process, "ada")
    tagged(process, "ada")
    assert now(process, SECOND % "move") == {"members": 1, "people": 1, "keeps": False, "leaving": 1}
    process.ask("definitions_declare", section="journeys", name="thanks", text=SECOND % "move")
    process.now += 2 * 86_400_000_000
    process.work()
    assert process.ask("journeys_show", name="thanks")["people"] == 0
    (run,) = process.ask("journeys_of", id="user_id:ada")["executions"]
    assert run["reason"] == "step_removed"
