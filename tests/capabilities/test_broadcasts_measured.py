"""A broadcast by the clock of each recipient is measured from when the mail is due for them, by every reader."""

from __future__ import annotations

from collections import Counter

import pytest

import threadline
from threadline.app import open_dispatcher
from threadline.kernel.time import DAY, HOUR, MINUTE, format_time, parse_time
from threadline.settings import Settings

pytest.importorskip("duckdb")
DEFINITIONS = """
mail:
  senders: {shop: {from: shop@shop.example}}
  templates: {sale: {subject: Sale, text: Sale.}}
"""
STARTS = parse_time("2026-03-02T08:00:00Z")
DUE = {"America/Los_Angeles": "2026-03-04T17:00:00Z", "Asia/Tokyo": "2026-03-04T00:00:00Z", "": "2026-03-04T09:00:00Z"}
"""When nine o'clock of 4 March is, by the trait `timezone`."""
BOUGHT = (-5 * HOUR, -MINUTE, 0, 3 * HOUR, DAY - MINUTE, DAY)
"""Bought so long after the mail was due; of these the last but two and those between count."""
COUNTING = range(2, 5)


@pytest.mark.parametrize("zone", DUE)
def test_what_counts_begins_when_the_mail_is_due_for_the_person(tmp_path: object, zone: str) -> None:
    now = STARTS
    file = f"{tmp_path}/shop.yaml"
    with open(file, "w") as text:
        text.write(DEFINITIONS)
    due = parse_time(DUE[zone])
    with threadline.open("memory:", definitions=file, clock=lambda: now) as shop:
        traits = {"timezone": zone} if zone else {}
        for number in range(60):
            shop.identify(f"u{number}", {"email": f"u{number}@example.com", **traits})
        shop.broadcasts.create("sale", template="sale", at="2026-03-04T09:00", in_zone_of_recipient=True, holdout=0.4)
        shop.broadcasts.start("sale")
        dispatcher = open_dispatcher(shop.engine, Settings())
        now = due - 2 * HOUR
        while dispatcher.run_once():
            pass
        arms = {
            name: each.arm
            for each in shop.broadcasts.recipients("sale", limit=100).recipients
            for name in each.identifiers
            if name.startswith("user_id:")
        }
        now = due + 3 * DAY
        expected = Counter(arms[f"user_id:u{number}"] for number in range(60) if number % len(BOUGHT) in COUNTING)
        assert len(expected) == 2
        for number in range(60):
            at = format_time(due + BOUGHT[number % len(BOUGHT)])
            shop.track(f"u{number}", "bought", {}, occurred_at=at)
        job = shop.broadcasts.measure("sale", event="bought", within="1d")
        while dispatcher.run_once():
            pass
        counts = shop.jobs.show(job.id).counts
        rows = {row.arm: row for row in shop.analytics.experiment(broadcast="sale", metric="bought", window="1d").rows}
        for arm, people_of in Counter(arms.values()).items():
            assert (counts[f"people.{arm}"], counts[f"gained.{arm}"]) == (people_of, expected[arm])
            assert (rows[arm].people, rows[arm].conversions, rows[arm].undecided) == (people_of, expected[arm], 0)
