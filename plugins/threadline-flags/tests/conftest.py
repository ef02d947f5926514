"""A shop with flags, in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import threadline
from threadline.surfaces.python.embedded import Threadline

DEFINITIONS = """
segments:
  keen: {when: {field: features.monetary_total, greater_than: 50}}
flags:
  new_checkout:
    variants: {on: true, off: false}
    otherwise: off
    rules:
      - {when: {field: segments.keen.since, exists: true}, variant: on}
      - {when: {field: event.properties.plan, equals: staff}, variant: on}
      - {split: {on: 20, off: 80}}
  colour: {variants: {red: {hex: "#f00"}, blue: {hex: "#00f"}}, otherwise: red}
  limit: {variants: {low: 10, high: 100}, otherwise: low, enabled: false, rules: [{variant: high}]}
"""
DAY = 86_400_000_000
NOW = 1_772_366_400_000_000


class Clock:
    """Stands still until somebody moves it."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "threadline.yaml"
    path.write_text(DEFINITIONS)
    return path


@pytest.fixture
def shop(file: Path, clock: Clock) -> Iterator[Threadline]:
    with threadline.open("memory:", definitions=file, clock=clock) as shop:
        shop.identify("ada", {"first_name": "Ada"})
        purchase = {"type": "purchase_completed", "key": "1", "identifiers": {"user_id": "ada"}}
        shop.record([{**purchase, "properties": {"total": 120, "currency": "EUR"}}])
        shop.identify("bob")
        yield shop
