"""The console beside 1,000 events/s: every screen and every part of one, and how far the live tail is behind."""

from __future__ import annotations

import http.client
import json
import statistics
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlencode

from bench.contest import in_child
from bench.load import batch_requests
from bench.row import Goal, Row
from bench.server import READ_TOKEN, WRITE_KEY, Server, unlimited
from bench.stage import Stage
from bench.trees import OURS
from threadline.kernel.screen import Screen
from threadline.surfaces.console.screens import screens
from threadline.testing.world import World

BATCH = 100
RATE = 1_000
LOOKS_A_SECOND = 10
"""Pages and parts that are asked for, as by ten people who never rest. Without a pause between them they and the writer
would share one interpreter, and the writer would be far from its rate."""
ROUNDS_A_SECOND = 8
"""Rounds through all addresses for each second of a stretch: at five seconds each is asked for 40 times."""
ADDRESSES = 80
"""There are about so many."""
ASKED_SECONDS_MAX = 600
"""The first question about everybody copies a million events for analytics; it is not measured."""
ABOUT_ALL_SECONDS = 120
"""About as long as the parts about everybody and the live tail take."""
TOLD = 40
"""Events of which it is measured when the live tail shows them."""
DEFINITIONS = """
rules: {large: {conditions: {field: event.properties.total, greater_than: 100}}}
rule_sets: {orders: {events: [purchase_completed], rules: [large]}}
mail:
  senders: {shop: {from: shop@example.com}}
  templates: {hello: {subject: Hi, text: Hi}}
journeys: {welcome: {trigger: {event: signed_up_again}, steps: [{send: hello}, {wait: 2d}, {send: hello}]}}
"""
OF_ONE = {
    "person": "/people/user_id:user-000007",
    "journey": "/journeys/welcome",
    "rule": "/rules/large",
    "feature": "/features/monetary_total",
    "template": "/templates/hello",
}
"""Screens that are about one thing, with one that there is. The person is among the most active."""
TABS = ("memory", "features", "activity", "segments", "reach", "decisions", "identity", "privacy")
ABOUT_ALL = frozenset({"count", "numbers", "preview", "sizes", "spread", "top", "journey way"})
"""Parts that are about everybody, as a question of analytics is: they are loaded after their page."""
PAGE, TAIL = Goal("ours", most=100.0), Goal("ours", most=300.0)


class Found(NamedTuple):
    """What was measured."""

    pages_ms: dict[str, list[float]]
    parts_ms: dict[str, list[float]]
    about_all_ms: dict[str, list[float]]
    behind_ms: list[float]
    written: float
    """Events a second that were taken in meanwhile."""


def measure(stage: Stage) -> list[Row]:
    """The slowest page by its 99th percentile, the slowest part, and the live tail."""
    file = stage.file()
    definitions = file.with_suffix(".yaml")
    definitions.write_text(DEFINITIONS)
    count = RATE * (round(stage.seconds * ROUNDS_A_SECOND * ADDRESSES / LOOKS_A_SECOND) + ABOUT_ALL_SECONDS)
    with Server(file, OURS, DEFINITIONS=str(definitions), ACCESS_LOG="false", **unlimited(OURS)) as server:
        found = in_child(_measure, server.port, stage.world, stage.claim(count), count, stage.seconds)
    note = f"beside {found.written:,.0f} events/s"
    return [
        _row(f"console, the slowest of {len(found.pages_ms)} pages, p99", found.pages_ms, note, PAGE),
        _row(f"console, the slowest of {len(found.parts_ms)} parts of pages, p99", found.parts_ms, note, PAGE),
        _row(f"console, the slowest of {len(found.about_all_ms)} parts about everybody", found.about_all_ms, note),
        Row("console, live tail behind the commit, p99", _p99(found.behind_ms), "ms", goal=TAIL, note=note),
    ]


def _row(name: str, found: dict[str, list[float]], note: str, goal: Goal | None = None) -> Row:
    by_time = sorted(found, key=lambda each: _p99(found[each]), reverse=True)
    slowest = ", ".join(f"{each} {_p99(found[each]):,.0f}" for each in by_time[:4])
    return Row(name, _p99(found[by_time[0]]), "ms", goal=goal, note=f"{slowest}; {note}")


def _p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[98]


