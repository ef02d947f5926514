"""What is declared in a simulation: two versions of it, and a policy whose doings can be reckoned by hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.event import Recorded
from threadline.kernel.policy import TIMER_FIRED, Effect, Emit, Policy, PolicyView, Timer, Wish
from threadline.kernel.sender import Queue
from threadline.kernel.time import DAY, HOUR

ORDERED, NOTED, REMINDED = "sim_ordered", "sim_noted", "sim_reminded"
HOOKS, LETTERS = "hooks", "letters"
SIGNED_UP = "sim_signed_up"

COMMON = """
settings: {public_url: "https://shop.example"}
destinations:
  crm: {url: "https://crm.example.com/hooks"}
mail:
  senders: {shop: {from: shop@shop.example}}
  templates:
    hello: {subject: Welcome, text: Hello., transactional: true}
    sale: {subject: Sale, text: "Until Sunday.", transactional: true}
rules:
  large:
    conditions: {field: event.properties.total, greater_than: 50}
    actions:
      - call_webhook: {destination: crm, payload: {order: "${event.properties.order}"}}
      - tag: {tag: large}
rule_sets: {orders: {events: [sim_ordered], rules: [large]}}
"""
VERSIONS = (
    COMMON
    + """
journeys:
  welcome:
    trigger: {event: sim_signed_up}
    reentry: always
    late: 30d
    steps:
      - send: hello
      - wait: {event: sim_ordered, timeout: 2d}
segments:
  buyers: {when: {field: activity.events_by_type.sim_ordered, greater_than: 1}}
""",
    COMMON
    + """
journeys:
  welcome:
    version: 2
    trigger: {event: sim_signed_up}
    reentry: always
    late: 30d
    steps:
      - wait: 1d
      - send: hello
segments:
  buyers: {when: {field: activity.events_by_type.sim_ordered, greater_than: 2}}
  visitors: {when: {field: activity.events_by_type.page, greater_than: 0}}
leaderboards:
  points: {score: points.earned, periods: [week, all]}
""",
)


def _react(recorded: Recorded, view: PolicyView) -> Sequence[Wish]:
    event = recorded.event
    if event.type == TIMER_FIRED:
        return [Emit(type=REMINDED, key="r", occurred_at=event.occurred_at, properties=event.properties["data"])]
    order = {"order": event.key}
    return [
        Emit(type=NOTED, key="n", occurred_at=event.occurred_at, properties=order),
        Timer(key=event.key, due_at=event.occurred_at + (HOUR if len(event.key) % 2 else 2 * DAY), data=order),
        Effect(kind="hook", key="h", queue=HOOKS, data=order),
        Effect(kind="letter", key="l", queue=LETTERS, data=order),
    ]


_OWN = (
    Policy("simulated", frozenset({ORDERED, TIMER_FIRED}), _react),
    Queue(HOOKS, at_once=3, give_up_seconds=DAY / 1_000_000, failures_max=5, kind="hook"),
    Queue(LETTERS, at_once=2, failures_max=3, kind="letter", claims=True, per_second=20.0),
)


@cache
def catalogue(version: int) -> Catalogue:
    """The catalogue of a version of the definitions."""
    definitions = Definitions([("threadline.yaml", VERSIONS[version])])
    identity = rules(definitions)
    return Catalogue([*discover(definitions=definitions), *_OWN], identity, definitions)
