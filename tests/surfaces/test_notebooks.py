"""Answers of analytics in notebooks: tables with the types of their columns, charts with the values of the answer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import threadline
from threadline import analytics
from threadline.capabilities.ask.analytics.operations.rfm import Rfm
from threadline.kernel.chart import Chart
from threadline.kernel.errors import InvalidValue
from threadline.surfaces.cli.demo.history import orders

pandas = pytest.importorskip("pandas")
pytest.importorskip("altair")
pytest.importorskip("scipy")
ASKED: dict[str, dict[str, Any]] = {
    "attribution": {"event": "bought", "channel": "via"},
    "cohorts": {"event": "bought", "value": "total"},
    "distribution": {"feature": "has_purchased"},
    "experiment": {"assignment": "came", "arm": "via", "metric": "bought"},
    "funnel": {"steps": ["came", "bought"]},
    "lifetime": {"event": "bought"},
    "paths": {},
    "retention": {},
    "rfm": {"event": "bought"},
    "sessions": {},
    "trend": {},
}


@pytest.fixture(scope="module")
def shop() -> Iterator[threadline.Threadline]:
    # A model of purchases fits nobody but people: those of a real shop.
    events: list[dict[str, Any]] = []
    for order in orders():
        if int(order.customer) <= 150:
            known = {"identifiers": {"user_id": order.customer}, "occurred_at": f"{order.day}T00:00:00Z"}
            came = {
                "type": "came",
                "key": f"came{order.customer}",
                "properties": {"via": "ab"[int(order.customer) % 2]},
            }
            bought = {"type": "bought", "key": str(order.number), "properties": {"total": order.dollars}}
            events += [known | came, known | bought]
    with threadline.open("memory:") as made:
        for start in range(0, len(events), 500):
            made.record(events[start : start + 500])
        yield made


@pytest.mark.parametrize("name", ASKED)
def test_an_answer_is_a_table_and_its_picture_a_chart(shop: threadline.Threadline, name: str) -> None:
    answer = getattr(shop.analytics, name)(**ASKED[name])
    table, shown = analytics.to_df(answer), analytics.to_chart(answer).to_dict()
    assert len(table) == len(answer.rows) > 0
    for column in table:
        for row, value in zip(answer.rows, table[column], strict=True):
            expected = getattr(row, column)
            assert (
                (expected is None and pandas.isna(value)) or str(value).startswith(str(expected)) or value == expected
            )
    assert table.attrs["sql"] == answer.sql
    picture = analytics.picture(answer)
    assert shown["title"]["text"] == picture.title
    (values,) = shown["datasets"].values() if "datasets" in shown else (shown["data"]["values"],)
    assert [each["y"] for each in values] == (
        [point.y for series in picture.series for point in series.points] or [flow.value for flow in picture.flows]
    )


def test_every_analysis_is_tried_here(shop: threadline.Threadline) -> None:
    operations = shop.engine.catalogue.operations
    named = {each.verb for each in operations if each.name.startswith("analytics_")}
    assert {*ASKED, "journey", "today"} == named


def test_a_journey_has_tables_of_steps_and_arrows_and_today_has_no_picture(
    shop: threadline.Threadline, tmp_path: Path
) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text("journeys: {none: {trigger: {event: signed_up}, steps: [{send: hello}]}}")
    with threadline.open("memory:", definitions=file) as other:
        flow, today = other.analytics.journey(journey="none"), shop.analytics.today()
    assert list(analytics.to_df(flow, "steps")) == ["step", "reached", "left", "reasons"]
    assert list(analytics.to_df(flow, "arrows")) == ["step", "next", "runs"]
    assert analytics.to_chart(flow).to_dict()["title"]["text"] == "Journey none"
    assert list(analytics.to_df(today)) == ["type", "today", "before", "own"]
    with pytest.raises(InvalidValue, match="Today has no picture"):
        analytics.to_chart(today)


def test_days_are_datetimes_and_a_table_without_rows_has_its_columns(shop: threadline.Threadline) -> None:
    assert str(analytics.to_df(shop.analytics.trend()).dtypes["period"]).startswith("datetime64")
    empty = analytics.to_df(shop.analytics.trend(event="mail_clicked"))
    assert (len(empty), list(empty)) == (0, ["period", "value", "events", "people", "complete"])
    people = analytics.to_df(shop.analytics.rfm(event="bought"), "people")
    assert len(people) == 100


def test_what_is_no_answer_is_refused() -> None:
    for wrong in (None, [], Chart(kind="bars", title="")):
        with pytest.raises(InvalidValue):
            analytics.to_df(wrong)
    with pytest.raises(InvalidValue):
        analytics.to_df(Rfm(sql="", position=0, rows=[], people=[]), "sql")
    with pytest.raises(InvalidValue):
        analytics.to_chart(object())


def test_definitions_with_a_mistake_in_the_folder_do_not_matter(
    shop: threadline.Threadline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "threadline.yaml").write_text("features: 3")
    monkeypatch.chdir(tmp_path)
    analytics._pictures.cache_clear()
    assert analytics.picture(shop.analytics.trend()).title == "Events over time"


def test_the_package_does_not_load_the_libraries_of_notebooks() -> None:
    code = "import sys, threadline.analytics; sys.exit(bool({'pandas', 'altair'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
