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
from threadline.engine.interpreter import gc_deferred
from threadline.engine.simulation.sandbox import Decided, SimulatedPerson, VariantsDiverged
from threadline.engine.simulation.variant import ProjectionNotFolded, Variant
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Recorded
from threadline.kernel.policy import CASCADE_CUT
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


def _variant(spec: VariantSpec, *others: Evaluator, explaining: bool = False) -> Variant:
    """The variant of a specification, with the evaluators of the ``others`` beside its own."""
    evaluator = spec.explaining if explaining else spec.evaluator
    assert isinstance(spec.catalogue, Catalogue), "a variant is made of a catalogue of the engine"
    return Variant(spec.catalogue, (evaluator, *others), spec.replayed, spec.shared)


def simulation(
    old: VariantSpec,
    new: VariantSpec,
    start: int,
    stop: int,
    tally: Tally,
    *,
    endings: tuple[Ending, Ending] | None = None,
    recorded_decision: RecordedDecision | None = None,
) -> Simulation:
    """The simulation of two variants. Where both fold alike, one simulated person serves both as long as possible."""
    alike = old.catalogue is new.catalogue and old.replayed == new.replayed
    return Simulation(
        _variant(old),
        _variant(new),
        _variant(old, new.evaluator) if alike else None,
        (_variant(old, explaining=True), _variant(new, explaining=True)),
        start,
        stop,
        tally,
        endings,
        recorded_decision,
    )


@dataclass(frozen=True)
class Simulation:
    """Two variants, and the range of time in which they are compared."""

    old: Variant
    new: Variant
    shared: Variant | None
    """Both evaluators beside one history, until their wishes differ; None: the variants fold differently."""
    explaining: tuple[Variant, Variant]
    """The same two variants with evaluators who give every reason."""
    start: int
    stop: int
    tally: Tally
    endings: tuple[Ending, Ending] | None = None
    """What is compared of the views at the end, on each variant."""
    recorded_decision: RecordedDecision | None = None
    """Reads (event, by what, decision) from an event of the log: the old variant is what was recorded."""

    @property
    def variants(self) -> tuple[Variant, ...]:
        """All variants that may be folded."""
        return (self.old, self.new, *self.explaining, *(() if self.shared is None else (self.shared,)))

    @property
    def epoch(self) -> int:
        """Grows whenever events matter that did not before."""
        return sum(variant.epoch for variant in self.variants)

    def wanted(self, event_type: str) -> bool:
        """Whether events of a type matter to any variant."""
        return self.recorded_decision is not None or any(variant.step(event_type).matters for variant in self.variants)


def run(
    store: Store,
    catalogue: Catalogue,
    workspace: str,
    simulation: Simulation,
    *,
    after: Key | None = None,
    people: Sequence[str] | None = None,
) -> Iterator[PageDone]:
    """Replay everybody's history, or that of ``people`` only, page by page from ``after`` on. Reads the store, and that
    is all: it writes nothing, and there is nothing here that could send."""
    for items, following in _pages(store, after, people):
        count = events = 0
        with gc_deferred():
            everybody = people_of(store, catalogue, items)
            ours = (person for person in everybody if isinstance(person, Person) and person.workspace == workspace)
            chunk: Ahead | None = None
            epoch = 0
            for person, ahead in read_ahead(store, ours, simulation.wanted):
                if ahead is not chunk:
                    chunk, epoch = ahead, simulation.epoch
                count += 1
                events += person.position
                # What was read when fewer events mattered is not enough any more.
                _PersonSimulation(store, simulation, person, ahead if epoch == simulation.epoch else None).run()
        yield PageDone(following, count, events)


def _pages(
    store: Store, after: Key | None, people: Sequence[str] | None
) -> Iterator[tuple[Iterable[Item], Key | None]]:
    if people is not None:
        ids = sorted(id for id in people if after is None or id > after.partition)
        for start in range(0, max(len(ids), 1), PAGE_PEOPLE):
            chosen = ids[start : start + PAGE_PEOPLE]
            items = (item for item in store.get([person_key(id) for id in chosen]) if item is not None)
            more = start + PAGE_PEOPLE < len(ids)
            yield items, person_key(chosen[-1]) if more else None
        return
    while True:
        page = store.scan(PERSON, after=after, limit=PAGE_PEOPLE)
        after = page[-1].key if len(page) == PAGE_PEOPLE else None
        yield page, after
        if after is None:
            return


