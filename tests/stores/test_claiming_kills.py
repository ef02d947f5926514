"""Processes that send claimed effects are killed with -9: nobody gets two letters, and each letter has one end."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests import forked
from tests.servers import dynamodb, postgres
from tests.stores.claiming_worker import SENT, engine_on
from threadline.app import composition
from threadline.engine.scheduled import OUTBOX
from threadline.kernel.event import Event, Identifier
from threadline.kernel.store import scan_pages
from threadline.kernel.time import system_clock
from threadline.settings import load

ROOT = Path(__file__).parents[2]
KILLS = os.environ.get("THREADLINE_TEST_CLAIM_KILLS")
"""In all, on each store; without it few."""


def address(kind: str, folder: Path) -> str:
    if kind == "sqlite":
        return str(folder / "letters.db")
    if kind == "dynamodb":
        return dynamodb.ministack().made(folder)
    return postgres.server(postgres.VERSIONS[0]).made(postgres.schema_of(folder))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "workers", "few"), [("sqlite", 1, 6), ("postgres", 2, 4), ("dynamodb", 2, 2)])
def test_nobody_gets_two_letters_however_often_who_sends_them_is_killed(
    kind: str, workers: int, few: int, tmp_path: Path, seed: int
) -> None:
    kills = int(KILLS or few)
    letters = 12 * kills
    url, sink = address(kind, tmp_path), tmp_path / "sink"
    store = composition().open_store(load({"store": url}), False)
    engine = engine_on(store)
    for number in range(letters):
        # Every tenth shares its key with its neighbour: one of the two is sent.
        key = f"letter {number - (number % 10 == 9)}"
        event = Event(
            type="write",
            identifiers=(Identifier("user_id", f"p{number}"),),
            occurred_at=system_clock(),
            key=f"{number}",
            properties={"key": key},
        )
        assert engine.recorder.record([event])[0].status == "accepted"
    store.close()
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [forked.python(), "-m", "tests.stores.claiming_worker", url, str(sink)]
    running = []
    for number in range(workers):
        drawn = [f"worker {number}", str(seed + number), str(kills // workers)]
        running.append(subprocess.Popen([*command, *drawn], cwd=ROOT, env=environment))
    try:
        assert [each.wait(300 + 10 * kills) for each in running] == [0] * workers
    finally:
        for each in running:
            each.kill()
    engine = engine_on(composition().open_store(load({"store": url}), False))
    sent = [line.split(" ", 1) for line in sink.read_text().splitlines()]
    assert max(Counter(id for id, _ in sent).values()) == 1
    assert max(Counter(key for _, key in sent).values()) == 1
    assert list(scan_pages(engine.store, OUTBOX)) == []
    unknown = engine.delivery.unknown("default", limit=1_000)
    ends: Counter[str] = Counter()
    for number in range(letters):
        person = engine.reader.person("default", f"user_id:p{number}")
        told = sorted(engine.reader.events(person), key=lambda each: each.sequence)
        ends[told[-1].event.type] += 1
    assert ends["threadline.effect_unknown"] == len(unknown) <= 3 * kills
    assert ends[SENT] + ends["threadline.effect_unknown"] >= letters - letters // 10
    assert ends[SENT] <= len(sent) <= ends[SENT] + len(unknown)
    assert sum(ends.values()) == letters
    for each in unknown:
        assert engine.delivery.resolve("default", each.pending.id, None, "the post office")
    assert engine.delivery.unknown("default") == []
    engine.close()
