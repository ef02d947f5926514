"""A journey as a graph: each step with the step that comes after it, so that a position is the id of a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from threadline.capabilities.foundation.conditions import Conditions
from threadline.capabilities.reach.journeys.actions import Action
from threadline.capabilities.reach.journeys.definition import Journey
from threadline.capabilities.reach.journeys.steps import Send, Step, Wait, steps_of
from threadline.kernel.limits import JOURNEY_MAILS_IN_A_ROW_MAX, JOURNEY_STEPS_MAX

END = ""
"""Where a journey is completed."""


class Node(NamedTuple):
    """A step and where it leads to."""

    id: str
    step: Step
    following: str
    """The step after it."""
    then: str = END
    otherwise: str = END
    branches: tuple[tuple[Conditions, str], ...] = ()

    @property
    def send(self) -> Send | None:
        """The mail, if it is one."""
        return self.step.send

    @property
    def action(self) -> Action | None:
        """What it does besides, if it does anything."""
        return self.step.action

    @property
    def wait(self) -> Wait | None:
        """What is waited for, if it waits."""
        return self.step.wait

    @property
    def ways(self) -> tuple[str, ...]:
        """Every step that may be next."""
        if self.step.exit:
            return (END,)
        if self.step.choice or self.step.condition is not None or (self.wait is not None and self.wait.is_for_event):
            return tuple(dict.fromkeys((*(way for _, way in self.branches), self.then, self.otherwise)))
        return (self.following,)


class Program(NamedTuple):
    """The graph of a journey."""

    first: str
    nodes: Mapping[str, Node]
    """By id, in the order in which they are written."""

    def longest_row(self) -> int:
        """The most mails and actions on a way without a wait."""
        rows: dict[str, int] = {END: 0}
        longest = 0
        # Whatever a step leads to is written after it: the reverse order needs no recursion.
        for node in reversed([*self.nodes.values()]):
            row = (node.send is not None or node.action is not None) + max(rows[way] for way in node.ways)
            longest = max(longest, row)
            rows[node.id] = 0 if node.wait is not None else row
        return longest


def compiled(journey: Journey) -> Program:
    """The graph of a journey that has passed `mistakes`."""
    nodes: dict[str, Node] = {}
    first = _sequence(journey.steps, "", END, nodes)
    order = {id: number for number, id in enumerate(_ids(journey.steps, ""))}
    return Program(first, {id: nodes[id] for id in sorted(nodes, key=order.__getitem__)})


def mistakes(journey: Journey) -> Iterator[str]:
    """What is wrong with the steps taken together."""
    ids = [*_ids(journey.steps, ""), *(mail.id for mail in journey.events if mail.id)]
    twice = sorted({id for id in ids if ids.count(id) > 1})
    for id in twice:
        yield f"two steps have the id {id!r}; rename one"
    if len(ids) > JOURNEY_STEPS_MAX:
        yield f"there are {len(ids):,} steps; at most {JOURNEY_STEPS_MAX} are allowed, make two journeys of it"
    elif not twice and (row := compiled(journey).longest_row()) > JOURNEY_MAILS_IN_A_ROW_MAX:
        what = "mails and actions" if any(True for _ in journey.actions) else "mails"
        most = JOURNEY_MAILS_IN_A_ROW_MAX
        yield f"{row} {what} follow each other without a wait; at most {most} may, put in a `wait`"
    if not any(True for _ in journey.sends) and not any(True for _ in journey.actions):
        yield "no step does anything; put in a `send`, or an action such as `tag`"
    for step in steps_of(journey.steps):
        if step.wait is not None and step.wait.is_for_event and not step.wait.timeout and not journey.timeout:
            yield "a `wait` for an event has no `timeout`, and the journey none either: people would stay for ever"


def circles(journeys: Mapping[str, Journey]) -> Iterator[tuple[str, str]]:
    """Journeys that start themselves, if only by others, without a wait on the way; each with what is wrong."""
    starts = {name: _started_at_once(compiled(journey)) for name, journey in journeys.items()}
    for name in journeys:
        ways: list[tuple[str, ...]] = [(name, other) for other in starts[name]]
        seen = set[str]()
        while ways:
            *before, last = ways.pop()
            if last == name:
                way = " → ".join((*before, last))
                yield name, f"it would start again without end: {way}; put a `wait` before a `start` of these"
                break
            if last not in seen:
                seen.add(last)
                ways += [(*before, last, other) for other in starts.get(last, ())]


def _started_at_once(program: Program) -> tuple[str, ...]:
    """The journeys that one starts in the moment in which it begins."""
    ways, seen, started = [program.first], {END}, dict[str, None]()
    while ways:
        id = ways.pop()
        if id in seen:
            continue
        seen.add(id)
        node = program.nodes[id]
        if node.action is not None and node.action.kind == "start":
            started[node.action.journey] = None
        if node.wait is None:
            ways += node.ways
    return tuple(started)


class Named(NamedTuple):
    """A step, its id, and the sequences in it, each with what the ids there begin with: branches, steps, then, else."""

    id: str
    step: Step
    inner: list[tuple[str, tuple[Step, ...]]]


def named_steps(steps: tuple[Step, ...], prefix: str) -> Iterator[Named]:
    """The steps of a sequence with their ids; ``prefix`` is what those begin with that are made of positions."""
    for number, step in enumerate(steps, 1):
        id = step.id or f"{prefix}{number}"
        branches = [(f"{id}.{position}.", branch.steps) for position, branch in enumerate(step.choice, 1)]
        inner = [(f"{id}.", step.steps), (f"{id}.then.", step.then), (f"{id}.else.", step.otherwise)]
        yield Named(id, step, [*branches, *inner])


def _ids(steps: tuple[Step, ...], prefix: str) -> Iterator[str]:
    for named in named_steps(steps, prefix):
        yield named.id
        for begins, inner in named.inner:
            yield from _ids(inner, begins)


def _sequence(steps: tuple[Step, ...], prefix: str, after: str, nodes: dict[str, Node]) -> str:
    """Add the steps of a sequence; returns where it begins, which is ``after`` if it is empty."""
    for id, step, sequences in reversed([*named_steps(steps, prefix)]):
        ways = [_sequence(inner, begins, after, nodes) for begins, inner in sequences]
        *branches, inside, then, otherwise = ways
        if step.steps:
            after = inside
            continue
        choices = zip((branch.conditions for branch in step.choice), branches, strict=True)
        nodes[id] = Node(id, step, after, then, otherwise, tuple(choices))
        after = id
    return after
