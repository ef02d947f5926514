"""Names that stand for something declared elsewhere: one that leads nowhere is a mistake where it is written."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.definitions.problem import problem_of
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.errors import InvalidDefinition

DECLARED = """
mail:
  senders: {shop: {from: shop@example.com}}
  templates: {hello: {subject: Hello, text: Hello}, onboarding/first-day.v2: {subject: Hello, text: Hello}}
consent: {topics: {news: {}}}
segments: {vip-buyers: {when: {field: features.monetary_total, gt: 5}}}
journeys: {welcome-1: {steps: [{send: onboarding/first-day.v2}]}}
destinations: {crm: {url: 'https://crm.example.com/'}}
"""
IN_JOURNEY = "journeys:\n  other:\n    %s\n    steps: [{send: hello}]\n"
STEP = "journeys:\n  other:\n    steps:\n      - send: hello\n      - "
ACTION = "rules:\n  r:\n    conditions: {field: event.type, equals: x}\n    actions:\n      - "

CASES = {
    "a journey's trigger: segment": IN_JOURNEY % ("trigger: {segment: @}"),
    "a journey's trigger: segment left": IN_JOURNEY % ("trigger: {segment_left: @}"),
    "a journey's end: segment": IN_JOURNEY % ("exit_on: {segment: @}"),
    "a journey: sender": IN_JOURNEY % ("sender: @"),
    "a journey: topic": IN_JOURNEY % ("topic: @"),
    "a step: template": STEP + "send: @",
    "a variant: template": STEP + "send: {variants: [{template: hello}, {template: @}]}",
    "a wait: segment": STEP + "wait: {segment: @, timeout: 1d}",
    "what was sent: template": STEP + "if: {sent: @}\n        then: [{wait: 1d}]",
    "an event's mail: template": IN_JOURNEY % ("events: [{event: x, send: @}]"),
    "an action: template": ACTION + "send_notification: {template: @}",
    "an action: journey": ACTION + "enter_journey: {journey: @}",
    "an action: destination": ACTION + "call_webhook: {destination: @}",
    "a set: rule": ACTION + "tag: {tag: x}\nrule_sets:\n  s: {events: [x], rules: [@]}",
    "a leaderboard: segment": "leaderboards:\n  b:\n    score: points.earned\n    segments: [@]",
    "an amnesty: streak": "calendar:\n  amnesty:\n    - {from: 2026-01-01, to: 2026-01-02, streaks: [@]}",
}
"""Each place that names something, with @ where the name stands."""
GOOD = {
    "segment": "vip-buyers",
    "segment left": "vip-buyers",
    "sender": "shop",
    "topic": "news",
    "template": "onboarding/first-day.v2",
    "journey": "welcome-1",
    "destination": "crm",
    "rule": "r",
    "streak": "daily",
}


def columns(*texts: str) -> Mapping[str, int]:
    """Each mistake and the column at which it stands."""
    definitions = Definitions([(f"{number}.yaml", text) for number, text in enumerate(texts)])
    try:
        Catalogue.declared(definitions, rules(definitions))
    except InvalidDefinition as error:
        return error.columns
    return {}


def mistakes(*texts: str) -> list[str]:
    return [*columns(*texts)]


def filled(case: str, name: str) -> str:
    return CASES[case].replace("@", name)


@pytest.mark.parametrize("case", CASES)
def test_a_declared_name_is_taken_and_one_like_it_is_a_mistake_where_it_stands(case: str) -> None:
    good = GOOD[case.split(": ")[1]]
    assert mistakes(DECLARED, filled(case, good)) == []
    near = f"{good[:-1]}q"
    text = filled(case, near)
    ((mistake, column),) = columns(DECLARED, text).items()
    problem = problem_of(mistake)
    line = text.split("\n")[problem.line - 1]
    assert (problem.file, near in line) == ("1.yaml", True)
    # At the name itself, or at the key that it stands under.
    begin = line[column - 1 :]
    assert begin.startswith(near) or begin.partition(":")[2].lstrip(" [").startswith(near)
    assert f"{near!r}; " in problem.message
    assert f"did you mean {good!r}?" in problem.message or "choose from" in problem.message


def test_all_mistakes_of_all_sections_are_found_at_once_each_at_its_own_line() -> None:
    text = """journeys:
  other:
    trigger: {segment: vip-buyer}
    sender: shopp
    steps:
      - send: helo
      - if: {field: features.has_purchsed, equals: true}
        then: [{send: hellu}]
