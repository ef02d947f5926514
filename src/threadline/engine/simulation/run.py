"""What if: everybody's history replayed under a candidate and under what is in force, page by page, in a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.folding.history import Ahead, thread_entries
from threadline.engine.folding.packing import unpack_event
from threadline.engine.folding.person import PERSON, Person, person_key
from threadline.engine.folding.person_packing import people_of
from threadline.engine.folding.refold import read_ahead
from threadline.engine.gc_deferred import seldom_collected
from threadline.engine.recording.emission import CASCADE_CUT
from threadline.engine.simulation.sandbox import Judged, Life, Parted
from threadline.engine.simulation.variant import Missing, Side
from threadline.kernel.event import Recorded
from threadline.kernel.simulation import (
    Decisions,
    Ending,
    Evaluator,
    PageDone,
    Pair,
    RecordedDecision,
    Tally,
    VariantSpec,
)
from threadline.kernel.store import Item, Key, Store

PAGE_PEOPLE = 200
"""People between two looks at whether to go on; what a checkpoint is taken after."""


def _side(spec: VariantSpec, *others: Evaluator, explaining: bool = False) -> Side:
    """What lives are lived under; with the evaluators of the ``others`` beside its own."""
    evaluator = spec.explaining if explaining else spec.evaluator
    assert isinstance(spec.catalogue, Catalogue), "a variant is made of a catalogue of the engine"
    return Side(spec.catalogue, (evaluator, *others), spec.replayed, spec.shared)


def trial(
    old: VariantSpec, new: VariantSpec, start: int, stop: int, tally: Tally, *,
    endings: tuple[Ending, Ending] | None = None,
    told: RecordedDecision | None = None,
) -> Trial:  # fmt: skip
    """What is tried, of two ways. Where both fold alike, people live one life for both as long as they can."""
    alike = old.catalogue is new.catalogue and old.replayed == new.replayed
    return Trial(
        _side(old), _side(new), _side(old, new.evaluator) if alike else None,
        (_side(old, explaining=True), _side(new, explaining=True)), start, stop, tally, endings, told,
    )  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """What is tried: two ways to live, and the stretch of time in which they are compared."""

    old: Side
    new: Side
    shared: Side | None
    """Both judges in one life, as long as what they want makes no difference; None: the sides fold differently."""
    explaining: tuple[Side, Side]
    """The same two sides with judges who give every reason."""
    start: int
    stop: int
    tally: Tally
    endings: tuple[Ending, Ending] | None = None
    """What is compared of the views at the end, on each side."""
    told: RecordedDecision | None = None
    """Reads from an event of the log (event, by what, verdict): the old side is what was recorded, and not computed."""

    @property
    def sides(self) -> tuple[Side, ...]:
        """All sides that lives may be lived under."""
        return (self.old, self.new, *self.explaining, *(() if self.shared is None else (self.shared,)))

    @property
    def epoch(self) -> int:
        """Grows whenever events matter that did not before."""
        return sum(side.epoch for side in self.sides)

    def wanted(self, event_type: str) -> bool:
        """Whether events of a type matter to any side."""
        return self.told is not None or any(side.step(event_type).matters for side in self.sides)


def run(
    store: Store, catalogue: Catalogue, workspace: str, trial: Trial, *,
    after: Key | None = None, people: Sequence[str] | None = None,
) -> Iterator[PageDone]:  # fmt: skip
    """Live everybody's history, or that of ``people`` only, page by page from ``after`` on. Reads the store, and that
    is all: it writes nothing, and there is nothing here that could send."""
    for items, following in _pages(store, after, people):
        count = events = 0
        with seldom_collected():
            everybody = people_of(store, catalogue, items)
            ours = (each for each in everybody if isinstance(each, Person) and each.workspace == workspace)
            chunk: Ahead | None = None
            epoch = 0
            for person, ahead in read_ahead(store, ours, trial.wanted):
                if ahead is not chunk:
                    chunk, epoch = ahead, trial.epoch
                count += 1
                events += person.position
                # What was read when fewer events mattered is not enough any more.
                _Try(store, trial, person, ahead if epoch == trial.epoch else None).out()
        yield PageDone(following, count, events)


def _pages(
    store: Store, after: Key | None, people: Sequence[str] | None
) -> Iterator[tuple[Iterable[Item], Key | None]]:
    if people is not None:
        ids = sorted(id for id in people if after is None or id > after.partition)
        for start in range(0, max(len(ids), 1), PAGE_PEOPLE):
            chosen = ids[start : start + PAGE_PEOPLE]
            found = (item for item in store.get([person_key(id) for id in chosen]) if item is not None)
            more = start + PAGE_PEOPLE < len(ids)
            yield found, person_key(chosen[-1]) if more else None
        return
    while True:
        page = store.scan(PERSON, after=after, limit=PAGE_PEOPLE)
        after = page[-1].key if len(page) == PAGE_PEOPLE else None
        yield page, after
        if after is None:
            return


class _Try:
    """One person. A life depends on nothing but the events, so one that finds out too late begins again."""

    def __init__(self, store: Store, trial: Trial, person: Person, ahead: Ahead | None) -> None:
        self._store = store
        self._ahead = ahead
        self._trial = trial
        self._person = person
        self._ends: tuple[Any, Any] | None = None
        self._cuts = 0

    def out(self) -> None:
        """Live both sides and have them counted; a fault is this person's alone."""
        trial, id = self._trial, self._person.id
        try:
            pairs = self._settled(self._pairs)
            ends, cuts = self._ends, self._cuts
            if cuts:
                trial.tally.cut(cuts)
            if trial.tally.take(id, pairs):
                trial.tally.explain(id, pairs)
                with suppress(Exception):  # it is counted; of what cannot be explained further that much is known
                    trial.tally.explain(id, self._settled(self._explained))
            if ends is not None:
                trial.tally.end(id, *ends)
        except Exception as error:  # noqa: BLE001 — whatever a candidate does to one history must not stop the others
            trial.tally.fail(id, f"{type(error).__name__}: {error}")

    def _settled(self, live: Callable[[], list[Pair]]) -> list[Pair]:
        while True:
            try:
                return live()
            except _Unfolded as unfolded:
                # It goes on being folded for whoever comes next, so that this happens a few times and not for each.
                unfolded.side.fold_also(unfolded.index, unfolded.whole)
                self._ahead = None  # more events matter than were read

    def _pairs(self) -> list[Pair]:
        trial = self._trial
        self._ends = None
        if trial.shared is not None and trial.told is None:
            try:
                life = self._life(trial.shared, self._events((trial.shared,)))
                return [Pair(each.recorded, *each.verdicts) for each in life.judged]
            except Parted:
                pass
        return self._apart(trial.old, trial.new)

    def _explained(self) -> list[Pair]:
        return self._apart(*self._trial.explaining)

    def _apart(self, old: Side, new: Side) -> list[Pair]:
        trial = self._trial
        events = self._events((old, new))
        there = self._life(new, events)
        self._cuts = there.cuts
        if trial.told is not None:
            return _as_far_as_asked(_paired(self._told(events), there.judged), events, new)
        here = self._life(old, events)
        if trial.endings is not None:
            ends = []
            for side, life, ending in ((old, here, trial.endings[0]), (new, there, trial.endings[1])):
                with _unfolded(side):
                    ends.append(ending(life.at_end(trial.stop)))
            self._ends = (ends[0], ends[1])
        return _paired(here.judged, there.judged)

    def _told(self, events: Sequence[Recorded]) -> list[Judged]:
        """What was recorded, as if it were decided now."""
        assert self._trial.told is not None
        found: dict[str, dict[str, Any]] = {}
        for recorded in events:
            told = self._trial.told(recorded)
            if told is not None:
                event, name, verdict = told
                found.setdefault(event, {})[name] = verdict
        return [
            Judged(each, (found[each.id],))
            for each in events
            if each.id in found and self._trial.start <= each.known_at
        ]

    def _events(self, sides: Sequence[Side]) -> list[Recorded]:
        """The person's events in the order in which they became known, those left out that change nothing."""
        trial = self._trial
        entries = [
            entry
            for entry in thread_entries(self._store, self._person.heads, self._ahead)
            if trial.told or any(side.step(entry.type).matters for side in sides)
        ]
        if len(sides) == 1 and not any(sides[0].step(entry.type).reactors for entry in entries):
            return []  # nobody wants to see any of them: nothing is decided, and nobody looks at what would be folded
        stop = trial.stop
        found = map(unpack_event, entries)
        known = [each for each in found if each.recorded_at < stop and each.known_at < stop]
        # Nobody has recorded which of two threads came first within one commit; their ids decide.
        return sorted(known, key=lambda each: (each.known_at, each.recorded_at, each.thread, each.sequence))

    def _life(self, side: Side, events: Sequence[Recorded]) -> Life:
        person, start = self._person, self._trial.start
        life = Life(side, person.workspace, person.id, person.identifiers)
        with _unfolded(side):
            for recorded in events:
                if not life.judging and recorded.known_at >= start:
                    life.pass_time(start - 1)
                    life.judging = True
                if not side.leaves_out(recorded.event, life.judging):
                    life.live(recorded)
            if not life.judging:
                life.pass_time(start - 1)
                life.judging = True
            life.pass_time(self._trial.stop - 1)
        return life


