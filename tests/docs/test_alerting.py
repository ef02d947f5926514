"""Alert rules and the dashboard: every metric that one names exists, and every rule has its line in the docs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from starlette.testclient import TestClient

from threadline import app
from threadline.capabilities.foundation.events.operations.record import record
from threadline.settings import Settings
from threadline.surfaces.http.addresses.appaction import ANONYMOUS_PATH, USER_PATH
from threadline.surfaces.http.events.ingest import CLOUDEVENTS_PATH, Segment
from threadline.surfaces.http.server.application import Application

ROOT = Path(__file__).parents[2]
RULES = [
    rule for group in yaml.safe_load((ROOT / "deploy/alerts.yaml").read_text())["groups"] for rule in group["rules"]
]
PANELS = json.loads((ROOT / "deploy/grafana/threadline.json").read_text())["panels"]
PAGE = (ROOT / "docs/alerting.md").read_text()
TABLE = PAGE.partition("## What is measured")[2].partition("## What to do")[0]
WORDS = {
    "and", "or", "unless", "offset", "by", "le", "sum", "rate", "delta", "increase", "min_over_time", "status",
    "histogram_quantile", "topk", "max", "job", "instance", "route", "kind", "outcome", "source", "rule", "version",
    "policy", "dest", "queue", "reason", "name", "tool", "for", "changes",
}  # fmt: skip


def metrics_of(expression: str) -> set[str]:
    without = re.sub(r'"[^"]*"|\[\w+\]|offset \w+|by \([^)]*\)', "", expression)
    return set(re.findall(r"[a-z_]{2,}", without)) - WORDS


def labels_of_metrics() -> dict[str, set[str]]:
    """Metric -> its labels, as the page says."""
    found: dict[str, set[str]] = {}
    for line in TABLE.splitlines():
        if line.startswith("| `"):
            names, labels, meaning = line.strip("|").split("|")[:3]
            for name in re.findall(r"`(\w+)`", names):
                found[name] = set(re.findall(r"`(\w+)`", labels)) | {"policy"} & set(re.findall(r"`(\w+)`", meaning))
    return found


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The metrics of a server on an embedded store."""
    store = tmp_path_factory.mktemp("alerting") / "events.db"
    settings = Settings(store=str(store), tokens="tk-alerting", access_log=False)
    engine = app.open_engine(settings=settings)
    with TestClient(Application(engine, settings)) as client:
        text = client.get("/metrics", headers={"Authorization": "Bearer tk-alerting"}).text
    engine.close()
    return set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))


def test_every_metric_in_a_rule_and_on_the_page_is_exposed(there: set[str]) -> None:
    for rule in RULES:
        named = metrics_of(rule["expr"])
        assert named, rule["alert"]
        assert {name.removesuffix("_bucket") for name in named} <= there, rule["alert"]
    first = [line.split("|")[1] for line in TABLE.splitlines() if line.startswith("| `")]
    assert {name for cell in first for name in re.findall(r"`(\w+)`", cell)} <= there


def test_every_metric_on_the_dashboard_is_exposed_with_the_labels_that_it_is_drawn_by(there: set[str]) -> None:
    labels = labels_of_metrics()
    for panel in PANELS:
        for target in panel.get("targets", ()):
            expression = target["expr"]
            named = {name.removesuffix("_bucket") for name in metrics_of(expression)}
            assert named, panel["title"]
            assert named <= there, panel["title"]
            drawn_by = {label for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(", ")}
            assert drawn_by - {"le"} <= set().union(*(labels[name] for name in named)), panel["title"]


def test_the_panels_of_the_dashboard_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in PANELS:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)


def test_every_rule_says_what_to_do() -> None:
    told = re.findall(r"^\| `([A-Z]\w+)`", PAGE, re.MULTILINE)
    assert told == [rule["alert"] for rule in RULES]
    assert all(rule["annotations"]["summary"] for rule in RULES)


def test_every_metric_has_the_prefix_of_this_program_or_means_the_same_of_every_one(there: set[str]) -> None:
    assert {name.partition("_")[0] for name in there} == {"threadline", "process"}
    assert {name for name in there if name.startswith("process_")} == {"process_start_time_seconds"}


def test_the_rule_of_slow_ingest_watches_every_route_that_brings_events() -> None:
    nothing = cast(Any, None)
    segment = {route.path for route in Segment(nothing, nothing).routes()}
    bringing = segment | {record.path, CLOUDEVENTS_PATH, USER_PATH, ANONYMOUS_PATH}
    [rule] = [rule["expr"] for rule in RULES if rule["alert"] == "IngestSlow"]
    watched = re.compile(re.findall(r'route=~"([^"]+)"', rule)[0])
    assert {path for path in bringing if not watched.fullmatch(path)} == set()
    assert len(bringing) > 20
    others = {operation.path for operation in app.operations() if operation.path not in bringing}
    assert {path for path in others if watched.fullmatch(path)} == set()


def test_a_rule_names_only_routes_that_there_are() -> None:
    named = {path for rule in RULES for path in re.findall(r'route="([^"]+)"', rule["expr"])}
    assert named
    assert named <= {operation.path for operation in app.operations()}
