"""Known truth of a what-if: a threshold moved on the CDNOW history, and whom that touches by an independent query."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

import threadline
from tests.cdnow import messages, tell
from threadline.surfaces.python.embedded import Threadline

RAW = Path(__file__).parents[1] / "src/threadline/surfaces/cli/demo/CDNOW_sample.txt"

DEFINITIONS = """
rules:
  good-customer:
    version: 3
    conditions: {field: features.monetary_total, greater_than: 80}
    actions:
      - store_decision: {result: approve}
      - tag: {tag: good}
rule_sets:
  orders: {events: [purchase_completed], rules: [good-customer], historical: true}
"""

CHANGED = """
with lines as (
    select row_number() over () as place, substr(line, 8, 4)::int as customer,
        trim(substr(line, 24))::decimal(12, 2) as dollars
    from read_csv(?, columns = {'line': 'VARCHAR'}, delim = '\\x01', quote = '', header = false, auto_detect = false)
),
running as (
    select customer, sum(dollars) over (partition by customer order by place) as total from lines
)
select customer, count(*), min(total) from running where total > 70 and total <= 80 group by customer
"""
"""Customers who had spent more than 70 and no more than 80 after an order: how many such orders, and the least sum."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Threadline]:
    definitions = tmp_path_factory.mktemp("cdnow") / "threadline.yaml"
    definitions.write_text(DEFINITIONS)
    with threadline.open("memory:", definitions=definitions) as opened:
        tell(opened, messages())
        yield opened


@pytest.fixture(scope="module")
def touched() -> dict[int, tuple[int, Decimal]]:
    rows = duckdb.execute(CHANGED, [str(RAW)]).fetchall()
    return {customer: (number, total) for customer, number, total in rows}


@pytest.mark.parametrize("form", ["content", "definitions"])
def test_the_people_are_those_of_an_independent_query(
    shop: Threadline, touched: dict[int, tuple[int, Decimal]], form: str
) -> None:
    lower = DEFINITIONS.replace("80", "70").replace("version: 3", "version: 4")
    rule = {
        "version": 4,
        "conditions": {"field": "features.monetary_total", "greater_than": 70},
        "actions": [{"store_decision": {"result": "approve"}}, {"tag": {"tag": "good"}}],
    }
    question = {"rule": "good-customer", "content": rule} if form == "content" else {"definitions": lower}
    answer = shop.what_if.run(**question, samples=1_000, wait=True)
    assert (answer.state, answer.failed, answer.errors) == ("done", 0, 0)
    assert len(touched) > 100
    people = {shop.engine.reader.person("default", f"user_id:cdnow-{customer:04}").id: customer for customer in touched}
    found = {people[sample.person]: sample for sample in answer.samples}
    assert found.keys() == touched.keys()
    assert answer.people_changed == len(touched)
    assert answer.changed == sum(number for number, _ in touched.values())
    for customer, (number, _) in touched.items():
        sample = found[customer]
        assert (sample.changed, sample.old["status"], sample.new["status"]) == (number, "NoMatch", "Approved")
        step = sample.step
        assert (step["old"]["expected"], step["new"]["expected"]) == (80, 70)
        assert 70 < step["new"]["actual"] <= 80
    first = {customer: Decimal(str(sample.step["new"]["actual"])) for customer, sample in found.items()}
    # Nobody's orders are negative, so the first sum in between is the smallest.
    assert first == {customer: total for customer, (_, total) in touched.items()}
    assert any(line.startswith("-") and "greater_than: 80" in line for line in answer.diff)


def test_what_was_recorded_is_what_is_reckoned(shop: Threadline) -> None:
    before = shop.what_if.run(definitions=DEFINITIONS, baseline="recorded", wait=True)
    assert (before.changed, before.failed) == (0, 0)
    assert before.rules[0].old["Approved"] > 1_000
