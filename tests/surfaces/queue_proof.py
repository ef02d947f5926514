"""Events through a queue into a store and out to a topic, while workers are killed: each exactly where it belongs.

Every event is sent twice, in any order, with poison among them. In the end the store equals one that was told each
event once, the subscriber of the topic has every position of the feed, and the dead-letter queue has the poison.

``python -m tests.surfaces.queue_proof --events 100000 --kills 20 --workers 2 --postgres`` is the whole of it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlencode

import threadline
from tests.servers.aws import aws
from threadline.app import catalogue
from threadline.engine.delivery.feed_consumer import consumers
from threadline.engine.engine import Engine
from threadline.engine.folding.packing import unpack_event
from threadline.engine.maintenance.dump import Fingerprint, dump_lines, fingerprint
from threadline.kernel.store import feed_pages
from threadline.surfaces.queues.intake import EventIntake, QueueMessage

TYPES = ("purchase_completed", "product_viewed", "campaign_engaged", "conversation_started", "seen")
POISON = ("", "{", "[7]", "{}", '{"type": "track", "event": "seen"}', '{"identifiers": {"user_id": "a"}, "type": "x"}')
SECONDS_MAX = 3_600.0
WAITING_MAX = 800


@dataclass
class Plan:
    """How large it is, and on which store."""

    store: str
    name: str = "proof"
    events: int = 300
    people: int = 40
    kills: int = 1
    workers: int = 1
    kill_every: float = 8.0
    visibility_seconds: int = 20
    seed: int = 1
    poison: list[str] = field(default_factory=list)


def messages(plan: Plan) -> list[str]:
    """The bodies, each once: of one event up to twenty, and one in a hundred of none."""
    draw, bodies, count = Random(plan.seed), [], 0
    while count < plan.events:
        size = min(draw.choice([1, 1, 5, 10, 20]), plan.events - count)
        found = [_event(draw, plan, count + place) for place in range(size)]
        bodies.append(json.dumps(found[0] if size == 1 else {"events": found}))
        count += size
    plan.poison = [f"{POISON[n % len(POISON)]} {' ' * n}" for n in range(max(1, len(bodies) // 100))]
    return bodies


def _event(draw: Random, plan: Plan, number: int) -> dict[str, Any]:
    person = draw.randrange(plan.people)
    identifiers = {"user_id": f"u{person}"} | ({"anonymous_id": f"a{person}"} if draw.random() < 0.3 else {})
    if draw.random() < 0.2 and "anonymous_id" in identifiers:
        del identifiers["user_id"]
    at = 1_760_000_000 + draw.randrange(90 * 86_400)
    return {
        "type": draw.choice(TYPES),
        "identifiers": identifiers,
        "key": f"k{number}",
        "occurred_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)),
        "properties": {
            "total": draw.randrange(10_000) / 100,
            "currency": "EUR",
            "product_id": f"p{draw.randrange(30)}",
        },
    }


class World:
    """Queues, topic and workers of a proof."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.sqs, self.sns = aws().client("sqs"), aws().client("sns")
        self.dead = self.queue("dead")
        policy = {"deadLetterTargetArn": self.arn(self.dead), "maxReceiveCount": "1000"}
        self.url = self.queue("in", RedrivePolicy=json.dumps(policy), VisibilityTimeout=str(plan.visibility_seconds))
        self.out = self.queue("out")
        self.topic = self.sns.create_topic(Name=f"{plan.name}-events")["TopicArn"]
        raw = {"RawMessageDelivery": "true"}
        self.sns.subscribe(TopicArn=self.topic, Protocol="sqs", Endpoint=self.arn(self.out), Attributes=raw)
        self.workers: list[subprocess.Popen[bytes]] = []
        self.fed = False

    def queue(self, name: str, **attributes: str) -> str:
        """A new queue's URL."""
        url: str = self.sqs.create_queue(QueueName=f"{self.plan.name}-{name}", Attributes=attributes)["QueueUrl"]
        return url

    def attributes(self, url: str) -> dict[str, str]:
        """All that SQS says of a queue."""
        found: dict[str, str] = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        return found

    def arn(self, url: str) -> str:
        """A queue's name for AWS."""
        return self.attributes(url)["QueueArn"]

    def left(self) -> int:
        """Messages in the queue, those in flight as well."""
        found = self.attributes(self.url)
        names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        return sum(int(found[name]) for name in names)

    def send(self, bodies: list[str]) -> None:
        """Put these into the queue."""
        entries = [{"Id": str(n % 10), "MessageBody": body} for n, body in enumerate(bodies)]
        calls = [entries[start : start + 10] for start in range(0, len(entries), 10)]
        with ThreadPoolExecutor(4) as threads:
            for answer in threads.map(lambda call: self.sqs.send_message_batch(QueueUrl=self.url, Entries=call), calls):
                assert not answer.get("Failed"), answer

    def feed(self, bodies: list[str]) -> None:
        """Put them in little by little: the emulator looks through a whole queue for every message."""
        for start in range(0, len(bodies), WAITING_MAX // 4):
            while self.left() > WAITING_MAX:
                time.sleep(0.1)
            self.send(bodies[start : start + WAITING_MAX // 4])
        self.fed = True

    def start(self) -> None:
        """Start one more worker."""
        environment = os.environ | {
            "AWS_ENDPOINT_URL": aws().endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "eu-west-1",
            "THREADLINE_EVENTS_TOPIC": self.topic,
        }
        command = [sys.executable, "-m", "threadline", "work", "--file", self.plan.store, "--queue", self.url]
        self.workers.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE))

    def kill(self, draw: Random) -> None:
        """Kill one worker as no process can prevent, and start another."""
        worker = self.workers.pop(draw.randrange(len(self.workers)))
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        assert worker.stdout is not None
        worker.stdout.close()
        self.start()

    def stop(self) -> None:
        """Stop the workers in good order."""
        for worker in self.workers:
            worker.terminate()
        for worker in self.workers:
            assert worker.wait(60) == 0
            assert worker.stdout is not None
            worker.stdout.close()

    def bodies(self, url: str) -> list[str]:
        """Those of everything in a queue, as the emulator shows them: to receive them all takes it an hour."""
        address = f"{aws().endpoint}/_ministack/sqs/messages?{urlencode({'QueueUrl': url})}"
        with urllib.request.urlopen(address, timeout=300) as answer:
            return list(_bodies(json.load(answer)))


def _bodies(shown: Any) -> Iterator[str]:
    if isinstance(shown, dict) and isinstance(body := shown.get("Body", shown.get("body")), str):
        yield body
    else:
        for each in shown.values() if isinstance(shown, dict) else shown if isinstance(shown, list) else ():
            yield from _bodies(each)


def prove(plan: Plan) -> dict[str, float]:
    """Run it; figures of the run. Raises `AssertionError`."""
    world, draw = World(plan), Random(plan.seed)
    bodies = messages(plan)
    sent = [*bodies, *bodies, *plan.poison]
    draw.shuffle(sent)
    feeding = threading.Thread(target=world.feed, args=(sent,))
    began = time.monotonic()
    feeding.start()
    for _ in range(plan.workers):
        world.start()
    try:
        _work(world, draw)
    finally:
        world.stop()
        feeding.join()
    working = time.monotonic() - began
    with threadline.open(plan.store) as tl:
        ids, told, dumped = (
            [each.entry.id for each in feed_pages(tl.engine.store)],
            _told(tl.engine),
            _dumped(tl.engine),
        )
    assert len(set(ids)) == len(ids)
    with threadline.open("memory:") as tl:
        alone = EventIntake(tl.engine, "default", f"{plan.name}-in")
        for place, body in enumerate(bodies):
            assert [each.status for each in alone.take([QueueMessage(str(place), body)])] == ["done"]
        assert _told(tl.engine) == told
        assert _dumped(tl.engine) == dumped
    published: dict[int, str] = {}
    sendings = world.bodies(world.out)
    for body in sendings:
        content = json.loads(body)
        id = content["event"]["id"]
        assert published.setdefault(content["position"], id) == id
    assert [published.get(position) for position in range(1, len(ids) + 1)] == ids
    dead = world.bodies(world.dead)
    assert set(dead) == set(plan.poison)
    return {
        "events": len(told),
        "recorded": len(ids),
        "messages": len(sent),
        "poison": len(plan.poison),
        "seconds": round(working, 1),
        "published_twice": len(sendings) - len(published),
        "parked_twice": len(dead) - len(set(dead)),
    }


def _work(world: World, draw: Random) -> None:
    plan, deadline, killed = world.plan, time.monotonic() + SECONDS_MAX, 0
    next_kill = time.monotonic() + plan.kill_every * draw.uniform(0.5, 1.5)
    while killed < plan.kills or not (world.fed and world.left() == 0 and _published(world)):
        assert time.monotonic() < deadline, f"{world.left()} messages left, {killed} kills"
        assert all(worker.poll() is None for worker in world.workers), "a worker ended by itself"
        if killed < plan.kills and time.monotonic() >= next_kill:
            world.kill(draw)
            killed += 1
            next_kill = time.monotonic() + plan.kill_every * draw.uniform(0.5, 1.5)
        time.sleep(0.2)


def _published(world: World) -> bool:
    """Whether the consumer of the topic has all of the feed."""
    with threadline.open(world.plan.store, readonly=True) as tl:
        known = consumers(tl.engine.store)
        return bool(known) and all(each.behind_since is None for each in known)


def _told(engine: Engine) -> set[str]:
    """The ids of the events that came in. What Threadline emits because of them depends on their order."""
    recorded = (unpack_event(each.entry) for each in feed_pages(engine.store))
    return {each.id for each in recorded if each.event.source_type == "external"}


def _dumped(engine: Engine) -> Fingerprint:
    return fingerprint(map(str.encode, dump_lines(engine.store, engine.catalogue, arrival=False)))


def main() -> None:
    """The proof as the command line asks for it."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--events", type=int, default=100_000)
    arguments.add_argument("--kills", type=int, default=20)
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--people", type=int, default=2_000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--postgres", action="store_true")
    given = arguments.parse_args()
    catalogue()
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "proof.db")
        if given.postgres:
            from tests.servers.postgres import server

            store = server("18").made("proof")
        plan = Plan(
            store,
            events=given.events,
            kills=given.kills,
            people=given.people,
            seed=given.seed,
            workers=given.workers if given.postgres else 1,
        )
        sys.stdout.write(json.dumps(prove(plan)) + "\n")


if __name__ == "__main__":
    main()
