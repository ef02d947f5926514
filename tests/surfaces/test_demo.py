"""The demo as a newcomer meets it: run as a program, in a pipe and in a terminal, and ended in every way."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import defaultdict
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from tests import forked
from threadline.app import open_engine
from threadline.engine.maintenance.dump import dump
from threadline.surfaces.cli.demo.history import definitions, message, orders
from threadline.surfaces.cli.demo.mail import VISITOR
from threadline.surfaces.cli.demo.program import PERSON
from threadline.surfaces.cli.demo.program import command as demo
from threadline.surfaces.cli.demo.server import free

FILE = Path(__file__).parents[2] / "src/threadline/surfaces/cli/demo/CDNOW_sample.txt"
PROGRAM = [sys.executable, "-m", "threadline", "demo"]
SECONDS_MAX = 100
"""The promise is two minutes on a machine that does nothing else; these tests share theirs."""


@pytest.fixture(scope="module")
def spent() -> dict[str, Decimal]:
    """What each customer paid, computed from the raw file alone."""
    totals: dict[str, Decimal] = defaultdict(Decimal)
    for line in FILE.read_text().splitlines():
        totals[f"cdnow-{line[7:11]}"] += Decimal(line[23:].strip())
    return totals


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a run in a pipe leaves its store."""
    return tmp_path_factory.mktemp("demo") / "kept.db"


