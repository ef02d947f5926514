"""The stage of the tests of the curated zone: people who do everything that a table is about, and reading of tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from tests.laws import staging
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.exports.curated.commands import plain
from threadline.exports.curated.queries import VIEWS
from threadline.exports.curated.reading import opened
from threadline.exports.curated.writing import tables_of
from threadline.exports.lake.folder import FolderStorage
from threadline.exports.lake.lake import Lake
from threadline.kernel.event import Event
from threadline.kernel.store import Store
from threadline.kernel.time import DAY, HOUR, MINUTE

DEFINITIONS = """
streaks:
  daily: {cadence: day, events: [product_viewed, purchase_completed], freezes: {start: 1, every: 3, max: 2}}
  weekly: {cadence: week, events: product_viewed}
interests:
  period: 7d
  topics:
    product: {counting: capped, most: 2, window: 1d}
features:
  select: {aggregate: sum, events: purchase_completed, of: total}
  order: {aggregate: last, events: purchase_completed, of: item}
  group: {aggregate: any, events: product_viewed}
"""
START = staging.NOW - 40 * DAY


def engine(store: Store, definitions: str = DEFINITIONS) -> Engine:
    declared = Definitions([("threadline.yaml", definitions)])
    return Engine(store, Catalogue(discover(definitions=declared), rules(), declared), staging.frozen)


def lake_in(folder: Path) -> Lake:
    return Lake(FolderStorage(folder))


def happenings(
    random: Random, count: int, days: int = 30, workspaces: tuple[str, ...] = ("default", "..")
) -> list[Event]:
    """Events of a few people who join in time; half of them in sessions, some late, some of them nobody's to trust."""
    made = []
    for number in range(count):
        person = random.randrange(5)
        names = {"user_id": f"u{person}"} if random.random() < 0.6 else {"anonymous_id": f"d{person}"}
        if random.random() < 0.1:
            names = {"user_id": f"u{person}", "anonymous_id": f"d{person}"}
        at = START + random.randrange(days) * DAY + random.choice([0, 1, 9 * HOUR, 9 * HOUR + 1, DAY - 1])
        at += random.choice([0, 29 * MINUTE, 30 * MINUTE, 30 * MINUTE - 1])
        type, properties = _content(random, number)
        made.append(
            staging.event(
                type,
                names,
                f"{random.random()}",
                at,
                workspace=random.choice(workspaces),
                properties=properties,
                source_type=random.choice(["external", "direct", "direct", "internal"]),
            )
        )
    return made


def _content(random: Random, number: int) -> tuple[str, dict[str, Any]]:
    mail = f"m{random.randrange(8)}"
    points = random.choice([5, 12, 0, -3, 5.0, "5", True, None, 10**12, 10**12 + 1, 2**64 - 1])
    return random.choice(
        [
            ("product_viewed", {"category": random.choice(["shoes", "hats", "☃", 7, ["a", "b"]])}),
            ("purchase_completed", {"total": random.choice([1.5, 20, "3"]), "item": random.choice(["x", 3, None])}),
            (
                random.choice(["points_earned", "points_spent", "points_adjusted", "points_expired"]),
                {"points": points, "rule": "r", "reason": f"reason {number}"},
            ),
            (random.choice(["mail_sent", "mail_skipped"]), {"message": mail, "template": "welcome", "reason": "cap"}),
            (
                random.choice(["mail_opened", "mail_clicked", "mail_delivered", "mail_bounced"]),
                {"message": mail, "machine": random.random() < 0.3, "bounce": "permanent"},
            ),
            (
                "decision_made",
                {
                    "decision_id": f"d{number}",
                    "rule": "r",
                    "version": 2,
                    "status": "Approved",
                    "output": {"a": [1, "x"]},
                    "inputs": {},
                    "hash": "h",
                },
            ),
        ]
    )


def ask(on: Engine, lake: Lake | None, query: str, workspace: str = "default") -> list[dict[str, Any]]:
    """The rows of a query."""
    return ask_all(on, lake, [query], workspace)[query]


def ask_all(
    on: Engine, lake: Lake | None, queries: Sequence[str], workspace: str = "default"
) -> dict[str, list[dict[str, Any]]]:
    """The rows of several queries."""
    with opened(on, lake, workspace) as reading:
        return {query: [plain(row) for row in reading.run(query).read_all().to_pylist()] for query in queries}


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=repr)


def tables(on: Engine, lake: Lake | None) -> dict[str, list[dict[str, Any]]]:
    """Every table, in an order that does not depend on how it was made."""
    names = [*(table.name for table in tables_of(on)), *VIEWS]
    return {query: in_order(rows) for query, rows in ask_all(on, lake, [f"FROM {name}" for name in names]).items()}
