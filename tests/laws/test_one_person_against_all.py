"""Law: whatever one person sends, an event costs a bounded amount of work, and nobody waits for more than a share.

Time is measured in `bench/cases/adversary.py`. Here work is counted: every call that Python makes while it records.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import staging
from tests.laws.test_instants import CATALOGUE
from threadline.engine.engine import Engine
from threadline.engine.recording.validation import Checked, ValidatedEvent
from threadline.kernel.event import Event, Identifier, Receipt
from threadline.surfaces.http.events.writer import SHARE_EVENTS, Writer
from threadline.testing.adversary import Attack, attacks
from threadline.testing.scenarios import NOW

TYPES = sorted(
    type
    for each in (*CATALOGUE.projections, *CATALOGUE.policies)
    for type in each.handles or ()
    if not type.startswith("threadline")
)
BLOCK, BLOCKS = 100, 4
GROWTH_MAX = 2.5
"""The last events of a person may cost so many times what the first cost."""
ORDINARY_MAX = 5
"""An event of an attack may cost as much as so many ordinary ones."""

ATTACKS = attacks(Identifier("user_id", "adversary"), TYPES, NOW)


def calls(work: Callable[[], object]) -> int:
    """How many functions are called, those in C as well: the same number whenever the same work is done."""
    counted = 0

    def count(frame: FrameType, kind: str, argument: object) -> None:
        nonlocal counted
        counted += kind in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return counted


def spent(attack: Attack, blocks: int) -> list[int]:
    """The calls that each block of events takes, recorded in shares of a group."""
    on = Engine(staging.MemoryStore(), CATALOGUE, lambda: NOW)
    found = []
    for block in range(blocks):
        events = [attack(number) for number in range(block * BLOCK, (block + 1) * BLOCK)]
        shares = [events[at : at + SHARE_EVENTS] for at in range(0, BLOCK, SHARE_EVENTS)]
        receipts: list[Receipt] = []
        found.append(
            calls(lambda shares=shares, receipts=receipts: [receipts.extend(on.recorder.record(s)) for s in shares])
        )  # type: ignore[misc]  # both are of this block
        assert {receipt.status for receipt in receipts} == {"accepted"}
    return found


@pytest.fixture(scope="module")
def ordinary() -> int:
    """The calls of a block of ordinary events."""
    return spent(ATTACKS["in order"], 2)[1]


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS)
def test_events_of_a_long_history_cost_no_more_than_those_of_a_short_one(attack: str, ordinary: int) -> None:
    found = spent(ATTACKS[attack], BLOCKS)
    assert max(found) <= GROWTH_MAX * found[0], [each // BLOCK for each in found]
    assert max(found) <= ORDINARY_MAX * ordinary, [each / ordinary for each in found]


class Committing:
    """An engine that notes each group and commits nothing. Whose an event is stands in its identifiers."""

    def __init__(self) -> None:
        self.engine = Engine(staging.MemoryStore(), CATALOGUE, lambda: NOW)
        self.recorder = self
        self.groups: list[list[Event]] = []

    def likely_person(self, one: ValidatedEvent) -> str:
        return one.names[0].identifier.value

    def record_checked(self, checked: Sequence[Checked]) -> list[Receipt]:
        self.groups.append([one.request.event for one in checked])
        return [Receipt(status="accepted", id=one.request.event.key) for one in checked]


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 40)), min_size=1, max_size=4), max_size=8))
def test_whatever_waits_each_person_has_a_share_of_a_group_and_who_comes_next_is_in_the_next_one(
    backlog: list[list[tuple[int, int]]],
) -> None:
    on = Committing()
    room = 4 * SHARE_EVENTS + 1

    def checked(request: int, who: Sequence[tuple[int, int]]) -> list[Checked]:
        people = [Identifier("user_id", f"p{person}") for person, count in who for _ in range(count)]
        events = [
            Event(type="page", identifiers=(each,), occurred_at=NOW, key=f"{n}", source=f"{request}")
            for n, each in enumerate(people)
        ]
        return on.engine.recorder.check(events)

    async def run() -> None:
        writer = Writer(on, commit_events_max=room, queue_events_max=100_000)  # type: ignore[arg-type]  # it records
        requests = [checked(number, who) for number, who in enumerate(backlog)]
        waiting = [asyncio.create_task(writer.record(each)) for each in requests]
        bystander = asyncio.create_task(writer.record(checked(-1, [(9, 1)])))
        receipts = await asyncio.gather(*waiting)
        await bystander
        await writer.close()
        for request, answered in zip(requests, receipts, strict=True):
            assert [one.request.event.key for one in request] == [receipt.id for receipt in answered]

    asyncio.run(run())
    for group in on.groups:
        assert len(group) <= room
        assert max(Counter(each.identifiers for each in group).values()) <= SHARE_EVENTS
    order: dict[str, list[int]] = {}
    for each in (each for group in on.groups for each in group):
        order.setdefault(each.source, []).append(int(each.key))
    assert all(numbers == list(range(len(numbers))) for numbers in order.values())
    assert any(each.source == "-1" for each in on.groups[0])
