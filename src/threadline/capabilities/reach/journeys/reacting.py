"""What follows from an event for the journeys of its person: who enters, goes on, gets a mail, leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from threadline.capabilities.foundation.conditions import Subject, Where
from threadline.capabilities.foundation.conditions.fields import reader
from threadline.capabilities.profile.people.events import IDENTIFY
from threadline.capabilities.reach.feedback.events import MAIL_BOUNCED, MAIL_COMPLAINED
from threadline.capabilities.reach.journeys.actions import JOURNEY
from threadline.capabilities.reach.journeys.book import Book, Compiled
from threadline.capabilities.reach.journeys.definition import ONCE, EventMail, Journey
from threadline.capabilities.reach.journeys.events import (
    JOURNEY_ENTRY_REQUESTED,
    JOURNEY_EXIT_REQUESTED,
    JOURNEY_RESUMED,
    RUN_EVENTS,
)
from threadline.capabilities.reach.journeys.projection import (
    COMPLETED,
    KEYED_RUNS_MAX,
    Key,
    Run,
    State,
    active_runs,
    bounded_variables,
    is_paused,
    journeys_in,
    key_of,
    runs_of,
)
from threadline.capabilities.reach.journeys.steps import JOURNEYS, On, bound, is_bound
from threadline.capabilities.reach.journeys.walk import STEP_REMOVED, STORED_SHIFT, Mail, Walk, Walker, arm_of
from threadline.capabilities.reach.journeys.wishes import (
    REST,
    came_while_paused,
    entered,
    left,
    moved,
    timer,
    timer_key,
)
from threadline.kernel.arms import draw, is_within
from threadline.kernel.disclosure import words
from threadline.kernel.event import Recorded
from threadline.kernel.identity import MERGED, SPLIT
from threadline.kernel.limits import JOURNEY_MAILS_IN_A_ROW_MAX
from threadline.kernel.policy import TIMER_FIRED, Timer, Wish, source_of
from threadline.kernel.time import HOUR, LATEST, MINUTE

LEFT_MERGED, LEFT_TIMEOUT, LEFT_REQUESTED, LEFT_REMOVED = "merged", "timeout", "requested", "removed"
LEFT_EVENT, LEFT_BOUNCE, LEFT_COMPLAINT = "exit_on", "bounced", "complained"
LEFT_EARLY = (
    LEFT_MERGED,
    LEFT_TIMEOUT,
    LEFT_REQUESTED,
    LEFT_REMOVED,
    LEFT_EVENT,
    LEFT_BOUNCE,
    LEFT_COMPLAINT,
    STEP_REMOVED,
)
"""Our reasons why a run ended before its last step."""
ENDINGS = words(COMPLETED, *LEFT_EARLY)
"""Marks why a run ended: one of these, or what somebody wrote who asked for it."""

_MOST = JOURNEY_MAILS_IN_A_ROW_MAX + 2
"""Wishes of one act: its mails and actions, its event, its timer."""
_SOURCE = source_of(JOURNEYS)
_APART = MINUTE
"""Between the end of a run and the begin of the next one that is due to an action of a step: journeys may cause each
other by way of tags and segments, and must not do so without end."""
_LOOK_AGAIN = 6 * HOUR
"""After how long a run that is due looks again whether its journey is still paused, in case that nobody wakes it."""


class Known(Protocol):
    """The person, as far as journeys look at one."""

    @property
    def person(self) -> str:
        """The person's id."""
        ...

    @property
    def at(self) -> int:
        """The instant of the views."""
        ...

    def view(self, name: str, at: int | None = None) -> Any:
        """A projection's view."""
        ...


class Act(NamedTuple):
    """Something that is to be done about one journey. Plain, so that a timer can carry it."""

    what: str
    """``enter``, ``come``, ``wake``, ``mail``, ``exit``, or ``leave``: exit whichever run there is."""
    journey: str
    run: str = ""
    data: Any = None


