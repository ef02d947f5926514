"""Who says so: echoes add nothing, one voice is one however often it speaks, and the strongest source wins."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from tests.capabilities.memory_stage import INSIGHT, T0, fold, memory_of, record, view
from threadline.capabilities.profile.memory import SOURCES
from threadline.kernel.time import DAY


def test_ten_thousand_echoes_of_what_was_recalled_add_nothing() -> None:
    events = [record(T0, "agent_insight", INSIGHT, "ann")]
    before = fold(events)
    for number in range(10_000):
        recalled: Any = (["fact/likes", "fact/other"], "fact/likes", True)[number % 3]
        events.append(record(T0 + number + 1, "agent_insight", {**INSIGHT, "recalled": recalled}, f"agent {number}"))
    assert fold(events) == before


def test_ten_thousand_repetitions_by_one_source_make_nothing_surer() -> None:
    events = [record(T0, "agent_insight", INSIGHT, "ann")]
    events += [record(T0 + number + 1, "agent_insight", INSIGHT, "ann") for number in range(10_000)]
    once, often = (view(listed, T0 + DAY)["fact"]["likes"] for listed in (events[:1], events))
    for name in ("value", "source", "confidence", "conflicts", "voices", "created_at", "expires_at"):
        assert often[name] == once[name], name
    # Two ids more, and a count of two bytes more: no further repetition adds a byte.
    size = len(msgspec.msgpack.encode(fold(events)))
    assert size == len(msgspec.msgpack.encode(fold(events[:9_000])))
    assert size - len(msgspec.msgpack.encode(fold(events[:1]))) == 2 * (9 + 34) + 2


def test_independent_sources_make_surer_and_weaker_ones_do_not() -> None:
    events = [record(T0 + n, "agent_insight", INSIGHT, source) for n, source in enumerate(("ann", "bob", "cid"))]
    sure = [view(events[:n], T0 + DAY)["fact"]["likes"]["confidence"] for n in (1, 2, 3)]
    assert sure == [0.7, 0.91, 0.973]
    declared = record(T0 + 3, "fact_remembered", {"type": "fact", "key": "likes", "value": "the sea"})
    computed = record(T0 + 3, "fact_computed", {"type": "fact", "key": "likes", "value": "the sea"})
    for stronger, confidence in ((declared, 1.0), (computed, 0.7)):
        fact = view([*events, stronger], T0 + DAY)["fact"]["likes"]
        assert (fact["confidence"], fact["conflicts"]) == (confidence, [])


def test_of_one_voice_the_newest_word_counts_once() -> None:
    """Two derivations may read the same agent's events; that does not make two agents of it."""
    noted = (
        'memory: {note: {events: noted, fact: "{type}/{key}", says: value, source: agent_inferred, confidence: sure}}'
    )
    memory = memory_of(noted)
    for sure in (0.4, 0.75):
        state = memory.empty()
        for each in (
            record(T0, "agent_insight", INSIGHT, "ann"),
            record(T0 + 1, "noted", {**INSIGHT, "sure": sure}, "ann"),
        ):
            state = memory.after(state, each)
        assert memory.view(state, T0 + DAY, [])["fact"]["likes"]["confidence"] == sure


def test_a_person_who_says_something_else_has_one_word_however_it_was_told() -> None:
    answer = record(T0, "form_submitted", {"form": "f", "answers": {"Colour": "red"}})
    said = {"type": "form", "key": "f:colour"}
    later = record(T0 + 1, "fact_remembered", {**said, "value": "blue"})
    weaker = record(T0 + 2, "agent_insight", {**said, "value": "red"}, "ann")
    for events in itertools.permutations((answer, later, weaker)):
        fact = view(list(events), T0 + DAY)["form"]["f:colour"]
        assert (fact["value"], [each["voices"] for each in fact["conflicts"]]) == ("blue", [["ann"]])
    # A new answer is a newer word.
    again = record(T0 + 3, "form_submitted", {"form": "f", "answers": {"Colour": "green"}})
    fact = view([answer, later, again], T0 + DAY)["form"]["f:colour"]
    assert (fact["value"], fact["conflicts"], fact["events"]) == ("green", [], 3)


TELLS = {
    "user_declared": "fact_remembered",
    "event_derived": "purchase_completed",
    "system_computed": "fact_computed",
    "agent_inferred": "agent_insight",
}


@pytest.mark.parametrize("order", list(itertools.permutations(SOURCES)))
def test_the_strongest_source_wins_in_any_order(order: tuple[str, ...]) -> None:
    events = []
    for number, source in enumerate(order):
        told = {"type": "preference", "key": "payment_method", "value": source, "payment_method": source}
        events.append(record(T0 + number, TELLS[source], told))
    fact = view(events, T0 + DAY)["preference"]["payment_method"]
    assert fact["value"] == "user_declared"
    assert [each["value"] for each in fact["conflicts"]] == list(SOURCES[1:])
