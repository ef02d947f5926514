"""Law: whatever is killed, paused and merged meanwhile, nobody gets two mails and nobody is left out.

The reckoner draws arms by its own hand and shares no code with the capability.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings

from tests.capabilities.test_broadcasts import World
from tests.mortal import Killed
from threadline.engine.delivery import job_worker
from threadline.kernel.errors import Conflict, InvalidValue
from threadline.kernel.time import HOUR, MINUTE
from threadline.testing import scenarios

STEPS = 25
HOLDOUT, SHARE, WEIGHTS = 0.25, 0.5, {"a": 3, "b": 1}


def share(what: str, person: str) -> float:
    text = f"broadcast\0{what}\0sale\0{person}".encode()
    return int(hashlib.blake2b(text, digest_size=16).hexdigest()[:12], 16) / 16**12


def arms(person: str) -> set[str]:
    """The arms that somebody may have: of the rest either of both, as the winner rule decides."""
    if share("holdout", person) < HOLDOUT:
        return {"holdout"}
    if share("test", person) >= SHARE:
        return set(WEIGHTS)
    return {"a"} if share("arm", person) * sum(WEIGHTS.values()) < WEIGHTS["a"] else {"b"}


def live(world: World, random: Random, people: int) -> None:
    """Whatever may happen while a broadcast is sent, each of it killed at times."""
    for _ in range(STEPS):
        try:
            happen(world, random, people)
        except Killed:
            world.reopen()
    world.fate.killed_at = -1
    world.call("resume", id="sale")
    while world.call("show", id="sale").state != "done":
        world.now += HOUR
        world.work()


def happen(world: World, random: Random, people: int) -> None:
    match random.randrange(8):
        case 0:
            one, other = (f"user_id:p{random.randrange(people)}" for _ in range(2))
            with suppress(Conflict, InvalidValue):  # they are one already
                world.engine.identity.merge("default", one, other, request=str(random.random()), force=True)
        case 1:
            world.fate.killed_at, world.fate.through = world.fate.commits + random.randint(1, 4), random.randrange(4)
        case 2:
            world.call("pause", id="sale")
        case 3 | 4:
            world.call("resume", id="sale")
        case _:
            world.now += random.choice((MINUTE, HOUR))
            world.worker.run_once()


@pytest.mark.slow
@settings(max_examples=20)
@given(random=scenarios.randoms)
def test_everybody_is_addressed_and_nobody_has_two_mails(random: Random) -> None:
    people = random.randint(1, 12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_worker, "JOB_PAGE", random.randint(1, 5))
        patch.setattr(job_worker, "WRITES_MAX", 1)
        world = World(people)
        before = {world.of(n).id for n in range(people)}
        winner = {"share": SHARE, "after": "3h", "metric": "clicks"}
        weighted = [{"name": name, "weight": weight} for name, weight in WEIGHTS.items()]
        world.start(arms=weighted, holdout=HOLDOUT, winner=winner)
        live(world, random, people)
    now = {id: world.engine.reader.person("default", id) for id in before}
    recorded = {each.event.key.partition("/")[2]: each for each in map(world.engine.log.read, _entries(world))}
    addressed = Counter(world.engine.reader.person_of(each).id for each in recorded.values())
    assert addressed.keys() == {person.id for person in now.values()}
    wished = {world.engine.reader.by_thread(mail.thread).id for mail in world.mails()}  # type: ignore[union-attr]
    while world.mailer.run_once():
        pass
    # Two who were addressed and are one by now have two wishes at most, one address and one mail.
    assert sorted(world.post.taken) == sorted({address(person, world) for person in wished})
    for key, each in recorded.items():
        person, arm = world.engine.reader.person_of(each).id, each.event.properties["arm"]
        assert arm in set().union(*(arms(id) for id in before if now[id].id == person)), key
        assert addressed[person] > 1 or (person in wished) == (arm != "holdout")
    shown = world.call("show", id="sale")
    assert shown.done == shown.audience


def address(person: str, world: World) -> str:
    found = world.engine.reader.person("default", person)
    return str(world.engine.reader.views(found, world.now)["profile"]["traits"]["email"])


def _entries(world: World) -> list:  # type: ignore[type-arg]
    return [found for found in world.store.feed() if found.entry.type == "broadcast_addressed"]
