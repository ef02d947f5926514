"""A second interpreter of journeys, which shares no code with the first: plain definitions, `datetime`, and a list of
the steps that are still to be done. It knows single mails, quiet hours, frequency caps, pauses, imports, definitions
that are replaced, and two people who are one for a while."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from itertools import count
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
MINUTE = timedelta(minutes=1)


class Told(NamedTuple):
    """An event: when it came, and when it occurred. One whose type begins with ``$`` is an operator's action."""

    at: datetime
    type: str
    properties: dict[str, Any]
    occurred: datetime
    who: str = "ada"
    historical: bool = False


def size(text: str) -> timedelta:
    """``36h`` or ``2d``."""
    return timedelta(**{{"m": "minutes", "h": "hours", "d": "days"}[text[-1]]: int(text[:-1])})


def next_local(zone: str, since: datetime, text: str, days: Sequence[str]) -> datetime:
    """The first minute not before an instant at which a wall clock has reached a time of day that it had not before."""
    hour, minute = map(int, text.split(":"))
    place = ZoneInfo(zone)
    for later in range(-2, 12):
        day = since.astimezone(place).date() + timedelta(later)
        wanted = datetime.combine(day, time(hour, minute))
        both = sorted(wanted.replace(tzinfo=place, fold=fold).astimezone(UTC) for fold in (0, 1))
        at = both[1]
        if at.astimezone(place).replace(tzinfo=None) != wanted:  # the clock leaps over it
            at = both[0]
            while at.astimezone(place).replace(tzinfo=None) < wanted:
                at += MINUTE
        if at >= since and at.astimezone(place).date() == day and (not days or DAYS[day.weekday()] in days):
            return at
    raise AssertionError("no such day")


class Run:
    """One way through the journey, by the definition under which it began."""

    def __init__(self, journey: dict[str, Any], at: datetime, since: datetime, variables: dict[str, Any]) -> None:
        self.journey = journey
        self.rest = list(journey["steps"])
        self.entered, self.since, self.variables = at, since, variables
        self.kind = ""
        self.began = at
        self.wake: datetime | None = None
        self.came = False
        self.interrupted = False

    @property
    def ends(self) -> datetime | None:
        timeout = self.journey.get("timeout")
        return self.entered + size(timeout) if timeout else None


@dataclass
class Letter:
    """A mail that was requested and has not left."""

    number: int
    """Among the requests of everybody."""
    run: Run
    template: str
    due: datetime
    first_due: datetime = field(init=False)

    def __post_init__(self) -> None:
        self.first_due = self.due


