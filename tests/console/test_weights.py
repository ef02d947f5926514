"""No screen is above 100 KB, whatever lies in the store: every address, of a store in which each list is full."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from bench.cases.screens import pages, parts
from tests.console.stage import opened, record, signed_in
from threadline.engine.engine import Engine
from threadline.surfaces.console.screens import screens

BYTES_MAX = 100_000
PEOPLE, EVENTS, TYPES, PLANS = 150, 2_300, 60, 60
DEFINITIONS = """
rules: {large: {conditions: {field: event.properties.total, greater_than: 100}}}
rule_sets: {orders: {events: [purchase_completed], rules: [large]}}
mail:
  senders: {shop: {from: shop@example.com}}
  templates: {hello: {subject: Hi, text: Hi}}
journeys: {welcome: {trigger: {event: signed_up_again}, steps: [{send: hello}, {wait: 2d}, {send: hello}]}}
segments:
"""
SEGMENTS = "".join(f"  plan_{each}: {{when: {{field: traits.plan, equals: plan{each}}}}}\n" for each in range(PLANS))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    file = Path(tmp_path_factory.mktemp("weights")) / "threadline.yaml"
    file.write_text(DEFINITIONS + SEGMENTS)
    with opened(file) as made:
        record(made, *_events())
        yield made


def _events() -> Iterator[tuple[str, str, dict[str, object]]]:
    """Half of them of one person, whose tabs are then as full as the lists of everybody."""
    long = "a rather long text of a person that says what they did, and where " * 2
    for number in range(EVENTS):
        who = "user-000007" if number % 2 else f"user-{number % PEOPLE:06}"
        properties = {"total": number % 400, "currency": "EUR", "text": long, "category": f"category {number % 90}"}
        yield who, "purchase_completed" if number % 3 else f"thing_{number % TYPES}_done", properties
    for number in range(PEOPLE):
        traits = {f"trait_{each}": f"{long} {each}" for each in range(20)}
        yield f"user-{number:06}", "identify", {**traits, "plan": f"plan{number % PLANS}", "email": f"u{number}@x.io"}


@pytest.fixture(scope="module")
def admin(engine: Engine) -> TestClient:
    return signed_in(engine)


def addresses() -> Iterator[str]:
    """Every page, and every part that is no file."""
    files = {(each.name, part) for each in screens() for part, it in each.parts.items() if it.download or it.file}
    yield from (path for _, path in pages())
    yield from (f"{path}?part={part}" for name, path, part in parts() if (name, part) not in files)


@pytest.mark.parametrize("path", sorted(addresses()))
def test_a_screen_of_a_full_store_is_below_100_kb(admin: TestClient, path: str) -> None:
    answer = admin.get(path)
    assert answer.status_code < 500, answer.text[-300:]
    assert len(answer.content) < BYTES_MAX