@pytest.fixture(scope="module")
def printed(kept: Path) -> str:
    """What a run in a pipe prints; without a terminal it ends by itself."""
    ran = subprocess.run(
        [*PROGRAM, "--port", "0", "--file", str(kept)],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
        env=os.environ | {"THREADLINE_DEFINITIONS": "/nowhere", "COLUMNS": "120"},
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_it_records_every_order_and_says_how_fast(printed: str) -> None:
    found = re.search(r"6,919 orders of 2,357 customers in ([\d.]+) s: ([\d,]+) events/s", printed)
    assert found is not None
    seconds, rate = float(found[1]), int(found[2].replace(",", ""))
    # The seconds are rounded to a tenth for the reader, the rate is not.
    assert 6_919 / (seconds + 0.05) - 1 <= rate <= 6_919 / max(seconds - 0.05, 0.01) + 1


def test_it_shows_the_customer_as_the_file_does(printed: str, spent: dict[str, Decimal]) -> None:
    customer = PERSON.partition("-")[2]
    own = [line.split() for line in FILE.read_text().splitlines() if line.split()[1] == customer]
    timeline = re.findall(r"(\d{4}-\d\d-\d\d)  purchase_completed +([\d,.]+) USD +(\d+) CDs?", printed)
    assert timeline == [(f"{day[:4]}-{day[4:6]}-{day[6:]}", dollars, cds) for _, _, day, cds, dollars in reversed(own)]
    assert re.search(
        rf"monetary_total +{spent[f'cdnow-{customer}']} +{spent[f'cdnow-{customer}']} +USD +PRESENT", printed
    )
    since_april = sum(day >= "19980402" for _, _, day, _, _ in own)
    assert since_april == 3
    assert re.search(rf"frequency_purchases_90d +{since_april} +0 +purchases +PRESENT", printed)


def test_it_ranks_the_best_customers(printed: str, spent: dict[str, Decimal]) -> None:
    ranked = re.findall(r"^ +\d+  user_id:(cdnow-\d+) +([\d,.]+)  █+ *$", printed, re.MULTILINE)
    best = sorted(spent.items(), key=lambda each: -each[1])[:10]
    assert [(customer, Decimal(value.replace(",", ""))) for customer, value in ranked] == best


def test_it_sends_everything_twice_and_nothing_happens(printed: str) -> None:
    assert re.search(r"6,919 duplicates in [\d.]+ s, and nothing was recorded", printed)


def test_it_shows_a_segment_a_streak_and_a_rules_diff(printed: str, spent: dict[str, Decimal]) -> None:
    customer = PERSON.partition("-")[2]
    own = spent[f"cdnow-{customer}"]
    assert f"good_customers: a member, for features.monetary_total is {own}, greater than 200." in printed
    rows = [line.split() for line in FILE.read_text().splitlines()]
    months = {int(day[:4]) * 12 + int(day[4:6]) for _, who, day, _, _ in rows if who == customer}
    longest = max(next(n for n in range(1, 99) if month + n not in months) for month in months)
    assert f"months with an order: {longest} in a row at most" in printed
    changed = sum(80 < Decimal(dollars) <= 100 for *_, dollars in rows)
    assert "-  greater_than: 100" in printed
    assert f"{changed} of 6,919 answers changed" in printed


def test_it_shows_a_mail_that_was_sent_once(printed: str) -> None:
    mail = printed.partition("7  A mail")[2]
    assert "Asked for twice: queued, duplicate. One mail has arrived:" in mail
    assert "Subject: Your order of 2 CDs, Ana" in mail
    assert "With us you have spent 25.38 USD." in " ".join(mail.split())


def test_it_tries_a_journey_on_the_history_and_switches_it_on(printed: str) -> None:
    asked = sorted((who, date.fromisoformat(day)) for _, who, day, *_ in map(str.split, FILE.read_text().splitlines()))
    first: dict[str, date] = {}
    last: dict[str, date] = {}
    begun = missed = 0
    for who, day in [*asked, *((who, date.max) for who, _ in asked)]:
        ends = first[who] + timedelta(60) if who in first else date.min
        if who in first and day >= ends:
            missed += first.pop(who) == last[who] and ends < date(1998, 7, 1)
        if who not in first and day < date.max:
            first[who] = day
            begun += 1
        last[who] = day
    journey = printed.partition("8  A journey")[2]
    assert re.search(rf"come_back +1 +tell_us +0 → {begun:,} *\n", journey)
    assert re.search(rf"come_back +3\.then\.1 +miss_you +0 → {missed:,} *\n", journey)
    assert "and got: How do you like it, Ana?" in journey


def test_without_a_terminal_it_names_its_addresses_and_how_to_keep_it(printed: str) -> None:
    end = printed.partition("there is no terminal")[2]
    assert re.search(r"http://127\.0\.0\.1:\d+/docs", end)
    assert "In a terminal `threadline demo` keeps it up" in end.replace("\n", " ")


def test_definitions_of_others_beside_the_store_stop_it(tmp_path: Path) -> None:
    (tmp_path / "threadline.yaml").write_text("segments: {}")
    command = [*PROGRAM, "--file", str(tmp_path / "x.db")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert (ran.returncode, "would change what the demo shows" in ran.stderr) == (1, True)


MAPPING = """
type: purchase_completed
time: {column: day, format: "%Y%m%d"}
user_id: customer
properties: {total: {column: dollars, number: true}, currency: {value: USD}, cds: {column: cds, number: true}}
key: [order]
"""


def test_the_same_file_imported_is_the_same_store(printed: str, kept: Path, tmp_path: Path) -> None:
    table, mapping, imported = (tmp_path / name for name in ("orders.csv", "map.yaml", "imported.db"))
    rows = [line.split() for line in FILE.read_text().splitlines()]
    with table.open("w", newline="") as file:
        write = csv.writer(file).writerow
        write(["order", "customer", "day", "cds", "dollars"])
        for number, (_, customer, *rest) in enumerate(rows, 1):
            write([f"cdnow-order-{number}", f"cdnow-{customer}", *rest])
    mapping.write_text(MAPPING)
    (tmp_path / "threadline.yaml").write_text(definitions())
    options = ["--map", str(mapping), "--source", "demo", "--file", str(imported)]
    importing = [forked.threadline(), "import", str(table), *options]
    assert "6,919 accepted, 0 known already, 0 in conflict, 0 rejected" in run(shlex.join(importing))
    # Rows of the file are told customer by customer, the demo's orders day by day: order makes no difference.
    assert known(imported) == known(kept)
    assert "6,919 rows were settled by an earlier run" in run(shlex.join(importing))
    assert "0 accepted, 6,919 known already" in run(shlex.join([*importing, "--again"]))


def known(store: Path) -> list[str]:
    engine = open_engine(store, readonly=True)
    try:
        lines = dump(engine.store, engine.catalogue, arrival=False)
    finally:
        engine.close()
    # The one who gets a mail is in no file.
    lines = [line for line in lines if VISITOR not in line]
    assert len(lines) == 2_357
    return lines


def test_orders_are_told_as_they_happened_and_named_for_ever() -> None:
    told = orders()
    assert len(told) == 6_919
    assert [order.day for order in told] == sorted(order.day for order in told)
    messages = [message(order) for order in told]
    assert len({each["messageId"] for each in messages}) == 6_919
    assert messages == [message(order) for order in orders()]


def test_its_port_is_that_of_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THREADLINE_PORT", "9876")
    assert demo.make_context("demo", []).params["port"] == 9876
    assert demo.make_context("demo", ["--port", "1"]).params["port"] == 1


def test_it_starts_on_an_empty_file_only(tmp_path: Path) -> None:
    file = tmp_path / "precious.db"
    file.write_bytes(b"mine")
    ran = subprocess.run(
        [*PROGRAM, "--file", str(file)], capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )
    assert ran.returncode == 1
    assert "already exists" in ran.stderr
    assert file.read_bytes() == b"mine"


class Terminal:
    """The demo in a terminal of its own."""

    def __init__(self, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        environ = {name: value for name, value in os.environ.items() if name != "CI"} | {"COLUMNS": "300"}
        self.process = subprocess.Popen(
            [*PROGRAM, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environ, start_new_session=True
        )
        os.close(theirs)
        self.screen = ""

    def wait_for(self, text: str) -> None:
        """Read until this stands on the screen."""
        until = time.monotonic() + SECONDS_MAX
        while text not in self.screen:
            assert time.monotonic() < until, self.screen
            if select.select([self._ours], [], [], 0.2)[0]:
                try:
                    read = os.read(self._ours, 65_536)
                except OSError:
                    read = b""
                assert read, f"it ended without {text!r}:\n{self.screen}"
                self.screen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", read.decode("utf-8", "replace"))

    def end(self, number: int) -> int:
        """Send a signal and answer the exit code."""
        self.process.send_signal(number)
        try:
            return self.process.wait(SECONDS_MAX)
        finally:
            os.close(self._ours)

    @property
    def url(self) -> str:
        found = re.search(r"A server of its own, (http://127\.0\.0\.1:\d+),", self.screen)
        assert found is not None
        return found[1]

    @property
    def folder(self) -> Path:
        found = re.search(r"on an empty file, (\S+)/demo\.db", self.screen)
        assert found is not None
        return Path(found[1])


def nobody_listens(url: str) -> bool:
    try:
        urllib.request.urlopen(f"{url}/readyz", timeout=5).close()
    except urllib.error.URLError:
        return True
    return False


def test_in_a_terminal_it_stays_with_commands_that_work(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert not free(port)
        terminal = Terminal("--port", str(port))
        terminal.wait_for("Ctrl-C ends the server")
    assert f"Port {port} is taken by another program" in terminal.screen
    assert not nobody_listens(terminal.url)
    commands = re.findall(r"^  (curl .*?)\r?$", terminal.screen, re.MULTILINE)
    assert len(commands) == 3
    ask, as_of, record = commands
    assert json.loads(run(ask))["position"] == 9, "eight orders, and the segment that they led to"
    assert json.loads(run(as_of))["features"]["monetary_total"]["value"] == 84.22
    assert json.loads(run(record))["accepted"] == 1
    after = json.loads(run(ask))
    assert after["features"]["monetary_total"]["value"] == 264.89
    assert after["position"] in (11, 12), "the order, the journey that it begins, and that its mail has no address"
    beside = re.search(r"^  (\S+ -m threadline person .*?)\r?$", terminal.screen, re.MULTILINE)
    assert beside is not None
    assert "264.89" in run(beside[1])
    assert terminal.end(signal.SIGINT) == 0
    assert nobody_listens(terminal.url)
    assert not terminal.folder.exists()


@pytest.mark.parametrize(
    ("number", "said"),
    [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGHUP), (signal.SIGINT, 130)],
)
def test_ended_half_way_it_leaves_no_server_and_no_file(number: int, said: int) -> None:
    terminal = Terminal("--port", "0")
    terminal.wait_for("sending")
    assert terminal.folder.exists()
    assert terminal.end(number) == said
    assert nobody_listens(terminal.url)
    assert not terminal.folder.exists()


def run(command: str) -> str:
    return subprocess.run(shlex.split(command), check=True, capture_output=True, text=True, timeout=SECONDS_MAX).stdout
