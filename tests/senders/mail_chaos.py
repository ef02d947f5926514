"""Mail to many people while workers are killed: each gets one message, or is told as unknown and then resolved.

``python -m tests.senders.mail_chaos --people 10000 --kills 300``. Workers are forked, killed with SIGKILL as soon as
the sink has accepted a few more messages, and replaced. The clock of all of them runs faster, so that waits pass.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.preparing import one_by_one
from tests.senders.mails import mail
from tests.servers.mail_sink import MailSink, mail_sink
from threadline.app import composition
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.effect import Effect
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.outbox import PendingEffect
from threadline.kernel.person_view import PersonView
from threadline.kernel.policy import Policy, PolicyView, Wish
from threadline.kernel.ports import Ports
from threadline.kernel.preparation import Preparation, Prepared
from threadline.kernel.sender import EFFECT_PARKED, EFFECT_REDRIVEN, EFFECT_RETRIED, EFFECT_UNKNOWN, Outcome, Queue
from threadline.kernel.time import system_clock
from threadline.senders.mail import make_sender
from threadline.settings import load

FASTER = 300
"""How much faster the workers' clock runs: five minutes of a greylist are one second."""
WANTED = "letter_wanted"
REFUSED = ("gone", "nobody", "full", "vague", "late_gone", "policy", "spam")
"""Behaviours of the sink under which a recipient gets nothing."""
UNSURE = ("drop_after", "drop_accepted", "garbage")
SHARES = {"fine": 80, "slow": 1, "greylist": 3, "later": 2, "broken": 1, "closing": 1, "tempfail": 1, "drop_rcpt": 2,
          "drop_body": 2, "drop_after": 2, "drop_accepted": 3, "garbage": 1, "gone": 3, "nobody": 1, "full": 1,
          "vague": 1, "late_gone": 1, "policy": 1, "spam": 1}  # fmt: skip
LEASE_SECONDS = 0.5
"""By the wall. Longer than most mails take, and shorter than some."""
FIRST_SECONDS_MAX = 15.0
"""How long a kill waits for the first message that is accepted after the one before."""
PATIENCE_SECONDS = 60.0
"""Without an accepted message for so long, the run has failed."""


class History(NamedTuple):
    """What the events of a recipient say."""

    sent: int
    refused: int
    unknown: int
    """Times it became unknown."""


def react(recorded: Recorded, view: PolicyView) -> Sequence[Wish]:
    return [Effect(kind="mail", key="letter", queue="mail", data=recorded.event.properties)]


def prepare(engine: Ports, view: PersonView, one: PendingEffect) -> Prepared:
    to = one.effect.data["to"]
    done = Outcome(type="mail_sent", properties={"address": to})
    return Prepared(data=mail(to, one.id).data, claims=(f"letter/{to}",), done=done)


class World:
    """What every process of a run shares."""

    def __init__(self, store: str, sink: MailSink, people: int, seed: int, unknown: str) -> None:
        self.settings = load({"store": store})
        self.sink = sink
        self.base = system_clock()
        draw = random.Random(seed)
        behaviours = draw.choices(list(SHARES), list(SHARES.values()), k=people)
        self.recipients = [f"{behaviour}-{number}@b.example" for number, behaviour in enumerate(behaviours)]
        queue = Queue("mail", 4, None, 5, kind="mail", claims=True, unknown=unknown, unknown_seconds=0)  # type: ignore[arg-type]
        policy = Policy("letters", frozenset({WANTED}), react, emits=frozenset(), sends=frozenset({"mail"}))
        values = [
            *discover(definitions=Definitions()),
            queue,
            policy,
            Preparation("mail", one_by_one(prepare)),
        ]
        self.catalogue = Catalogue(values, rules())

    def clock(self) -> int:
        return self.base + (system_clock() - self.base) * FASTER

    def engine(self) -> Engine:
        return Engine(composition().open_store(self.settings, False), self.catalogue, self.clock)

    def accepted(self) -> int:
        """Bytes of the sink's log: they grow with every message."""
        return self.sink.log.stat().st_size if self.sink.log.exists() else 0


def child(work: Callable[[], None]) -> int:
    """A process that does this and ends."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        os._exit(0)
    except BaseException:  # noqa: BLE001 — a fork must never go on as its parent
        traceback.print_exc()
        os._exit(1)


def fill(world: World) -> None:
    engine = world.engine()
    for start in range(0, len(world.recipients), 200):
        events = [
            Event(
                type=WANTED,
                identifiers=(Identifier("user_id", to),),
                occurred_at=world.base,
                key=to,
                properties={"to": to},
            )
            for to in world.recipients[start : start + 200]
        ]
        assert {each.status for each in engine.recorder.record(events)} == {"accepted"}
    engine.close()


def dispatch(world: World, owner: str, until_done: bool = False) -> None:
    engine = world.engine()
    ports: Any = type("Ports", (), {"environment": staticmethod(lambda name: "")})
    sender = make_sender(f"smtp://127.0.0.1:{world.sink.port}?tls=off&timeout=5", ports, 4)
    dispatcher = Dispatcher(engine, {"mail": sender}, owner, lease_seconds=LEASE_SECONDS * FASTER)
    stopping = threading.Event()
    if until_done:
        threading.Thread(target=_stop_when_done, args=(world, engine, stopping), daemon=True).start()
    dispatcher.run(stopping, idle_seconds=0.02)
    engine.close()


def _stop_when_done(world: World, engine: Engine, stopping: threading.Event) -> None:
    size, since = world.accepted(), time.monotonic()
    while not stopping.wait(0.1):
        waiting = sum(queue.waiting for queue in engine.delivery.queues())
        if world.accepted() != size:
            size, since = world.accepted(), time.monotonic()
        if waiting == 0 or time.monotonic() > since + PATIENCE_SECONDS:
            stopping.set()


def resolve(world: World) -> None:
    """What an operator does who looks at the server's log: each unknown one happened, or is to be sent again."""
    engine = world.engine()
    accepted = {each.to for each in world.sink.accepted()}
    again = Outcome(type=EFFECT_RETRIED, retry_after_seconds=0.0)
    while page := engine.delivery.unknown("default"):
        for each in page:
            outcome = None if each.pending.effect.data["to"] in accepted else again
            assert engine.delivery.resolve("default", each.pending.id, outcome, "the log of the server")
    engine.close()


