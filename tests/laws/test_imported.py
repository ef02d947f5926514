"""Law: a read of the past, by what was known then, shows of imported history what a live run had shown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.capabilities.asked import STARTS_AT, Asked
from tests.capabilities.segments_stage import run_until
from threadline.kernel.time import DAY, HOUR, format_time

LATER = 60 * DAY
"""When the history is imported, from when it began."""
RULES = """
rules:
  praised: {conditions: {field: event.type, equals: campaign_ignored}, actions: [{tag: {tag: ignorant}}]}
rule_sets:
  live: {events: [campaign_ignored], rules: [praised]}
"""

Step = tuple[str, str, int]
"""Type, campaign, hours since the step before."""
steps = st.lists(
    st.tuples(
        st.sampled_from(["campaign_delivered", "campaign_delivered", "campaign_engaged", "tool_used"]),
        st.sampled_from(["a", "b"]),
        st.sampled_from([1, 30, 100, 7 * 24, 9 * 24]),
    ),
    max_size=8,
)


def tell(asked: Asked, step: Step, at: int, **fields: Any) -> None:
    asked.tell(step[0], at=at, user_id="ada", properties={"campaign_id": step[1]}, **fields)


def shown(asked: Asked, at: int) -> dict[str, Any]:
    features = asked.ask("features_of", id="user_id:ada", as_of=format_time(at))["features"]
    values = {name: feature["value"] for name, feature in features.items()}
    (row,) = asked.ask("features_training_set", labels=[{"person": "user_id:ada", "at": format_time(at)}])["rows"]
    assert row["values"] == values
    return values | {"points": asked.ask("points_of", id="user_id:ada", as_of=format_time(at))["balance"]}


@given(steps, st.lists(st.integers(0, 59), min_size=1, max_size=3))
@example([("campaign_delivered", "a", 1)], [8])
@example([("campaign_delivered", "a", 1), ("campaign_engaged", "a", 9 * 24)], [8, 12])
def test_a_read_of_imported_history_equals_what_a_live_run_showed(script: list[Step], days: list[int]) -> None:
    live, imported = Asked(), Asked()
    imported.now = STARTS_AT + LATER
    at = STARTS_AT
    for asked in (live, imported):
        tell(asked, ("page", "", 0), at, historical=asked is imported)
    for step in script:
        at += step[2] * HOUR + 7
        if at < STARTS_AT + LATER:
            run_until(live, at)
            tell(live, step, at)
            tell(imported, step, at, historical=True)
    run_until(live, STARTS_AT + LATER)
    for asked in (live, imported):
        run_until(asked, STARTS_AT + LATER + 2 * DAY)
    for day in days:
        # Half an hour beside every instant at which something happens: a live run knows of it a moment later.
        then = STARTS_AT + day * DAY + HOUR // 2
        assert shown(imported, then) == shown(live, then)


@pytest.mark.parametrize("historical", [False, True])
def test_rules_run_on_what_a_timer_makes_of_live_events_and_not_of_history(historical: bool) -> None:
    asked = Asked(definitions=RULES)
    tell(asked, ("campaign_delivered", "a", 0), STARTS_AT - 30 * DAY * historical, historical=historical)
    run_until(asked, STARTS_AT + 8 * DAY)
    assert asked.ask("features_of", id="user_id:ada")["features"]["campaign_ignored"]["value"] == 1
    assert ("ignorant" in asked.ask("person", id="user_id:ada")["tags"]) is not historical


def test_a_deadline_after_the_import_is_known_when_the_timer_ran() -> None:
    asked = Asked(definitions=RULES)
    tell(asked, ("campaign_delivered", "a", 0), STARTS_AT - 13 * DAY // 2, historical=True)
    run_until(asked, STARTS_AT + 3 * DAY)
    for at, ignored in ((STARTS_AT + 18 * HOUR, 0), (asked.now, 1)):
        features = asked.ask("features_of", id="user_id:ada", as_of=format_time(at))["features"]
        assert features["campaign_ignored"]["value"] == ignored
    assert "ignorant" in asked.ask("person", id="user_id:ada")["tags"]
