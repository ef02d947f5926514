"""The projection ``decisions``: the last decision of each rule about a person, and the index of all decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from threadline.capabilities.decide.rules.acting import ERROR, STATUSES
from threadline.capabilities.decide.rules.events import DECISION, DECISION_MADE
from threadline.capabilities.decide.rules.policy import SHADOW
from threadline.kernel.event import Recorded
from threadline.kernel.merging import merge_entries, newest
from threadline.kernel.names import NAME
from threadline.kernel.projection import Depends, Faster, Index, Projection, Row
from threadline.kernel.time import EARLIEST, LATEST, format_time, newest_first_key
from threadline.kernel.view_parts import Parts, values

TABLE = "decision"
SHADOW_TABLE = "shadow_decision"
"""Index rows of the decisions of shadows, apart from those that count."""
SHARDS = "0123456789abcdef"
"""The first digits of ids. The decisions of one rule lie in so many partitions, each with the newest first."""
RULES_PER_PERSON = 20
"""Rules whose last decision is kept of one person: those that spoke last."""

State = dict[str, list[Any]]
"""Rule -> [occurred_at, id, version, status] of the newest decision."""


def decision_of(recorded: Recorded) -> tuple[str, int, str] | None:
    """The rule, its version and its status, for readers of the log; None for what is not the id of a decision."""
    # An event of this type from outside is about rules of another system.
    return _decision(recorded.event.properties) if DECISION.may_be_from(recorded.event) else None


def _decision(properties: Mapping[str, Any]) -> tuple[str, int, str] | None:
    rule, version, status = properties.get("rule"), properties.get("version"), properties.get("status")
    if type(rule) is not str or NAME.fullmatch(rule) is None:
        return None
    return (rule, version, status) if type(version) is int and status in STATUSES else None


def _fold(state: State, recorded: Recorded) -> State | None:
    decision = _decision(recorded.event.properties)
    if decision is None or _is_shadow(recorded):
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
    decision = _decision(recorded.event.properties)
    if decision is None:
        return ()
    rule, version, status = decision
    sort = f"{newest_first_key(recorded.recorded_at)}.{recorded.id}"
    where = partition(recorded.event.workspace, rule, recorded.id[0])
    if _is_shadow(recorded):
        return (Row(SHADOW_TABLE, where, sort, _mark_of(recorded.event.properties).encode()),)
    return (Row(TABLE, where, sort, f"{version} {status}".encode()),)


def _is_shadow(recorded: Recorded) -> bool:
    """Whether a decision is only a shadow's."""
    return recorded.event.properties.get("mode") == SHADOW


def _mark_of(properties: Mapping[str, Any]) -> str:
    """What the index row of a shadow's decision says: version, its status, that of what counted, whether alike."""
    beside = properties.get("beside") or {}
    same = "same" if beside.get("same") is True else "changed"
    return f"{properties['version']} {properties['status']} {beside.get('status', ERROR)} {same}"


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
