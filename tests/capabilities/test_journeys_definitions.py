"""What is wrong with a journey is said with its place and the way out."""

from __future__ import annotations

from textwrap import indent

import pytest

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.capabilities.reach.journeys.declared import read_journeys
from threadline.capabilities.reach.journeys.labels import step_labels
from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.errors import InvalidDefinition

MISTAKES = {
    "steps: [{sned: hello}]": "journey 'welcome': `steps[0]`: unknown key 'sned'; did you mean 'send'?",
    "steps: [{send: hello, wait: 1d}]": "has both `send` and `wait`; keep one",
    "steps: [{wait: 1d}]": "no step does anything; put in a `send`, or an action such as `tag`",
    "{steps: [{send: a}], at_once: 3}": "`at_once` goes with `key`: without one a person has one run at a time",
    "{steps: [{send: a}], exit_on: {event: x, where: {id: '${journey.key}'}}}": "and the journey has no `key`",
    "{steps: [{send: a}], key: event.properties.id, trigger: {event: x, where: {id: '${journey.key}'}}}": (
        "`where`: a trigger begins the run, so that nothing of a run can stand in it"
    ),
    "{steps: [{send: a}], exit_on: {event: x, where: {id: '${traits.id}'}}}": "a condition takes no placeholder",
    "{steps: [{send: a}], key: cart_id.}": "`key`",
    "steps: [{tag: ''}]": "`steps[0].tag` must be a text of 1 to",
    "steps: [{points: 0}]": "`steps[0].points` must be a whole number from 1 to",
    "steps: [{points: {reason: x}}]": "`steps[0].points` needs `points`",
    "steps: [{tag: '${trait.plan}'}]": "nothing is known under 'trait'",
    "steps: [{tag: '${event.total}'}]": "an event has type, source",
    "steps: [{start: welcom}]": "there is no journey 'welcom'; did you mean 'welcome'",
    "steps: [{tag: a}, {start: welcome}]": "it would start again without end: welcome → welcome; put a `wait` before",
    "steps: [{webhook: {payload: {a: 1}}}]": "`steps[0].webhook` needs `destination`",
    "steps: [" + "{tag: a}, " * 9 + "]": "9 mails and actions follow each other without a wait; at most 8 may",
    "steps: [{wait: soon}, {send: a}]": "`steps[0].wait` must be a duration",
    "steps: [{wait: {until: '9:00'}}, {send: a}]": "must be a time of day in quotes, such as '09:00'",
    "steps: [{wait: {event: x, for: 1d}}, {send: a}]": "`wait` takes `for`, `until` or both of them, or one of",
    "steps: [{wait: {event: x}}, {send: a}]": "has no `timeout`, and the journey none either",
    "steps: [{id: a, send: a}, {id: a, send: b}]": "two steps have the id 'a'; rename one",
    "steps: [{send: a, then: [{send: b}]}]": "`then` goes with `if`, or with a `wait` for an event",
    "steps: [" + "{send: a}, " * 9 + "]": "9 mails follow each other without a wait; at most 8 may",
    "steps: [{if: {field: trait.plan, equals: pro}, then: [{send: a}]}]": "nothing is known under 'trait'",
    "{steps: [{send: a}], reentry: never}": "`reentry` must be",
    "{steps: [{send: a}], holdout: 2}": "must be a share from 0 to less than 1",
    "{steps: [{send: a}], transactional: true, topic: news}": "a transactional journey has no `topic`",
    "{steps: [{send: a}], quiet_hours: {from: '08:00', to: '08:00'}}": "no mail would ever be sent",
    "{steps: [{send: a}], trigger: {event: threadline.timer_fired}}": "is Threadline's own, and no journey sees it",
    "{steps: [{send: a}], trigger: {event: x, map: {v: properties.v.}}}": "a field is a path such as",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_names_its_place_and_the_way_out(text: str) -> None:
    body = text if text.startswith("{") else "{" + text + "}"
    definitions = Definitions([("shop.yaml", f"# journeys of the shop\njourneys:\n  welcome: {body}\n")])
    with pytest.raises(InvalidDefinition) as raised:
        Catalogue.declared(definitions, rules(definitions))
    assert MISTAKES[text] in str(raised.value)
    assert "shop.yaml:3" in str(raised.value)


def test_journeys_that_start_each_other_without_a_wait_are_refused_and_with_one_they_are_not() -> None:
    text = """
journeys:
  a: {steps: [{if: {field: traits.plan, equals: pro}, then: [{start: b}]}]}
  b: {steps: [WAIT{start: {journey: c, variables: {x: 1}}}]}
  c: {steps: [{tag: t}, {start: a}]}
"""
    definitions = Definitions([("shop.yaml", text.replace("WAIT", ""))])
    read_journeys(definitions)
    with pytest.raises(InvalidDefinition, match="without end: b → c → a → b"):
        definitions.refuse()
    definitions = Definitions([("shop.yaml", text.replace("WAIT", "{wait: 1h}, "))])
    assert len(read_journeys(definitions) or ()) == 3
    definitions.refuse()


def test_a_template_that_mail_does_not_declare_is_named_with_the_nearest() -> None:
    text = """
mail:
  senders: {shop: {from: shop@example.com}}
  templates: {welcome_mail: {subject: Hello, text: Hello}}
journeys: {welcome: {steps: [{send: welcom_mail}]}}
"""
    definitions = Definitions([("shop.yaml", text)])
    with pytest.raises(InvalidDefinition, match="there is no template 'welcom_mail'; did you mean 'welcome_mail'"):
        Catalogue.declared(definitions, rules(definitions))


def test_a_rule_that_names_no_declared_journey_is_refused() -> None:
    text = """
journeys: {welcome: {steps: [{send: hello}]}}
rules: {in: {conditions: {field: event.type, equals: x}, actions: [{enter_journey: {journey: welcom}}]}}
rule_sets: {all: {events: [x], rules: [in]}}
"""
    definitions = Definitions([("shop.yaml", text)])
    with pytest.raises(InvalidDefinition) as raised:
        Catalogue.declared(definitions, rules(definitions))
    expected = "rule 'in': there is no journey 'welcom'; did you mean 'welcome'?"
    assert expected in str(raised.value)


def labels_of(steps: str) -> dict[str, str]:
    definitions = Definitions([("shop.yaml", f"journeys:\n  welcome:\n    steps:\n{indent(steps, ' ' * 6)}\n")])
    (journey,) = read_journeys(definitions) or ()
    definitions.refuse()
    return step_labels(journey)


def test_a_step_is_called_by_what_it_does_and_where_two_do_the_same_by_what_leads_to_it() -> None:
    labels = labels_of("""
- {id: bought, wait: {event: purchase_completed, timeout: 4d}, then: [{send: thanks}], else: [
    {if: {field: traits.plan, equals: club}, then: [{send: club_offer}], else: [{send: offer}]}]}
- wait: 2d
- choice:
    - {when: {field: features.monetary_total, greater_than: 100}, steps: [{send: offer}, {wait: 2d}]}
  else: [{steps: [{send: offer}]}]
- {wait: {for: 1d, until: "09:00"}}
""")
    assert labels == {
        "bought": "wait for purchase completed, at most 4 days",
        "bought.then.1": "send thanks",
        "bought.else.1": "if plan is club",
        "bought.else.1.then.1": "send club offer",
        "bought.else.1.else.1": "send offer (no purchase completed, plan is not club)",
        "2": "wait 2 days",
        "3": "choice",
        "3.1.1": "send offer (monetary total is more than 100)",
        "3.1.2": "wait 2 days (monetary total is more than 100)",
        "3.else.1.1": "send offer (otherwise)",
        "4": "wait 1 day, then until 09:00",
    }


def test_steps_that_nothing_tells_apart_are_numbered() -> None:
    labels = labels_of("[{wait: 1d}, {send: a}, {wait: 1d}, {send: b}, {wait: 1d}, {send: a}]")
    assert [*labels.values()] == [
        "wait 1 day",
        "send a",
        "wait 1 day (2nd)",
        "send b",
        "wait 1 day (3rd)",
        "send a (2nd)",
    ]
