"""Laws of what-if: what was decided is decided again, the same changes nothing, and nor does breaking off."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.capabilities.test_rules_laws import RULES, SETS
from tests.capabilities.whatif_stage import Tried, counted, yaml
from threadline.capabilities.decide.whatif.simulation import Asked as Question
from threadline.capabilities.decide.whatif.simulation import Checkpoint, prepare
from threadline.engine.context import Context
from threadline.engine.simulation import run as whatif
from threadline.kernel.event import Event, Identifier
from threadline.kernel.store import FeedEntry, Item, Key, Store, scan_pages
from threadline.testing import scenarios

SEGMENTS = {
    "vips": {"when": {"field": "tags", "contains": "vip"}},
    "strangers": {"when": {"not": {"field": "tags", "contains": "vip"}}},
    "rich": {"when": {"field": "points.balance", "greater_than": 5}},
    "buyers": {"when": {"field": "features.frequency_purchases_90d", "greater_than": 1}},
}
BELONGS = {"any": [{"field": f"segments.{name}", "exists": True} for name in ("vips", "strangers")]}
DEFINITIONS: dict[str, Any] = {
    "rules": {**RULES, "belongs": {"conditions": BELONGS, "actions": []}},
    "rule_sets": {**SETS, "segments": {"events": ["page", "purchase_completed"], "rules": ["belongs"]}},
    "segments": SEGMENTS,
}
TEXT = yaml(DEFINITIONS)
few = settings(max_examples=15)
"""Each example reads a file of definitions or two, which takes longer than all the rest of it."""


def alone(random: Random, count: int) -> list[Event]:
    """Events of a few people who have one identifier each: whoever is joined to somebody later is one person here."""
    return [
        msgspec.structs.replace(event, identifiers=(Identifier("user_id", f"user-{number % 3}"),))
        for number, event in enumerate(scenarios.history(random, people=3, count=count))
    ]


def lived(events: list[Event]) -> Tried:
    tried = Tried(TEXT)
    # The scenarios end at that instant, and what comes live comes after it has happened.
    tried.now = scenarios.NOW
    tried.live(events)
    return tried


@pytest.mark.slow
@few
@given(random=scenarios.randoms, count=st.integers(5, 40))
def test_what_was_decided_live_is_decided_again(random: Random, count: int) -> None:
    tried = lived(alone(random, count))
    answer = tried.what_if(definitions=TEXT, baseline="recorded")
    assert (answer["changed"], answer["failed"], answer["people_changed"]) == (0, 0, 0), answer["samples"]
    recorded = sum(entry.entry.type == "decision_made" for entry in tried.engine.log.feed(limit=1_000))
    assert sum(sum(rule["new"].values()) for rule in answer["rules"]) <= recorded


@pytest.mark.slow
@few
@given(random=scenarios.randoms, count=st.integers(5, 40))
def test_the_identical_candidate_changes_nothing(random: Random, count: int) -> None:
    tried = lived(alone(random, count))
    for question in (
        {"definitions": TEXT},
        {"rule": "big", "version": 1},
        {"definitions": yaml({"segments": SEGMENTS})},
    ):
        answer = tried.what_if(**question)
        assert (answer["changed"], answer["failed"], answer["people_changed"]) == (0, 0, 0), answer["samples"]
        assert (answer["segments"], answer["points"], answer["samples"]) == ([], None, [])
        assert answer["same"] == answer["decisions"]


CANDIDATE = {
    **DEFINITIONS["rules"],
    "big": {**RULES["big"], "conditions": {"field": "event.properties.total", "greater_than": 0.15}},
}


@pytest.mark.slow
@few
@given(random=scenarios.randoms, count=st.integers(5, 40))
def test_one_life_for_both_sides_is_what_two_lives_are(random: Random, count: int) -> None:
    tried = lived(alone(random, count))
    question = Question(definitions=yaml({"rules": CANDIDATE}))
    context = Context(tried.engine, "default", tried.now + 1, "test")
    shared = prepare(context, question)
    for _ in shared.pages(None):
        pass
    apart = prepare(context, question)
    for _ in pages_apart(tried, apart):
        pass
    assert msgspec.to_builtins(shared.tally.counts) == msgspec.to_builtins(apart.tally.counts)


def pages_apart(tried: Tried, trying: Any) -> Any:
    """The same what-if with a life for each side from the first event on."""
    trial = next(
        cell.cell_contents for cell in trying.pages.__closure__ if isinstance(cell.cell_contents, whatif.Simulation)
    )
    assert trial.shared is not None
    return whatif.run(tried.engine.store, tried.engine.catalogue, "default", replace(trial, shared=None))


@pytest.mark.slow
@few
@given(random=scenarios.randoms, count=st.integers(5, 30), stops=st.lists(st.booleans(), max_size=8))
def test_breaking_off_and_going_on_changes_nothing(random: Random, count: int, stops: list[bool]) -> None:
    tried = lived(alone(random, count))
    context = Context(tried.engine, "default", tried.now + 1, "test")
    question = Question(definitions=yaml({"rules": CANDIDATE}), samples=1)
    whole = prepare(context, question)
    people = sum(done.people for done in whole.pages(None))
    kept = prepare(context, question).checkpoint(None, 0, 0)
    after: Key | None = None
    whatif_page, whatif.PAGE_PEOPLE = whatif.PAGE_PEOPLE, 1
    try:
        done = False
        while not done:
            # Another process goes on, at another time: it has the file of the checkpoint and nothing else.
            kept = msgspec.json.decode(msgspec.json.encode(kept), type=Checkpoint)
            later = Context(tried.engine, "default", tried.now + 1_000, "test")
            trying = prepare(later, question, kept)
            after = Key(*kept.after) if kept.after else None
            for page in trying.pages(after):
                kept = trying.checkpoint(page.after, kept.people + page.people, kept.events + page.events)
                done = page.after is None
                if stops and stops.pop():
                    break
    finally:
        whatif.PAGE_PEOPLE = whatif_page
    assert kept.people == people
    assert msgspec.to_builtins(kept.counts) == msgspec.to_builtins(whole.tally.counts)


def held(store: Store) -> tuple[list[Item], list[FeedEntry]]:
    """All that is in a store, but for who asked."""
    tables = sorted(set(store.tables()) - {"audit_log"})
    return [item for table in tables for item in scan_pages(store, table)], store.feed("", 1_000)


@pytest.mark.slow
@few
@given(random=scenarios.randoms, count=st.integers(5, 25))
def test_nothing_is_written_and_nobody_is_left_out(random: Random, count: int) -> None:
    tried = lived(alone(random, count))
    before = held(tried.engine.store)
    answer = tried.what_if(definitions=yaml({"rules": CANDIDATE}))
    assert held(tried.engine.store) == before
    assert answer["people"] == len(list(tried.engine.reader.all_people("default")))
    assert counted(tried.what_if(definitions=yaml({"rules": CANDIDATE}))) == counted(answer)
