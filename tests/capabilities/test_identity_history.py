"""Who somebody was: reads of the past know the joins and splits of then, and none that came later."""

from __future__ import annotations

from contextlib import suppress
from itertools import permutations
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given

from tests.capabilities.asked import STARTS_AT, Asked
from threadline.kernel.errors import Conflict, InvalidValue, MergeRefused, NotFound
from threadline.kernel.event import Event
from threadline.kernel.time import DAY, HOUR, format_time
from threadline.testing import scenarios

REFS = ("user_id:user-0", "user_id:user-1", "anonymous_id:anonymous-0-0", "anonymous_id:anonymous-1-1")
READS = (
    "person",
    "features_of",
    "memory_of",
    "points_of",
    "segments_of",
    "streaks_of",
    "interests_of",
    "journeys_of",
    "mail_history",
)


READS_OF_PARTS = {"mail_sent": "mail_history", "memory_fact": "memory_of", "segments_why": "segments_of"}
"""Reads that show a part of another's answer."""


def test_every_read_as_of_an_instant_is_held_to_what_was_served() -> None:
    found = {each.name for each in Asked().engine.catalogue.operations if "as_of" in each.params.__struct_fields__}
    assert found == {*READS, *READS_OF_PARTS}


def seen(asked: Asked, operation: str, ref: str, **params: Any) -> Any:
    """What is answered about somebody, without what says when they were looked at; None of nobody."""
    try:
        answer = asked.ask(operation, id=ref, **params)
    except NotFound:
        return None
    return {name: value for name, value in answer.items() if name not in ("position", "as_of", "timers", "known")}


def spent(asked: Asked, ref: str, **params: Any) -> Any:
    return asked.ask("features_of", id=ref, names="monetary_total", **params)["features"]["monetary_total"]["value"]


def bought(asked: Asked, total: int, **who: str) -> None:
    asked.now += DAY
    asked.tell("purchase_completed", properties={"total": total, "currency": "EUR"}, **who)


@pytest.fixture
def asked() -> Asked:
    """Somebody buys without a name, then signs in as one who has bought before."""
    made = Asked()
    bought(made, 10, user_id="ada")
    bought(made, 7, anonymous_id="phone")
    return made


def test_before_they_were_joined_they_are_two(asked: Asked) -> None:
    before = asked.now + 1
    ada, phone = (asked.ask("person", id=ref)["id"] for ref in ("user_id:ada", "anonymous_id:phone"))
    bought(asked, 100, user_id="ada", anonymous_id="phone")
    joined = asked.now + 1
    assert spent(asked, "anonymous_id:phone") == spent(asked, "user_id:ada") == 117
    then = {"as_of": format_time(before)}
    assert (spent(asked, "user_id:ada", **then), spent(asked, "anonymous_id:phone", **then)) == (10, 7)
    # By the id of one who was merged away as well.
    assert (spent(asked, ada, **then), spent(asked, phone, **then)) == (10, 7)
    assert asked.ask("features_of", id="anonymous_id:phone", **then)["person"] == phone
    assert spent(asked, "anonymous_id:phone", as_of=format_time(joined)) == 117
    # All that has become known since is known of the one person of today.
    assert spent(asked, "anonymous_id:phone", known="now", **then) == 17


def test_nothing_was_known_under_an_identifier_before_it_was_told() -> None:
    asked = Asked()
    bought(asked, 7, anonymous_id="phone")
    before = asked.now + 1
    bought(asked, 100, user_id="ada", anonymous_id="phone")
    joined = asked.now + 1
    bought(asked, 5, user_id="ada", email="ada@example.com")
    asked.now += DAY
    labels = [
        {"person": ref, "at": format_time(at)}
        for at in (joined, before)
        for ref in ("anonymous_id:phone", "user_id:ada", "email:ada@example.com")
    ]
    spendings = [spent(asked, each["person"], as_of=each["at"]) for each in labels]
    rows = asked.ask("features_training_set", labels=labels, names=["monetary_total"])["rows"]
    assert spendings == [row["values"]["monetary_total"] for row in rows] == [107, 107, 0, 7, 0, 0]
    assert spent(asked, "user_id:ada", as_of=format_time(before), known="now") == 7
    assert asked.ask("memory_of", id="user_id:ada", as_of=format_time(before))["facts"] == []
    assert asked.ask("person", id="user_id:ada", as_of=format_time(before))["timeline"]["events"] == []


