"""Which state a version of a rule may go to: draft, tested, active, retired."""

from __future__ import annotations

from typing import Literal

from threadline.kernel.errors import Conflict

State = Literal["draft", "tested", "active", "retired"]

TRANSITIONS: dict[State, frozenset[State]] = {
    "draft": frozenset({"tested", "active", "retired"}),
    "tested": frozenset({"active", "retired"}),
    "active": frozenset({"retired"}),
    "retired": frozenset({"active"}),
}
"""From which state a version may go to which. A retired version may become active: that is how a change is undone."""


def refuse_transition(id: str, version: int, now: State, to: State, *, untested: bool) -> None:
    """Raise `Conflict` where a version may not go to a state; a draft becomes active only if it may be ``untested``."""
    if to not in TRANSITIONS[now]:
        raise Conflict(f"version {version} of rule {id!r} is {now} and cannot become {to}")
    if to == "active" and now == "draft" and not untested:
        raise Conflict(
            f"version {version} of rule {id!r} is a draft that nobody has tested",
            hint="Mark it as tested first, or activate it with `untested`.",
        )


def refuse_shadow(id: str, version: int, now: State) -> None:
    """Raise `Conflict` where a version may not be asked of live events beside the active one."""
    if now != "tested":
        raise Conflict(f"version {version} of rule {id!r} is {now}; only a tested version can be a shadow")
