"""Which version of a rule was in force when, by its log and by what the definitions have declared."""

from __future__ import annotations

from typing import NamedTuple

from threadline.capabilities.decide.rules.definition import Rule
from threadline.capabilities.decide.rules.policy import POLICY
from threadline.capabilities.decide.rules.repository import active_rules_of, all_transitions, compiled, written
from threadline.kernel.canonical import read_canonical
from threadline.kernel.errors import NotFound
from threadline.kernel.operation import Context


class InForce(NamedTuple):
    """Which version was in force at an instant, and since when."""

    version: int
    since: int
    declared: bool


def in_force(context: Context, id: str, at: int) -> InForce | None:
    """By the log, without regard to what the version itself says of when it is effective; None: none was."""
    latest = declared = None
    for transition in all_transitions(context, id):
        if transition.at > at:
            continue  # clocks of several processes need not agree on the order
        if transition.to == "active":
            latest = InForce(transition.version, transition.at, False)
        elif transition.to == "retired" and latest is not None and latest.version == transition.version:
            latest = None
    # What the definitions declare stands before what was written under the same id, which counts again without it.
    for since, version in context.engine.definition_history.transitions(POLICY, id):
        if since > at:
            continue
        declared = InForce(version, since, True) if version else None
        if latest is not None and not version:
            latest = latest._replace(since=max(latest.since, since))
    return declared or latest


def rule_at(context: Context, id: str, version: int) -> Rule:
    """A version of a rule, wherever it comes from, first of all from the definitions; raises `NotFound`."""
    return _declared_at(context, id, version) or compiled(written(context, id, version).content)


def rules_at(context: Context, id: str, version: int) -> list[Rule]:
    """What was ever in force as a version of a rule: two, where its number was written here and declared otherwise.

    Raises `NotFound`.
    """
    declared = _declared_at(context, id, version)
    try:
        other = compiled(written(context, id, version).content)
    except NotFound:
        if declared is None:
            raise
        return [declared]
    return [other] if declared is None or declared.hash == other.hash else [declared, other]


def _declared_at(context: Context, id: str, version: int) -> Rule | None:
    declared = active_rules_of(context).declared.get(id)
    if declared is not None and declared.version == version:
        return declared
    data = context.engine.definition_history.content(POLICY, id, version)
    return None if data is None else compiled(read_canonical(data))
