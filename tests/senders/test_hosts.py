"""Hosts of addresses that rules name themselves: one that fails is left alone, and holds up none of its queue."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.test_dispatch import NOW, Clock
from threadline.kernel.policy import Effect
from threadline.kernel.sender import EFFECT_DONE as DONE
from threadline.kernel.sender import EFFECT_RETRIED as RETRIED
from threadline.kernel.sender import Outcome
from threadline.kernel.time import SECOND
from threadline.outgoing.public_call import Answer, Failed
from threadline.senders import hosts
from threadline.senders.hosts import TEST_SECONDS, Hosts
from threadline.senders.webhook import WebhookSender


class Net:
    """Hosts that answer or do not, and who was called."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.dead = {"https://dead.example/"}

    def request(self, method: str, url: str, *given: Any) -> Answer:
        self.called.append(url)
        if url in self.dead:
            raise Failed("TimeoutError: no answer in time")
        return Answer(204, "", b"")


def sender(net: Net, clock: Clock) -> WebhookSender:
    return WebhookSender({}, (), net, clock)  # type: ignore[arg-type]


def send(to: WebhookSender, host: str = "dead.example") -> Outcome:
    data = {"url": f"https://{host}/", "rule": "r", "version": 1, "at": "2026-03-01T12:00:00Z"}
    return to.send(Effect(kind="webhook", key="k", data=data), "0" * 32, "a" * 32)


def test_a_host_that_fails_is_left_alone_tested_by_one_and_called_again() -> None:
    net, clock = Net(), Clock()
    webhooks = sender(net, clock)
    assert [send(webhooks).destination for _ in range(5)] == ["failing"] * 5
    clock.now += 4 * SECOND
    outcome = send(webhooks)
    assert (outcome.type, outcome.destination, outcome.retry_after_seconds) == (RETRIED, "healthy", 6.0)
    assert outcome.properties == {"host": "dead.example", "error": "its host fails, and is left alone for a while"}
    assert send(webhooks, "well.example").type == DONE
    assert send(webhooks, "dead.example:8443").type == DONE, "another port is another place"
    assert len(net.called) == 7
    clock.now = NOW + 10 * SECOND
    assert send(webhooks).destination == "failing"
    assert send(webhooks).retry_after_seconds == 20.0
    assert len(net.called) == 8
    clock.now += 20 * SECOND
    net.dead.clear()
    assert [send(webhooks).type for _ in range(3)] == [DONE] * 3


def test_while_one_tests_a_host_the_others_wait() -> None:
    clock = Clock()
    known = Hosts(clock)
    for _ in range(8):  # several were on their way when it was enough
        known.heard("a", failing=True)
    assert known.wait("a") == 10.0
    clock.now += 10 * SECOND
    assert (known.wait("a"), known.wait("a")) == (0.0, TEST_SECONDS)
    clock.now += TEST_SECONDS * SECOND
    assert known.wait("a") == 0.0, "nothing was heard of who tested it"
    known.heard("a", failing=False)
    assert [known.wait("a"), known.wait("a")] == [0.0, 0.0]


def test_a_failure_now_and_then_leaves_nobody_alone() -> None:
    known = Hosts(Clock())
    for failing in [True, True, True, True, False] * 3:
        known.heard("a", failing=failing)
    assert known.wait("a") == 0.0


def test_no_more_hosts_are_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "HOSTS_MAX", 2)
    known = Hosts(Clock())
    for _ in range(5):
        known.heard("a", failing=True)
    for host in ("b", "c"):
        known.heard(host, failing=True)
    assert known.wait("a") == 0.0
    assert list(known._failing) == ["b", "c"]
