"""The page of costs says what its script computes, from units that other pages have measured."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys

import pytest

from tests.deploy.template import ROOT

SCRIPT = ROOT / "deploy/aws/cost.py"
PAGE = (ROOT / "docs/cost.md").read_text()


def test_every_table_of_the_page_is_what_the_script_prints() -> None:
    printed = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=True).stdout
    tables = printed.strip().split("\n\n")
    assert len(tables) == 6
    assert [each for each in tables if each not in PAGE] == []


def test_units_are_those_that_were_measured() -> None:
    measured = runpy.run_path(str(SCRIPT))["MEASURED"]
    rows = dict(
        re.findall(r"^\| (1|100): .*?\| ([\d.]+ \| [\d.]+) \|", (ROOT / "docs/dynamodb.md").read_text(), re.MULTILINE)
    )
    for size, name in (("1", "event by itself"), ("100", "100 in a call")):
        assert rows[size] == f"{measured[f'write units, {name}']} | {measured[f'read units, {name}']}"


def test_designs_have_the_units_of_the_page_about_dynamodb() -> None:
    designs = runpy.run_path(str(SCRIPT))["DESIGNS"]
    page = (ROOT / "docs/dynamodb.md").read_text()
    assert len(designs) == 5
    for each in designs:
        assert f"| {each.name} | {each.write_units} | {each.read_units} |" in page


def test_a_million_messages_cost_what_a_hand_reckons() -> None:
    script = runpy.run_path(str(SCRIPT))
    dynamodb = 5.1 * 0.625 + 0.6 * 0.125
    queue = 0.3 * 0.40
    seconds = 1e6 * (0.69 / (1024 / 1769) + 57 * 5 / 100) / 1e3
    function = seconds * 0.0000133334 + 1e4 * 0.20e-6 + 1e4 * 0.5e-6 * 0.50
    assert 1e6 * script["dollars"](script["WAYS_IN"]["by `lead-ingestion`"]) == pytest.approx(
        dynamodb + queue + function
    )


def test_what_is_free_is_not_paid_for() -> None:
    script = runpy.run_path(str(SCRIPT))
    assert script["dollars"](script["idle"](), script["FREE_EACH_MONTH"]) < 0.01
    assert script["dollars"]({"request to SQS": 1_500_000}, script["FREE_EACH_MONTH"]) == pytest.approx(0.20)
