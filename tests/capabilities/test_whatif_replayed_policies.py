"""Which policies a what-if replays follows from what sections, policies and actions declare."""

from __future__ import annotations

from typing import Any

import pytest

from threadline.capabilities.decide.rules import ActiveRules
from threadline.capabilities.decide.rules.actions import KINDS, Cause, read_action
from threadline.capabilities.decide.whatif.candidate import Candidate
from threadline.capabilities.decide.whatif.simulation import replayed
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.policy import Emit

TEXT = """
points:
  multipliers:
    - {by: features.monetary_total, from: 100, times: 2}
leaderboards:
  spenders: {score: features.monetary_total}
segments:
  rich: {when: {field: points.balance, greater_than: 10}}
"""
CATALOGUE = Catalogue(discover(definitions=Definitions([("test.yaml", TEXT)])), rules())
SIDE = Candidate(CATALOGUE, ActiveRules([], []), (), "test")


def replayed_for(*sections: str, types: tuple[str, ...] = ()) -> set[str]:
    return set(replayed(SIDE, [SIDE.active], frozenset(sections), frozenset(types)))


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("points", {"points"}),
        ("features", {"points"}),  # by a multiplier
        ("streaks", {"points"}),  # by the length of a streak that an award notes
        ("calendar", {"points"}),  # shapes streaks
        ("timezone", {"points"}),
        ("currencies", {"points"}),  # shapes features
        ("campaigns", set()),  # nobody looks at ignored campaigns
        ("interests", set()),
    ],
)
def test_changed_section_replays_the_policies_that_go_by_it_and_are_noticed(section: str, expected: set[str]) -> None:
    assert replayed_for(section) == expected


def test_types_emitted_by_rules_replay_the_policies_that_read_what_these_touch() -> None:
    assert replayed_for(types=("points_earned",)) == {"points"}
    assert replayed_for(types=("rule_logged",)) == {"points"}  # it is activity, which streaks count
    assert replayed_for(types=("points_expired",)) == {"points"}
    assert replayed_for() == set()


def test_sections_shape_what_is_in_the_catalogue() -> None:
    names = {each.name for each in (*CATALOGUE.projections, *CATALOGUE.policies)}
    shaping = {each.name: each.shapes for each in CATALOGUE.sections if each.shapes}
    assert set(shaping) == {"calendar", "campaigns", "currencies", "mail", "timezone"}
    assert set().union(*shaping.values()) <= names


ACTIONS: dict[str, list[dict[str, Any]]] = {
    "store_decision": [{"result": "yes"}],
    "set_value": [{"trait": "plan", "value": 1}, {"fact": "plan", "value": 1}],
    "emit_event": [{"type": "noticed"}],
    "award_points": [{"points": 1}],
    "tag": [{"tag": "vip"}],
    "untag": [{"tag": "vip"}],
    "enter_journey": [{"journey": "welcome"}],
    "exit_journey": [{"journey": "welcome"}],
    "send_notification": [{"message": "hello"}],
    "call_webhook": [{"url": "https://example.com"}],
    "log_event": [{"message": "hello"}],
}


def test_every_kind_of_action_declares_the_type_that_it_emits() -> None:
    assert set(ACTIONS) == set(KINDS)
    for name, samples in ACTIONS.items():
        for params in samples:
            action = read_action({name: params}, (), lambda at, text: pytest.fail(text))
            assert action is not None
            wish = action.kind.wish and action.kind.wish(dict(params), Cause("r", 1, "k", 0))
            assert action.emits == (wish.type if isinstance(wish, Emit) else None), name
            assert action.kind.sends == (wish is not None and not isinstance(wish, Emit)), name
