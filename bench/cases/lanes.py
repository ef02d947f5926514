"""A person's read beside floods of work that takes long: strangers who sign in wrongly, questions about everybody."""

from __future__ import annotations

import http.client
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import urlencode

from bench.contest import in_child
from bench.row import Goal, Row
from bench.server import READ_TOKEN, Server
from bench.stage import Stage
from bench.trees import OURS

STRANGERS, ASKERS = 8, 12
TURNS = 4
"""Stretches alone and beside, by turns, so that what else the machine does is in both."""
SETTLE_SECONDS = 0.5
"""Until every client of a flood waits for an answer, and until none does."""
PERSON = "/v1/people/user_id:user-000007"
QUESTION = "/v1/analytics/funnel?steps=product_viewed&steps=purchase_completed"
MOST = Goal("ours", most=3.0)

Ask = Callable[[http.client.HTTPConnection, int], int]


class Found(NamedTuple):
    """Milliseconds of reads."""

    alone: list[float]
    beside: list[float]
    answers: dict[int, int]
    """What the clients of the flood were answered, by status."""


def measure(stage: Stage) -> list[Row]:
    """How many times as long the median of a read is beside each flood."""
    with Server(stage.file(), OURS, ACCESS_LOG="false", ANALYTICS_DIR=str(stage.folder / "lanes")) as server:
        return [
            _row(
                f"GET person beside {STRANGERS} who sign in wrongly", in_child(_signing_in, server.port, stage.seconds)
            ),
            _row(f"GET person beside {ASKERS} who ask analytics", in_child(_asking, server.port, stage.seconds)),
        ]


def _row(name: str, found: Found) -> Row:
    alone, beside = statistics.median(found.alone), statistics.median(found.beside)
    answers = ", ".join(f"{count} × {status}" for status, count in sorted(found.answers.items()))
    note = f"{beside:.1f} ms instead of {alone:.1f}; the flood was answered {answers}"
    return Row(f"{name}, median", beside / alone, "×", goal=MOST, note=note)


def _signing_in(port: int, seconds: float) -> Found:
    def sign_in(connection: http.client.HTTPConnection, number: int) -> int:
        # Of another address each time, so that no limit by address keeps them from the lane.
        address = f"198.51.{number // 250 % 250}.{number % 250}"
        headers = {"content-type": "application/x-www-form-urlencoded", "x-forwarded-for": address}
        body = urlencode({"name": f"name-{number}", "password": "four words that rhyme"})
        return _answered(connection, "POST", "/sign-in", headers, body)

    return _beside(port, STRANGERS, sign_in, seconds)


def _asking(port: int, seconds: float) -> Found:
    def ask(connection: http.client.HTTPConnection, number: int) -> int:
        return _answered(connection, "GET", QUESTION, {"authorization": f"Bearer {READ_TOKEN}"})

    first = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    assert ask(first, 0) == 200  # the first question copies the events; it is not measured
    return _beside(port, ASKERS, ask, seconds)


def _beside(port: int, clients: int, ask: Ask, seconds: float) -> Found:
    flooding, ended = threading.Event(), threading.Event()
    answers: dict[int, int] = {}
    counting = threading.Lock()

    def flood(client: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        number = client
        while not ended.is_set():
            if not flooding.wait(0.1):
                continue
            status = ask(connection, number)
            number += clients
            with counting:
                answers[status] = answers.get(status, 0) + 1
            if status in (429, 503):
                time.sleep(0.1)  # sooner than it is told to come again

    threads = [threading.Thread(target=flood, args=(client,), daemon=True) for client in range(clients)]
    for thread in threads:
        thread.start()
    alone: list[float] = []
    beside: list[float] = []
    for turn in range(2 * TURNS):
        is_beside = bool(turn % 2)
        flooding.set() if is_beside else flooding.clear()
        time.sleep(SETTLE_SECONDS)
        (beside if is_beside else alone).extend(_reads(port, seconds / TURNS))
    ended.set()
    for thread in threads:
        thread.join(120)
    return Found(alone, beside, answers)


def _reads(port: int, seconds: float) -> Iterator[float]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    until = time.perf_counter() + seconds
    while (began := time.perf_counter()) < until:
        assert _answered(connection, "GET", PERSON, {"authorization": f"Bearer {READ_TOKEN}"}) == 200
        yield 1e3 * (time.perf_counter() - began)


def _answered(
    connection: http.client.HTTPConnection, method: str, path: str, headers: dict[str, str], body: str | None = None
) -> int:
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    response.read()
    return response.status
