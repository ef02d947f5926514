"""Counts what two books of journeys would have sent to whom, and when, and where they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from threadline.capabilities.reach.journeys.events import JOURNEY_ENTERED, JOURNEY_EXITED, RUN_EVENTS
from threadline.capabilities.reach.journeys.what_if.evaluator import WISHES
from threadline.capabilities.reach.mail.definition import KIND as MAIL
from threadline.kernel.event import Recorded
from threadline.kernel.policy import Effect, Emit
from threadline.kernel.simulation import Decisions, Pair

FAILURES_MAX = 20


class WouldSend(NamedTuple):
    """A mail that somebody would have got."""

    at: int
    journey: str
    step: str
    template: str
    arm: str


@dataclass
class Counts:
    """What one book of journeys did."""

    entered: Counter[str] = field(default_factory=Counter)
    holdout: Counter[str] = field(default_factory=Counter)
    left: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By journey and reason."""
    mails: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    """By journey, step, template and arm."""
    actions: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """By journey, step and kind."""
    reached: Counter[tuple[str, str]] = field(default_factory=Counter)
    """People who came to a step, by journey and step."""
    people: Counter[str] = field(default_factory=Counter)
    """People who were in a journey, and those who got mail by it."""
    mailed: Counter[str] = field(default_factory=Counter)


@dataclass
class Sample:
    """A person, and what they would have got under each."""

    person: str
    old: list[WouldSend]
    new: list[WouldSend]


@dataclass
class Tally:
    """See `threadline.kernel.simulation.Tally`."""

    samples_max: int
    stop: int
    """What is decided from this instant on is left out. (An import after it tells of times before it.)"""
    old: Counts = field(default_factory=Counts)
    new: Counts = field(default_factory=Counts)
    people: int = 0
    people_old: int = 0
    """People who would have got any mail."""
    people_new: int = 0
    only_old: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Mails that only the journeys in force would have sent, by journey and step."""
    only_new: Counter[tuple[str, str]] = field(default_factory=Counter)
    moved: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Mails that both would have sent, at different instants."""
    people_changed: int = 0
    samples: list[Sample] = field(default_factory=list)
    cuts: int = 0
    failed: int = 0
    failures: dict[str, str] = field(default_factory=dict)

    def take(self, person: str, pairs: Sequence[Pair]) -> bool:
        """Count a person. There is nothing more to explain."""
        pairs = [pair for pair in pairs if pair.recorded.known_at < self.stop]
        old = _counted(self.old, ((pair.recorded, pair.old) for pair in pairs))
        new = _counted(self.new, ((pair.recorded, pair.new) for pair in pairs))
        self.people += 1
        self.people_old += bool(old)
        self.people_new += bool(new)
        before, after = _by_step(old), _by_step(new)
        self.only_old.update(before - after)
        self.only_new.update(after - before)
        times_before, times_after = Counter(old), Counter(new)
        moved = _by_step(list((times_after - times_before).elements())) - (after - before)
        self.moved.update(moved)
        self.people_changed += old != new
        if (old or new) and (old != new or not self.people_changed) and len(self.samples) < self.samples_max:
            self.samples.append(Sample(person, old, new))
        return False

    def explain(self, person: str, pairs: Sequence[Pair]) -> None:
        """Never asked."""

    def end(self, person: str, old: object, new: object) -> None:
        """Nothing is compared at the end."""

    def cut(self, events: int) -> None:
        """Events of which more came than may come of one."""
        self.cuts += events

    def fail(self, person: str, problem: str) -> None:
        """A person whose history cannot be replayed."""
        self.failed += 1
        if len(self.failures) < FAILURES_MAX:
            self.failures[person] = problem


def _by_step(mails: Sequence[WouldSend]) -> Counter[tuple[str, str]]:
    return Counter((mail.journey, mail.step) for mail in mails)


def _counted(counts: Counts, decided: Iterator[tuple[Recorded, Decisions]]) -> list[WouldSend]:
    """Count what one side wants; returns the mails, by time."""
    mails: list[WouldSend] = []
    reached = set[tuple[str, str]]()
    for recorded, decisions in decided:
        for wish in decisions.get(WISHES, ()):
            if isinstance(wish, Effect) and wish.kind == MAIL:
                mails.append(_would_send(wish, recorded))
            elif isinstance(wish, Emit) and wish.type in RUN_EVENTS:
                _count_event(counts, wish)
                given = wish.properties
                reached.update((given["journey"], step) for step in (*given["path"], given["step"]) if step)
    counts.reached.update(reached)
    counts.people.update({journey for journey, _ in reached})
    counts.mailed.update({mail.journey for mail in mails})
    for mail in mails:
        counts.mails[mail.journey, mail.step, mail.template, mail.arm] += 1
    return sorted(mails)


def _would_send(wish: Effect, recorded: Recorded) -> WouldSend:
    data, at = wish.data, max(recorded.known_at, wish.due_at)
    return WouldSend(at, data["journey"], data["step"], data["template"], data.get("arm", ""))


def _count_event(counts: Counts, wish: Emit) -> None:
    given = wish.properties
    if wish.type == JOURNEY_ENTERED:
        counts.entered[given["journey"]] += 1
        counts.holdout[given["journey"]] += given.get("holdout", False)
    for done in given.get("actions", ()):
        counts.actions[given["journey"], done["step"], done["action"]] += "problem" not in done
    if wish.type == JOURNEY_EXITED or "reason" in given:
        counts.left[given["journey"], given["reason"]] += 1
