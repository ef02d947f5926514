"""Names that nothing has to declare: one that nobody has used is a warning where it is written, with the near one."""

from __future__ import annotations

import pytest

from tests.capabilities.asked import Asked
from threadline.capabilities.decide.drafts.warned import warnings
from threadline.capabilities.foundation.definitions import Definitions, Problem
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.folding.catalogue import Catalogue

RULE = "rules: {r: {conditions: {field: event.type, equals: x}, actions: [%s]}}"
IN_RULE = "rules: {r: {conditions: %s, actions: [{log_event: {message: x}}]}}"
SEGMENT = "segments: {s: {when: %s}}"
FEATURE = "features: {f: {aggregate: %s}}"
CASES = {
    "a condition: trait": SEGMENT % "{field: traits.@, equals: pro}",
    "a time: trait": SEGMENT % "{field: days_since.traits.@, lte: 3}",
    "inside a group: trait": SEGMENT % "{any: [{not: {field: [traits, '@'], exists: true}}]}",
    "the whole path: trait": SEGMENT % "{field: profile.traits.@, equals: pro}",
    "a condition: tag": SEGMENT % "{field: tags, contains: '@'}",
    "one of several: tag": SEGMENT % "{field: tags, in: [silver-member, '@']}",
    "a condition: topic of interest": SEGMENT % "{field: interests.@.weight, gt: 1}",
    "a condition: property": IN_RULE % "{field: event.properties.@, gt: 1}",
    "in an object: property": IN_RULE % "{field: event.properties.cart.@, gt: 1}",
    "in a list: property": IN_RULE % "{field: event.properties.lines.0.@, gt: 1}",
    "a where: property": FEATURE % "count, events: record_played, where: {'@': 1}",
    "a where as a tree: property": FEATURE
    % "count, events: record_played, where: [{field: event.properties.@, equals: 1}]",
    "the value of a feature: property": FEATURE % "sum, events: record_played, of: '@'",
    "a currency: property": FEATURE % "sum, events: record_played, of: record_speed, currency: '@'",
    "a scope of interest: property": "interests: {events: {record_played: {topic: music, scopes: {genre: '@'}}}}",
    "a topic in events: property": "interests: {events: {record_played: {topic_from: '@'}}}",
    "a leaderboard: trait": "leaderboards: {b: {score: points.earned, per: '@'}}",
    "boards of their own: tag": "leaderboards: {b: {score: points.earned, tags: [silver-member, '@']}}",
    "an action: tag": RULE % "{untag: {tag: '@'}}",
    "a feature: event type": FEATURE % "count, events: '@'",
    "a streak: event type": "streaks: {s: {events: '@'}}",
    "a journey: event type": "journeys: {j: {trigger: {event: '@'}, steps: [{send: hello}]}}",
}
"""Each place that names something, with @ where the name stands."""
GOOD = {
    "trait": "shoe_size", "tag": "gold-member", "property": "record_speed", "event type": "record_played",
    "topic of interest": "classical",
}  # fmt: skip
IN = {"in an object: property": "size", "in a list: property": "size"}


@pytest.fixture(scope="module")
def asked() -> Asked:
    asked = Asked()
    speeds = {"record_speed": 33, "cart": {"size": 1}, "lines": [{"size": 1}, {"colour": "red"}]}
    asked.tell("record_played", user_id="ada", properties=speeds)
    asked.tell("identify", user_id="ada", properties={"shoe_size": 38})
    for tag in ("gold-member", "silver-member"):
        asked.tell("tag_added", user_id="ada", properties={"tag": tag})
    asked.tell("app_action", user_id="ada", properties={"topic": "classical"})
    return asked


def warned(asked: Asked, text: str, *, stored: bool = True) -> list[Problem]:
    definitions = Definitions([("threadline.yaml", text)])
    made = Catalogue.declared(definitions, rules(definitions))
    noted = warnings(made, definitions, asked.engine.log.names_sent if stored else None)
    return [problem for problem in noted if "is in no rule set" not in problem.message]


def good_name(case: str) -> str:
    return IN.get(case) or GOOD[case.split(": ")[1]]


@pytest.mark.parametrize("case", CASES)
def test_a_name_that_was_used_is_taken_and_one_like_it_is_warned_of_where_it_stands(asked: Asked, case: str) -> None:
    good, kind = good_name(case), case.split(": ")[1]
    assert warned(asked, CASES[case].replace("@", good)) == []
    text = CASES[case].replace("@", f"{good}q")
    (problem,) = warned(asked, text)
    never = Catalogue.declared(Definitions(), rules(Definitions())).names.kinds[kind].never
    assert f"{never} '" in problem.message
    assert f"{good}q'; did you mean '" in problem.message
    assert problem.message.endswith(f"{good}'?")
    begin = text.split("\n")[problem.line - 1][problem.column - 1 :]
    assert begin.strip("'").startswith(f"{good}q") or f"{good}q" in begin.partition(":")[2].partition("}")[0]


def test_every_free_kind_of_names_is_looked_for() -> None:
    kinds = Catalogue.declared(Definitions(), rules(Definitions())).names.kinds.values()
    assert {kind.name for kind in kinds if kind.is_free} == {case.split(": ")[1] for case in CASES} == GOOD.keys()


@pytest.mark.parametrize("case", CASES)
def test_without_a_store_any_name_may_be_right(asked: Asked, case: str) -> None:
    assert warned(asked, CASES[case].replace("@", "entirely_other"), stored=False) == []


def test_without_a_store_a_name_that_is_nearly_another_is_warned_of() -> None:
    text = "\n".join(
        (SEGMENT % "{field: traits.shoe_size, gt: 1}", FEATURE % "sum, events: purchase_completed, of: totl")
    )
    messages = [problem.message for problem in warned(Asked(), text, stored=False)]
    assert messages == ["feature 'f': nothing else knows the property 'totl'; did you mean 'total'?"]


def test_what_a_rule_makes_is_known_before_anybody_has_it(asked: Asked) -> None:
    text = (RULE % "{tag: {tag: new-member}}, {emit_event: {type: greeted, properties: {tone: warm}}}") + "\n"
    text += "segments: {s: {when: {field: tags, contains: new-member}}}\n"
    text += "features: {f: {aggregate: distinct, events: greeted, of: tone}}\n"
    assert warned(asked, text) == []


def test_of_a_log_without_events_nothing_follows() -> None:
    assert warned(Asked(), CASES["a condition: trait"].replace("@", "plan")) == []