def test_streaks_and_interests_are_of_who_was_meant_then() -> None:
    asked = Asked()
    for who in ({"user_id": "ada"}, {"anonymous_id": "phone"}):
        for _ in range(2):
            asked.now += DAY
            asked.tell("conversation_started", **who)
            asked.tell("product_viewed", properties={"category": "tents"}, **who)
    before = asked.now + 1
    asked.now += HOUR
    asked.tell("conversation_started", user_id="ada", anonymous_id="phone")
    asked.now += HOUR

    def told(ref: str, **params: Any) -> tuple[int, int]:
        streak = asked.ask("streaks_of", id=ref, **params)["streaks"]["daily"]
        topics = asked.ask("interests_of", id=ref, **params)["topics"]
        return streak["longest"], sum(value["actions"] for topic in topics for value in topic["values"])

    then = {"as_of": format_time(before)}
    assert [told(ref) for ref in ("user_id:ada", "anonymous_id:phone")] == [(4, 4), (4, 4)]
    assert [told(ref, **then) for ref in ("user_id:ada", "anonymous_id:phone")] == [(2, 2), (2, 2)]
    assert told("user_id:ada", known="now", **then) == (4, 4)
    asked.tell("conversation_started", user_id="ada", at=before - 3 * DAY)
    assert told("user_id:ada", **then) == (2, 2), "what was told late was not known then"


def test_a_training_set_has_everybody_as_they_were(asked: Asked) -> None:
    before = asked.now + 1
    bought(asked, 100, user_id="ada", anonymous_id="phone")
    at = [format_time(instant) for instant in (before, asked.now + 1)]
    asked.now += 2
    labels = [{"person": ref, "at": each} for ref in ("user_id:ada", "anonymous_id:phone") for each in at]
    rows = asked.ask("features_training_set", labels=labels, names=["monetary_total"])["rows"]
    assert [row["values"]["monetary_total"] for row in rows] == [10, 117, 7, 117]
    rows = asked.ask("features_training_set", labels=labels, names=["monetary_total"], known="now")["rows"]
    assert [row["values"]["monetary_total"] for row in rows] == [17, 117, 17, 117]


def test_while_they_were_joined_they_are_one_though_they_are_two_again(asked: Asked) -> None:
    asked.now += DAY
    event = asked.ask("people_merge", id="user_id:ada", other="anonymous_id:phone", request="r1")["event"]
    joined = asked.now + 1
    asked.now += DAY
    asked.ask("people_unmerge", id=event, request="r2")
    apart = asked.now + 1
    asked.now += DAY
    for ref, alone in (("user_id:ada", 10), ("anonymous_id:phone", 7)):
        assert spent(asked, ref, as_of=format_time(joined)) == 17
        assert spent(asked, ref, as_of=format_time(apart)) == spent(asked, ref) == alone


def test_an_id_that_nobody_has_any_more_leads_to_who_had_it() -> None:
    asked = Asked()
    bought(asked, 10, user_id="ada")
    bought(asked, 7, anonymous_id="phone")
    bought(asked, 1, user_id="bob", anonymous_id="phone")
    founder, before = asked.ask("person", id="user_id:bob")["id"], asked.now + 1
    asked.now += DAY
    asked.ask("people_merge", id="user_id:ada", other="user_id:bob", request="r1", force=True)
    asked.now += DAY
    # Those who are split off are named after the strongest of their identifiers, and were founded by another.
    asked.ask("people_split", id="user_id:ada", identifiers=["user_id:bob", "anonymous_id:phone"], request="r2")
    assert asked.ask("person", id="user_id:bob")["id"] != founder
    asked.now += DAY
    for ref in (founder, "user_id:bob", "anonymous_id:phone"):
        answer = asked.ask("features_of", id=ref, as_of=format_time(before))
        assert (answer["person"], answer["features"]["monetary_total"]["value"]) == (founder, 8)