def _measure(port: int, world: World, start: int, count: int, seconds: float) -> Found:
    cookie = sign_in(port)
    requests = batch_requests(world, start, count, BATCH, WRITE_KEY)
    ended, sent = threading.Event(), [0]
    writer = threading.Thread(target=_write, args=(port, requests, ended, sent), daemon=True)
    shown = dict(pages())
    pieces = {f"{name} {part}": f"{path}?part={part}" for name, path, part in parts()}
    browser = http.client.HTTPConnection("127.0.0.1", port, timeout=ASKED_SECONDS_MAX)
    for path in shown.values():
        _ask(browser, path, cookie)  # what is made at the first use is not what is measured
    # A part that answers a question of somebody's own is refused without one.
    pieces = {name: path for name, path in pieces.items() if _ask(browser, path, cookie, or_else=400) == 200}
    about_all = {name: pieces.pop(name) for name in [*pieces] if {name, name.rpartition(" ")[2]} & ABOUT_ALL}
    writer.start()
    began = time.perf_counter()
    pages_ms: dict[str, list[float]] = {name: [] for name in shown}
    parts_ms: dict[str, list[float]] = {name: [] for name in pieces}
    rounds = max(2, round(seconds * ROUNDS_A_SECOND))
    about_all_ms: dict[str, list[float]] = {name: [] for name in about_all}
    # Those about everybody are seldom asked, and slow enough to be most of the stretch: twice is enough.
    looks = [(shown, pages_ms), (pieces, parts_ms)] * rounds + [(about_all, about_all_ms)] * 2
    due = time.perf_counter()
    for paths, taken in looks:
        for name, path in paths.items():
            due = max(due + 1 / LOOKS_A_SECOND, time.perf_counter() - 1)
            time.sleep(max(0.0, due - time.perf_counter()))
            asked_at = time.perf_counter()
            _ask(browser, path, cookie)
            taken[name].append(1e3 * (time.perf_counter() - asked_at))
    behind_ms = [*_behind(port, cookie)]
    ended.set()
    writer.join(30)
    return Found(pages_ms, parts_ms, about_all_ms, behind_ms, sent[0] / (time.perf_counter() - began))


def pages() -> Iterator[tuple[str, str]]:
    """Name and address of every screen, of those about one thing of one that there is."""
    for screen in screens():
        if (path := _path(screen)) is not None:
            yield screen.name, path
            if screen.name == "person":
                yield from ((f"person {tab}", f"{path}?tab={tab}") for tab in TABS)


def parts() -> Iterator[tuple[str, str, str]]:
    """Screen, its address and the name of each of its parts."""
    for screen in screens():
        if (path := _path(screen)) is not None:
            yield from ((screen.name, path, part) for part in screen.parts)


def _path(screen: Screen) -> str | None:
    return OF_ONE.get(screen.name) if "{" in screen.path else screen.path


def sign_in(port: int) -> str:
    """The cookie of somebody who has signed in."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ASKED_SECONDS_MAX)
    form = urlencode({"name": "", "password": READ_TOKEN})
    connection.request("POST", "/sign-in", form, {"content-type": "application/x-www-form-urlencoded"})
    answer = connection.getresponse()
    answer.read()
    cookie = (answer.getheader("set-cookie") or "").partition(";")[0]
    assert cookie, answer.status
    return cookie


def _ask(connection: http.client.HTTPConnection, path: str, cookie: str, or_else: int = 200) -> int:
    connection.request("GET", path, headers={"cookie": cookie})
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status in (200, or_else), f"{path}: {answer.status} {body[:500]!r}"
    return answer.status


def _write(port: int, requests: list[bytes], ended: threading.Event, sent: list[int]) -> None:
    """Batches at the rate, until all is measured."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ASKED_SECONDS_MAX)
    connection.connect()
    due = time.perf_counter()
    for request in requests:
        if ended.wait(max(0.0, due - time.perf_counter())):
            return
        due = max(due + BATCH / RATE, time.perf_counter() - 1)
        connection.sock.sendall(request)
        answer = http.client.HTTPResponse(connection.sock, method="POST")
        answer.begin()
        answer.read()
        assert answer.status == 200, answer.status
        sent[0] += BATCH


def _behind(port: int, cookie: str) -> Iterator[float]:
    """Milliseconds from the answer that an event is committed until the live tail shows it."""
    tail = http.client.HTTPConnection("127.0.0.1", port, timeout=ASKED_SECONDS_MAX)
    tail.request("GET", "/events?live=1&type=looked_for", headers={"cookie": cookie})
    stream = tail.getresponse()
    writer = http.client.HTTPConnection("127.0.0.1", port, timeout=ASKED_SECONDS_MAX)
    headers = {"authorization": f"Bearer {READ_TOKEN}", "content-type": "application/json"}
    time.sleep(1)
    for number in range(TOLD):
        event = {
            "type": "looked_for",
            "key": f"{time.time_ns()}",
            "identifiers": {"user_id": "watched"},
            "properties": {"number": f"no-{number}-"},
        }
        writer.request("POST", "/v1/events", json.dumps({"events": [event]}), headers)
        answer = writer.getresponse()
        answer.read()
        committed_at = time.perf_counter()
        assert answer.status == 200
        while f"no-{number}-" not in stream.readline().decode():
            pass
        yield max(0.0, 1e3 * (time.perf_counter() - committed_at))
        time.sleep(0.037)  # no multiple of the time between two looks
