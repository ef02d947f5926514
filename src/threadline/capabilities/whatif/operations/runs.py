"""A what-if as callers run it: started, watched, cancelled, resumed."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from threadline.capabilities.whatif import saved_results
from threadline.capabilities.whatif.saved_results import Saved
from threadline.capabilities.whatif.simulation import Asked, Needs, Simulation, prepare
from threadline.capabilities.whatif.views import WhatIfView, about, view
from threadline.kernel.errors import Conflict, NotFound
from threadline.kernel.operation import Choice, Context, Group, Operation
from threadline.kernel.ports import WithSimulations, WithStore
from threadline.kernel.simulation import SimulationJob

WHAT_IF_GROUP = Group("what_if", "Try a rule or definitions on history.")

WhatIfId = Annotated[str, Meta(description="The id of a what-if.", min_length=1, max_length=64)]
Note = Annotated[str, Meta(description="What it is for; saved with the result.", max_length=1_000)]


class WhatIfParams(Asked, kw_only=True, forbid_unknown_fields=True):
    """What is tried, on which history, and what becomes of the result."""

    save: Annotated[bool, Meta(description="Save the result in the store. Otherwise nothing is written.")] = False
    note: Note = ""
    wait: Annotated[bool, Meta(description="Answer when it is done instead of at once.")] = False


class Subject(NamedTuple):
    """What a job is about."""

    simulation: Simulation
    save: bool


def keep(context: Context[WithStore], simulation: Simulation, note: str) -> None:
    """Keep the result of a what-if that is done."""
    counts = simulation.tally.counts
    people = counts.people + counts.failed
    plain = msgspec.to_builtins(view(simulation, "done", people, 0, saved=True))
    saved = Saved(id=simulation.id, at=context.now, by=context.source, note=note, about=about(simulation), view=plain)
    saved_results.save(context, saved)


def _started(context: Context[Needs], params: WhatIfParams) -> WhatIfView:
    given = {name: getattr(params, name) for name in Asked.__struct_fields__}
    simulation = prepare(context, Asked(**given))
    running = context.engine.simulations.run(
        simulation.id, context.workspace, Subject(simulation, params.save), simulation.pages,
        lambda: keep(context, simulation, params.note) if params.save else None, wait=params.wait,
    )  # fmt: skip
    if params.save and not running.subject.save:
        raise Conflict(f"what-if {running.id} was started without `save`; ask again when it is done")
    return shown(running)


def is_of_rules(running: SimulationJob) -> bool:
    """Whether a simulation of this process is a what-if of rules: journeys are simulated as well."""
    return isinstance(running.subject, Subject)


def shown(running: SimulationJob) -> WhatIfView:
    """The view of a what-if of this process. Raises `NotFound` for a simulation of something else."""
    if not is_of_rules(running):
        raise NotFound(f"there is no what-if {running.id!r}")
    subject: Subject = running.subject
    return view(
        subject.simulation, running.state, running.people, running.events, problem=running.problem,
        saved=subject.save and running.state == "done", events_in_all=running.events_in_all,
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
    choices=(Choice(("start", "since")), Choice(("rule", "definitions"), required=True)),
    needs=(("version", "rule"), ("content", "rule"), ("against", "rule")),
    example=WhatIfParams(rule="risk-score", version=4, since="90d"),
)


class WhatIfOf(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which what-if."""

    id: WhatIfId


def _find(context: Context[Needs], params: WhatIfOf) -> WhatIfView:
    try:
        return shown(context.engine.simulations.find(context.workspace, params.id))
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
    ended=lambda found: found.state != "running",
)


def _cancel(context: Context[WithSimulations], params: WhatIfOf) -> WhatIfView:
    running = context.engine.simulations.find(context.workspace, params.id)
    running.stop()
    running.wait_for_end()
    return shown(running)


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
    run=lambda context, params: shown(context.engine.simulations.resume(context.workspace, params.id)),
    method="POST",
    path="/v1/whatif/{id}/resume",
    scope="admin",
    shown_on=frozenset({"http", "python"}),
    example=WhatIfOf(id="0123456789abcdef0123456789abcdef"),
)
