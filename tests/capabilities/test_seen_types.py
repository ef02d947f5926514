"""The types of a log: as the search index has them, and without one from the log itself; never of other workspaces."""

from __future__ import annotations

import pytest

from tests.capabilities.asked import Asked
from tests.capabilities.search_stage import find, searching
from threadline.capabilities.foundation.events import seen

SCHEMA = "event_schemas:\n  fitted: {properties: {size: {type: string}}}\n"


def told(asked: Asked) -> Asked:
    asked.tell("waved", user_id="ada")
    asked.tell("purchase_completed", user_id="ada")
    asked.tell("left", user_id="ada", workspace="other")
    return asked


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_workspace_has_the_types_of_its_own_events(*, is_indexed: bool) -> None:
    asked = told(searching() if is_indexed else Asked())
    if is_indexed:
        find(asked)
    assert seen.seen_types(asked.engine, "default") == ({"waved", "purchase_completed"}, True)
    assert seen.seen_types(asked.engine, "other") == ({"left"}, True)


def test_before_the_first_search_the_log_is_read_and_no_index_is_made() -> None:
    asked = told(searching())
    assert seen.seen_types(asked.engine, "other").names == {"left"}
    assert not asked.engine.search.is_begun  # type: ignore[attr-defined]


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_type_is_gone_with_its_last_event(*, is_indexed: bool) -> None:
    asked = searching() if is_indexed else Asked()
    gone = asked.tell("waved", user_id="ada")["id"]
    asked.tell("left", user_id="ada")
    if is_indexed:
        find(asked)
    asked.engine.store.erase([gone])
    if is_indexed:
        asked.engine.search.rebuild()
        find(asked)
    assert seen.seen_types(asked.engine, "default").names == {"left"}


def test_of_a_long_log_without_an_index_what_is_missing_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "SEEN_TYPES_EVENTS_MAX", 2)
    assert not seen.seen_types(told(Asked()).engine, "default").is_complete


def test_the_catalogue_says_from_where_it_knows_a_type() -> None:
    asked = told(Asked(definitions=SCHEMA))
    types = {type["name"]: type for type in asked.ask("catalogue")["types"]}
    assert [types[name]["origin"] for name in ("points_earned", "fitted", "waved")] == ["threadline", "schema", "seen"]
    assert [*types["fitted"]["properties"]["properties"]] == ["size"]
    assert "left" not in types
    assert {"fitted", "waved"} <= {*asked.ask("catalogue")["event_types"]}
    assert "points_earned" not in asked.ask("catalogue")["event_types"]
