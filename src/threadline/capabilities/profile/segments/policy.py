"""The policy ``segments``: who enters or leaves a segment, by an event or by time alone, gets an event for it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from threadline.capabilities.foundation.conditions import Subject
from threadline.capabilities.profile.segments.definition import Segment
from threadline.capabilities.profile.segments.events import (
    SEGMENT_ENTERED,
    SEGMENT_LEFT,
    SEGMENT_RENEWED,
    SEGMENTS_REFRESHED,
)
from threadline.capabilities.profile.segments.membership import STEPS_MAX, Memberships, next_change
from threadline.capabilities.profile.segments.projection import SEGMENTS, State, Stored, newest, since, version
from threadline.kernel.event import Event, Recorded
from threadline.kernel.identity import MERGED, SPLIT
from threadline.kernel.operation import BEFORE, PARTS
from threadline.kernel.policy import (
    TIMER_FIRED,
    Emit,
    Policy,
    PolicyView,
    Read,
    Timer,
    TimerSentence,
    Wish,
    emission_budget,
    why_after,
)

TIMER = "turn"
"""One timer per person: the next instant at which any of their segments may turn by time alone, or go on turning: of
one cause may come so much and no more, and whoever enters or leaves more segments at once does so in several."""

_ALL = frozenset({MERGED, SPLIT, SEGMENTS_REFRESHED})
"""After these nothing that was known of the person need hold any more."""

_TYPES_MAX = 10_000


def segments_policy(segments: Sequence[Segment]) -> Policy:
    """The policy for these segments. It needs the projection ``segments`` and those that their conditions read."""
    reaction = _Reaction(segments)
    return Policy(
        name=SEGMENTS.name,
        handles=None,
        react=reaction.react,
        timers=(TimerSentence("May enter or leave a segment"),),
        also=_ALL | {TIMER_FIRED},
        emits=frozenset({SEGMENT_ENTERED, SEGMENT_LEFT, SEGMENT_RENEWED}),
        sends=frozenset(),
        reads=tuple(read for segment in segments for read in segment.reads) or (Read(SEGMENTS.name),),
        unsettled=lambda recorded, known: bool(reaction.others(recorded, known)),
    )


class _Reaction:
    """What follows from an event for the segments that it can turn."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._segments = tuple(segments)
        self._by_name = {segment.name: segment for segment in segments}
        self._read = frozenset(other.name for segment in segments for other in segment.others)
        """The segments that others read."""
        self._by_type: dict[str, tuple[Segment, ...]] = {}
        self._nobodys: tuple[Segment, ...] | None = None

    def react(self, recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
        """Turn what has to turn, and set the timer for what time alone will turn."""
        event = recorded.event
        if event.type == TIMER_FIRED:
            return self._fired(recorded, known)
        state: State = known.get(SEGMENTS.name, {})
        now = recorded.recorded_at + 1
        if event.type in _ALL:
            asked = self._asked(event) if event.type == SEGMENTS_REFRESHED else self._segments
            if BEFORE in event.properties:
                now = event.properties[BEFORE] - 1
                # Of whatever has turned since, the last word stands.
                asked = [segment for segment in asked if newest(state.get(segment.name)) < now]
            return self._judged(asked, recorded, state, known, now)
        chosen, others = self._chosen(event.type, known), self.others(recorded, known)
        if event.occurred_at <= recorded.recorded_at:
            chosen = tuple(dict.fromkeys((*chosen, *others)))
            return self._judged(chosen, recorded, state, known, now) if chosen else ()
        # It lies ahead, from a clock that runs fast, and counts from its own time on. Until then it turns nothing.
        judged = self._judged(others, recorded, state, known, now) if others else ()
        return [*judged, Timer(key=TIMER, due_at=event.occurred_at + 1, unless_earlier=True)] if chosen else judged

    def _asked(self, refreshed: Event) -> Sequence[Segment]:
        """The segments that somebody asks to look at again."""
        parts = refreshed.properties.get(PARTS)
        return self._segments if parts is None else [self._by_name[name] for name in parts if name in self._by_name]

    def others(self, recorded: Recorded, known: PolicyView) -> list[Segment]:
        """The segments that have to be looked at whatever the event can turn."""
        outdated = self._outdated(known.get(SEGMENTS.name, {}))
        return [*outdated, *self._of_nobody(known)] if recorded.sequence == 1 else outdated

    def _chosen(self, event_type: str, known: PolicyView) -> tuple[Segment, ...]:
        """The segments that an event of this type can turn. It depends on nothing else, so it is kept."""
        chosen = self._by_type.get(event_type)
        if chosen is None:
            chosen = tuple(
                segment
                for segment in self._segments
                if any(known.touches(read.projection, read.path) for read in segment.reads)
            )
            if len(self._by_type) >= _TYPES_MAX:
                self._by_type.clear()
            self._by_type[event_type] = chosen
        return chosen

    def _of_nobody(self, known: PolicyView) -> tuple[Segment, ...]:
        """The segments to which everybody belongs of whom nothing is known: a first event need not touch these.

        Which they are depends on the definitions alone, for what is said of nobody is the same at all times.
        """
        if self._nobodys is None:
            nobody = Subject(known.of_nobody)
            self._nobodys = tuple(segment for segment in self._segments if segment.conditions.test(nobody))
        return self._nobodys

    def _outdated(self, state: State) -> list[Segment]:
        """The segments to which somebody belongs by conditions that are no longer those declared."""
        return [
            segment
            for name, stored in state.items()
            if (segment := self._by_name.get(name)) is not None
            and version(stored) != segment.version
            and since(stored) is not None
        ]

    def _judged(
        self, segments: Sequence[Segment], recorded: Recorded, state: State, known: PolicyView, now: int
    ) -> Sequence[Wish]:
        memberships = Memberships(known, now)
        changes = MembershipChanges(recorded, state, emission_budget(known, SEGMENT_ENTERED, SEGMENT_LEFT))
        self._take(segments, memberships, now - 1, changes)
        ahead = now if changes.more else memberships.next(segments)
        if (entered := changes.entered_at(self._read)) is not None:
            ahead = entered + 1 if ahead is None else min(ahead, entered + 1)
        timer = [] if ahead is None else [Timer(key=TIMER, due_at=ahead, unless_earlier=True)]
        return [*changes.wishes, *timer]

    def _fired(self, fired: Recorded, known: PolicyView) -> Sequence[Wish]:
        """Everything that time has turned from the instant of the timer until now, each at its own instant."""
        due, budget = fired.event.occurred_at, emission_budget(known, SEGMENT_ENTERED, SEGMENT_LEFT)
        changes = MembershipChanges(fired, known.get(SEGMENTS.name, {}), budget)
        memberships = Memberships(known, due)
        for _ in range(STEPS_MAX):
            # Of whatever an event has turned since, later than this instant, the last word is the event's.
            segments = [
                segment
                for segment in self._segments
                if memberships.at == known.at or changes.last(segment.name) < memberships.at
            ]
            self._take(segments, memberships, min(memberships.at, known.at - 1), changes)
            if changes.more or memberships.at == known.at:
                break
            ahead = memberships.changes(self._segments)
            # The last look is at the present: events that came after the instant of the timer count by now.
            memberships = Memberships(known, known.at if ahead is None else min(ahead, known.at))
        again: int | None = memberships.at
        if not changes.more and memberships.at == known.at:
            again = next_change(self._segments, memberships)
        if (entered := changes.entered_at(self._read)) is not None:
            again = entered + 1 if again is None else min(again, entered + 1)
        # A timer of one instant fires once: what is left of that instant is told a microsecond later.
        return changes.wishes if again is None else [*changes.wishes, Timer(key=TIMER, due_at=max(again, due + 1))]

    def _take(self, segments: Sequence[Segment], memberships: Memberships, at: int, changes: MembershipChanges) -> None:
        for segment in segments:
            changes.take(segment, memberships.belongs(segment), at)
        for name in changes.state:
            if name not in self._by_name:
                changes.drop(name, at)


class MembershipChanges:
    """Who turns in one reaction: what the state says, and what this reaction adds to it."""

    def __init__(self, cause: Recorded, state: State, most: int) -> None:
        self.state = state
        self._cause = cause
        self._most = most
        self.wishes: list[Emit] = []
        self.more = False
        """Whether there was more to tell than one reaction may."""
        self._since: dict[str, tuple[bool, int, str]] = {}
        """Segment -> whether the person belongs, when the last word was said, and by which version."""

    def take(self, segment: Segment, belongs: bool, at: int) -> None:
        """Note that the conditions of a segment are true, or are not, at an instant."""
        before, _, known = self._standing(segment.name)
        if belongs and not before:
            self._tell(SEGMENT_ENTERED, segment.name, segment.version, at)
        elif before and not belongs:
            self._tell(SEGMENT_LEFT, segment.name, known, at)
        elif before and known != segment.version:
            self._tell(SEGMENT_RENEWED, segment.name, segment.version, at)

    def entered_at(self, names: Collection[str]) -> int | None:
        """When this reaction first lets the person enter one of these; None if it does not.

        Who reads since when has to look again from there: only then do the events say it.
        """
        entered = (wish for wish in self.wishes if wish.type == SEGMENT_ENTERED and wish.properties["segment"] in names)
        return min((wish.occurred_at for wish in entered), default=None)

    def last(self, name: str) -> int:
        """When the last word on a segment was said."""
        return self._standing(name)[1]

    def drop(self, name: str, at: int) -> None:
        """A segment that is not declared any more has no members."""
        before, _, known = self._standing(name)
        if before:
            self._tell(SEGMENT_LEFT, name, known, at)

    def _standing(self, name: str) -> tuple[bool, int, str]:
        if name not in self._since:
            stored: Stored | None = self.state.get(name)
            self._since[name] = (since(stored) is not None, newest(stored), version(stored))
        return self._since[name]

    def _tell(self, type: str, name: str, version_after: str, at: int) -> None:
        if len(self.wishes) == self._most:
            self.more = True
            return
        # Of two words on one segment the later one in time stands, so that no two are said at the same instant.
        at = max(at, self._standing(name)[1] + 1)
        self._since[name] = (type != SEGMENT_LEFT, at, version_after)
        properties = {"segment": name, "version": version_after, "why": why_after(self._cause, at)}
        self.wishes.append(Emit(type=type, key=f"{name}/{len(self.wishes)}", occurred_at=at, properties=properties))
