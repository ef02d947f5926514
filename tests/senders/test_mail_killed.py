"""A small share of `mail_chaos`: nobody gets a mail twice, and none is lost, on any store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.servers import dynamodb, postgres

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("THREADLINE_TEST_MAIL_KILLS", "6"))
"""Of the embedded store; the others get a third."""
PEOPLE_PER_KILL = 20
SEED = f"--seed={os.environ.get('THREADLINE_TEST_SEED', '1')}"
ELSEWHERE = (f"--people={KILLS // 3 * PEOPLE_PER_KILL}", f"--kills={KILLS // 3}", "--workers=2", SEED)


def chaos(*arguments: str) -> dict[str, Any]:
    """In a process of its own, which forks."""
    command = [sys.executable, "-m", "tests.senders.mail_chaos", *arguments]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    ended = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=3_000, check=False
    )
    assert ended.stdout, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    assert found["first faults"] == [], ended.stderr
    return found


@pytest.mark.slow
def test_everybody_gets_one_mail_while_workers_are_killed_on_sqlite() -> None:
    found = chaos(f"--people={KILLS * PEOPLE_PER_KILL}", f"--kills={KILLS}", SEED)
    assert found["kills"] >= KILLS
    assert found["unknown"] > 0


@pytest.mark.slow
def test_everybody_gets_one_mail_while_two_workers_are_killed_on_postgresql(tmp_path: Path) -> None:
    store = postgres.server(postgres.VERSIONS[0]).made(postgres.schema_of(tmp_path))
    assert chaos(f"--store={store}", *ELSEWHERE)["kills"] >= KILLS // 3


@pytest.mark.slow
def test_everybody_gets_one_mail_while_two_workers_are_killed_on_dynamodb(tmp_path: Path) -> None:
    store = dynamodb.ministack().made(tmp_path)
    assert chaos(f"--store={store}", *ELSEWHERE)["kills"] >= KILLS // 3
