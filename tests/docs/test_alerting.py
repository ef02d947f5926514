"""Alert rules: every metric that one names exists, and every rule has its line in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from starlette.testclient import TestClient

from threadline import app
from threadline.settings import Settings
from threadline.surfaces.http.application import Application

ROOT = Path(__file__).parents[2]
RULES = [
    rule for group in yaml.safe_load((ROOT / "deploy/alerts.yaml").read_text())["groups"] for rule in group["rules"]
]
PAGE = (ROOT / "docs/alerting.md").read_text()
WORDS = {
    "and", "or", "unless", "offset", "by", "le", "sum", "rate", "delta", "increase", "min_over_time", "status",
    "histogram_quantile",
}  # fmt: skip


def metrics_of(expression: str) -> set[str]:
    without = re.sub(r'"[^"]*"|\[\w+\]|offset \w+', "", expression)
    return set(re.findall(r"[a-z_]{2,}", without)) - WORDS


def exposed() -> set[str]:
    settings = Settings(store=app.MEMORY, tokens="tk-alerting")
    engine = app.open_engine(settings=settings)
    with TestClient(Application(engine, settings)) as client:
        text = client.get("/metrics", headers={"Authorization": "Bearer tk-alerting"}).text
    return set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))


def test_every_metric_in_a_rule_and_on_the_page_is_exposed() -> None:
    there = exposed()
    for rule in RULES:
        named = metrics_of(rule["expr"])
        assert named, rule["alert"]
        assert {name.removesuffix("_bucket") for name in named} <= there, rule["alert"]
    table = PAGE.partition("## What is measured")[2].partition("## What to do")[0]
    first = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert {name for cell in first for name in re.findall(r"`(\w+)`", cell)} <= there


def test_every_rule_says_what_to_do() -> None:
    told = re.findall(r"^\| `([A-Z]\w+)`", PAGE, re.MULTILINE)
    assert told == [rule["alert"] for rule in RULES]
    assert all(rule["annotations"]["summary"] for rule in RULES)
