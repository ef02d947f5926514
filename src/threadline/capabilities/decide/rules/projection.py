"""The projection ``decisions``: the last decision of each rule about a person, and the index of all decisions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from threadline.capabilities.decide.rules.acting import STATUSES
from threadline.capabilities.decide.rules.events import DECISION, DECISION_MADE
from threadline.capabilities.decide.rules.shadowing import TABLE as SHADOWS
from threadline.capabilities.decide.rules.shadowing import is_shadow, mark_of
from threadline.kernel.event import Recorded
from threadline.kernel.merging import merge_entries, newest
from threadline.kernel.names import NAME
from threadline.kernel.projection import Depends, Faster, Index, Projection, Row
from threadline.kernel.time import EARLIEST, LATEST, format_time, newest_first_key
from threadline.kernel.view_parts import Parts, values

TABLE = "decision"
SHARDS = "0123456789abcdef"
"""The first digits of ids. The decisions of one rule lie in so many partitions, each with the newest first."""
RULES_PER_PERSON = 20
"""Rules whose last decision is kept of one person: those that spoke last."""

State = dict[str, list[Any]]
"""Rule -> [occurred_at, id, version, status] of the newest decision."""


def decision_of(recorded: Recorded) -> tuple[str, int, str] | None:
    """The rule, its version and its status; None for what is not the id of a decision."""
    event = recorded.event
    get = event.properties.get
    rule, version, status = get("rule"), get("version"), get("status")
    # Readers of the log ask as well: an event of this type from outside is about rules of another system.
    if not DECISION.may_be_from(event) or type(rule) is not str or NAME.fullmatch(rule) is None:
        return None
    return (rule, version, status) if type(version) is int and status in STATUSES else None


def _fold(state: State, recorded: Recorded) -> State | None:
    decision = decision_of(recorded)
    if decision is None or is_shadow(recorded):
        return None
    rule, version, status = decision
    latest = [recorded.event.occurred_at, recorded.id, version, status]
    before = state.get(rule)
    if before is not None and before[:2] >= latest[:2]:
        return None
    state[rule] = latest
    if len(state) > RULES_PER_PERSON:
        # So many others have spoken later that this one can only come back with a later decision.
        del state[min(state, key=lambda name: state[name][:2])]
    return state


def _merge(first: State, second: State) -> State:
    merged = merge_entries(first, second, newest)
    for rule in sorted(merged, key=lambda name: merged[name][:2])[:-RULES_PER_PERSON]:
        del merged[rule]
    return merged


def _view(state: State, now: int, edges: list[Recorded]) -> dict[str, Any]:
    return {
        rule: {"status": status, "version": version, "decision": id, "at": format_time(min(max(at, EARLIEST), LATEST))}
        for rule, (at, id, version, status) in sorted(state.items())
    }


def partition(workspace: str, rule: str, shard: str) -> str:
    """The partition of a rule's decisions whose ids begin with this digit."""
    return f"{workspace}/{rule}/{shard}"


def _event_rows(recorded: Recorded) -> Iterable[Row]:
    decision = decision_of(recorded)
    if decision is None:
        return ()
    rule, version, status = decision
    sort = f"{newest_first_key(recorded.recorded_at)}.{recorded.id}"
    where = partition(recorded.event.workspace, rule, recorded.id[0])
    if is_shadow(recorded):
        return (Row(SHADOWS, where, sort, mark_of(recorded.event.properties).encode()),)
    return (Row(TABLE, where, sort, f"{version} {status}".encode()),)


DECISIONS = Projection(
    name="decisions",
    version=1,
    handles=frozenset({DECISION_MADE}),
    empty=dict,
    fold=_fold,
    view=_view,
    depends=Depends(parts=Parts(named="", inside=Parts(values("status", "version", "decision", "at")))),
    index=Index(event_rows=_event_rows),
    faster=Faster(merge=_merge),
)
"""It commutes: of each rule it keeps the newest decision, and of rules those with the newest words."""
