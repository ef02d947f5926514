"""What-ifs as callers run them: started, watched, cancelled, taken up again, kept and compared."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.events.forms import Instant, instant
from threadline.capabilities.events.parameters import Page, next_of
from threadline.capabilities.whatif import saved_results
from threadline.capabilities.whatif.saved_results import Saved
from threadline.capabilities.whatif.simulation import Asked, Needs, Simulation, prepare
from threadline.capabilities.whatif.views import MatrixCell, RuleTotals, State, WhatIfView, about, view
from threadline.kernel.errors import NotFound
from threadline.kernel.operation import Context, Group, Operation
from threadline.kernel.ports import (
    WithSimulations,
    WithStore,
)

WHAT_IF_GROUP = Group("what_if", "Try a rule or definitions on history.")

WhatIfId = Annotated[str, Meta(description="The id of a what-if.", min_length=1, max_length=64)]
Note = Annotated[str, Meta(description="What it is for; saved with the result.", max_length=1_000)]


class WhatIfParams(Asked, kw_only=True, forbid_unknown_fields=True):
    """What is tried, on which history, and what becomes of the result."""

    save: Annotated[bool, Meta(description="Save the result in the store. Otherwise nothing is written.")] = False
    note: Note = ""
    wait: Annotated[bool, Meta(description="Answer when it is done instead of at once.")] = False


class Subject:
    """What is kept of a what-if while its process lives."""

    def __init__(self, context: Context[WithStore], simulation: Simulation, save: bool, note: str) -> None:
        self.context = context
        self.simulation = simulation
        self.save = save
        self.note = note
        self.saved = False

    def finish(self, ran: Subject) -> None:
        """Keep the result, if that is wanted and was not done; ``ran`` is who asked the same first."""
        if self.save and not ran.saved:
            keep(self.context, ran.simulation, self.note)
            ran.saved = True


def keep(context: Context[WithStore], simulation: Simulation, note: str) -> None:
    """Keep the result of a what-if that is done."""
    counts = simulation.tally.counts
    people = counts.people + counts.failed
    plain = msgspec.to_builtins(view(simulation, "done", people, 0, saved=True))
    kept = Saved(id=simulation.id, at=context.now, by=context.source, note=note, about=about(simulation), view=plain)
    saved_results.save(context, kept)


def _started(context: Context[Needs], params: WhatIfParams) -> WhatIfView:
    given = {name: getattr(params, name) for name in Asked.__struct_fields__}
    simulation = prepare(context, Asked(**given))
    subject = Subject(context, simulation, params.save, params.note)
    running = context.engine.simulations.run(
        simulation.id, context.workspace, subject, simulation.pages, subject.finish, wait=params.wait
    )
    return _shown(running)


def _shown(running: Any) -> WhatIfView:
    subject: Subject = running.subject
    state: State = running.state
    return view(
        subject.simulation, state, running.people, running.events, saved=subject.saved,
        problem=running.problem, events_in_all=running.events_in_all,
    )  # fmt: skip


WHAT_IF = Operation(
    name="what_if_run",
    group=WHAT_IF_GROUP,
    summary="Try a rule or definitions on history, in a sandbox, and show what would have been different.",
    params=WhatIfParams,
    result=WhatIfView,
    run=_started,
    method="POST",
    path="/v1/whatif",
    scope="admin",
    shown_on=frozenset({"http", "python"}),
    example=WhatIfParams(rule="risk-score", version=4, since="90d"),
)


class WhatIfOf(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which what-if."""

    id: WhatIfId


def _find(context: Context[Needs], params: WhatIfOf) -> WhatIfView:
    try:
        return _shown(context.engine.simulations.find(context.workspace, params.id))
    except NotFound:
        return msgspec.convert(saved_results.saved(context, params.id).view, WhatIfView)


STATUS = Operation(
    name="what_if_status",
    group=WHAT_IF_GROUP,
    summary="Show a what-if: its progress, and its result once it is done.",
    params=WhatIfOf,
    result=WhatIfView,
    run=_find,
    method="GET",
    path="/v1/whatif/{id}",
    example=WhatIfOf(id="0123456789abcdef0123456789abcdef"),
)


def _cancel(context: Context[WithSimulations], params: WhatIfOf) -> WhatIfView:
    running = context.engine.simulations.find(context.workspace, params.id)
    running.stop()
    running.wait_for_end()
    return _shown(running)


CANCEL = Operation(
    name="what_if_cancel",
    group=WHAT_IF_GROUP,
    summary="Cancel a what-if: it stops after the people it is working on, keeps its counts, and can be resumed.",
    params=WhatIfOf,
    result=WhatIfView,
    run=_cancel,
    method="POST",
    path="/v1/whatif/{id}/cancel",
    scope="admin",
    shown_on=frozenset({"http", "python"}),
    example=WhatIfOf(id="0123456789abcdef0123456789abcdef"),
)

RESUME = Operation(
    name="what_if_resume",
    group=WHAT_IF_GROUP,
    summary="Resume a cancelled what-if where it stopped.",
    params=WhatIfOf,
    result=WhatIfView,
    run=lambda context, params: _shown(context.engine.simulations.resume(context.workspace, params.id)),
    method="POST",
    path="/v1/whatif/{id}/resume",
    scope="admin",
    shown_on=frozenset({"http", "python"}),
    example=WhatIfOf(id="0123456789abcdef0123456789abcdef"),
)

