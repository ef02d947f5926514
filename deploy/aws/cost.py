#!/usr/bin/env python3
"""What Threadline costs on AWS, from prices and units: ``python deploy/aws/cost.py`` prints the tables of the page.

Prices are those of us-east-1, as published in November 2025, in dollars. Compare them with the price list before you
rely on them. Units are measured where `MEASURED` says so, and assumed where `ASSUMED` does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import NamedTuple

MILLION = 1_000_000
HOURS = 730
"""Of a month."""

PRICES = {
    "write unit": 0.625 / MILLION,
    "read unit": 0.125 / MILLION,
    "GB-month of the table": 0.25,
    "GB-month of its recovery": 0.20,
    "GB-second of a function (arm64)": 0.0000133334,
    "call of a function": 0.20 / MILLION,
    "request to the HTTP API": 1.00 / MILLION,
    "request to SQS": 0.40 / MILLION,
    "message to SNS": 0.50 / MILLION,
    "call by Scheduler": 1.00 / MILLION,
    "GB of logs": 0.50,
    "GB-month in S3": 0.023,
    "metric of an alarm": 0.10,
    "ACU-hour of Aurora": 0.12,
    "ACU-hour of RDS Proxy": 0.015,
    "hour of a cache.t4g.micro": 0.016,
    "hour of a t3.small.search": 0.036,
    "hour of an Atlas M10": 0.08,
    "vCPU-hour of Fargate": 0.04048,
    "GB-hour of Fargate": 0.004445,
}
FREE_EACH_MONTH = {
    "request to SQS": MILLION,
    "call of a function": MILLION,
    "GB-second of a function (arm64)": 400_000,
    "call by Scheduler": 14 * MILLION,
    "metric of an alarm": 10,
}
"""What AWS gives to every account, for good."""

MEASURED = {
    "write units, event by itself": 7.8,
    "read units, event by itself": 1.6,
    "write units, 100 in a call": 5.1,
    "read units, 100 in a call": 0.6,
    "read units, an event of the feed": 1.0,
    "GB stored, an event": 8e-7,
    "GB of Parquet, an event": 0.12e-6,
    "CPU ms, event by itself": 3.4,
    "CPU ms, an event of 100": 0.69,
    "requests to the store, event by itself": 4.1,
    "requests to the store, a call of 100": 57,
}
ASSUMED = {
    "ms, a request to the store": 5.0,
    "ms, publishing an event": 4.0,
    "GB of a function": 1.0,
    "share of a core": 1_024 / 1_769,
    "GB of logs, a call": 0.5e-6,
    "messages, a request to SQS": 10,
    "requests to SQS, a message sent, received and deleted": 3,
    "pollers of an event source": 5,
    "seconds, a request that waits": 20,
    "seconds, the daily call": 10,
    "ms, a function of the other designs": 10.0,
    "GB, a function of the other designs": 0.5,
}
UNITS = {**MEASURED, **ASSUMED}

Usage = Mapping[str, float]
"""Name of a price -> how much of it."""


def dollars(usage: Usage, free: Usage | None = None) -> float:
    """The price of it, without what is free."""
    return sum(max(0.0, count - (free or {}).get(name, 0.0)) * PRICES[name] for name, count in usage.items())


def together(*parts: Usage) -> dict[str, float]:
    """All of these."""
    names = {name for part in parts for name in part}
    return {name: sum(part.get(name, 0.0) for part in parts) for name in names}


def functions(calls: float, ms: float, gb: float = UNITS["GB of a function"], /) -> Usage:
    """Calls that take so long together."""
    return {
        "call of a function": calls,
        "GB-second of a function (arm64)": ms / 1_000 * gb,
        "GB of logs": calls * UNITS["GB of logs, a call"],
    }


def recorded_one_by_one() -> Usage:
    """An event in a request of its own."""
    ms = UNITS["CPU ms, event by itself"] / UNITS["share of a core"]
    ms += UNITS["requests to the store, event by itself"] * UNITS["ms, a request to the store"]
    return together(
        {"write unit": UNITS["write units, event by itself"], "read unit": UNITS["read units, event by itself"]},
        {"request to the HTTP API": 1},
        functions(1, ms),
    )


def recorded_by_hundreds() -> Usage:
    """An event of a hundred in one call, without what brings them there."""
    return {"write unit": UNITS["write units, 100 in a call"], "read unit": UNITS["read units, 100 in a call"]}


def batch_ms() -> float:
    """How long a function takes for one event of a hundred."""
    waiting = UNITS["requests to the store, a call of 100"] * UNITS["ms, a request to the store"] / 100
    return UNITS["CPU ms, an event of 100"] / UNITS["share of a core"] + waiting


def by_queue() -> Usage:
    """A message through a queue, by tens."""
    requests = UNITS["requests to SQS, a message sent, received and deleted"] / UNITS["messages, a request to SQS"]
    return {"request to SQS": requests}


def published() -> Usage:
    """An event read from the feed and published."""
    reading = {"read unit": UNITS["read units, an event of the feed"], "message to SNS": 1}
    return together(reading, functions(0.01, UNITS["ms, publishing an event"]))


def in_the_lake() -> Usage:
    """An event read from the feed and written to S3."""
    reading = {
        "read unit": UNITS["read units, an event of the feed"],
        "GB-month in S3": UNITS["GB of Parquet, an event"],
    }
    return together(reading, functions(0.0, 0.1))


def stored() -> Usage:
    """An event for a month."""
    size = UNITS["GB stored, an event"]
    return {"GB-month of the table": size, "GB-month of its recovery": size}


WAYS_IN: dict[str, Usage] = {
    "by HTTP, each event by itself": recorded_one_by_one(),
    "by HTTP, 100 in a request": together(
        recorded_by_hundreds(), functions(0.01, batch_ms()), {"request to the HTTP API": 0.01}
    ),
    "by `lead-ingestion`": together(recorded_by_hundreds(), functions(0.01, batch_ms()), by_queue()),
    "by `threadline import`, from a machine of yours": recorded_by_hundreds(),
}


def idle() -> Usage:
    """A month in which nothing comes."""
    seconds = HOURS * 3_600
    return together(
        {"request to SQS": UNITS["pollers of an event source"] * seconds / UNITS["seconds, a request that waits"]},
        {"call by Scheduler": 30, "metric of an alarm": 10},
        functions(30, 30_000 * UNITS["seconds, the daily call"]),
    )


class Design(NamedTuple):
    """A system that Threadline replaces: units of an event by its tables, what else it takes, and what stands by."""

    name: str
    write_units: float
    read_units: float
    calls: float
    """Functions that run for an event."""
    event: Usage
    standing: Usage
    """A month, of the smallest size that is sold."""
    stands_by: str


DESIGNS = (
    Design(
        "events, memory, features", 6.3, 1.6, 3,
        {"message to SNS": 1, "request to SQS": 0.9},
        {"ACU-hour of Aurora": 0.5 * HOURS, "ACU-hour of RDS Proxy": 8 * HOURS},
        "Aurora PostgreSQL (half an ACU), RDS Proxy",
    ),
    Design(
        "streaks and points", 4.5, 1.0, 2, {"request to the HTTP API": 1},
        {"hour of a cache.t4g.micro": HOURS}, "one small Redis; Redshift not counted",
    ),
    Design(
        "events and rules", 3.0, 1.0, 1, {},
        {"hour of a t3.small.search": HOURS, "hour of an Atlas M10": HOURS},
        "one small OpenSearch, MongoDB (Atlas M10)",
    ),
    Design(
        "content interest", 2.0, 0.1, 0, {},
        {"ACU-hour of Aurora": 0.5 * HOURS, "vCPU-hour of Fargate": 0.25 * HOURS, "GB-hour of Fargate": 0.5 * HOURS},
        "Aurora MySQL (half an ACU), one small container",
    ),
    Design("mailing", 0.5, 0.1, 0.1, {}, {}, "nothing"),
)  # fmt: skip


def of_design(design: Design) -> Usage:
    """What an event takes of it."""
    ms = design.calls * UNITS["ms, a function of the other designs"]
    return together(
        {"write unit": design.write_units, "read unit": design.read_units},
        functions(design.calls, ms, UNITS["GB, a function of the other designs"]),
        design.event,
    )


def million_table() -> Iterable[str]:
    """Dollars of a million events, by the way in which they come."""
    yield "| a million events | recording | publishing | lake | storage, a month | together |"
    yield "|---|---|---|---|---|---|"
    after = [MILLION * dollars(part()) for part in (published, in_the_lake, stored)]
    for name, usage in WAYS_IN.items():
        parts = [MILLION * dollars(usage), *after]
        yield f"| {name} | {' | '.join(f'{each:.2f}' for each in [*parts, sum(parts)])} |"


def idle_table() -> Iterable[str]:
    """Dollars of a month in which nothing comes."""
    yield "| a month in which nothing comes | how many | dollars | of these free |"
    yield "|---|---|---|---|"
    usage = idle()
    for name in sorted(usage, key=lambda each: -usage[each] * PRICES[each]):
        price = dollars({name: usage[name]})
        free = price - dollars({name: usage[name]}, FREE_EACH_MONTH)
        yield f"| {name} | {_count(usage[name])} | {price:.2f} | {free:.2f} |"
    price = dollars(usage)
    yield f"| together | | {price:.2f} | {price - dollars(usage, FREE_EACH_MONTH):.2f} |"


def design_table() -> Iterable[str]:
    """Threadline beside the designs that it replaces."""
    yield "| design | a million events | an idle month | what stands by |"
    yield "|---|---|---|---|"
    for design in DESIGNS:
        million, month = MILLION * dollars(of_design(design)), dollars(design.standing)
        yield f"| {design.name} | {million:.2f} | {month:.2f} | {design.stands_by} |"
    million, month = _all_designs()
    yield f"| all five, which together do the same work | {million:.2f} | {month:.2f} | |"
    for name, usage in _ours().items():
        yield f"| Threadline, {name} | {MILLION * dollars(usage):.2f} | {dollars(idle()):.2f} | nothing |"


def month_table() -> Iterable[str]:
    """Dollars of a whole month, by its events."""
    ways = _ours()
    yield f"| events a month | {' | '.join(f'Threadline, {name}' for name in ways)} | all five |"
    yield "|---|---|---|---|"
    million, month = _all_designs()
    for count in (0, 1, 10, 100, 1_000):
        ours = [dollars(idle()) + count * MILLION * dollars(usage) for usage in ways.values()]
        yield f"| {count} million | {' | '.join(f'{each:,.0f}' for each in [*ours, month + count * million])} |"


def _ours() -> dict[str, Usage]:
    """Recorded and published: what the others do as well."""
    names = ("by HTTP, each event by itself", "by `lead-ingestion`")
    return {name: together(WAYS_IN[name], published()) for name in names}


def _all_designs() -> tuple[float, float]:
    """A million events, and a month of what stands by."""
    million = sum(MILLION * dollars(of_design(design)) for design in DESIGNS)
    return million, sum(dollars(design.standing) for design in DESIGNS)


def _count(number: float) -> str:
    return f"{number:,.0f}" if number >= 1 else f"{number:.2g}"


def unit_table() -> Iterable[str]:
    """Every unit, and whether it was measured."""
    yield "| unit | | |"
    yield "|---|---|---|"
    for units, origin in ((MEASURED, "measured"), (ASSUMED, "assumed")):
        for name, value in units.items():
            yield f"| {name} | {value:.3g} | {origin} |"


def price_table() -> Iterable[str]:
    """Every price."""
    yield "| price | dollars |"
    yield "|---|---|"
    for name, price in PRICES.items():
        is_small = price < 0.001
        yield f"| {'million ' if is_small else ''}{name} | {MILLION * price if is_small else price:.5g} |"


TABLES = (million_table, idle_table, design_table, month_table, unit_table, price_table)

if __name__ == "__main__":
    sys.stdout.write("\n\n".join("\n".join(table()) for table in TABLES) + "\n")
