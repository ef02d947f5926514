"""A total that cannot read a value says so, whoever makes the total."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import msgspec
import pytest

from threadline.app import open_engine
from threadline.capabilities.ask.analytics.parts import Answered
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import DAY, parse_time
from threadline.settings import Settings

NOW = parse_time("2026-03-01T00:00:00Z")
READABLE = [5, 2.5, "7", "1e2"]
UNREADABLE = ["1.234,56", "€29", "29 EUR", True, [3], {"amount": 4}]
NONE = [None, "", "  "]
PEOPLE, DAYS = 200, 280


def bought(random: Random) -> Iterator[tuple[int, int, float]]:
    """Who bought on which day for how much: at a pace of their own until they leave, as the model assumes."""
    for who in range(PEOPLE):
        spends = random.gammavariate(4, 10)
        pace, leaves, day = random.gammavariate(1, 0.03), random.betavariate(1, 4), random.uniform(1, 60)
        while day < DAYS:
            yield who, int(day), round(spends * random.gammavariate(6, 1 / 6), 2)
            if random.random() < leaves:
                break
            day += 1 + random.expovariate(pace)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    made = open_engine("memory:", Settings(), lambda: NOW)
    events = [("experiment_viewed", n, 0, {"variation_name": "ab"[n % 2]}) for n in range(PEOPLE)]
    events += [("purchase_completed", who, day, {"total": total}) for who, day, total in bought(Random(7))]
    totals = [*UNREADABLE, *NONE, *READABLE]
    events += [("purchase_completed", n, 1 + n, {"total": total}) for n, total in enumerate(totals)]
    made.recorder.record(
        [
            Event(
                type=type,
                identifiers=(Identifier("user_id", f"u{who}"),),
                occurred_at=NOW - (DAYS - day) * DAY,
                key=str(key),
                source="shop",
                properties=properties,
                context={"campaign": {"source": "news"}},
            )
            for key, (type, who, day, properties) in enumerate(events)
        ]
    )
    yield made
    made.close()


def test_every_analysis_that_adds_up_a_property_says_how_many_values_it_could_not_read(engine: Engine) -> None:
    adding = {
        operation.name: operation
        for operation in engine.catalogue.operations
        if "value" in getattr(operation.params, "__struct_fields__", ()) and _is_answered(operation.result)
    }
    assert len(adding) >= 5
    values = len(UNREADABLE) + len(READABLE) + len(list(bought(Random(7))))
    for name, operation in adding.items():
        params = msgspec.structs.replace(operation.example, value="total")
        answer = operation.run(Context(engine, "default", NOW), params)
        said = f"{len(UNREADABLE)} of {values} events came with a `total` that is no number"
        assert any(note.startswith(said) for note in answer.notes), (name, answer.notes)
        unspent = msgspec.structs.replace(params, value="")
        assert not any("no number" in note for note in operation.run(Context(engine, "default", NOW), unspent).notes)


def _is_answered(result: object) -> bool:
    return isinstance(result, type) and issubclass(result, Answered)
