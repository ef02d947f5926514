"""The policy ``webhook_tests``: a request for a test becomes a call that says that it is one."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.capabilities.foundation.webhooks.definition import KIND
from threadline.capabilities.foundation.webhooks.events import WEBHOOK_TEST_REQUESTED
from threadline.kernel.event import Recorded
from threadline.kernel.policy import Effect, Policy, PolicyView, Wish
from threadline.kernel.time import format_time

NAME = "webhook_tests"
TEST = "test"
"""The type that the body of a test has, and the key of its effect: there is one for each request."""


def _react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
    event = recorded.event
    destination, payload = event.properties.get("destination"), event.properties.get("payload")
    if type(destination) is not str or type(payload) is not dict:
        return ()
    data = {"destination": destination, "type": TEST, "test": True, "at": format_time(event.occurred_at)}
    return (Effect(kind=KIND, key=TEST, data={**data, "payload": payload}, queue=destination),)


POLICY = Policy(
    name=NAME,
    handles=frozenset({WEBHOOK_TEST_REQUESTED}),
    react=_react,
    emits=frozenset(),
    sends=frozenset({KIND}),
    reads=(),
)
