"""Results of what-ifs: those that ran as jobs and those that were saved, and two of the saved side by side."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.rules import what_if_results
from threadline.capabilities.decide.rules.what_if_results import Saved
from threadline.capabilities.decide.whatif.job import JOB_KIND, progress_of
from threadline.capabilities.decide.whatif.operations.runs import WHAT_IF_GROUP, WhatIfId
from threadline.capabilities.decide.whatif.views import MatrixCell, RuleTotals, State, WhatIfView
from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.capabilities.foundation.events.parameters import Next, Page, next_of
from threadline.kernel.disclosure import not_personal
from threadline.kernel.operation import Context, Params, always, operation

JOBS_SHOWN = 100
"""Of the newest jobs of a workspace those that are what-ifs are listed."""


class SavedParams(Page, kw_only=True):
    """Which page."""


@not_personal
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
    """Those that run or ran as jobs, the newest first, and those that were kept, by id."""

    running: list[SavedLine]
    saved: list[SavedLine]
    next: Next = ""


@operation("GET /v1/whatif", WHAT_IF_GROUP, example=SavedParams(limit=20))
def list_(context: Context, params: SavedParams) -> SavedPage:
    """List what-ifs: those among the newest jobs, and those that were saved."""
    saved = what_if_results.all_saved(context, params.cursor, params.limit)
    jobs, _ = context.engine.jobs.page(context.workspace, limit=JOBS_SHOWN)
    running = [progress_of(context, job).view for job in jobs if job.kind == JOB_KIND]
    return SavedPage(
        running=msgspec.convert(running, list[SavedLine], from_attributes=True),
        saved=[_saved_line(item) for item in saved],
        next=next_of(saved, params.limit, lambda item: item.id),
    )


def _saved_line(saved: Saved) -> SavedLine:
    about = {"saved_at": instant(saved.at), "saved_by": saved.by, "note": saved.note}
    return msgspec.convert({**saved.view, **about}, SavedLine)


class CompareParams(Params, kw_only=True):
    """Which two that were kept."""

    one: WhatIfId
    other: WhatIfId


class RuleDifference(msgspec.Struct, kw_only=True):
    """A rule in both."""

    rule: str
    one: RuleTotals | None
    other: RuleTotals | None


@not_personal
class Comparison(msgspec.Struct, kw_only=True):
    """Two what-ifs side by side; numbers are those of `other` less those of `one`."""

    comparable: Annotated[
        bool, Meta(description="Whether both asked about the same time range, people, types and historical events.")
    ]
    people_changed: int
    changed: int
    errors: int
    matrix: Annotated[list[MatrixCell], Meta(description="Cells that differ.")]
    rules: Annotated[list[RuleDifference], Meta(description="Rules that differ.")]
    people_only_in_one: Annotated[list[str], Meta(description="Samples of the one that are none of the other's.")]
    people_only_in_other: list[str]


@operation(
    "GET /v1/whatif/compare",
    WHAT_IF_GROUP,
    is_long=always,
    example=CompareParams(one="0123456789abcdef0123456789abcdef", other="fedcba9876543210fedcba9876543210"),
)
def compare(context: Context, params: CompareParams) -> Comparison:
    """Compare two saved what-ifs: the same history under two candidates, or before and after."""
    first, second = (
        msgspec.convert(what_if_results.saved(context, id).view, WhatIfView) for id in (params.one, params.other)
    )
    asked = [
        (
            result.start,
            result.stop,
            result.historical,
            [sorted(result.asked.get(name, ())) for name in ("people", "types")],
        )
        for result in (first, second)
    ]
    people = [{sample.person for sample in result.samples} for result in (first, second)]
    return Comparison(
        comparable=asked[0] == asked[1],
        people_changed=second.people_changed - first.people_changed,
        changed=second.changed - first.changed,
        errors=second.errors - first.errors,
        matrix=_cells(first.matrix, second.matrix),
        rules=_rules(first.rules, second.rules),
        people_only_in_one=sorted(people[0] - people[1]),
        people_only_in_other=sorted(people[1] - people[0]),
    )


def _cells(first: list[MatrixCell], second: list[MatrixCell]) -> list[MatrixCell]:
    by_key: dict[tuple[str, str], MatrixCell] = {}
    for sign, cells in ((-1, first), (1, second)):
        for cell in cells:
            key = (cell.old, cell.new)
            difference = by_key.setdefault(key, MatrixCell(old=cell.old, new=cell.new, same=0, changed=0))
            difference.same += sign * cell.same
            difference.changed += sign * cell.changed
    return [cell for _, cell in sorted(by_key.items()) if cell.same or cell.changed]


def _rules(first: list[RuleTotals], second: list[RuleTotals]) -> list[RuleDifference]:
    here, there = ({totals.rule: totals for totals in rules} for rules in (first, second))
    return [
        RuleDifference(rule=rule, one=here.get(rule), other=there.get(rule))
        for rule in sorted({*here, *there})
        if here.get(rule) != there.get(rule)
    ]