def test_an_identifier_that_was_refused_was_not_linked_before_it_was() -> None:
    asked = Asked()
    devices = [f"device {number}" for number in range(6)]
    for device in devices:
        asked.tell("page", user_id="ada", anonymous_id=device)
    answers = []
    for decide in (
        lambda: asked.ask("quarantine_review", id=asked.ask("quarantine_list")["joins"][0]["id"], join=True),
        lambda: asked.tell("page", user_id="bob", anonymous_id="another"),
    ):
        answers.append((asked.now + 1, linked(asked)))
        asked.now += DAY
        decide()
    answers.append((asked.now + 1, linked(asked)))
    asked.now += DAY
    assert [len(answer) for _, answer in answers] == [6, 7, 7]
    assert [linked(asked, as_of=format_time(at)) for at, _ in answers] == [answer for _, answer in answers]


def test_an_identifier_that_was_told_of_somebody_else_was_not_linked_by_that() -> None:
    asked = Asked()
    for device in range(6):
        asked.tell("page", user_id="ada", anonymous_id=f"device {device}")
    asked.tell("page", user_id="bob")
    at = asked.now + 1
    before = asked.ask("person", id="user_id:bob")["identifiers"]
    asked.now += DAY
    # The sixth was refused as one of ada's, and is bob's from now on.
    asked.tell("page", user_id="bob", anonymous_id="device 5")
    asked.tell("page", user_id="bob", anonymous_id="device 4")
    assert len(asked.ask("person", id="user_id:bob")["identifiers"]) == 3
    asked.ask("people_merge", id="user_id:ada", other="user_id:bob", force=True)
    asked.ask(
        "people_unmerge",
        id=asked.ask("events_of", id="user_id:ada", type="threadline.person_merged")["events"][0]["id"],
    )
    assert asked.ask("person", id="user_id:bob", as_of=format_time(at))["identifiers"] == before


def linked(asked: Asked, **params: Any) -> list[str]:
    found = asked.ask("person", id="user_id:ada", **params)["identifiers"]
    return [f"{each['kind']}:{each['value']}" for each in found if each["linked"]]


def test_imported_history_was_known_with_whom_it_joined() -> None:
    asked = Asked()
    asked.now += 100 * DAY
    for day, who in enumerate(
        ({"user_id": "ada"}, {"anonymous_id": "phone"}, {"user_id": "ada", "anonymous_id": "phone"})
    ):
        asked.tell(
            "purchase_completed",
            at=STARTS_AT + day * DAY,
            historical=True,
            properties={"total": 10**day, "currency": "EUR"},
            **who,
        )
    then = [spent(asked, "anonymous_id:phone", as_of=format_time(STARTS_AT + day * DAY + 1)) for day in (1, 2, 50)]
    assert then == [10, 111, 111]


# Two events say on their own day who is one, and a third one says it once more; it may come first.
LINKED = (
    (0, {"user_id": "ada"}),
    (1, {"anonymous_id": "phone"}),
    (2, {"email": "ada@example.com"}),
    (3, {"user_id": "ada", "anonymous_id": "phone"}),
    (4, {"anonymous_id": "phone", "email": "ada@example.com"}),
    (5, {"user_id": "ada", "email": "ada@example.com"}),
)


@pytest.mark.parametrize("order", list(permutations(range(6)))[::41])
def test_history_joins_people_when_it_says_so_in_whatever_order_it_is_imported(order: tuple[int, ...]) -> None:
    asked = Asked()
    asked.now += 100 * DAY
    for place in order:
        asked.now += DAY
        day, who = LINKED[place]
        asked.tell(
            "purchase_completed",
            at=STARTS_AT + day * DAY,
            historical=True,
            properties={"total": 10**day, "currency": "EUR"},
            **who,
        )
    asked.now += DAY
    then = {
        ref: [spent(asked, ref, as_of=format_time(STARTS_AT + day * DAY + 1)) for day in range(6)]
        for ref in ("user_id:ada", "anonymous_id:phone", "email:ada@example.com")
    }
    assert then == {
        "user_id:ada": [1, 1, 1, 1011, 11111, 111111],
        "anonymous_id:phone": [0, 10, 10, 1011, 11111, 111111],
        "email:ada@example.com": [0, 0, 100, 100, 11111, 111111],
    }


