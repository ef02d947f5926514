"""Definitions that somebody proposes, until somebody else puts them in force or declines them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from threadline.kernel.documents import Documents, Stored
from threadline.kernel.errors import Conflict, LimitExceeded, NotFound
from threadline.kernel.limits import PROPOSALS_MAX
from threadline.kernel.operation import Context
from threadline.kernel.personal import StoreTable
from threadline.kernel.store import Batch, Delete, Put
from threadline.kernel.typed import prepared

PROPOSAL = "proposal"
"""Table: the proposals of a workspace by section and name."""


@prepared
class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A definition as it was proposed, and what became of it."""

    section: str
    name: str
    text: str
    note: str
    by: str
    at: int
    declined_by: str = ""
    """Empty: it is open."""
    declined_at: int = 0
    reason: str = ""


_PROPOSALS = Documents(PROPOSAL, Proposal)


def proposals(context: Context) -> Iterator[Proposal]:
    """All of the workspace, by section and name."""
    for _, proposal in _PROPOSALS.all(context.engine.store, context.workspace):
        yield proposal


def find(context: Context, section: str, name: str) -> Stored[Proposal] | None:
    """The proposal of this name."""
    return _PROPOSALS.find(context.engine.store, context.workspace, _id(section, name))


def named(context: Context, section: str, name: str) -> Stored[Proposal]:
    """The same; raises `NotFound`."""
    stored = find(context, section, name)
    if stored is None:
        raise NotFound(f"no {section} {name[:64]!r} is proposed", hint="`definitions_proposals` lists them all")
    return stored


def write(context: Context, proposal: Proposal, version: int) -> None:
    """Write a proposal in the place of its version, 0 for none; raises `Conflict` if another was written meanwhile."""
    if not version and sum(1 for _ in proposals(context)) >= PROPOSALS_MAX:
        raise LimitExceeded(f"{PROPOSALS_MAX} definitions are proposed, and more may not be; decline some")
    id = _id(proposal.section, proposal.name)
    _commit(context, _PROPOSALS.put(context.workspace, id, proposal, version))


def remove(context: Context, stored: Stored[Proposal]) -> None:
    """Take a proposal away; raises `Conflict` if another was written meanwhile."""
    _commit(context, removal(context, stored))


def removal(context: Context, stored: Stored[Proposal]) -> Delete:
    """What takes a proposal away in the commit that puts it in force; refused if another was written meanwhile."""
    return _PROPOSALS.delete(context.workspace, _id(stored.document.section, stored.document.name), stored.version)


def _commit(context: Context, write: Put | Delete) -> None:
    if context.engine.store.commit([Batch(writes=[write])])[0] is not None:
        raise Conflict("it was proposed anew meanwhile; look at it again")


def _id(section: str, name: str) -> str:
    return f"{section}/{name}"


PROPOSAL_TABLE = StoreTable(PROPOSAL, "nobody", why="definitions that somebody proposes, for everybody")
