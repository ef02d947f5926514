"""What the console's screens weigh at a million events: bytes and CPU of each address, at its first visit and the next.

Nothing else is asked meanwhile. What the server does by itself counts too, so the median of several visits is taken.
"""

from __future__ import annotations

import http.client
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil  # type: ignore[import-untyped]  # its stubs are a package of their own

from bench.cases.screens import ABOUT_ALL, ASKED_SECONDS_MAX, DEFINITIONS, pages, parts, sign_in
from bench.row import Goal, Row
from bench.server import READ_TOKEN, Server, unlimited
from bench.stage import Stage
from bench.trees import OURS
from threadline.surfaces.console.screens import screens

VISITS = 5
SETTLED_SECONDS_MAX = 600
"""How long the search may take to read the log; nothing is measured before."""
SHOWN = 6
"""Of the heaviest that a row names."""
KB, CPU = Goal("ours", most=100.0), Goal("ours", most=50.0)


class Visit(NamedTuple):
    """One request."""

    kb: float
    cpu_ms: float
    """Of the server and what it started, until the answer was there."""


def measure(stage: Stage) -> list[Row]:
    """The heaviest page and part by bytes, and the dearest by CPU; parts about everybody have no goal."""
    file = stage.file()
    definitions = file.with_suffix(".yaml")
    definitions.write_text(DEFINITIONS)
    with Server(file, OURS, DEFINITIONS=str(definitions), ACCESS_LOG="false", **unlimited(OURS)) as server:
        _settle(server.port)
        visits = dict(_visits(server))
    about_all = {name for name in visits if {name, name.rpartition(" ")[2]} & ABOUT_ALL}
    others = visits.keys() - about_all
    next_ms = {name: statistics.median(visit.cpu_ms for visit in visits[name][1:]) for name in visits}
    first_ms = {name: visits[name][0].cpu_ms for name in others}
    return [
        _row("KB", {name: max(visit.kb for visit in visits[name]) for name in visits}, "KB", KB),
        _row("CPU of the next visits", {name: next_ms[name] for name in others}, "ms", CPU),
        _row("CPU of the first visit", first_ms, "ms"),
        _row("CPU about everybody, next visits", {name: next_ms[name] for name in about_all}, "ms"),
    ]


def _row(name: str, found: dict[str, float], unit: str, goal: Goal | None = None) -> Row:
    by_weight = sorted(found, key=lambda address: found[address], reverse=True)
    heaviest = ", ".join(f"{address} {found[address]:,.0f}" for address in by_weight[:SHOWN])
    return Row(f"console, {name}, the most of {len(found)}", found[by_weight[0]], unit, goal=goal, note=heaviest)


def _settle(port: int) -> None:
    """Wait until the search has read the log: until then it is what uses the CPU."""
    headers = {"authorization": f"Bearer {READ_TOKEN}"}
    for _ in range(SETTLED_SECONDS_MAX):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ASKED_SECONDS_MAX)
        connection.request("GET", "/v1/search/status", headers=headers)
        if b'"complete":true' in connection.getresponse().read():
            return
        time.sleep(1)


def _visits(server: Server) -> Iterator[tuple[str, list[Visit]]]:
    cookie = sign_in(server.port)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=ASKED_SECONDS_MAX)
    shown = ((name, path, part) for name, path, part in parts() if not _is_file(name, part))
    addresses = {**dict(pages()), **{f"{name} {part}": f"{path}?part={part}" for name, path, part in shown}}
    for name, path in addresses.items():
        visits = [_visit(server.process, connection, path, cookie) for _ in range(1 + VISITS)]
        if None not in visits:
            yield name, [visit for visit in visits if visit is not None]


def _is_file(name: str, part: str) -> bool:
    """Whether a part is no piece of a screen but a download, or a mail in a frame."""
    chosen = next(screen.parts[part] for screen in screens() if screen.name == name)
    return bool(chosen.download or chosen.file or chosen.is_document)


def _visit(process: psutil.Process, connection: http.client.HTTPConnection, path: str, cookie: str) -> Visit | None:
    """None: it is refused, such as a part that wants a question."""
    before = _cpu_nanoseconds(process)
    connection.request("GET", path, headers={"cookie": cookie})
    answer = connection.getresponse()
    body = answer.read()
    spent = _cpu_nanoseconds(process) - before
    return Visit(len(body) / 1e3, spent / 1e6) if answer.status == 200 else None


def _cpu_nanoseconds(process: psutil.Process) -> int:
    """CPU of all threads of the server and what it started; `psutil` tells it by hundredths of a second."""
    running = [process.pid, *(child.pid for child in process.children(recursive=True))]
    threads = (file for pid in running for file in Path(f"/proc/{pid}/task").glob("*/schedstat"))
    return sum(int(file.read_text().split()[0]) for file in threads)