def wait_for(pid: int) -> None:
    _, status = os.waitpid(pid, 0)
    if status:
        raise RuntimeError(f"a worker ended with {status}")


def kill_often(world: World, kills: int, workers: int, draw: random.Random) -> int:
    """Kill a worker whenever the sink has accepted a little more; how many were killed."""
    # Every second one takes its leases over from the one that was killed; the others wait until they have run out.
    running = [child(lambda slot=slot: dispatch(world, f"{slot}/0")) for slot in range(workers)]
    bytes_each = 120
    stretch = len(world.recipients) * bytes_each // max(kills, 1)
    killed, since = 0, time.monotonic()
    try:
        while killed < kills:
            before = world.accepted()
            wanted = before + draw.randrange(1, max(stretch, 2))
            # On a busy machine a worker that is killed before it has sent anything would prove nothing.
            until = time.monotonic() + FIRST_SECONDS_MAX
            while (now := world.accepted()) < wanted and time.monotonic() < until:
                until = until if now == before else min(until, time.monotonic() + 2.0)
                time.sleep(0.001)
            time.sleep(draw.random() * 0.01)
            victim = draw.randrange(workers)
            os.kill(running[victim], signal.SIGKILL)
            os.waitpid(running[victim], 0)
            killed += 1
            owner = f"{victim}/{killed // 2 % 2}"
            running[victim] = child(lambda owner=owner: dispatch(world, owner))
            if killed % 50 == 0:
                note(f"{killed} kills, {len(world.sink.accepted())} accepted, {time.monotonic() - since:.0f} s")
    finally:
        for pid in running:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return killed + len(running)


def history_of(engine: Engine, to: str) -> History:
    types = Counter(
        each.event.type for each in engine.reader.all_events(engine.reader.person("default", f"user_id:{to}"))
    )
    assert types[EFFECT_REDRIVEN] == 0
    return History(types["mail_sent"], types["mail_bounced"] + types[EFFECT_PARKED], types[EFFECT_UNKNOWN])


def wrong(world: World) -> tuple[list[str], int]:
    """Whatever is not as promised, and how many effects were unknown for a while."""
    engine = world.engine()
    messages = Counter(each.to for each in world.sink.accepted())
    ids = Counter(each.id for each in world.sink.accepted())
    faults = [f"{id} was accepted {count} times" for id, count in ids.items() if count > 1]
    faults += [f"{to} was never a recipient" for to in messages.keys() - set(world.recipients)]
    unknown = 0
    for to in world.recipients:
        found = history_of(engine, to)
        unknown += found.unknown
        refused = to.partition("-")[0] in REFUSED
        if messages[to] != int(not refused):
            faults.append(f"{to} got {messages[to]} messages")
        if (found.sent, found.refused) != (int(not refused), int(refused)):
            faults.append(f"{to} has the history {found}")
    faults += [f"{queue.waiting} effects wait" for queue in engine.delivery.queues() if queue.waiting]
    faults += ["an effect is unknown"] if engine.delivery.unknown("default") else []
    engine.close()
    return faults, unknown


def run(
    store: str, folder: Path, people: int, kills: int, workers: int, seed: int, unknown: str = "wait"
) -> dict[str, Any]:
    """One run, and what came of it. With ``unknown`` as ``send_again`` somebody gets two, or this proves nothing."""
    began = time.monotonic()
    with mail_sink(folder, delay=0.3) as sink:
        world = World(store, sink, people, seed, unknown)
        wait_for(child(lambda: fill(world)))
        note(f"{people} people recorded, {time.monotonic() - began:.0f} s")
        killed = kill_often(world, kills, workers, random.Random(seed)) if kills else 0
        left = -1
        for _ in range(8):
            wait_for(child(lambda: dispatch(world, "last", until_done=True)))
            left = unknown_left(world, folder)
            if not left:
                break
            wait_for(child(lambda: resolve(world)))
        faults, unknown = wrong(world)
        return {
            "people": people,
            "kills": killed,
            "accepted": len(sink.accepted()),
            "unknown": unknown,
            "faults": len(faults),
            "first faults": faults[:10],
            "seconds": round(time.monotonic() - began, 1),
        }


def unknown_left(world: World, folder: Path) -> int:
    """How many are unknown, counted in a process of its own: this one must hold no store while it forks."""
    file = folder / "unknown"

    def count() -> None:
        engine = world.engine()
        file.write_text(str(len(engine.delivery.unknown("default", limit=1_000))))
        engine.close()

    wait_for(child(count))
    return int(file.read_text())


def note(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--store", default="", help="a file or a URL; by default a file in a temporary folder")
    options.add_argument("--people", type=int, default=10_000)
    options.add_argument("--kills", type=int, default=300)
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--unknown", default="wait", help="send_again: then somebody must get two")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = given.store or str(Path(folder) / "chaos.db")
        found = run(store, Path(folder), given.people, given.kills, given.workers, given.seed, given.unknown)
    sys.stdout.write(json.dumps(found) + "\n")
    sys.exit(bool(found["faults"]))


if __name__ == "__main__":
    main()