class Reckoner:
    """One person in one journey. ``caps``: (mails, within what time); ``give_up``: how late they may make a mail."""

    requested = count()

    def __init__(
        self, journey: dict[str, Any], caps: Sequence[tuple[int, timedelta]] = (), give_up: timedelta = timedelta(3)
    ) -> None:
        self.journey = journey
        self.caps, self.give_up = caps, give_up
        self.run: Run | None = None
        self.left: datetime | None = None
        self.traits: dict[str, tuple[datetime, Any]] = {}
        self.letters: list[Letter] = []
        self.handed: dict[str, datetime] = {}
        self.dropped: dict[str, datetime] = {}
        self.mails: list[tuple[datetime, str]] = []
        self.acts: list[tuple[datetime, str]] = []
        """What steps have done besides, in the order in which they did it."""
        self.reasons: list[str] = []
        self.paused: set[str] = set()
        self.whole: list[Reckoner] = [self]
        """With whom this is one person now."""
        self.back: tuple[Run | None, datetime | None] | None = None
        """The run and the end of the last one before this person became part of another."""

    # --- time ----------------------------------------------------------------------------------

    def pass_time(self, until: datetime) -> None:
        """Everything that is due before an instant, of everybody who is this person."""
        while (due := min(self._dues(), default=until)) < until:
            for person in self.whole:
                person._wake_due(due)
            ready = sorted(
                ((letter, person) for person in self.whole for letter in person.letters if letter.due <= due),
                key=lambda pair: (pair[0].due, pair[0].number),
            )
            for letter, person in ready:
                person._send_or_wait(letter, due)

    def _dues(self) -> Iterator[datetime]:
        if self.paused:
            return
        for person in self.whole:
            yield from (letter.due for letter in person.letters)
            if person.run is not None:
                yield from (due for due in (person.run.wake, person.run.ends) if due is not None)

    def _wake_due(self, at: datetime) -> None:
        run = self.run
        if run is not None and run.ends is not None and run.ends <= at:
            self._end(run.ends, "timeout")
        elif run is not None and run.wake is not None and run.wake <= at:
            self._wake(at)

    def _send_or_wait(self, letter: Letter, at: datetime) -> None:
        quiet = self._quiet_until(letter.run, at)
        if quiet is not None:
            letter.due = quiet
            return
        capped = self._capped_until(at)
        if not letter.run.interrupted and capped is not None and capped <= letter.first_due + self.give_up:
            letter.due = capped
            return
        self.letters.remove(letter)
        if letter.run.interrupted or capped is not None:
            self.dropped[letter.template] = at
        else:
            self.mails.append((at, letter.template))

    def _capped_until(self, at: datetime) -> datetime | None:
        sent = sorted((when for person in self.whole for when, _ in person.mails), reverse=True)
        ends = [sent[mails - 1] + per for mails, per in self.caps if len(sent) >= mails]
        return max((end for end in ends if end > at), default=None)

    # --- what operators do ---------------------------------------------------------------------

    def pause(self, what: str) -> None:
        """``journey``: for everybody; ``person``."""
        self.paused.add(what)

    def resume(self, what: str, at: datetime) -> None:
        """What ended in the meantime goes on; mails that waited leave."""
        self.paused.discard(what)
        if self.paused:
            return
        for person in self.whole:
            run = person.run
            if run is not None:
                is_due = run.came or any(due is not None and due <= at for due in (run.wake, run.ends))
                if is_due or what == "person":
                    person._woken(at)
            for letter in person.letters:
                letter.due = max(letter.due, at)

    def _woken(self, at: datetime) -> None:
        """Somebody has looked whether the run can go on, for another reason than that its time has come."""
        run = self.run
        if run is None or self.paused:
            return
        if run.ends is not None and run.ends <= at:
            self._end(at, "timeout")
        elif run.came:
            self._come(at)
        elif run.kind != "event" or (run.wake is not None and run.wake <= at):
            self._wake(at)

    def join(self, other: Reckoner, at: datetime) -> None:
        """Another person, whose run began later, is this one from now on: theirs ends, while it lasts."""
        self.whole = other.whole = [self, other]
        other.back = other.run, other.left
        if other.run is not None:
            other.run.interrupted = True
            self.reasons.append("merged")
            other.run, other.left = None, at
        self._woken(at)

    def part(self, other: Reckoner, at: datetime) -> None:
        """They are two again."""
        self.whole, other.whole = [self], [other]
        assert other.back is not None
        other.run, other.left = other.back
        if other.run is not None:
            other.run.interrupted = False
        self._woken(at)
        other._woken(at)

    # --- events --------------------------------------------------------------------------------

    def take(self, told: Told) -> None:
        """One event, after everything that was due before it."""
        self.pass_time(told.at)
        if told.type == "identify":
            for name, value in told.properties.items():
                known = self.traits.get(name)
                if known is None or known[0] <= told.occurred:
                    self.traits[name] = (told.occurred, value)
        if self._taken_by_run(told) or told.historical:
            return
        trigger = self.journey["trigger"]
        if self._matches(trigger, told) and told.at - told.occurred <= timedelta(days=1) and self._may_enter(told.at):
            variables = {name: told.properties.get(path.split(".")[-1]) for name, path in trigger["map"].items()}
            known = {name: value for name, value in variables.items() if value is not None}
            self.run = Run(self.journey, told.at, told.occurred, known)
            self._proceed(told.at)

    def _taken_by_run(self, told: Told) -> bool:
        run = self.run
        if run is None or told.occurred < run.since:
            return False
        if any(self._matches(on, told) for on in run.journey.get("exit_on", [])):
            self._end(told.at, "exit_on")
        elif told.historical:
            return False
        elif run.kind == "event" and self._matches(run.rest[0]["wait"], told):
            run.came = True
            if not self.paused:
                self._come(told.at)
        elif found := [mail["send"] for mail in run.journey.get("events", []) if self._matches(mail, told)]:
            if not self.paused:
                self._request(run, found[0], told.at, self._quiet_until(run, told.at) or told.at)
        elif told.type == "identify" and run.kind in ("time", "quiet"):
            if self.paused:
                self._wait_anew(run, told.at)
            else:
                self._woken(told.at)
        else:
            return False
        return True

    def _wait_anew(self, run: Run, at: datetime) -> None:
        """The zone is another one, and nothing may go on: only the end of the wait changes."""
        assert run.wake is not None
        if run.kind == "time":
            run.wake = self._due(run.rest[0]["wait"], run.began)
        else:
            run.wake = self._quiet_until(run, at) or min(run.wake, at)

    def _come(self, at: datetime) -> None:
        run = self.run
        assert run is not None
        run.came = False
        run.rest = run.rest[0].get("then", []) + run.rest[1:]
        self._proceed(at)

    def _may_enter(self, at: datetime) -> bool:
        again = self.journey.get("reentry", "once")
        if self.run is not None or self.paused:
            return False
        left = max((person.left for person in self.whole if person.left is not None), default=None)
        if left is None or again == "always":
            return True
        return again != "once" and left + size(again) <= at

    @staticmethod
    def _matches(on: dict[str, Any], told: Told) -> bool:
        wanted = on.get("where", {})
        return told.type == on.get("event") and all(told.properties.get(name) == wanted[name] for name in wanted)

    def _wake(self, at: datetime) -> None:
        run = self.run
        assert run is not None
        if run.kind == "event":
            run.rest = run.rest[0].get("else", []) + run.rest[1:]
        elif run.kind == "time":
            due = self._due(run.rest[0]["wait"], run.began)
            if due > at:
                run.wake = due
                return
            run.rest = run.rest[1:]
        self._proceed(at)

    def _due(self, wait: Any, began: datetime) -> datetime:
        if isinstance(wait, str):
            return began + size(wait)
        since = began + size(wait["for"]) if "for" in wait else began
        return next_local(self._zone, since, wait["until"], wait.get("weekdays", [])) if "until" in wait else since

    @property
    def _zone(self) -> str:
        return str(self._trait("timezone") or "UTC")

    def _trait(self, name: str) -> Any:
        known = [person.traits[name] for person in self.whole if name in person.traits]
        return max(known, key=lambda pair: pair[0])[1] if known else None

    def _request(self, run: Run, template: str, at: datetime, due: datetime) -> None:
        self.handed[template] = at
        self.letters.append(Letter(next(self.requested), run, template, due))

    def _proceed(self, at: datetime) -> None:
        run = self.run
        assert run is not None
        run.kind, run.wake = "", None
        while run.rest:
            step = run.rest[0]
            if "send" in step:
                quiet = self._quiet_until(run, at)
                if quiet is not None:
                    run.kind, run.wake = "quiet", quiet
                    return
                self._request(run, step["send"], at, at)
                run.rest = run.rest[1:]
            elif "wait" in step:
                wait = step["wait"]
                if "event" in wait:
                    run.kind, run.wake = "event", at + size(wait["timeout"])
                    return
                due = self._due(wait, at)
                if due > at:
                    run.kind, run.began, run.wake = "time", at, due
                    return
                run.rest = run.rest[1:]
            elif "exit" in step:
                self._end(at, step["exit"])
                return
            elif {"tag", "points", "trait"} & step.keys():
                self._act(step, at)
                run.rest = run.rest[1:]
            else:
                run.rest = self._inside(step) + run.rest[1:]
        self._end(at, "completed")

    def _act(self, step: dict[str, Any], at: datetime) -> None:
        ((kind, given),) = step.items()
        assert self.run is not None
        if given == "${journey.variables.v}":
            given = self.run.variables.get("v")
        elif kind == "tag":
            given = given.replace("${journey.variables.v}", str(self.run.variables.get("v", "")))
        elif kind == "trait":
            self.traits |= {name: (at, value) for name, value in given.items()}
        self.acts.append((at, f"{kind} {given}"))

    def _inside(self, step: dict[str, Any]) -> list[Any]:
        found: list[Any] = step.get("else", [])
        if "steps" in step:
            found = step["steps"]
        elif "if" in step:
            found = step.get("then", []) if self._is_true(step["if"]) else found
        else:
            for branch in reversed(step["choice"]):
                found = branch["steps"] if self._is_true(branch["when"]) else found
        return found

    def _is_true(self, condition: dict[str, Any]) -> bool:
        if "sent" in condition:
            return any(person._counts(condition["sent"]) for person in self.whole)
        assert self.run is not None
        known = {"traits.plan": self._trait("plan"), "journey.variables.v": self.run.variables.get("v")}
        return bool(known[condition["field"]] == condition["equals"])

    def _counts(self, template: str) -> bool:
        """Whether a mail was sent, or was requested and not dropped since."""
        handed, dropped = self.handed.get(template), self.dropped.get(template)
        waits = handed is not None and (dropped is None or handed > dropped)
        return waits or any(template == sent for _, sent in self.mails)

    def _quiet_until(self, run: Run, at: datetime) -> datetime | None:
        quiet = run.journey.get("quiet_hours")
        if quiet is None:
            return None
        clock = at.astimezone(ZoneInfo(self._zone)).strftime("%H:%M")
        if quiet["to"] <= clock < quiet["from"]:  # every night goes over midnight
            return None
        return next_local(self._zone, at, quiet["to"], ())

    def _end(self, at: datetime, reason: str) -> None:
        assert self.run is not None
        self.run.interrupted = reason in ("exit_on", "timeout")
        self.run, self.left = None, at
        self.reasons.append(reason)
