"""Law: over months of caps, pauses, moves, imports, new definitions that are applied or not, merges and splits journeys
do what a second interpreter says."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.capabilities.journeys_reckoner import Reckoner, Told, size
from tests.capabilities.test_journeys_laws import BEGINNINGS, UNSHRUNK, ZONES, Json, Life, drawn_journey
from threadline.engine.maintenance.rebuild import refold_shard
from threadline.kernel.event import Event, Identifier
from threadline.kernel.identity import MERGED
from threadline.kernel.time import from_datetime

CAPS = [{"mails": 1, "per": "97m"}, {"mails": 3, "per": "1501m"}]
"""No two other instants of a script are so far apart."""
GIVE_UP = "1d"
TEMPLATES = ("a_mail", "b_mail", "c_mail", "d_mail", "last_mail", "single_mail")
PEOPLE = ("ada", "bob")


def text_of(journey: Json, version: int, *, capped: bool) -> str:
    mail = {
        "senders": {"shop": {"from": "shop@example.com"}},
        "caps": CAPS,
        "give_up_after": GIVE_UP,
        "templates": {name: {"subject": name, "text": name} for name in TEMPLATES},
    }
    return yaml.safe_dump({"journeys": {"drawn": {**journey, "version": version}}} | ({"mail": mail} if capped else {}))


def drawn_script(random: Random, length: int) -> Iterator[Told]:
    """Events and what operators do, each at an instant of its own."""
    at = random.choice(BEGINNINGS)
    for number, who in enumerate(PEOPLE):
        own = at + timedelta(seconds=number)
        yield Told(own, "identify", {"email": f"{who}@example.com", "timezone": random.choice(ZONES)}, own, who)
    acts = ["event", "identify", "history", "$pause", "$resume", "$define", "$apply", "$join", "$part"]
    for number in range(length):
        at += timedelta(hours=random.choice([1, 3, 8, 20, 50]))
        own = at + timedelta(seconds=7 * number + 9)
        who = random.choice(["ada", "ada", "bob"])
        act = random.choices(acts, [14, 3, 2, 1, 3, 0.5, 1, 4, 2])[0]
        properties: dict[str, Any] = {"v": random.choice([1, 2])}
        if act == "identify" or (act == "history" and random.random() < 0.5):
            properties = random.choice([{"timezone": random.choice(ZONES)}, {"plan": random.choice(["pro", "free"])}])
        if act == "history":
            type = "identify" if "v" not in properties else random.choice(["e0", "e1", "e2", "e3"])
            yield Told(own, type, properties, own - timedelta(hours=random.choice([1, 30, 400])), who, historical=True)
        elif act == "event":
            late = timedelta(hours=random.choice([0, 0, 0, 2, 30]))
            yield Told(own, random.choice(["e0", "e0", "e1", "e2", "e3"]), properties, own - late, who)
        else:
            whom = {"what": random.choice(["journey", "person"])} if act in ("$pause", "$resume") else properties
            yield Told(own, act, whom, own, who)


class Lives:
    """Two people as the second interpreter has them, and what of a script was done: not all can be, at any time."""

    def __init__(self, journey: Json, following: Json, *, capped: bool) -> None:
        caps = [(each["mails"], size(str(each["per"]))) for each in CAPS] if capped else []
        self.people = {who: Reckoner(journey, caps, size(GIVE_UP)) for who in PEOPLE}
        self.following = following
        self.done: list[Told] = []
        self.is_one = self.is_defined = False

    def take(self, told: Told) -> None:
        self.pass_time(told.at)
        ada, bob = self.people["ada"], self.people["bob"]
        if told.type in ("$pause", "$resume"):
            if told.properties["what"] == "person" and self.is_one:
                return
            concerned = (ada, bob) if told.properties["what"] == "journey" else (ada,)
            for person in concerned if not self.is_one else (ada,):
                self._pause(person, told)
            if self.is_one:
                bob.paused = set(ada.paused)
        elif told.type == "$define":
            if self.is_defined:
                return
            self.is_defined, ada.journey, bob.journey = True, self.following, self.following
        elif told.type == "$apply":
            pass  # whoever is on a way goes on by the definition under which it began, and nobody begins one
        elif told.type == "$join":
            # Of two runs the one that began first goes on; which thread has it decides what comes back by a split.
            begins_later = bob.run is None or (ada.run is not None and ada.run.entered < bob.run.entered)
            if self.is_one or ada.run is None or not begins_later or "person" in ada.paused:
                return
            self.is_one = True
            ada.join(bob, told.at)
        elif told.type == "$part":
            if not self.is_one:
                return
            self.is_one = False
            ada.part(bob, told.at)
        elif self.is_one and told.who == "bob":
            return
        else:
            self.people[told.who].take(told)
        self.done.append(told)

    @staticmethod
    def _pause(person: Reckoner, told: Told) -> None:
        if told.type == "$pause":
            person.pause(told.properties["what"])
        else:
            person.resume(told.properties["what"], told.at)

    def pass_time(self, until: datetime) -> None:
        for who in PEOPLE[: 1 if self.is_one else 2]:
            self.people[who].pass_time(until)


class Lived(Life):
    """The same on an engine."""

    def __init__(self, journey: Json, following: Json, *, capped: bool) -> None:
        self.definitions = [text_of(each, number, capped=capped) for number, each in enumerate((journey, following), 1)]
        super().__init__(journey, None, self.definitions[0])

    def live(self, script: list[Told], until: datetime) -> None:
        for number, told in enumerate(script):
            self.stage.until(from_datetime(told.at))
            if told.type.startswith("$"):
                self._operate(told)
            else:
                event = Event(
                    type=told.type,
                    identifiers=(Identifier("user_id", told.who),),
                    key=str(number),
                    occurred_at=from_datetime(told.occurred),
                    properties=told.properties,
                    historical=told.historical,
                )
                assert self.stage.engine.recorder.record([event])[0].status == "accepted"
        self.stage.until(from_datetime(until))

    def _operate(self, told: Told) -> None:
        stage = self.stage
        if told.type == "$define":
            self.stage = stage.redefined(self.definitions[1])
        elif told.type == "$apply":
            cursor = stage.ask("definitions_apply")["next"]
            while cursor:
                cursor = stage.ask("definitions_apply", cursor=cursor)["next"]
        elif told.type == "$join":
            stage.ask("people_merge", id="ada", other="bob", force=True)
        elif told.type == "$part":
            person = stage.engine.reader.person("default", "user_id:ada")
            merges = [each for each in stage.engine.reader.all_events(person) if each.event.type == MERGED]
            stage.ask("people_unmerge", id=max(merges, key=lambda each: each.recorded_at).id)
        else:
            person_only = {"person": "ada"} if told.properties["what"] == "person" else {}
            stage.ask(f"journeys_{told.type[1:]}", name="drawn", **person_only)

    def reasons_of(self, who: str) -> list[str]:
        return [each["reason"] for each in self.stage.told(who) if each.get("reason")]


def check(seed: int) -> None:
    random = Random(seed)
    capped, journey, following = random.random() < 0.6, drawn_journey(random), drawn_journey(random)
    for each in (journey, following):
        each["reentry"] = random.choice(["always", "always", "2d", "once"])
    lives = Lives(journey, following, capped=capped)
    for told in drawn_script(random, random.randint(10, 90)):
        lives.take(told)
        last = told
    for type in ("$part", "$resume"):  # in the end they are two, and nobody is paused
        for what in ("journey", "person"):
            at = last.at + timedelta(hours=1, seconds=3)
            last = Told(at, type, {"what": what}, at)
            lives.take(last)
    until = last.at + timedelta(days=12)
    lives.pass_time(until)
    lived = Lived(journey, following, capped=capped)
    lived.live(lives.done, until)
    for who, expected in lives.people.items():
        assert lived.mails_of(who) == sorted(expected.mails), (seed, who)
        assert lived.reasons_of(who) == expected.reasons, (seed, who)
        assert lived.acts_of(who) == expected.acts, (seed, who)
    catalogue = lived.stage.engine.catalogue
    assert not [one.item.key for one in refold_shard(lived.store, catalogue) if one.differs]


@settings(max_examples=40, phases=UNSHRUNK)
@given(seed=st.integers(0, 2**32))
def test_a_second_interpreter_says_the_same_of_months(seed: int) -> None:
    check(seed)