class _PersonSimulation:
    """One person under both variants. It depends on the events alone, so it can begin again with more folded."""

    def __init__(self, store: Store, simulation: Simulation, person: Person, ahead: Ahead | None) -> None:
        self._store = store
        self._ahead = ahead
        self._simulation = simulation
        self._person = person
        self._ends: tuple[Any, Any] | None = None
        self._cuts = 0

    def run(self) -> None:
        """Replay both variants and count them; an error is this person's alone."""
        simulation, id = self._simulation, self._person.id
        try:
            pairs = self._completed(self._pairs)
            ends, cuts = self._ends, self._cuts
            if cuts:
                simulation.tally.cut(cuts)
            if simulation.tally.take(id, pairs):
                simulation.tally.explain(id, pairs)
                with suppress(Exception):  # it is counted; of what cannot be explained further that much is known
                    simulation.tally.explain(id, self._completed(self._explained))
            if ends is not None:
                simulation.tally.end(id, *ends)
        except Exception as error:  # noqa: BLE001 — whatever a candidate does to one history must not stop the others
            simulation.tally.fail(id, f"{type(error).__name__}: {error}")

    def _completed(self, attempt: Callable[[], list[Pair]]) -> list[Pair]:
        while True:
            try:
                return attempt()
            except _Unfolded as unfolded:
                # It stays folded for the people after, so that this happens a few times and not for each of them.
                unfolded.variant.fold_also(unfolded.index, unfolded.whole)
                self._ahead = None  # more events matter than were read

    def _pairs(self) -> list[Pair]:
        simulation = self._simulation
        self._ends = None
        if simulation.shared is not None and simulation.recorded_decision is None:
            try:
                simulated = self._simulated(simulation.shared, self._events((simulation.shared,)))
                return [Pair(decided.recorded, *decided.decisions) for decided in simulated.decided]
            except VariantsDiverged:
                pass
        return self._apart(simulation.old, simulation.new)

    def _explained(self) -> list[Pair]:
        return self._apart(*self._simulation.explaining)

    def _apart(self, old: Variant, new: Variant) -> list[Pair]:
        simulation = self._simulation
        events = self._events((old, new))
        there = self._simulated(new, events)
        self._cuts = there.cuts
        if simulation.recorded_decision is not None:
            # What was left out of the thread has no decisions, and nothing marks which part that is.
            if any(event.event.type == CASCADE_CUT and event.known_at >= simulation.start for event in events):
                raise InvalidValue(f"{CASCADE_CUT}: not all that came of an event was recorded, so nothing is compared")
            return _paired(self._recorded_decisions(events), there.decided)
        here = self._simulated(old, events)
        if simulation.endings is not None:
            ends = []
            for variant, simulated, ending in ((old, here, simulation.endings[0]), (new, there, simulation.endings[1])):
                with _unfolded(variant):
                    ends.append(ending(simulated.at_end(simulation.stop)))
            self._ends = (ends[0], ends[1])
        return _paired(here.decided, there.decided)

    def _recorded_decisions(self, events: Sequence[Recorded]) -> list[Decided]:
        """What was recorded, as if it were decided now."""
        assert self._simulation.recorded_decision is not None
        decisions: dict[str, dict[str, Any]] = {}
        for recorded in events:
            found_decision = self._simulation.recorded_decision(recorded)
            if found_decision is not None:
                event, name, verdict = found_decision
                decisions.setdefault(event, {})[name] = verdict
        return [
            Decided(recorded, (decisions[recorded.id],))
            for recorded in events
            if recorded.id in decisions and self._simulation.start <= recorded.known_at
        ]

    def _events(self, variants: Sequence[Variant]) -> list[Recorded]:
        """The person's events in the order in which they became known, those left out that change nothing."""
        simulation = self._simulation
        entries = [
            entry
            for entry in thread_entries(self._store, self._person.heads, self._ahead)
            if simulation.recorded_decision or any(variant.step(entry.type).matters for variant in variants)
        ]
        if len(variants) == 1 and not any(variants[0].step(entry.type).reactors for entry in entries):
            return []  # nothing reacts to any of them, and so nothing is decided
        stop = simulation.stop
        events = map(unpack_event, entries)
        known = [event for event in events if event.recorded_at < stop and event.known_at < stop]
        # Nobody has recorded which of two threads came first within one commit; their ids decide.
        return sorted(known, key=lambda event: (event.known_at, event.recorded_at, event.thread, event.sequence))

    def _simulated(self, variant: Variant, events: Sequence[Recorded]) -> SimulatedPerson:
        person, start = self._person, self._simulation.start
        simulated = SimulatedPerson(variant, person.workspace, person.id, person.identifiers)
        with _unfolded(variant):
            for recorded in events:
                if not simulated.evaluating and recorded.known_at >= start:
                    simulated.pass_time(start - 1)
                    simulated.evaluating = True
                if not variant.leaves_out(recorded.event, simulated.evaluating):
                    simulated.replay(recorded)
            if not simulated.evaluating:
                simulated.pass_time(start - 1)
                simulated.evaluating = True
            simulated.pass_time(self._simulation.stop - 1)
        return simulated


class _Unfolded(Exception):
    """A variant lacks a projection that was read."""

    def __init__(self, variant: Variant, missing: ProjectionNotFolded) -> None:
        super().__init__(missing.index)
        self.variant = variant
        self.index = missing.index
        self.whole = missing.whole


@contextmanager
def _unfolded(variant: Variant) -> Iterator[None]:
    try:
        yield
    except ProjectionNotFolded as missing:
        raise _Unfolded(variant, missing) from None


def _paired(old: Sequence[Decided], new: Sequence[Decided]) -> list[Pair]:
    """What both variants have decided, event by event; an event that only one of them has brought about, too."""
    nothing: Decisions = {}
    before = {decided.recorded.id: decided.decisions[0] for decided in old}
    pairs = [Pair(decided.recorded, before.pop(decided.recorded.id, nothing), decided.decisions[0]) for decided in new]
    pairs += [Pair(decided.recorded, decided.decisions[0], nothing) for decided in old if decided.recorded.id in before]
    return sorted(pairs, key=lambda pair: pair.recorded.known_at)