class Reaction:
    """What follows from one event. Pure."""

    def __init__(
        self, book: Book, recorded: Recorded, known: Known, state: State, budget: int, *, history: bool = False
    ) -> None:
        """``history``: whatever the reason of an event, it counts as if it were live, for what-if."""
        self._book = book
        self._recorded = recorded
        self._event = recorded.event
        self._known = known
        self._state = state
        self._budget = budget
        self._history = history
        self._subject = Subject(self._view, recorded, known.at)
        self._about: dict[str, Any] = {"variables": {}}
        # A timer of a clock that runs behind is due all the same.
        is_timer = recorded.event.type == TIMER_FIRED
        came_at = recorded.known_at if history else recorded.recorded_at
        self.now = max(came_at, recorded.event.occurred_at if is_timer else 0)
        self.wishes: list[Wish] = []

    def react(self) -> list[Wish]:
        """The wishes."""
        acts = [*self._acts()]
        while acts:
            if self._is_own or (self.wishes and len(self.wishes) + _MOST > self._budget):
                # What time brings about has all the room there is.
                key = f"{REST}/{self._recorded.id}"
                data: dict[str, Any] = {"acts": [[*act] for act in acts], "cause": self._cause}
                if self._is_own or self._began_ourselves:
                    data["own"] = True
                return [*self.wishes, Timer(key=key, due_at=self.now + 1, data=data)]
            self._do(acts.pop(0))
        return self.wishes

    @property
    def _is_own(self) -> bool:
        """Whether an action of a step has made the event. What follows from that takes no room of its commit."""
        return self._event.source == _SOURCE and self._event.type not in RUN_EVENTS

    @property
    def _began_ourselves(self) -> bool:
        """Whether what a timer goes on with was begun by an action of a step."""
        return self._timer_data.get("own") is True

    @property
    def _cause(self) -> str:
        return str(self._timer_data.get("cause") or self._recorded.id)

    @property
    def _timer_data(self) -> Mapping[str, Any]:
        data = self._event.properties.get("data") if self._event.type == TIMER_FIRED else None
        return data if isinstance(data, dict) else {}

    # --- what is to be done ---------------------------------------------------------------------

    def _acts(self) -> Iterable[Act]:
        event, type = self._event, self._event.type
        if type == TIMER_FIRED:
            return self._due()
        if type in (MERGED, SPLIT, JOURNEY_RESUMED):
            # Others' events may say now where a run waits and in which zone; what was split off took its timers along.
            waking = [Act("wake", run.journey, run.id) for run in active_runs(self._state)]
            return waking if type == JOURNEY_RESUMED else [*self._doubled(), *waking]
        if type == JOURNEY_ENTRY_REQUESTED:
            given = event.properties.get("properties")
            return self._asked_for(lambda name: [Act("enter", name, data=[given, self.now])])
        if type == JOURNEY_EXIT_REQUESTED:
            reason = event.properties.get("reason")
            reason = reason if isinstance(reason, str) and reason else LEFT_REQUESTED
            return self._asked_for(lambda name: self._exits(name, reason))
        return self._by_event()

    def _is_open(self, journey: Journey) -> bool:
        """Whether the event may let somebody enter or go on: what was so before, and is only noticed now, sends nobody
        anything."""
        return self._event.is_news or journey.existing or self._history

    def _due(self) -> Iterable[Act]:
        if "acts" in self._timer_data:
            return [Act(*act) for act in self._timer_data["acts"]]
        journey, _, run = str(self._event.properties.get("key")).partition("/")
        return [Act("wake", journey, run)]

    def _doubled(self) -> Iterable[Act]:
        """The runs beside the one that goes on, where two people were in one journey, or runs have come back."""
        for journey in journeys_in(self._state):
            seen = set[Key]()
            for run in [run for run in runs_of(self._state, journey) if not run.reason]:
                if run.key in seen:
                    yield Act("exit", journey, run.id, LEFT_MERGED)
                seen.add(run.key)

    def _asked_for(self, acts: Callable[[str], list[Act]]) -> Iterable[Act]:
        name = self._event.properties.get("journey")
        return acts(name) if isinstance(name, str) and name in self._book.in_force else ()

    def _exits(self, journey: str, reason: str) -> list[Act]:
        return [Act("exit", journey, run.id, reason) for run in active_runs(self._state) if run.journey == journey]

    def _by_event(self) -> Iterable[Act]:
        touched = set[tuple[str, Key]]()
        for run in active_runs(self._state):
            compiled = self._book.version(run.journey, run.version)
            # What occurred before the run began says nothing to it, however late it comes.
            if compiled is None or self._event.occurred_at < run.since:
                continue
            act = self._of_run(run, compiled)
            if act is not None:
                touched.add((run.journey, run.key))
                yield act
        for name in self._book.triggered(self._event.type):
            journey = self._book.in_force[name].journey
            key = self._key_in(journey, self._subject)
            if (name, key) not in touched and (key is None) == (journey.key is None):
                yield from self._triggered(journey, key)

    @staticmethod
    def _key_in(journey: Journey, subject: Subject) -> Key:
        return None if journey.key is None else key_of(reader(journey.key)(subject))

    def _of_run(self, run: Run, compiled: Compiled) -> Act | None:
        journey, program = compiled
        reason = self._ended_by(journey, run)
        if reason:
            return Act("exit", journey.name, run.id, reason)
        if not self._is_open(journey):
            return None
        node = program.nodes.get(run.step)
        if node is not None and node.wait is not None and node.wait.is_for_event and self._is_on(node.wait, run):
            return Act("come", journey.name, run.id, run.step)
        for number, mail in enumerate(journey.events, 1):
            if self._is_on(mail, run):
                return Act("mail", journey.name, run.id, mail_id(mail, number))
        by_clock = node is None or node.send is not None or (node.wait is not None and not node.wait.is_for_event)
        if self._event.type == IDENTIFY and journey.follows_zone and by_clock:
            return Act("wake", journey.name, run.id)
        return None

    def _ended_by(self, journey: Journey, run: Run) -> str:
        type, properties = self._event.type, self._event.properties
        if not journey.transactional:
            if type == MAIL_BOUNCED and properties.get("bounce") == "permanent" and journey.on_bounce == "exit":
                return LEFT_BOUNCE
            is_complaint = type == MAIL_COMPLAINED and properties.get("feedback") != "not-spam"
            if is_complaint and journey.on_complaint == "exit":
                return LEFT_COMPLAINT
        return LEFT_EVENT if any(self._is_on(on, run) for on in journey.exit_on) else ""

    def _is_on(self, on: On, run: Run | None = None) -> bool:
        event = self._event
        if event.type not in on.types or (on.wanted_segment and event.properties.get("segment") != on.wanted_segment):
            return False
        if on.where and not self._passes(on.where, run):
            return False
        return on.conditions is None or on.conditions.test(self._asked(run))

    def _passes(self, where: Where, run: Run | None) -> bool:
        """Whether the event passes conditions, in which the key and the variables of a run may stand."""
        if run is not None and is_bound(where):
            return bound(where, run.key, run.variables).test(self._event)
        return where.test(self._event)

    def _triggered(self, journey: Journey, key: Key) -> Iterable[Act]:
        if not self._is_open(journey) or self.now - self._event.occurred_at > journey.late:
            return
        for trigger in journey.trigger:
            if self._is_on(trigger):
                subject = self._asked(None)
                variables = {name: reader(path)(subject) for name, path in trigger.variables.items()}
                since = min(self._event.occurred_at, self.now)
                yield Act("enter", journey.name, data=[bounded_variables(variables), since, key])
                return

    # --- doing it -------------------------------------------------------------------------------

    def _do(self, act: Act) -> None:
        if act.what == "enter":
            self._enter(act)
            return
        if act.what == "leave":
            for leaving in self._exits(act.journey, str(act.data) or LEFT_REQUESTED):
                self._do(leaving)
            return
        run = next((run for run in runs_of(self._state, act.journey) if run.id == act.run and not run.reason), None)
        if run is None or (act.what == "come" and act.data not in (None, run.step)):
            return
        if act.what == "exit":
            self.wishes += left(run, str(act.data), self.now)
            return
        compiled = self._book.version(run.journey, run.version)
        if compiled is None:
            # Of a version that a process knows that was started later: its timer must not be lost.
            self.wishes += left(run, LEFT_REMOVED, self.now) if act.journey in self._book.removed else self._later(run)
        elif act.what == "mail":
            self._single_mail(run, compiled, str(act.data))
        else:
            self._go_on(run, compiled, came=act.what == "come")

    def _enter(self, act: Act) -> None:
        given, since, *about = act.data
        compiled = self._book.in_force.get(act.journey)
        if compiled is None:
            return
        journey = compiled.journey
        variables = bounded_variables(given if isinstance(given, dict) else {})
        # Whoever is let in by a rule, a step or an operator brings the key along.
        key = None if journey.key is None else key_of(about[0] if about else variables.get("key"))
        if (key is None) != (journey.key is None) or not self._may_enter(journey, key):
            return
        holdout = is_within(journey.holdout, _draw(self._known.person, journey.name, "holdout") << STORED_SHIFT)
        run = Run(
            journey.name,
            self._cause,
            self.now,
            since,
            _draw(self._known.person, journey.name, ""),
            holdout,
            variables,
            key,
            0,
            self.now,
            journey.version,
            "",
            0,
            0,
            False,
            "",
            False,
        )
        walk = self._walker(compiled, run).go(compiled.program.first)
        self.wishes += entered(run, journey, walk, self.now)

    def _may_enter(self, journey: Journey, key: Key) -> bool:
        if journey.name in self._book.paused or is_paused(self._state, journey.name):
            return False
        every = [run for run in runs_of(self._state, journey.name) if (run.key is None) == (key is None)]
        runs = [run for run in every if run.key == key]
        if key is not None:
            would_forget = len(every) >= KEYED_RUNS_MAX and not every[0].reason
            if would_forget or sum(not run.reason for run in every) >= journey.at_once:
                return False
        if any(not run.reason for run in runs):
            return False
        if not runs:
            return True
        least = max(journey.reentry, _APART if self._began_ourselves else 0)
        return journey.reentry != ONCE and max(run.at for run in runs) + least <= self.now

    def _go_on(self, run: Run, compiled: Compiled, *, came: bool) -> None:
        journey = compiled.journey
        ends = run.entered_at + journey.timeout if journey.timeout else LATEST
        came = came or run.came
        if is_paused(self._state, run.journey) or run.journey in self._book.paused:
            self._wait_paused(run, compiled, came=came)
            return
        if ends <= self.now:
            self.wishes += left(run, LEFT_TIMEOUT, self.now)
            return
        walk = self._walker(compiled, run).wake(run.step, run.began, run.until, came=came)
        if (walk.path, walk.step, walk.until) == ([], run.step, run.until) and not walk.reason:
            # A timer that is there stays in its thread, and goes with that if it is split off.
            self.wishes += timer(run, journey, run.until, self.now, unless_earlier=True)
        else:
            self.wishes += moved(run, journey, walk, self.now)

    def _wait_paused(self, run: Run, compiled: Compiled, *, came: bool) -> None:
        """Nothing is done until the journey is resumed, but what the run waits for is noted: the event that has come,
        and by when it is due in the zone that the person has now."""
        until = self._walker(compiled, run).due_at(run.step, run.began, run.until)
        if came and not run.came:
            self.wishes += came_while_paused(run, self.now)
        elif until != run.until and not came:
            waiting = Walk(step=run.step, began=run.began, until=until)
            self.wishes += moved(run, compiled.journey, waiting, self.now)
        elif run.journey in self._book.paused:
            self.wishes += self._later(run)

    def _later(self, run: Run) -> list[Wish]:
        """A run that cannot go on now is looked at again, unless it has a timer."""
        return [Timer(key=timer_key(run), due_at=self.now + _LOOK_AGAIN, unless_pending=True)]

    def _single_mail(self, run: Run, compiled: Compiled, id: str) -> None:
        mail = next((m for n, m in enumerate(compiled.journey.events, 1) if mail_id(m, n) == id), None)
        if mail is None or is_paused(self._state, run.journey) or run.journey in self._book.paused:
            return
        arm = arm_of(mail.send, run.draw)
        quiet = None
        if arm.template not in self._book.transactional:
            quiet = self._walker(compiled, run).quiet_until(self.now)
        sent = Mail(id, mail.send, arm, quiet or 0)
        walk = Walk(path=[id], mails=[sent], step=run.step, began=run.began, until=run.until)
        self.wishes += moved(run, compiled.journey, walk, self.now, self._cause)

    # --- looking --------------------------------------------------------------------------------

    def _walker(self, compiled: Compiled, run: Run) -> Walker:
        return Walker(self._book, compiled, self._asked(run), run, self.now)

    def _asked(self, run: Run | None) -> Subject:
        """What conditions are put to: the event, the person, and the variables of a run."""
        about = {"variables": {}} if run is None else {"variables": run.variables, "key": run.key}
        if about != self._about:
            self._about = about
            self._subject = Subject(self._view, self._recorded, self._known.at)
        return self._subject

    def _view(self, name: str) -> Any:
        return self._about if name == JOURNEY else self._known.view(name)


def mail_id(mail: EventMail, number: int) -> str:
    """The id of a single mail among those of its journey."""
    return mail.id or f"event.{number}"


def _draw(person: str, journey: str, purpose: str) -> int:
    """The draw of a person in a journey as it is stored, from 0 to 65,535."""
    return draw("journey", person, journey, purpose) >> STORED_SHIFT
