"""A second interpreter of journeys, which shares no code with the first: plain definitions, `datetime`, and a list of
the steps that are still to be done."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
MINUTE = timedelta(minutes=1)


class Told(NamedTuple):
    """An event: when it came, and when it occurred."""

    at: datetime
    type: str
    properties: dict[str, Any]
    occurred: datetime


def size(text: str) -> timedelta:
    """``36h`` or ``2d``."""
    return timedelta(**{{"h": "hours", "d": "days"}[text[-1]]: int(text[:-1])})


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
    """One way through the journey."""

    def __init__(self, steps: list[Any], at: datetime, since: datetime, variables: dict[str, Any]) -> None:
        self.rest = list(steps)
        self.entered, self.since, self.variables = at, since, variables
        self.kind = ""
        self.began = at
        self.wake: datetime | None = None


class Reckoner:
    """One person in one journey."""

    def __init__(self, journey: dict[str, Any]) -> None:
        self.journey = journey
        self.run: Run | None = None
        self.left: datetime | None = None
        self.traits: dict[str, Any] = {}
        self.mails: list[tuple[datetime, str]] = []
        self.reasons: list[str] = []

    def pass_time(self, until: datetime) -> None:
        """Everything that is due before an instant."""
        while self.run is not None:
            timeout = self.journey.get("timeout")
            ends = self.run.entered + size(timeout) if timeout else None
            dues = [due for due in (self.run.wake, ends) if due is not None]
            if not dues or min(dues) >= until:
                return
            if ends is not None and min(dues) == ends:
                self._end(ends, "timeout")
            else:
                self._wake(min(dues))

    def take(self, told: Told) -> None:
        """One event, after everything that was due before it."""
        self.pass_time(told.at)
        if told.type == "identify":
            self.traits |= told.properties
        if self._taken_by_run(told):
            return
        trigger = self.journey["trigger"]
        if self._matches(trigger, told) and told.at - told.occurred <= timedelta(days=1) and self._may_enter(told.at):
            variables = {name: told.properties.get(path.split(".")[-1]) for name, path in trigger["map"].items()}
            known = {name: value for name, value in variables.items() if value is not None}
            self.run = Run(self.journey["steps"], told.at, told.occurred, known)
            self._proceed(told.at)

    def _taken_by_run(self, told: Told) -> bool:
        run = self.run
        if run is None or told.occurred < run.since:
            return False
        if any(self._matches(on, told) for on in self.journey.get("exit_on", [])):
            self._end(told.at, "exit_on")
        elif run.kind == "event" and self._matches(run.rest[0]["wait"], told):
            run.rest = run.rest[0].get("then", []) + run.rest[1:]
            self._proceed(told.at)
        elif found := [mail["send"] for mail in self.journey.get("events", []) if self._matches(mail, told)]:
            self.mails.append((told.at, found[0]))
        elif told.type == "identify" and run.kind in ("time", "quiet"):
            self._wake(told.at)
        else:
            return False
        return True

    def _may_enter(self, at: datetime) -> bool:
        again = self.journey.get("reentry", "once")
        if self.run is not None:
            return False
        if self.left is None or again == "always":
            return True
        return again != "once" and self.left + size(again) <= at

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
        return str(self.traits.get("timezone", "UTC"))

    def _proceed(self, at: datetime) -> None:
        run = self.run
        assert run is not None
        run.kind, run.wake = "", None
        while run.rest:
            step = run.rest[0]
            if "send" in step:
                quiet = self._quiet_until(at)
                if quiet is not None:
                    run.kind, run.wake = "quiet", quiet
                    return
                self.mails.append((at, step["send"]))
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
            else:
                run.rest = self._inside(step) + run.rest[1:]
        self._end(at, "completed")

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
            return any(template == condition["sent"] for _, template in self.mails)
        assert self.run is not None
        known = {"traits.plan": self.traits.get("plan"), "journey.variables.v": self.run.variables.get("v")}
        return bool(known[condition["field"]] == condition["equals"])

    def _quiet_until(self, at: datetime) -> datetime | None:
        quiet = self.journey.get("quiet_hours")
        if quiet is None:
            return None
        clock = at.astimezone(ZoneInfo(self._zone)).strftime("%H:%M")
        if quiet["to"] <= clock < quiet["from"]:  # every night goes over midnight
            return None
        return next_local(self._zone, at, quiet["to"], ())

    def _end(self, at: datetime, reason: str) -> None:
        self.run, self.left = None, at
        self.reasons.append(reason)
