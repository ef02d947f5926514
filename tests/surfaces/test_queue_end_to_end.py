"""Events through queue, worker, store and topic, with a worker killed; `queue_proof.py` has the whole of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.surfaces.queue_proof import Plan, prove


@pytest.mark.slow
def test_events_sent_twice_with_poison_and_a_killed_worker_are_recorded_and_published_once_each(tmp_path: Path) -> None:
    plan = Plan(
        str(tmp_path / "x.db"), name="small", events=1_000, people=50, kills=1, kill_every=1.5, visibility_seconds=3
    )
    assert prove(plan)["poison"] >= 1
