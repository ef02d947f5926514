"""Law of every channel: its senders are killed with -9 at any step, and nobody gets two messages, and none is lost."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests import forked
from tests.laws.channels_stage import STAGES, WISHED, channels
from tests.laws.channels_worker import engine_on, opened
from threadline.engine.scheduled import OUTBOX
from threadline.kernel.event import Event, Identifier
from threadline.kernel.sender import EFFECT_UNKNOWN
from threadline.kernel.store import scan_pages
from threadline.kernel.time import system_clock

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("THREADLINE_TEST_CHANNEL_KILLS") or 30)
"""For each channel."""


@pytest.mark.slow
@pytest.mark.parametrize("channel", sorted(channels()))
def test_nobody_gets_two_messages_however_often_who_sends_them_is_killed(
    channel: str, tmp_path: Path, seed: int
) -> None:
    url, sink, wishes = str(tmp_path / "shop.db"), tmp_path / "sink", 4 * KILLS
    engine = engine_on(channel, opened(url))
    staged = STAGES[channel]
    for number in range(wishes):
        # Every tenth wish is about the occurrence of the one before it, of the same person.
        who = number - (number % 10 == 9)
        for type, properties in (
            ("identify", {staged.trait: staged.address(who)}),
            (WISHED, {"template": "receipt", "occurrence": f"order-{who}"}),
        ):
            identifiers, key = (Identifier("user_id", f"p{who}"),), f"{type}-{number}"
            at = system_clock()
            event = Event(type=type, identifiers=identifiers, occurred_at=at, key=key, properties=properties)
            assert engine.recorder.record([event])[0].status == "accepted"
    engine.close()
    command = [forked.python(), "-m", "tests.laws.channels_worker", channel, url, str(sink), str(seed), str(KILLS)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=600 + 20 * KILLS)
    entries, engine = channels()[channel], engine_on(channel, opened(url))
    left = Counter(line.split()[0] for line in sink.read_text().splitlines())
    assert set(left.values()) == {1}
    assert list(scan_pages(engine.store, OUTBOX)) == []
    ends: Counter[str] = Counter()
    for number in range(wishes):
        if number % 10 == 9:
            continue
        person = engine.reader.person("default", f"user_id:p{number}")
        outcomes = [r.event for r in engine.reader.all_events(person) if r.event.source == "threadline.dispatch"]
        by_message = {event.properties["message"]: event.type for event in outcomes}
        assert len(outcomes) == len(by_message) == (2 if number % 10 == 8 and number + 1 < wishes else 1)
        ends.update(by_message.values())
    unknown = engine.delivery.unknown("default", limit=1_000)
    assert ends[EFFECT_UNKNOWN] == len(unknown) <= 3 * KILLS
    assert ends[entries.sent] <= sum(left.values()) <= ends[entries.sent] + len(unknown)
    assert sum(ends.values()) == wishes
    assert ends[entries.skipped] <= wishes // 10
    for effect in unknown:
        assert engine.delivery.resolve("default", effect.pending.id, None, "a receipt")
    assert engine.delivery.unknown("default") == []
    engine.close()
