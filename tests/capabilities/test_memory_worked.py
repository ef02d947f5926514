"""The worked tables of docs/worked/memory.md, in orders of arrival that chance makes."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.capabilities.memory_stage import MEMORY
from threadline.capabilities.foundation.definitions.declaring import struct
from threadline.capabilities.profile.memory import TYPES, read_derivations
from threadline.capabilities.profile.memory.definition import AGGREGATES, CERTAINTY, Derivation
from threadline.capabilities.profile.memory.projection import fact_derivations
from threadline.kernel.event import Event, Recorded, event_id
from threadline.kernel.fixed import SCALE
from threadline.kernel.time import parse_time

PAGE = (Path(__file__).parents[2] / "docs/memory.md").read_text(encoding="utf-8")
WORKED = (Path(__file__).parents[2] / "docs/worked/memory.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return f"{PAGE}{WORKED}".split(f"\n## {title}\n")[1].split("\n## ")[0]


def tables(text: str) -> list[list[dict[str, str]]]:
    found = []
    for table in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        head, _, *rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()]
        found.append([dict(zip([name.strip() for name in head], row, strict=True)) for row in rows])
    return found


def told(row: dict[str, str]) -> Recorded:
    at, source = parse_time(row["occurred at"]), row.get("from", "shop")
    key = f"{row['event']} {at}"
    event = Event(
        type=row["event"],
        identifiers=(),
        occurred_at=at,
        key=key,
        source=source,
        properties=json.loads(row["properties"]),
    )
    return Recorded(event, event_id("default", source, key), "thread", 1, at)


def view(events: list[Recorded], now: int, random: Random) -> dict[str, Any]:
    state = MEMORY.empty()
    known = [each for each in events if each.event.occurred_at < now]
    for each in random.sample(known, len(known)):
        state = MEMORY.after(state, each)
    assert MEMORY.depends.edges is not None
    edges = MEMORY.depends.edges(state, now)
    inside = [each for each in known if any(edge.holds(each) for edge in edges)]
    return MEMORY.view(state, now, inside)  # type: ignore[no-any-return]


@pytest.fixture
def random(seed: int) -> Random:
    return Random(seed)


def test_one_customer(random: Random) -> None:
    events, expected = tables(section("One customer"))
    recorded = [told(row) for row in events]
    instants = [name for name in expected[0] if name != "fact"]
    assert len(instants) == 3
    for row in expected:
        for before, instant in pairwise(instants):
            row[instant] = row[before] if row[instant] == "″" else row[instant]
    for _ in range(10):
        for instant in instants:
            shown = view(recorded, parse_time(instant), random)
            values = {f"{type}/{key}": fact["value"] for type in TYPES for key, fact in shown.get(type, {}).items()}
            assert values == {row["fact"]: json.loads(row[instant]) for row in expected if row[instant] != "–"}


def test_who_says_what(random: Random) -> None:
    events, expected = tables(section("Who says what"))
    recorded = [told(row) for row in events]
    for row in expected:
        fact = view(recorded, parse_time(row["at"]), random)["preference"]["colour"]
        conflicts = [[each["value"], each["confidence"]] for each in fact["conflicts"]]
        said = [fact["value"], fact["source"], fact["confidence"], conflicts]
        assert said == [
            json.loads(row["value"]),
            row["source"],
            float(row["confidence"]),
            json.loads(row["conflicts"]),
        ], row["at"]


def test_a_retraction(random: Random) -> None:
    events, expected = tables(section("A retraction"))
    recorded = [told(row) for row in events]
    for row in expected:
        shown = view(recorded, parse_time(row["at"]), random)
        product = shown.get("purchase", {}).get("product:sock")
        purchases = None if product is None else product["value"]["purchases"]
        assert purchases == json.loads(row["purchases of socks"]), row["at"]
        assert sorted(shown.get("fact", {})) == json.loads(row["facts of type fact"]), row["at"]


# --- the page tells all there is ------------------------------------------------------------------


def test_every_derivation_that_ships_is_in_the_page() -> None:
    (rows,) = tables(section("What ships"))
    derivations = read_derivations().derivations
    assert sorted(row["derivation"].strip("`") for row in rows) == [each.name for each in derivations]
    by_name = {each.name: each for each in derivations}
    for row in rows:
        derivation = by_name[row["derivation"].strip("`")]
        named = set(re.findall(r"`(\w+)`", row["events"])) - {"category"}
        assert named == {feed.type for feed in derivation.feeds}
        assert (f"at most {derivation.most}" in row["value"]) == (derivation.most != 100), row["derivation"]
        source = next((source for source in CERTAINTY if f"`{source}`" in row["value"]), "event_derived")
        told_plainly = derivation.name == "remembered"
        assert derivation.source == ("user_declared" if told_plainly else source), row["derivation"]


def test_options_aggregates_and_sources_are_in_the_page() -> None:
    options, aggregates = tables(section("Declare a derivation"))
    assert {name for row in options for name in re.findall(r"`(\w+)`", row["option"])} == set(
        struct(Derivation).schema["properties"]
    )
    assert {name for row in aggregates for name in re.findall(r"`(\w+)`", row["aggregate"])} == set(AGGREGATES)
    (sources,) = tables(section("Sources and confidence"))
    shown = [
        (row["source"].strip("`"), float(row["default confidence"]), float(row["at most, for one voice"]))
        for row in sources
    ]
    assert shown == [(source, usual / SCALE, most / SCALE) for source, (usual, most) in CERTAINTY.items()]


EVENT_TYPES = {
    "purchase_completed",
    "purchase_abandoned",
    "product_viewed",
    "product_asked",
    "interest_detected",
    "sentiment_detected",
    "conversation_started",
    "conversation_ended",
    "campaign_delivered",
    "campaign_engaged",
    "campaign_ignored",
    "subscription_created",
    "subscription_cancelled",
    "form_submitted",
    "discount_requested",
    "discount_accepted",
    "agent_insight",
    "objection_raised",
}
"""The types that the first of the systems that Threadline replaces knew by name."""


def test_every_type_that_is_known_by_name_makes_a_fact() -> None:
    assert EVENT_TYPES - fact_derivations(read_derivations()).keys() == set()
