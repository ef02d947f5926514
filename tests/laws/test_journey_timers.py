"""Law: after any merges and splits, pauses, moves and changes of clocks nobody waits in a journey without a timer."""

from __future__ import annotations

from contextlib import suppress
from random import Random

from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from tests.capabilities.journeys_stage import Stage
from threadline.capabilities.reach.journeys.projection import is_paused, runs_of
from threadline.engine.folding.person import Person
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.identity import MERGED
from threadline.kernel.time import DAY, HOUR, MINUTE

DEFINITIONS = """
journeys:
  short:
    trigger: {event: began}
    reentry: always
    timeout: 20d
    steps: [{send: a}, {wait: 7h}, {send: b}, {wait: {event: bought}}, {send: c}]
  local:
    trigger: {event: began}
    reentry: 1d
    quiet_hours: {from: "21:00", to: "08:00"}
    steps:
      - wait: {until: "09:00"}
      - send: a
      - wait: {event: bought, timeout: 3d}
      - wait: {until: "02:30"}
      - send: b
  once:
    trigger: {event: began}
    events: [{event: shipped, send: s}]
    steps: [{wait: 2d}, {send: a}, {wait: {event: bought, timeout: 9d}}, {send: b}]
"""
JOURNEYS = ("short", "local", "once")
NAMES = ("user_id:u1", "user_id:u2", "email:e1@example.com", "email:e2@example.com", "anonymous_id:a1")
ZONES = ("Europe/Rome", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia")
LONG = 60 * DAY
"""After so long without anything new no wait of these journeys is left."""


class Script:
    """A life of several people who are joined and split, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.stage = Stage(DEFINITIONS)
        # Before clocks go back in Rome, or leap at Lord Howe.
        self.stage.now += self.random.choice([80, 270, 296]) * DAY
        self.latest = self.stage.now
        self.seed = seed
        self.done: list[str] = []
        for name in self.random.sample(NAMES, 4):  # most people are in all journeys when it begins
            self.stage.tell("began", **dict([name.split(":")]))

    def act(self) -> None:
        """One thing happens."""
        random, who = self.random, dict([self.random.choice(NAMES).split(":")])
        acts = [
            "began",
            "bought",
            "shipped",
            "moved",
            "joined",
            "merge",
            "split",
            "unmerge",
            "pause",
            "resume",
            "pass",
            "clock",
        ]
        what = random.choices(acts, [2, 1, 1, 1, 1, 4, 2, 2, 1, 1, 2, 1])[0]
        self.done.append(f"{what} {who}")
        if what in ("began", "bought", "shipped"):
            self.stage.tell(what, **who)
        elif what == "moved":
            self.stage.tell("identify", **who, properties={"timezone": random.choice(ZONES)})
        elif what == "joined":
            self.stage.tell("identify", **who | dict([random.choice(NAMES).split(":")]))
        elif what == "pass":
            self.stage.until(self.stage.now + random.choice([MINUTE, 5 * HOUR, 30 * HOUR, 4 * DAY]))
        elif what == "clock":
            self.stage.now += random.choice([-2 * HOUR, -10 * MINUTE, 3 * HOUR])
        else:
            with suppress(ThreadlineError):  # it may be impossible: nobody to split, or joined already
                self.operate(what)

    def operate(self, what: str) -> None:
        """An operator does something."""
        random, stage = self.random, self.stage
        person = {"person": random.choice(NAMES)} if random.random() < 0.5 else {}
        if what == "merge":
            stage.ask("people_merge", id=random.choice(NAMES), other=random.choice(NAMES), force=True)
        elif what == "split":
            stage.ask(
                "people_split", id=random.choice(NAMES), identifiers=random.sample(NAMES, random.choice([1, 1, 2]))
            )
        elif what == "unmerge":
            merges = [event.id for event in self.events() if event.event.type == MERGED]
            if merges:
                stage.ask("people_unmerge", id=random.choice(merges))
        else:
            stage.ask(f"journeys_{what}", name=random.choice(JOURNEYS), **person)

    def events(self) -> list[object]:
        return [event for person in self.people() for event in self.stage.engine.reader.all_events(person)]

    def people(self) -> list[Person]:
        return [*self.stage.engine.reader.all_people("default")]

    def check(self) -> None:
        """Of each journey nobody has two runs, and whoever waits for an instant has a timer that comes by then."""
        self.latest = max(self.latest, self.stage.now)
        paused = {each["name"] for each in self.stage.ask("journeys_list")["journeys"] if each["paused_since"]}
        for person in self.people():
            # A clock that was set back does not see yet what it has done.
            state = self.stage.engine.reader.state(person, "journeys", self.latest + 1)
            if any("/journeys/rest/" in name for name in person.timers):
                continue  # more than one commit takes: the rest comes a microsecond later
            for journey in JOURNEYS:
                active = [run for run in runs_of(state, journey) if not run.reason]
                assert len(active) <= 1, (self.seed, journey, self.done)
                for run in active:
                    key = f"/journeys/{journey}/{run.id}"
                    timers = [at for name, at in person.timers.items() if name.endswith(key)]
                    ends = run.entered_at + 20 * DAY if journey == "short" else 0
                    dues = [at for at in (run.until, ends) if at]
                    if dues and not is_paused(state, journey) and journey not in paused:
                        late = max(min(dues), self.latest + 1)
                        assert min(timers, default=late + 1) <= late, (self.seed, journey, run, self.done)

    def end(self) -> None:
        """Everything is resumed, and long after nobody is in a journey any more."""
        for name in JOURNEYS:
            for person in ({}, *({"person": name} for name in NAMES)):
                with suppress(ThreadlineError):
                    self.stage.ask("journeys_resume", name=name, **person)
        self.check()
        self.stage.until(self.stage.now + LONG)
        for person in self.people():
            view = self.stage.engine.reader.views(person, self.stage.now, names=["journeys"])["journeys"]
            assert view["active"] == {}, (self.seed, self.done)


@settings(max_examples=40, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(seed=st.integers(0, 2**32))
@example(11)
@example(59)
def test_nobody_waits_in_a_journey_without_a_timer(seed: int) -> None:
    script = Script(seed)
    for _ in range(script.random.randint(4, 24)):
        script.act()
        script.check()
    script.end()
