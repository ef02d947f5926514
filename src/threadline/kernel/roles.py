"""Roles of the people who use the console, and which operations each of them may call."""

from __future__ import annotations

from typing import Any, Literal, Protocol, get_args

Role = Literal["viewer", "support", "marketer", "operator", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Of viewer, marketer, operator and admin each may what those before it may. Support may read, and do what a person who
writes in asks for; an admin may that as well."""

SUPPORTING = frozenset(
    {
        "consent_change",
        "erasures_list",
        "erasures_show",
        "memory_remember",
        "memory_retract",
        "memory_unretract",
        "people_erase",
        "people_export",
        "people_merge",
        "people_unmerge",
    }
)
"""Operations that support may call besides reading: merge two people and undo it, correct a fact, unsubscribe and
subscribe, export, and erase with its certificate."""

_MARKETING = frozenset(
    {
        "alerts",
        "broadcasts",
        "consent",
        "features",
        "feedback",
        "journeys",
        "leaderboards",
        "mail",
        "segments",
        "suppression",
    }
)
"""Groups of which a marketer may call everything, whatever scope a token would need."""
_OPERATING = frozenset(
    {
        "definitions",
        "effects",
        "gallery",
        "jobs",
        "messages",
        "people",
        "quarantine",
        "rejected",
        "rules",
        "search",
        "webhooks",
        "what_if",
    }
)
"""The same for an operator."""
_OF_ACCOUNTS = frozenset({"definitions", "gallery", "rules", "what_if"})
"""Of these whoever signs in with a token may call no more than the token may by itself: one that sends events must not
decide which rules and definitions count."""
_ADMIN_ONLY = frozenset({"people_erase", "people_export"})
"""Operations of these groups that an operator may not call: they cannot be undone, or hand out all of a person's data.
"""


class Asked(Protocol):
    """What a role is asked about; an `Operation` is one."""

    @property
    def name(self) -> str:
        """Such as `segments_members`."""
        ...

    @property
    def group(self) -> Any:
        """Its `Group`, or None."""
        ...

    @property
    def scope(self) -> str:
        """What a token must hold for it."""
        ...


def allows(role: Role, operation: Asked, *, by_token: bool = False) -> bool:
    """Whether somebody with this role may call an operation; ``by_token``: they signed in with one.

    What an operation guards with the scope admin for some parameters (`Operation.guarded`) is an admin's alone.
    """
    if role == "admin" or operation.scope == "read":
        return True
    if role == "support":
        return operation.name in SUPPORTING
    if role == "viewer" or operation.name in _ADMIN_ONLY:
        return False
    group = "" if operation.group is None else operation.group.name
    if by_token and group in _OF_ACCOUNTS:
        return operation.scope == "write"
    return operation.scope == "write" or group in _MARKETING or (role == "operator" and group in _OPERATING)


def role_of_scopes(scopes: tuple[str, ...]) -> Role:
    """The role of whoever signs in with a token of these scopes."""
    return "admin" if "admin" in scopes else "operator" if "write" in scopes else "viewer"