def test_what_history_told_of_later_was_not_linked_before() -> None:
    asked = Asked()
    asked.tell("page", user_id="ada")
    asked.tell("page", anonymous_id="phone")
    asked.now += 100 * DAY
    asked.tell("page", at=STARTS_AT + 9 * DAY, historical=True, anonymous_id="phone", email="ada@example.com")
    asked.tell("page", at=STARTS_AT + 3 * DAY, historical=True, anonymous_id="phone", user_id="ada")
    asked.now += DAY
    then = {day: linked(asked, as_of=format_time(STARTS_AT + day * DAY)) for day in (1, 5, 10)}
    assert then[1] == ["user_id:ada"]
    assert then[5] == ["user_id:ada", "anonymous_id:phone"]
    assert then[10] == ["user_id:ada", "email:ada@example.com", "anonymous_id:phone"]


def test_history_does_not_join_those_who_were_refused_to_be_one() -> None:
    asked = Asked()
    asked.tell("page", user_id="ada", anonymous_id="phone")
    asked.tell("page", user_id="bob")
    asked.now += DAY
    # Two users are not one, whoever has named them together.
    asked.tell("page", at=STARTS_AT - DAY, historical=True, user_id="bob", anonymous_id="phone")
    asked.now += DAY
    then = {"as_of": format_time(STARTS_AT - DAY + 1)}
    assert asked.ask("person", id="user_id:bob", **then)["activity"]["events"] == 1
    assert asked.ask("person", id="anonymous_id:phone", **then)["activity"]["events"] == 0


def test_history_that_lies_ahead_was_known_when_it_was_told() -> None:
    asked = Asked()
    asked.tell("page", user_id="ada")
    asked.tell("page", anonymous_id="phone")
    asked.tell("page", at=asked.now + DAY // 2, historical=True, user_id="ada", anonymous_id="phone")
    at, joined = asked.now + 1, asked.ask("person", id="anonymous_id:phone")
    asked.now += DAY
    asked.tell("page", user_id="ada")
    then = asked.ask("person", id="anonymous_id:phone", as_of=format_time(at))
    assert (then["id"], then["timeline"]) == (joined["id"], joined["timeline"])


@given(scenarios.histories(people=2, count_max=24), scenarios.randoms)
def test_what_was_served_is_what_is_told_of_it_later(history: list[Any], random: Random) -> None:
    """Whoever was asked about, whatever joined and split them since."""
    asked = Asked()
    served: list[tuple[int, str, str, Any]] = []
    merges: list[str] = []
    for number, call in enumerate(scenarios.batched(random, history, size_max=4)):
        asked.now = max(asked.now + DAY, scenarios.NOW + number * DAY)
        asked.engine.recorder.record([ahead(random, asked.now, event) for event in call])
        operate(asked, random, merges, number)
        asked.now += DAY // 2
        for operation in READS:
            ref = random.choice(REFS)
            answer = seen(asked, operation, ref)
            served.append((asked.now, operation, ref, answer))
    asked.now += 100 * DAY
    for at, operation, ref, answer in served:
        told = seen(asked, operation, ref, as_of=format_time(at))
        if answer is not None:
            assert told == answer
        elif told is not None and operation == "features_of":
            # Whoever could not be found then has come since, and nothing was known of them.
            assert {each["status"] for each in told["features"].values()} == {"NOT_FOUND"}
        elif told is not None and operation == "person":
            assert (told["activity"]["events"], told["identifiers"], told["timeline"]["events"]) == (0, [], [])


def ahead(random: Random, now: int, event: Event) -> Event:
    """An event, or one in five of a clock that runs ahead."""
    if random.randrange(5):
        return event
    return msgspec.structs.replace(event, occurred_at=now + random.randrange(1, DAY))


def operate(asked: Asked, random: Random, merges: list[str], number: int) -> None:
    """What operators do, where it can be done."""
    one, other = random.sample(REFS, 2)
    choice = random.randrange(4)
    with suppress(NotFound, Conflict, InvalidValue, MergeRefused):
        if choice == 0:
            merges.append(asked.ask("people_merge", id=one, other=other, request=f"m{number}")["event"])
        elif choice == 1 and merges:
            asked.ask("people_unmerge", id=random.choice(merges), request=f"u{number}")
        elif choice == 2:
            asked.ask("people_split", id=one, identifiers=[one], request=f"s{number}")