segments:
  new: {when: {field: features.monetary_totl, gt: 1}}
leaderboards:
  b: {score: points.earned, segments: [vip-buyer]}
"""
    named = [problem_of(mistake) for mistake in mistakes(DECLARED, text)]
    assert [problem.line for problem in named] == [3, 4, 6, 7, 8, 10, 12]


def test_what_is_declared_wrongly_is_one_mistake_and_not_one_for_each_that_names_it() -> None:
    wrong = DECLARED.replace("{when: {field: features.monetary_total, gt: 5}}", "{wen: 1}")
    (mistake,) = mistakes(wrong, filled("a journey's trigger: segment", "vip-buyers"))
    assert "unknown key 'wen'" in mistake


def test_a_name_stands_for_what_the_event_says_where_it_is_a_placeholder() -> None:
    assert mistakes(DECLARED, filled("an action: journey", "'${event.properties.journey}'")) == []


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ("interests.Article.category.A", "did you mean 'interests.Article.scopes.category.A.weight'?"),
        ("segments.vip-buyer.since", "there is no segment 'vip-buyer'; did you mean 'vip-buyers'?"),
        ("journeys.ended.welcome-2", "there is no journey 'welcome-2'; did you mean 'welcome-1'?"),
        ("journeys.sent.helo", "there is no template 'helo'; did you mean 'hello'?"),
        ("streaks.dayly.current", "did you mean 'daily'?"),
        ("consent.topics.newz.subscribed", "did you mean 'news'?"),
        ("consent.topics.news.subscribd", "did you mean 'subscribed'?"),
        ("days_since.consent.unsubscribd_at", "did you mean 'unsubscribed_at'?"),
        ("suppression.supressed", "did you mean 'suppressed'?"),
        ("points.ballance", "did you mean 'balance'?"),
        ("points.balance.now", "points.balance is a plain value"),
        ("memory.preferance.color", "did you mean 'preference'?"),
        ("memory.insight.anything", "memory has no 'insight'"),
        ("activity.last_seen", "did you mean 'last_seen_at'?"),
        ("attribution.last_touch.sourse", "did you mean 'source'?"),
        ("journeys.active.welcome-1.stepp", "did you mean 'step'?"),
        ("segments.vip-buyers.entered_at", "choose from since, version"),
        ("mail.templates.hello.counts", "did you mean 'count'?"),
        ("broadcasts.spring.addressed", "did you mean 'addressed_at'?"),
        ("features.has_purchsed", "did you mean 'has_purchased'?"),
        ("feature.has_purchased", "did you mean 'features'?"),
    ],
)
@pytest.mark.parametrize(
    "case",
    [
        STEP + "if: {field: @, exists: true}\n        then: [{wait: 1d}]",
        "rules:\n  r:\n    actions: [{tag: {tag: x}}]\n    conditions: {field: @, exists: true}",
    ],
)
def test_a_field_that_never_has_a_value_is_a_mistake_where_it_stands(field: str, problem: str, case: str) -> None:
    text = case.replace("@", field)
    (mistake,) = mistakes(DECLARED, text)
    found = problem_of(mistake)
    assert field in text.split("\n")[found.line - 1]
    assert problem in found.message


@pytest.mark.parametrize(
    "field",
    [
        "interests.Article.scopes.category.A.weight",
        "interests.Article.weight",
        "segments.vip-buyers.since",
        "journeys.active.welcome-1.step",
        "streaks.daily.current",
    ],
)
def test_a_field_that_may_have_a_value_is_none(field: str) -> None:
    assert mistakes(DECLARED, STEP + f"if: {{field: {field}, exists: true}}\n        then: [{{wait: 1d}}]") == []


def test_a_wait_that_compares_with_what_no_run_has_is_refused_as_it_would_never_end() -> None:
    wait = "wait: {{event: cart, where: {{cart: '${{{}}}'}}, timeout: 1d}}"
    (mistake,) = mistakes(DECLARED, STEP + wait.format("event.properties.cart"))
    assert "compares with the very text ${event.properties.cart}; a condition takes no placeholder" in mistake
    (mistake,) = mistakes(DECLARED, STEP + wait.format("journey.key"))
    assert "compares with ${journey.key}, and the journey has no `key`" in mistake
    assert mistakes(DECLARED, STEP + wait.format("journey.variables.cart")) == []
