"""Known truth: what others computed of the CDNOW customers, and what the raw file says, person by person."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import threadline
from tests.cdnow import messages, tell
from threadline.kernel.time import DAY, parse_time
from threadline.surfaces.python.embedded import Threadline

HERE = Path(__file__).parent
RAW = HERE.parent / "src/threadline/surfaces/cli/demo/CDNOW_sample.txt"
SUMMARIES = HERE / "data/cdnow"
CALIBRATED = "1997-10-01T00:00:00Z"
"""The first instant after the calibration period, which has 1997-09-30 as its last day."""
LAST_DAY = date(1997, 9, 30)

DEFINITIONS = """
features:
  purchase_days: {description: Days with a purchase., aggregate: distinct, events: purchase_completed, of: day}
  first_day: {description: Day of the first purchase., aggregate: first, events: purchase_completed, of: day}
  last_day: {description: Day of the last purchase., aggregate: last, events: purchase_completed, of: day}
"""


class Line(NamedTuple):
    """An order of the raw file, read without any code of ours."""

    customer: int
    day: str
    cds: int
    dollars: Decimal


@pytest.fixture(scope="module")
def raw() -> dict[int, list[Line]]:
    """The orders of each customer, in the order of the file, which is by day."""
    found: dict[int, list[Line]] = defaultdict(list)
    for text in RAW.read_text().splitlines():
        line = Line(int(text[7:11]), text[12:20], int(text[20:23]), Decimal(text[23:].strip()))
        found[line.customer].append(line)
    return found


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Threadline]:
    """All orders as the demo sends them, each with its day as a property, so that days can be told apart."""
    folder = tmp_path_factory.mktemp("cdnow")
    definitions = folder / "features.yaml"
    definitions.write_text(DEFINITIONS)
    with threadline.open("memory:", definitions=definitions) as opened:
        told = messages()
        for each in told:
            each["properties"]["day"] = each["timestamp"][:10]
        tell(opened, told)
        yield opened


def vector(shop: Threadline, customer: int, as_of: str | None = None) -> dict[str, Any]:
    answer = shop.features.of(f"user_id:cdnow-{customer:04}", as_of=as_of)
    return {name: each.value for name, each in answer.features.items()}


def summary(name: str) -> dict[int, dict[str, str]]:
    with (SUMMARIES / name).open() as file:
        found = {int(row["ID"]): row for row in csv.DictReader(file)}
    assert len(found) == 2_357
    return found


def weeks(days: int) -> Decimal:
    """As the summaries write them: with two decimals."""
    return (Decimal(days) / 7).quantize(Decimal("0.01"))


def test_every_customer_is_what_others_reckoned_at_the_end_of_calibration(shop: Threadline) -> None:
    short = summary("cdnow_customers_summary.csv")
    whole = summary("cdnow_customers_summary_with_transactions.csv")
    for customer, expected in whole.items():
        known = vector(shop, customer, CALIBRATED)
        first, last = (date.fromisoformat(known[name]) for name in ("first_day", "last_day"))
        repeated = known["purchase_days"] - 1
        assert repeated == int(expected["x"]) == int(short[customer]["frequency"]), customer
        recency, age = weeks((last - first).days), weeks((LAST_DAY - first).days)
        assert recency == Decimal(expected["t_x"]) == Decimal(short[customer]["recency"]).quantize(Decimal("0.01"))
        assert age == Decimal(expected["T"]) == Decimal(short[customer]["T"]).quantize(Decimal("0.01"))
        # What the day of the first purchase brought is what was known at its end.
        begun = vector(shop, customer, f"{first + timedelta(days=1)}T00:00:00Z")
        repeat_total = Decimal(str(known["monetary_total"])) - Decimal(str(begun["monetary_total"]))
        mean = repeat_total / repeated if repeated else Decimal(0)
        # Their mean has two decimals; a tie may have been rounded either way.
        assert abs(mean - Decimal(expected["zbar"])) <= Decimal("0.005"), customer


def test_every_customer_is_what_the_raw_file_says(shop: Threadline, raw: dict[int, list[Line]]) -> None:
    now = shop.engine.clock()
    for customer, lines in raw.items():
        known = vector(shop, customer)
        total = sum((line.dollars for line in lines), Decimal(0))
        assert Decimal(str(known["monetary_total"])) == total, customer
        assert Decimal(str(known["monetary_gross_total"])) == total
        assert known["monetary_avg_ticket"] == pytest.approx(float(total / len(lines)), abs=1e-6)
        assert known["purchase_days"] == len({line.day for line in lines})
        last = max(line.day for line in lines)
        assert known["days_since_last_purchase"] == known["recency_days"] == (now - parse_time(last)) // DAY
        assert (known["has_purchased"], known["conversion_rate"], known["frequency_purchases_90d"]) == (True, 1.0, 0)


def test_every_thread_is_the_lines_of_its_customer(shop: Threadline, raw: dict[int, list[Line]]) -> None:
    people = 0
    for customer, lines in raw.items():
        page = shop.events.of(f"user_id:cdnow-{customer:04}", order="asc", limit=100)
        told = [
            Line(
                customer,
                each.occurred_at[:10].replace("-", ""),
                each.properties["cds"],
                Decimal(str(each.properties["total"])),
            )
            for each in page.events
        ]
        assert sorted(told) == sorted(lines)
        assert [each.day for each in told] == [line.day for line in lines]
        assert page.position == len(lines)
        people += 1
    assert people == 2_357
    assert shop.features.top("monetary_total", limit=1).people_read == people


@pytest.mark.parametrize("day", ["1997-03-31", "1997-10-01", "1998-02-14", "1998-07-01"])
def test_windows_of_every_customer_are_counted_from_the_raw_file(
    shop: Threadline, raw: dict[int, list[Line]], day: str
) -> None:
    seen = date.fromisoformat(day)
    # Half open: an order 90 days ago to the instant is in, one at the instant itself is not.
    begin = (seen - timedelta(days=90)).strftime("%Y%m%d")
    counts = set()
    for customer, lines in raw.items():
        known = vector(shop, customer, f"{day}T00:00:00Z")
        within = [line for line in lines if begin <= line.day < seen.strftime("%Y%m%d")]
        assert known["frequency_purchases_90d"] == len(within), customer
        counts.add(len(within))
    # Not a comparison of nothing with nothing.
    assert {1, 2, 3} < counts
