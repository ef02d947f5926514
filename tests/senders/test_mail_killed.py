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


def chaos(*arguments: str) -> dict[str, Any]:
    """In a process of its own, which forks."""
    command = [sys.executable, "-m", "tests.senders.mail_chaos", *arguments]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert ended.stdout, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    assert found["first faults"] == [], ended.stderr
    return found


@pytest.mark.slow
def test_everybody_gets_one_mail_while_workers_are_killed_on_sqlite() -> None:
    found = chaos("--people=300", "--kills=15")
    assert found["kills"] >= 15
    assert found["unknown"] > 0


@pytest.mark.slow
def test_everybody_gets_one_mail_while_two_workers_are_killed_on_postgresql(tmp_path: Path) -> None:
    store = postgres.server(postgres.VERSIONS[0]).made(postgres.schema_of(tmp_path))
    assert chaos(f"--store={store}", "--people=100", "--kills=5", "--workers=2")["kills"] >= 5


@pytest.mark.slow
def test_everybody_gets_one_mail_while_two_workers_are_killed_on_dynamodb(tmp_path: Path) -> None:
    store = dynamodb.ministack().made(tmp_path)
    assert chaos(f"--store={store}", "--people=100", "--kills=5", "--workers=2")["kills"] >= 5