class _Unfolded(Exception):
    """A side lacks a projection that somebody asked for."""

    def __init__(self, side: Side, missing: Missing) -> None:
        super().__init__(missing.index)
        self.side = side
        self.index = missing.index
        self.whole = missing.whole


@contextmanager
def _unfolded(side: Side) -> Iterator[None]:
    try:
        yield
    except Missing as missing:
        raise _Unfolded(side, missing) from None


def _as_far_as_asked(pairs: list[Pair], events: Sequence[Recorded], side: Side) -> list[Pair]:
    """Without what the judge was not asked of then, because more had come of an event than may come of one.

    A cascade that is cut ends there: the event at which it was cut may be judged in part, those that came of the same
    and waited behind it are not, and nothing that would have come of any of them is in the log.
    """
    cuts = [each for each in events if each.event.type == CASCADE_CUT]
    if not cuts:
        return pairs
    order = [policy.name for policy in side.catalogue.policies]
    judge = side.judges[0].name
    known = {each.id: each for each in events}
    placed = {(each.thread, each.sequence): each.id for each in events}
    partly, silent = set[str](), set[str]()
    for cut in cuts:
        at, by = known[cut.cause], cut.event.properties["policy"]
        if by not in order or order.index(by) <= order.index(judge):
            partly.add(at.id)
        # What is added stands in the thread of its cause, in the order in which policies are asked of it.
        silent.update(placed[cut.thread, each] for each in range(at.sequence + 1, cut.sequence))
    found = []
    for pair in pairs:
        id = pair.recorded.id
        cause = pair.recorded.cause
        if id not in known and (cause in silent or cause in partly):
            silent.add(id)
        if id in silent:
            pair = pair._replace(new={})
        found.append(_as_far_as_told(pair) if id in partly else pair)
    return found


def _as_far_as_told(pair: Pair) -> Pair:
    """Without what comes after the last that was recorded: more had come of the event than may come of one, and
    whatever the rest said, nothing of it could be recorded."""
    told = max((place for place, name in enumerate(pair.new, 1) if name in pair.old), default=0)
    return pair._replace(new=dict(list(pair.new.items())[:told]))


def _paired(old: Sequence[Judged], new: Sequence[Judged]) -> list[Pair]:
    """What both sides have decided, event by event; an event that only one of them has brought about, too."""
    nothing: Decisions = {}
    before = {each.recorded.id: each.verdicts[0] for each in old}
    pairs = [Pair(each.recorded, before.pop(each.recorded.id, nothing), each.verdicts[0]) for each in new]
    pairs += [Pair(each.recorded, each.verdicts[0], nothing) for each in old if each.recorded.id in before]
    return sorted(pairs, key=lambda pair: pair.recorded.known_at)