# --- what was kept ----------------------------------------------------------------------------


class SavedParams(Page, kw_only=True, forbid_unknown_fields=True):
    """Which page."""


class SavedLine(msgspec.Struct, kw_only=True):
    """A what-if in a list."""

    id: str
    state: State
    new: str
    old: str
    saved_at: Instant | None = None
    saved_by: str = ""
    note: str = ""
    changed: int
    decisions: int
    errors: int


class SavedPage(msgspec.Struct, kw_only=True):
    """Those that run or ran in this process, the newest first, and those that were kept, by id."""

    running: list[SavedLine]
    saved: list[SavedLine]
    next: Annotated[str, Meta(description="Where the next page of those kept begins; empty at the end.")] = ""


def _listed(context: Context[Needs], params: SavedParams) -> SavedPage:
    kept = saved_results.all_saved(context, params.cursor, params.limit)
    return SavedPage(
        running=[_line(_shown(each)) for each in context.engine.simulations.of(context.workspace)],
        saved=[_kept_line(each) for each in kept],
        next=next_of(kept, params.limit, lambda each: each.id),
    )


def _line(shown: WhatIfView) -> SavedLine:
    return SavedLine(
        id=shown.id, state=shown.state, new=shown.new, old=shown.old, changed=shown.changed, decisions=shown.decisions,
        errors=shown.errors,
    )  # fmt: skip


def _kept_line(kept: Saved) -> SavedLine:
    line = _line(msgspec.convert(kept.view, WhatIfView))
    line.saved_at, line.saved_by, line.note = instant(kept.at), kept.by, kept.note
    return line


LIST = Operation(
    name="what_if_list",
    group=WHAT_IF_GROUP,
    summary="List what-ifs: those of this process and those that were saved.",
    params=SavedParams,
    result=SavedPage,
    run=_listed,
    method="GET",
    path="/v1/whatif",
    example=SavedParams(),
)


class CompareParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which two that were kept."""

    one: WhatIfId
    other: WhatIfId


class RuleDifference(msgspec.Struct, kw_only=True):
    """A rule in both."""

    rule: str
    one: RuleTotals | None
    other: RuleTotals | None


class CellDifference(msgspec.Struct, kw_only=True):
    """Answers that went from one status to another, in the one less in the other."""

    old: str
    new: str
    same: int
    changed: int


class Comparison(msgspec.Struct, kw_only=True):
    """Two what-ifs side by side; of numbers the other's less the one's."""

    comparable: Annotated[
        bool, Meta(description="Whether both asked about the same time range, people, types and historical events.")
    ]
    people_changed: int
    changed: int
    errors: int
    matrix: Annotated[list[CellDifference], Meta(description="Cells that differ.")]
    rules: Annotated[list[RuleDifference], Meta(description="Rules that differ.")]
    people_only_in_one: Annotated[list[str], Meta(description="Samples of the one that are none of the other's.")]
    people_only_in_other: list[str]


_RANGE = ("people", "types")


def _compare(context: Context[WithStore], params: CompareParams) -> Comparison:
    one, other = (
        msgspec.convert(saved_results.saved(context, id).view, WhatIfView) for id in (params.one, params.other)
    )
    ranges = [
        (shown.start, shown.stop, shown.historical, [sorted(shown.asked.get(name, ())) for name in _RANGE])
        for shown in (one, other)
    ]
    people = [{sample.person for sample in shown.samples} for shown in (one, other)]
    return Comparison(
        comparable=ranges[0] == ranges[1], people_changed=other.people_changed - one.people_changed,
        changed=other.changed - one.changed, errors=other.errors - one.errors,
        matrix=_cells(one.matrix, other.matrix), rules=_rules(one.rules, other.rules),
        people_only_in_one=sorted(people[0] - people[1]), people_only_in_other=sorted(people[1] - people[0]),
    )  # fmt: skip


def _cells(one: list[MatrixCell], other: list[MatrixCell]) -> list[CellDifference]:
    found: dict[tuple[str, str], CellDifference] = {}
    for sign, cells in ((-1, one), (1, other)):
        for cell in cells:
            key = (cell.old, cell.new)
            held = found.setdefault(key, CellDifference(old=cell.old, new=cell.new, same=0, changed=0))
            held.same += sign * cell.same
            held.changed += sign * cell.changed
    return [cell for _, cell in sorted(found.items()) if cell.same or cell.changed]


def _rules(one: list[RuleTotals], other: list[RuleTotals]) -> list[RuleDifference]:
    here, there = ({each.rule: each for each in rules} for rules in (one, other))
    return [
        RuleDifference(rule=rule, one=here.get(rule), other=there.get(rule))
        for rule in sorted({*here, *there})
        if here.get(rule) != there.get(rule)
    ]


COMPARE = Operation(
    name="what_if_compare",
    group=WHAT_IF_GROUP,
    summary="Compare two saved what-ifs: the same history under two candidates, or before and after.",
    params=CompareParams,
    result=Comparison,
    run=_compare,
    method="GET",
    path="/v1/whatif/compare",
    example=CompareParams(one="0123456789abcdef0123456789abcdef", other="fedcba9876543210fedcba9876543210"),
)
